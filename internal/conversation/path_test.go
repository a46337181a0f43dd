package conversation

import "testing"

const pathDocument = `{
	"a": {"b.c/d": 1, "b": "x"},
	"list": [{"name": "one", "spec": {"kind": "K"}, "v": 1}, {"name": "two"}, {"name": "three", "v": 3}],
	"cells": ["a", "b", "c"]
}`

func TestPathsLeadIntoADocument(t *testing.T) {
	for _, c := range []struct{ name, path, want string }{
		{"members follow members", ".a.b", `"x"`},
		{"a quoted member may hold anything", `.a["b.c/d"]`, `1`},
		{"an element has an index", ".list[1].name", `"two"`},
		{"an element is found by a member", ".list[name=three].v", `3`},
		{"an element is found by a member of a member", ".list[spec.kind=K].name", `"one"`},
		{"every element, those without it left out", ".list[*].v", `[1,3]`},
		{"every element of a list where none has it is an empty list", ".list[*].w", `[]`},
		{"the whole document", ".", ""},
		{"a member that is missing is absent", ".a.c", absent},
		{"an index past the end is absent", ".cells[3]", absent},
		{"every element of what is no list is absent", ".a[*].b", absent},
		{"an element that none is, is absent", ".list[name=four]", absent},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree, err := decodeJSON([]byte(pathDocument))
			if err != nil {
				t.Fatal(err)
			}
			p, err := parsePath(c.path)
			if err != nil {
				t.Fatal(err)
			}
			got := absent
			if v, ok := p.get(tree); ok {
				got = asJSON(v)
			}
			if want := c.want; want != got && (want != "" || got != asJSON(tree)) {
				t.Errorf("%s is %s, want %s", c.path, got, want)
			}
		})
	}
}

func TestPathsLeaveOut(t *testing.T) {
	const document = `{"a":{"b":1,"c":2},"rows":[{"cells":["a","5s"]},{"cells":["b"]}]}`
	for _, c := range []struct{ name, path, want string }{
		{"a member", ".a.b", `{"a":{"c":2},"rows":[{"cells":["a","5s"]},{"cells":["b"]}]}`},
		{"an element of every element that has it", ".rows[*].cells[1]", `{"a":{"b":1,"c":2},"rows":[{"cells":["a"]},{"cells":["b"]}]}`},
		{"every element", ".rows[*]", `{"a":{"b":1,"c":2},"rows":[]}`},
		{"nothing where nothing is", ".b.c[2]", document},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree, err := decodeJSON([]byte(document))
			if err != nil {
				t.Fatal(err)
			}
			p, err := parsePath(c.path)
			if err != nil {
				t.Fatal(err)
			}
			if got := asJSON(p.without(tree)); got != c.want {
				t.Errorf("without %s it is %s, want %s", c.path, got, c.want)
			}
		})
	}
}

func TestWhatIsNoPathIsRefused(t *testing.T) {
	for _, text := range []string{"a", ".a.", "..a", ".a[", ".a[x]", `.a["b]`, ".a[-1]"} {
		if _, err := parsePath(text); err == nil {
			t.Errorf("%q was taken for a path", text)
		}
	}
}
