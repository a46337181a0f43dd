package document

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestRoute(t *testing.T) {
	for _, c := range []struct {
		name, path, resource, sub string
		ok                        bool
	}{
		{"the root of the group version", "/api/v1/", "", "", true},
		{"a collection over all namespaces", "/api/v1/pods", "pods", "", true},
		{"a collection in a namespace", "/api/v1/namespaces/{namespace}/pods", "pods", "", true},
		{"an object in a namespace", "/api/v1/namespaces/{namespace}/pods/{name}", "pods", "", true},
		{"a subresource in a namespace", "/api/v1/namespaces/{namespace}/pods/{name}/log", "pods", "log", true},
		{"a namespace itself", "/api/v1/namespaces/{name}", "namespaces", "", true},
		{"a subresource of a namespace", "/api/v1/namespaces/{name}/finalize", "namespaces", "finalize", true},
		{"an old watch path is not served (H12)", "/api/v1/watch/pods", "", "", false},
		{"a path of another group version", "/apis/apps/v1/deployments", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			resource, sub, ok := Route("/api/v1", c.path)
			if resource != c.resource || sub != c.sub || ok != c.ok {
				t.Errorf("Route = %q, %q, %v", resource, sub, ok)
			}
		})
	}
}

func TestKeepDropsWhatNothingRefersTo(t *testing.T) {
	var tight bytes.Buffer
	if err := json.Compact(&tight, []byte(`{"openapi":"3.0.0","info":{},"paths":{
		"/a": {"get": {"responses": {"200": {"schema": {"$ref": "#/components/schemas/A"}}}}},
		"/b": {"get": {"responses": {"200": {"schema": {"$ref": "#/components/schemas/B"}}}}}},
		"components": {"schemas": {
			"A": {"items": {"$ref": "#/components/schemas/Deep"}},
			"B": {"description": "is said in words: {\"$ref\":\"#/components/schemas/Words\"}"},
			"Deep": {"properties": {"me": {"$ref": "#/components/schemas/Deep"}}},
			"Words": {}}}}`)); err != nil {
		t.Fatal(err)
	}
	d, err := Parse(tight.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	names := func() string { return strings.Join(slices.Sorted(maps.Keys(d.Components.Schemas)), " ") }
	d.Keep(func(string) bool { return true })
	if have := names(); have != "A B Deep" {
		t.Errorf("all paths: have %s", have)
	}
	d.Keep(func(path string) bool { return path == "/a" })
	if have := names(); have != "A Deep" || len(d.Paths) != 1 {
		t.Errorf("one path: have %s and %d paths", have, len(d.Paths))
	}
}

func TestOldSchema(t *testing.T) {
	for _, c := range []struct{ name, v3, v2 string }{
		{"a reference moves", `{"$ref":"#/components/schemas/A"}`, `{"$ref":"#/definitions/A"}`},
		{"a reference with text beside it is unwrapped", `{"allOf":[{"$ref":"#/components/schemas/A"}],"description":"x","default":{}}`, `{"$ref":"#/definitions/A","description":"x"}`},
		{"alternatives go", `{"type":"integer","anyOf":[{"minimum":1}],"oneOf":[],"not":{},"allOf":[{"maximum":2},{}]}`, `{"type":"integer"}`},
		{"a number or text is text", `{"format":"int-or-string","oneOf":[{"type":"integer"},{"type":"string"}]}`, `{"format":"int-or-string","type":"string"}`},
		{"a quantity is text", `{"oneOf":[{"type":"string"},{"type":"number"}]}`, `{"type":"string"}`},
		{"a nullable field loses its type and children", `{"type":"object","nullable":true,"properties":{"a":{}},"description":"x"}`, `{"description":"x"}`},
		{"and is no longer required", `{"type":"object","required":["a","b"],"properties":{"a":{"nullable":true},"b":{"type":"string"}}}`, `{"type":"object","required":["b"],"properties":{"a":{},"b":{"type":"string"}}}`},
		{"what keeps unknown fields loses its children", `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{}}}`, `{"x-kubernetes-preserve-unknown-fields":true}`},
		{"a list of nothing known loses its type", `{"type":"array"}`, `{}`},
		{"defaults go at every depth", `{"type":"object","default":{},"additionalProperties":{"type":"array","items":{"type":"string","default":"x"}}}`, `{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"}}}`},
		{"a field called default stays", `{"type":"object","properties":{"default":{"type":"string"},"not":{"type":"string"}}}`, `{"type":"object","properties":{"default":{"type":"string"},"not":{"type":"string"}}}`},
		{"additional properties may be a bool", `{"type":"object","additionalProperties":true}`, `{"type":"object","additionalProperties":true}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var have, want map[string]any
			if err := json.Unmarshal([]byte(c.v3), &have); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(c.v2), &want); err != nil {
				t.Fatal(err)
			}
			oldSchema(have)
			h, _ := json.Marshal(have)
			w, _ := json.Marshal(want)
			if string(h) != string(w) {
				t.Errorf("have %s\nwant %s", h, w)
			}
		})
	}
}

func TestALargeNumberStaysAsWritten(t *testing.T) {
	d := &Document{Components: Components{Schemas: map[string]json.RawMessage{"A": json.RawMessage(`{"maximum":9223372036854775807}`)}}}
	text, err := d.Swagger()
	if err != nil || !strings.Contains(string(text), "9223372036854775807") {
		t.Errorf("%s %v", text, err)
	}
}
