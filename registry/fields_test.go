package registry

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

type fieldPath = fieldpath.Path

// A shaped is a [Shape] that is written down.
type shaped struct {
	members map[string]Shape
	atomic  bool
	keys    []string
	item    Shape
}

func (s shaped) Member(name string) Shape { return s.members[name] }
func (s shaped) Atomic() bool             { return s.atomic }
func (s shaped) Keys() []string           { return s.keys }
func (s shaped) Item() Shape              { return s.item }

var podLike = shaped{members: map[string]Shape{
	"whole": shaped{atomic: true},
	"containers": shaped{keys: []string{"name"}, item: shaped{members: map[string]Shape{
		"ports": shaped{keys: []string{"containerPort", "protocol"}},
	}}},
}}

func object(t testing.TB, s string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(s), &m); err != nil {
		t.Fatalf("%v in %s", err, s)
	}
	return m
}

func printed(paths []fieldPath) string {
	var out []string
	for _, p := range paths {
		out = append(out, p.String())
	}
	return strings.Join(out, " ")
}

func TestComparePaths(t *testing.T) {
	for _, c := range []struct {
		name  string
		shape Shape
		a, b  string
		want  string
	}{
		{"equal", nil, `{"a":1,"b":{"c":[1]}}`, `{"a":1,"b":{"c":[1]}}`, ""},
		{"a value", nil, `{"a":1,"b":2}`, `{"a":1,"b":3}`, ".b"},
		{"a value deep down (H143)", nil, `{"spec":{"template":{"x":1}}}`, `{"spec":{"template":{"x":2}}}`, ".spec.template.x"},
		{"a member that is new", nil, `{"a":{}}`, `{"a":{"b":1}}`, ".a.b"},
		{"an object that is new is told by its members", nil, `{}`, `{"a":{"b":{"c":1},"d":2}}`, ".a.b.c .a.d"},
		{"an empty object that is new", nil, `{}`, `{"a":{}}`, ".a"},
		{"an empty object in place of null", nil, `{"a":null}`, `{"a":{}}`, ".a"},
		{"null is not absent", nil, `{}`, `{"a":null}`, ".a"},
		{"another type", nil, `{"a":1}`, `{"a":{"b":1}}`, ".a"},
		{"a list is one field where nothing is known", nil, `{"a":[{"name":"x"}]}`, `{"a":[{"name":"y"}]}`, ".a"},
		{"an atomic object is one field", podLike, `{"whole":{"a":1,"b":2}}`, `{"whole":{"a":1,"b":3}}`, ".whole"},
		{"an item that is named by its key (H143)", podLike, `{"containers":[{"name":"app","image":"1"},{"name":"x"}]}`, `{"containers":[{"name":"app","image":"2"},{"name":"x"}]}`, `.containers[name="app"].image`},
		{"an item that is named by two keys", podLike, `{"containers":[{"name":"app","ports":[{"containerPort":80,"protocol":"TCP","x":1}]}]}`, `{"containers":[{"name":"app","ports":[{"containerPort":80,"protocol":"TCP","x":2}]}]}`,
			`.containers[name="app"].ports[containerPort=80,protocol="TCP"].x`},
		{"an item that is new is told by its members", podLike, `{"containers":[]}`, `{"containers":[{"name":"app"}]}`, `.containers[name="app"].name`},
		{"an item that went", podLike, `{"containers":[{"name":"app","image":"1"}]}`, `{}`, `.containers[name="app"].image .containers[name="app"].name`},
		{"items in another order", podLike, `{"containers":[{"name":"a"},{"name":"b"}]}`, `{"containers":[{"name":"b"},{"name":"a"}]}`, ".containers"},
		{"an empty list that is new", podLike, `{}`, `{"containers":[]}`, ".containers"},
		{"items without their key are one field", podLike, `{"containers":[{"image":"1"}]}`, `{"containers":[{"image":"2"}]}`, ".containers"},
		{"items that share a key are one field", podLike, `{"containers":[{"name":"a"},{"name":"a"}]}`, `{"containers":[{"name":"a"}]}`, ".containers"},
		{"a list with keys that is no list", podLike, `{"containers":[{"name":"a"}]}`, `{"containers":"x"}`, ".containers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := printed(CompareShaped(c.shape, object(t, c.a), object(t, c.b))); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if got := printed(CompareShaped(c.shape, object(t, c.b), object(t, c.a))); got != c.want {
				t.Errorf("the other way round got %s, want %s", got, c.want)
			}
		})
	}
	if got := printed(Deduced{}.Compare(object(t, `{"a":1}`), object(t, `{"a":2}`))); got != ".a" {
		t.Errorf("deduced %s", got)
	}
}

func TestDeepObjectsAreComparedInOneWalk(t *testing.T) {
	const depth = 9000 // as deep as a decoder lets through
	nested := func(end string) map[string]any {
		return object(t, strings.Repeat(`{"a":`, depth)+end+strings.Repeat(`}`, depth))
	}
	got := CompareShaped(nil, nested("1"), nested("2"))
	if len(got) != 1 || len(got[0]) != depth {
		t.Errorf("found %d paths", len(got))
	}
}

func TestRelated(t *testing.T) {
	a, b := fieldpath.MakePathOrDie("a"), fieldpath.MakePathOrDie("a", "b")
	c := fieldpath.MakePathOrDie("a", "c")
	if !related(a, b) || !related(b, a) || !related(a, a) || related(b, c) {
		t.Error("a path is related to itself, what is above it and what is below it, and to nothing else")
	}
}

// Whatever two objects look like, comparing them does not panic, finds something if and only
// if they differ, and finds no path above or below another.
func FuzzFieldPaths(f *testing.F) {
	for _, s := range [][2]string{
		{`{"a":1}`, `{"a":null}`}, {`{}`, `{"a":{"b":{}}}`}, {`{"containers":[{"name":"a","x":[]}]}`, `{"containers":[{"name":"b"},{"name":"a"}]}`},
		{`{"containers":[]}`, `{"containers":null}`}, {`{"containers":[{"name":{"a":[1]}}]}`, `{"containers":[{"name":null}]}`},
		{`{"containers":[{"name":1}]}`, `{"containers":[{"name":1.5},{"name":true}]}`}, {`{"whole":{"a":1}}`, `{"whole":{}}`},
		{`{"containers":[{"name":"a","ports":[{"containerPort":1,"protocol":"T"}]}]}`, `{"containers":[{"name":"a","ports":[{"containerPort":1,"protocol":"U"},2]}]}`},
		{`{"a":[1,2]}`, `{"a":[2,1]}`}, {`{"":{"":1}}`, `{"":{"":2}}`},
	} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var am, bm map[string]any
		if json.Unmarshal(a, &am) != nil || json.Unmarshal(b, &bm) != nil || am == nil || bm == nil {
			return
		}
		for _, shape := range []Shape{nil, podLike} {
			found := CompareShaped(shape, am, bm)
			if same := reflect.DeepEqual(am, bm); same != (len(found) == 0) {
				t.Fatalf("equal is %v, and found is %s", same, printed(found))
			}
			for i, p := range found {
				if !strings.HasPrefix(p.String(), ".") {
					t.Fatalf("path %q", p)
				}
				if slices.ContainsFunc(found[i+1:], func(q fieldPath) bool { return related(p, q) }) {
					t.Fatalf("%s are not apart", printed(found))
				}
			}
			back := CompareShaped(shape, bm, am)
			if x, y := strings.Fields(printed(found)), strings.Fields(printed(back)); len(x) != len(y) {
				t.Fatalf("one way %s, the other %s", x, y)
			}
		}
	})
}
