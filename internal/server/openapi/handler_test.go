package openapi_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/util/proto"

	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/internal/server/openapi"
)

// A patchForm is a form of which only the patches matter.
type patchForm []string

func (patchForm) GroupVersionKind() schema.GroupVersionKind       { panic("not asked for") }
func (patchForm) New() runtime.Object                             { panic("not asked for") }
func (patchForm) Decode([]byte) (runtime.Object, []string, error) { panic("not asked for") }
func (patchForm) Encode(runtime.Object) ([]byte, error)           { panic("not asked for") }
func (patchForm) Typed() runtime.Object                           { return nil }
func (f patchForm) Patches() []string                             { return f }

var (
	customPatches  = patchForm{"application/json-patch+json", "application/merge-patch+json"}
	builtinPatches = append(patchForm{"application/strategic-merge-patch+json"}, customPatches...)
)

func builtins() []*resource.Resource {
	one := func(group, plural, kind string, subs ...string) *resource.Resource {
		v := &resource.Version{Name: "v1", Form: builtinPatches, Subresources: map[string]*resource.Subresource{}}
		for _, s := range subs {
			v.Subresources[s] = &resource.Subresource{Name: s}
		}
		return &resource.Resource{Group: group, Plural: plural, Kind: kind, Versions: []*resource.Version{v}}
	}
	return []*resource.Resource{
		one("", "namespaces", "Namespace", "status"), // no finalize
		one("", "configmaps", "ConfigMap"),
		one("coordination.k8s.io", "leases", "Lease"),
		one("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", "status"),
	}
}

// toy returns a custom resource of group toys.example, and counts how often it is described.
func toy(kind string, spec apiextensionsv1.JSONSchemaProps, asked *int) *resource.Resource {
	plural := strings.ToLower(kind) + "s"
	def := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "toys.example", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec},
			}},
		}},
	}}
	return &resource.Resource{
		Group: "toys.example", Plural: plural, Kind: kind, Namespaced: true, Custom: true,
		Versions: []*resource.Version{{Name: "v1", Form: customPatches, OpenAPI: func() (*spec3.OpenAPI, error) {
			*asked++
			return builder.BuildOpenAPIV3(def, "v1", builder.Options{})
		}}},
	}
}

var widgetSpec = apiextensionsv1.JSONSchemaProps{
	Type: "object", Required: []string{"size", "note"},
	Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"size":  {Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte("3")}, AnyOf: []apiextensionsv1.JSONSchemaProps{{Format: "int32"}}},
		"note":  {Type: "string", Nullable: true},
		"other": {Type: "object", XPreserveUnknownFields: new(true), Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": {Type: "string"}}},
	},
}

type fixture struct {
	*resource.Registry
	url string
}

