package table

import (
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func custom(content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: content}
	u.SetName("a")
	return u
}

func TestACustomColumnShowsWhatItsPathLeadsTo(t *testing.T) {
	spec := map[string]any{
		"color": "red", "size": int64(3), "share": 0.5, "on": true, "born": "2026-07-01T11:00:00Z", "odd": "not a time",
		"list": []any{"x", map[string]any{"name": "y", "is": "z"}}, "map": map[string]any{"k": "v"}, "empty": "",
	}
	for _, test := range []struct {
		name, kind, path string
		want             any
	}{
		{"a string", "string", ".spec.color", "red"},
		{"an empty string is not a missing one", "string", ".spec.empty", ""},
		{"a number as a string", "string", ".spec.size", "3"},
		{"a map as a string is JSON", "string", ".spec.map", `{"k":"v"}`},
		{"an item of a list", "string", ".spec.list[0]", "x"},
		{"an item that is picked by a filter", "string", `.spec.list[?(@.name=="y")].is`, "z"},
		{"of several values the first", "string", ".spec.list[*]", "x"},
		{"an integer", "integer", ".spec.size", int64(3)},
		{"a fraction as an integer is cut", "integer", ".spec.share", int64(0)},
		{"a number", "number", ".spec.share", 0.5},
		{"an integer as a number", "number", ".spec.size", 3.0},
		{"a bool", "boolean", ".spec.on", true},
		{"a date as an age", "date", ".spec.born", "60m"},
		{"a date that is none", "date", ".spec.odd", "<invalid>"},
		{"what is missing is null", "string", ".spec.weight", nil},
		{"what is missing below what is missing is null", "date", ".status.a.b", nil},
		{"a place that a list does not have is null", "string", ".spec.list[7]", nil},
		{"a value of the wrong type is null", "integer", ".spec.color", nil},
		{"a string is no bool", "boolean", ".spec.color", nil},
		{"a bool is no date", "date", ".spec.on", nil},
		{"a path that does not parse finds nothing", "string", ".spec[", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := Custom([]apiextensionsv1.CustomResourceColumnDefinition{{Name: "X", Type: test.kind, JSONPath: test.path}})
			cells := c.Row(custom(map[string]any{"spec": spec}), now).Cells
			if len(cells) != 2 || cells[0] != "a" || cells[1] != test.want {
				t.Errorf("shows %#v, want a and %#v", cells, test.want)
			}
		})
	}
}

func TestCustomColumnsAreDescribed(t *testing.T) {
	none := Custom(nil)
	if got := header(none); got != "Name Age" || none.Definitions[1].Type != "date" {
		t.Errorf("without columns of its own a custom resource has %s, as %s", got, none.Definitions[1].Type)
	}
	c := Custom([]apiextensionsv1.CustomResourceColumnDefinition{
		{Name: "Told", Type: "string", JSONPath: ".a", Description: "what is told"},
		{Name: "Wide", Type: "integer", Format: "int32", JSONPath: ".b", Priority: 1},
	})
	if got := header(c); got != "Name Told [Wide]" {
		t.Errorf("has columns %s: giving any leaves age out", got)
	}
	if got := c.Definitions[1].Description; got != "what is told" {
		t.Errorf("a description became %q", got)
	}
	if d := c.Definitions[2]; !strings.HasSuffix(d.Description, "(in JSONPath format): .b") || d.Format != "int32" {
		t.Errorf("a column without a description is %+v", d)
	}
}

func TestCustomColumnsServeManyAtOnce(t *testing.T) {
	c := Custom([]apiextensionsv1.CustomResourceColumnDefinition{{Name: "X", Type: "string", JSONPath: ".spec.list[*].name"}})
	obj := custom(map[string]any{"spec": map[string]any{"list": []any{map[string]any{"name": "x"}}}})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				if got := c.Row(obj, now).Cells[1]; got != "x" {
					t.Errorf("shows %v", got)
				}
			}
		})
	}
	all.Wait()
}
