package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Swagger returns the OpenAPI v2 document that says of d what v2 can say. It loses
// what kubectl's reader of v2 stumbles over (rule C108): alternatives, the children of
// nullable fields and of those that keep unknown fields, and defaults. A field of one of
// these says less than the truth, never something else. Large numbers stay as they
// are written.
func (d *Document) Swagger() ([]byte, error) {
	parts, err := d.tree()
	if err != nil {
		return nil, err
	}
	paths, definitions := map[string]any{}, map[string]any{}
	for path, item := range member(parts, "paths") {
		paths[path] = oldPath(item.(map[string]any))
	}
	components := member(parts, "components")
	for name, schema := range member(components, "schemas") {
		definitions[name] = oldDefinition(schema.(map[string]any))
	}
	out := map[string]any{
		"swagger":     "2.0",
		"info":        parts["info"],
		"paths":       paths,
		"definitions": definitions,
	}
	if schemes := member(components, "securitySchemes"); schemes != nil {
		var required []any
		for _, name := range slices.Sorted(maps.Keys(schemes)) {
			required = append(required, map[string]any{name: []any{}})
		}
		out["securityDefinitions"], out["security"] = schemes, required
	}
	return json.Marshal(out)
}

func (d *Document) tree() (map[string]any, error) {
	data, err := d.JSON()
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var tree map[string]any
	if err := dec.Decode(&tree); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	return tree, nil
}

// member returns the member of that name if it is an object, else nil.
func member(of map[string]any, name string) map[string]any {
	m, _ := of[name].(map[string]any)
	return m
}

func list(of map[string]any, name string) []any {
	l, _ := of[name].([]any)
	return l
}

var methods = []string{"get", "put", "post", "delete", "options", "head", "patch"}

// oldPath turns a path item of v3, which it takes apart, into one of v2.
func oldPath(item map[string]any) map[string]any {
	if params := list(item, "parameters"); params != nil {
		item["parameters"] = oldParameters(params)
	}
	for _, method := range methods {
		if op := member(item, method); op != nil {
			oldOperation(op)
		}
	}
	return item
}

func oldOperation(op map[string]any) {
	params := oldParameters(list(op, "parameters"))
	consumes := []any{"*/*"}
	if body := member(op, "requestBody"); body != nil {
		schema, types := oldContent(body)
		consumes = types
		param := map[string]any{"in": "body", "name": "body", "schema": schema}
		if body["required"] == true {
			param["required"] = true
		}
		params = append([]any{param}, params...)
		delete(op, "requestBody")
	}
	produces := map[any]bool{}
	for _, r := range member(op, "responses") {
		response := r.(map[string]any)
		if response["content"] == nil {
			continue
		}
		schema, types := oldContent(response)
		for _, t := range types {
			produces[t] = true
		}
		delete(response, "content")
		response["schema"] = schema
	}
	if len(params) > 0 {
		op["parameters"] = params
	}
	op["consumes"], op["schemes"] = consumes, []any{"https"}
	op["produces"] = slices.SortedFunc(maps.Keys(produces), func(a, b any) int {
		return strings.Compare(a.(string), b.(string))
	})
}

// oldContent returns the one schema and the media types of a body or a response.
func oldContent(of map[string]any) (schema map[string]any, types []any) {
	content := member(of, "content")
	for _, mediaType := range slices.Sorted(maps.Keys(content)) {
		types = append(types, mediaType)
		if schema == nil {
			schema = member(member(content, mediaType), "schema")
		}
	}
	if schema == nil {
		schema = map[string]any{}
	}
	oldSchema(schema)
	return schema, types
}

// oldParameters moves what the schema of each parameter says up into the parameter.
func oldParameters(params []any) []any {
	for _, p := range params {
		param := p.(map[string]any)
		if schema := member(param, "schema"); schema != nil {
			delete(param, "schema")
			oldSchema(schema)
			maps.Copy(param, schema)
		}
	}
	return params
}

// oldDefinition is the schema of a whole kind. If any field may be in an object of it, nothing is
// said of its fields: kubectl would refuse those that are not listed.
func oldDefinition(schema map[string]any) map[string]any {
	const gvk = "x-kubernetes-group-version-kind"
	if schema[gvk] != nil && schema["x-kubernetes-preserve-unknown-fields"] == true {
		return map[string]any{"type": "object", gvk: schema[gvk]}
	}
	oldSchema(schema)
	return schema
}

// oldSchema makes a schema of v3 one of v2, in place.
func oldSchema(s map[string]any) {
	if ref, ok := s["$ref"].(string); ok {
		s["$ref"] = oldReference(ref)
	}
	if all := list(s, "allOf"); len(all) == 1 { // v3 says so where v2 has text beside a reference
		if ref, ok := all[0].(map[string]any)["$ref"].(string); ok {
			s["$ref"] = oldReference(ref)
		}
	}
	if s["type"] == nil && (s["format"] == "int-or-string" || quantity(s)) {
		s["type"] = "string" // as its first alternative, or the text form of it, has it
	}
	dropUnsayable(s)
	for _, child := range children(s) {
		oldSchema(child)
	}
}

// quantity tells a schema that is a string or a number.
func quantity(s map[string]any) bool {
	one := list(s, "oneOf")
	return len(one) == 2 && one[0].(map[string]any)["type"] == "string" && one[1].(map[string]any)["type"] == "number"
}

// dropUnsayable drops from s, but not from its children, what v2 or its readers do not know.
func dropUnsayable(s map[string]any) {
	var optional []string // no longer said to be there, for they may be null
	for name, field := range member(s, "properties") {
		if f, ok := field.(map[string]any); ok && f["nullable"] == true {
			optional = append(optional, name)
		}
	}
	required := slices.DeleteFunc(list(s, "required"), func(name any) bool {
		text, _ := name.(string)
		return slices.Contains(optional, text)
	})
	if len(required) == 0 {
		delete(s, "required")
	} else {
		s["required"] = required
	}
	if s["nullable"] == true {
		drop(s, "type", "items", "properties")
	}
	if s["x-kubernetes-preserve-unknown-fields"] == true {
		drop(s, "items", "properties")
		if s["type"] == "object" {
			delete(s, "type")
		}
	}
	if s["type"] == "array" && s["items"] == nil {
		delete(s, "type")
	}
	drop(s, "nullable", "default", "allOf", "anyOf", "oneOf", "not")
}

func drop(from map[string]any, names ...string) {
	for _, name := range names {
		delete(from, name)
	}
}

func children(s map[string]any) (all []map[string]any) {
	for _, field := range member(s, "properties") {
		if f, ok := field.(map[string]any); ok {
			all = append(all, f)
		}
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if child := member(s, name); child != nil {
			all = append(all, child)
		}
	}
	return all
}

func oldReference(ref string) string {
	return "#/definitions/" + strings.TrimPrefix(ref, schemaPrefix)
}