func serve(t *testing.T, with ...*resource.Resource) *fixture {
	t.Helper()
	f := &fixture{Registry: &resource.Registry{}}
	f.Change(nil, append(builtins(), with...)...)
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	server := httptest.NewServer(&openapi.Handler{Catalogue: f.Catalogue, Now: func() time.Time { return now }})
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *fixture) get(t *testing.T, path string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, f.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

func (f *fixture) index(t *testing.T) map[string]string {
	t.Helper()
	_, body := f.get(t, "/openapi/v3")
	var doc struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	at := map[string]string{}
	for key, p := range doc.Paths {
		at[key] = p.ServerRelativeURL
	}
	return at
}

func TestAnswers(t *testing.T) {
	f := serve(t, toy("Widget", widgetSpec, new(int)))
	_, core := f.get(t, "/openapi/v3/api/v1")
	resp, _ := f.get(t, "/openapi/v3/api/v1")
	etag := resp.Header.Get("Etag")
	hash := strings.Trim(etag, `"`)
	if len(hash) != 128 || hash != strings.ToUpper(hash) {
		t.Errorf("the ETag %s is no SHA-512 in upper case", etag)
	}
	if at := f.index(t)["api/v1"]; at != "/openapi/v3/api/v1?hash="+hash {
		t.Errorf("the index says %s, the ETag is %s", at, hash)
	}
	const (
		pb3 = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
		pb2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	)
	for _, c := range []struct {
		name, path string
		headers    []string
		status     int
		want       map[string]string
	}{
		{"any type means JSON (H41)", "/openapi/v3/api/v1", []string{"Accept", "*/*"}, 200, map[string]string{"Content-Type": "application/json", "Etag": etag}},
		{"a trailing slash does not matter", "/openapi/v3/api/v1/", nil, 200, map[string]string{"Etag": etag}},
		{"protobuf by its new name (H41)", "/openapi/v3/api/v1", []string{"Accept", pb3}, 200, map[string]string{"Content-Type": pb3, "Etag": etag}},
		{"protobuf by its old name is sent under the new (H41)", "/openapi/v3/api/v1", []string{"Accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"}, 200, map[string]string{"Content-Type": pb3}},
		{"of two types the first that is offered counts", "/openapi/v3/api/v1", []string{"Accept", "text/html, application/json"}, 200, map[string]string{"Content-Type": "application/json"}},
		{"a type that is not offered (H44)", "/openapi/v3/api/v1", []string{"Accept", "text/html"}, 406, nil},
		{"a type that is refused by quality", "/openapi/v3/api/v1", []string{"Accept", "application/json;q=0"}, 406, nil},
		{"who has it already gets nothing (H42)", "/openapi/v3/api/v1", []string{"If-None-Match", etag}, 304, nil},
		{"who has another gets it", "/openapi/v3/api/v1", []string{"If-None-Match", `"AB"`}, 200, nil},
		{"a current hash may be kept for ever (H43)", "/openapi/v3/api/v1?hash=" + hash, nil, 200, map[string]string{
			"Cache-Control": "public, immutable", "Expires": "Thu, 02 Jan 2031 03:04:05 GMT", "Vary": "Accept"}},
		{"without a hash nothing is said of keeping", "/openapi/v3/api/v1", nil, 200, map[string]string{"Cache-Control": "", "Expires": ""}},
		{"a stale hash leads to the current one (H43)", "/openapi/v3/api/v1?hash=AB", nil, 301, map[string]string{"Location": "/openapi/v3/api/v1?hash=" + hash}},
		{"a group version that is not served (H50)", "/openapi/v3/apis/none.example/v1", nil, 404, map[string]string{"Content-Type": "text/plain; charset=utf-8"}},
		{"version 2 in the name that clients use (H45)", "/openapi/v2", []string{"Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}, 200, map[string]string{"Content-Type": pb2}},
		{"version 2 in the other name (H45)", "/openapi/v2", []string{"Accept", pb2}, 200, map[string]string{"Content-Type": pb2}},
		{"version 2 compressed on request (H45)", "/openapi/v2", []string{"Accept-Encoding", "gzip"}, 200, map[string]string{"Content-Encoding": "gzip", "Content-Type": "application/json"}},
		{"version 2 as it is for who does not take gzip", "/openapi/v2", []string{"Accept-Encoding", "gzip;q=0"}, 200, map[string]string{"Content-Encoding": ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body := f.get(t, c.path, c.headers...)
			if resp.StatusCode != c.status {
				t.Fatalf("%d, want %d: %.200s", resp.StatusCode, c.status, body)
			}
			for name, want := range c.want {
				if have := resp.Header.Get(name); have != want {
					t.Errorf("%s: %q, want %q", name, have, want)
				}
			}
		})
	}
	_, zipped := f.get(t, "/openapi/v2", "Accept-Encoding", "gzip")
	z, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil || !json.Valid(plain) || !json.Valid(core) {
		t.Errorf("not JSON: %v", err)
	}
}

func TestIndexNamesWhatIsServed(t *testing.T) {
	f := serve(t, toy("Widget", widgetSpec, new(int)))
	keys := func() string {
		var have []string
		for key := range f.index(t) {
			have = append(have, key)
		}
		slices.Sort(have)
		return strings.Join(have, " ")
	}
	const builtin = "api api/v1 apis apis/apiextensions.k8s.io apis/apiextensions.k8s.io/v1 apis/coordination.k8s.io apis/coordination.k8s.io/v1"
	if have, want := keys(), builtin+" apis/toys.example/v1 version"; have != want {
		t.Errorf("have %s\nwant %s", have, want)
	}
	f.Change([]schema.GroupResource{{Group: "toys.example", Resource: "widgets"}})
	if have, want := keys(), builtin+" version"; have != want {
		t.Errorf("after the definition went: have %s\nwant %s", have, want)
	}
}

func TestOnlyWhatChangedIsMadeAgain(t *testing.T) {
	var widgets, gears, later int
	gear := toy("Gear", apiextensionsv1.JSONSchemaProps{Type: "object"}, &gears)
	gear.Group = "gears.example"
	f := serve(t, toy("Widget", widgetSpec, &widgets), gear)
	if widgets+gears != 0 {
		t.Error("something was made before it was asked for")
	}
	before := f.index(t)
	f.index(t)
	f.get(t, "/openapi/v3/apis/toys.example/v1")
	f.Change(nil, toy("Widget", apiextensionsv1.JSONSchemaProps{Type: "string"}, &later))
	after := f.index(t)
	if widgets != 1 || gears != 1 || later != 1 {
		t.Errorf("made %d, %d and %d times, want each once", widgets, gears, later)
	}
	if before["apis/toys.example/v1"] == after["apis/toys.example/v1"] {
		t.Error("the schema changed, its hash did not")
	}
	if before["apis/gears.example/v1"] != after["apis/gears.example/v1"] || before["api/v1"] != after["api/v1"] {
		t.Error("a hash changed whose document did not")
	}
}

func TestOneBrokenDefinitionDoesNotBlockTheOthers(t *testing.T) { // rule C110
	broken := toy("Wreck", widgetSpec, new(int))
	broken.Versions[0].OpenAPI = func() (*spec3.OpenAPI, error) { return nil, errors.New("cannot be described") }
	empty := toy("Void", widgetSpec, new(int))
	empty.Versions[0].OpenAPI = func() (*spec3.OpenAPI, error) { return nil, nil }
	f := serve(t, broken, empty, toy("Widget", widgetSpec, new(int)), toy("Gear", widgetSpec, new(int)))
	_, body := f.get(t, "/openapi/v3/apis/toys.example/v1")
	for text, want := range map[string]bool{"example.toys.v1.Widget": true, "example.toys.v1.Gear": true, "Wreck": false} {
		if strings.Contains(string(body), text) != want {
			t.Errorf("it names %s: %v", text, !want)
		}
	}
}

func TestVersion3IsWhatClientsRead(t *testing.T) {
	f := serve(t, toy("Widget", widgetSpec, new(int)))
	client := discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: f.url})
	root := openapi3.NewRoot(client.OpenAPIV3())
	versions, err := root.GroupVersions()
	if err != nil || len(versions) != 4 {
		t.Fatalf("%v %v", versions, err)
	}
	for _, gv := range versions {
		doc, err := root.GVSpec(gv)
		if err != nil {
			t.Fatalf("%s: %v", gv, err)
		}
		for path, item := range doc.Paths.Paths {
			t.Run(path, func(t *testing.T) { checkPath(t, path, item, gv.Group == "toys.example") })
		}
		for name, s := range doc.Components.Schemas {
			if s.Properties["kind"].Type != nil && s.Properties["apiVersion"].Type != nil && s.Extensions["x-kubernetes-group-version-kind"] == nil && !strings.Contains(name, "meta.v1") {
				t.Errorf("%s names no kind (H46)", name)
			}
		}
		if _, err := client.OpenAPIV3().Paths(); err != nil {
			t.Error(err)
		}
	}
	core, err := root.GVSpec(schema.GroupVersion{Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"/api/v1/": true, "/api/v1/namespaces/{namespace}/configmaps/{name}": true, "/api/v1/namespaces/{name}/status": true,
		"/api/v1/namespaces/{name}/finalize": false, "/api/v1/secrets": false,
	} {
		if _, has := core.Paths.Paths[path]; has != want {
			t.Errorf("%s is in the document: %v", path, has)
		}
	}
	if core.Components.Schemas["io.k8s.api.core.v1.Secret"] != nil {
		t.Error("the schema of a resource that is not served is there")
	}
	owners := core.Components.Schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"].Properties["ownerReferences"]
	if owners.Extensions["x-kubernetes-patch-merge-key"] != "uid" || owners.Extensions["x-kubernetes-list-type"] != "map" || owners.Description == "" {
		t.Errorf("what guides a merge is gone (H49): %v", owners.Extensions)
	}
}

// checkPath holds a path to what kubectl looks for (rules H46 to H48).
func checkPath(t *testing.T, path string, item *spec3.Path, custom bool) {
	for method, op := range map[string]*spec3.Operation{"get": item.Get, "put": item.Put, "post": item.Post, "patch": item.Patch, "delete": item.Delete} {
		if op == nil || strings.HasSuffix(path, "/") {
			continue
		}
		if op.Extensions["x-kubernetes-group-version-kind"] == nil || op.Extensions["x-kubernetes-action"] == nil {
			t.Errorf("%s has no kind or action", method)
		}
	}
	if item.Patch == nil {
		return
	}
	if !slices.ContainsFunc(item.Patch.Parameters, func(p *spec3.Parameter) bool { return p.Name == "fieldValidation" && p.In == "query" }) {
		t.Error("PATCH takes no fieldValidation")
	}
	want := builtinPatches
	if custom {
		want = customPatches
	}
	for mediaType := range item.Patch.RequestBody.Content {
		if !slices.Contains(want, mediaType) {
			t.Errorf("PATCH lists %s", mediaType)
		}
	}
	if len(item.Patch.RequestBody.Content) != len(want) {
		t.Errorf("PATCH lists %d types, want %d", len(item.Patch.RequestBody.Content), len(want))
	}
}

func TestVersion2IsWhatClientsRead(t *testing.T) {
	loose := toy("Loose", widgetSpec, new(int))
	loose.Versions[0].OpenAPI = describeLoose
	f := serve(t, toy("Widget", widgetSpec, new(int)), loose)
	client := discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: f.url})
	doc, err := client.OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	models, err := proto.NewOpenAPIData(doc)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"io.k8s.api.core.v1.ConfigMap":         "binaryData:Map data:Map immutable:boolean",
		"io.k8s.api.coordination.v1.LeaseSpec": "acquireTime:Ref holderIdentity:string leaseDurationSeconds:integer leaseTransitions:integer preferredHolder:string renewTime:Ref strategy:string",
		"example.toys.v1.Widget":               "spec:Kind",
		"example.toys.v1.WidgetList":           "items:Array",
		"example.toys.v1.Loose":                "",
	} {
		if have := fields(models.LookupModel(name)); have != want {
			t.Errorf("%s: have %s, want %s", name, have, want)
		}
	}
	spec := models.LookupModel("example.toys.v1.Widget").(*proto.Kind).Fields["spec"].(*proto.Kind)
	if have, want := fields(spec), "note:Arbitrary other:Arbitrary size:integer"; have != want { // rule C108
		t.Errorf("have %s, want %s", have, want)
	}
	if have := fmt.Sprint(spec.RequiredFields); have != "[size]" {
		t.Errorf("required are %s, want [size]: the other may be null", have)
	}
	if spec.Fields["size"].GetDefault() != nil {
		t.Error("a default is left")
	}
}

// describeLoose describes a kind that keeps unknown fields at its root.
func describeLoose() (*spec3.OpenAPI, error) {
	return builder.BuildOpenAPIV3(&apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "toys.example", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "looses", Singular: "loose", Kind: "Loose", ListKind: "LooseList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: new(true),
			}}}},
	}}, "v1", builder.Options{})
}

// fields lists the fields of a model that are its own, with what they are.
func fields(s proto.Schema) string {
	k, ok := s.(*proto.Kind)
	if !ok {
		return ""
	}
	var all []string
	for _, name := range k.Keys() {
		if name == "apiVersion" || name == "kind" || name == "metadata" {
			continue
		}
		what := strings.TrimPrefix(fmt.Sprintf("%T", k.Fields[name]), "*proto.")
		if p, ok := k.Fields[name].(*proto.Primitive); ok {
			what = p.Type
		}
		all = append(all, name+":"+what)
	}
	return strings.Join(all, " ")
}
