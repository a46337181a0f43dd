package certain

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

func TestListsRepeatNothing(t *testing.T) {
	keyed := func(keys ...string) apiextensions.JSONSchemaProps {
		return apiextensions.JSONSchemaProps{Type: "array", XListType: pointer("map"), XListMapKeys: keys, Items: &apiextensions.JSONSchemaPropsOrArray{
			Schema: &apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{"k": {Type: "string"}, "l": {Type: "number"}}}}}
	}
	setOf := func(kind string) apiextensions.JSONSchemaProps {
		return apiextensions.JSONSchemaProps{Type: "array", XListType: pointer("set"), Items: &apiextensions.JSONSchemaPropsOrArray{Schema: &apiextensions.JSONSchemaProps{Type: kind}}}
	}
	item := func(k, l any) any { return map[string]any{"k": k, "l": l} }
	many := make([]any, fewItems+1)
	for i := range many {
		many[i] = int64(i)
	}
	for _, c := range []struct {
		name string
		list apiextensions.JSONSchemaProps
		is   []any
		want Verdict
	}{
		{"a set", setOf("string"), []any{"a", "b"}, Valid},
		{"a set with an item twice", setOf("string"), []any{"a", "b", "a"}, Unsure},
		{"a set of numbers whose spelling may hide that they are one", setOf("number"), []any{int64(1), 1.0}, Unsure},
		{"a set with null", setOf("string"), []any{"a", nil}, Unsure},
		{"a set that is long", setOf("integer"), many, Unsure},
		{"a map", keyed("k"), []any{item("a", int64(1)), item("b", int64(1))}, Valid},
		{"a map with a key twice", keyed("k"), []any{item("a", int64(1)), item("a", int64(2))}, Unsure},
		{"a map with two keys, of which one differs", keyed("k", "l"), []any{item("a", int64(1)), item("a", int64(2))}, Valid},
		{"a map with two keys, which are one number", keyed("k", "l"), []any{item("a", int64(1)), item("a", 1.0)}, Unsure},
		{"a map with keys that are one text once written", keyed("k", "l"), []any{item("\xff", int64(1)), item("\xfe", int64(1))}, Unsure},
		{"a map with an item without its key", keyed("k"), []any{map[string]any{"l": int64(1)}}, Unsure},
		{"a map with something else", keyed("k"), []any{"a"}, Unsure},
		{"an empty map", keyed("k"), []any{}, Valid},
		{"any other list", apiextensions.JSONSchemaProps{Type: "array", Items: setOf("string").Items}, []any{"a", "a"}, Valid},
	} {
		st, err := structuralschema.NewStructural(&apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{"list": c.list}})
		if err != nil {
			t.Fatal(err)
		}
		if got := NewStructure(st).Distinct(map[string]any{"list": c.is}); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}
