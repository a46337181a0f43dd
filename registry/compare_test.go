package registry

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

type fieldPath = fieldpath.Path

var podLike = fixed{members: map[string]Shape{
	"whole": fixed{atomic: true},
	"tags":  fixed{set: true},
	"containers": fixed{keys: []string{"name"}, item: fixed{members: map[string]Shape{
		"ports": fixed{keys: []string{"containerPort", "protocol"}},
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
		want  string // what differs in b
		back  string // and in a, if that is told otherwise: what comes is told by its parts, what goes is not
	}{
		{"equal", nil, `{"a":1,"b":{"c":[1]}}`, `{"a":1,"b":{"c":[1]}}`, "", ""},
		{"a value", nil, `{"a":1,"b":2}`, `{"a":1,"b":3}`, ".b", ""},
		{"a value deep down (H143)", nil, `{"spec":{"template":{"x":1}}}`, `{"spec":{"template":{"x":2}}}`, ".spec.template.x", ""},
		{"a member that is new", nil, `{"a":{}}`, `{"a":{"b":1}}`, ".a.b", ""},
		{"an object that is new is told by its members", nil, `{}`, `{"a":{"b":{"c":1},"d":2}}`, ".a.b.c .a.d", ".a"},
		{"the last member of an object", nil, `{"a":{"b":1}}`, `{"a":{}}`, ".a.b", ""},
		{"an empty object that is new", nil, `{}`, `{"a":{}}`, ".a", ""},
		{"an empty object in place of null", nil, `{"a":null}`, `{"a":{}}`, ".a", ""},
		{"an object in place of null", nil, `{"a":null}`, `{"a":{"b":1}}`, ".a.b", ".a"},
		{"null is not absent", nil, `{}`, `{"a":null}`, ".a", ""},
		{"another type", nil, `{"a":1}`, `{"a":{"b":1}}`, ".a", ""},
		{"a list is one field where nothing is known", nil, `{"a":[{"name":"x"}]}`, `{"a":[{"name":"y"}]}`, ".a", ""},
		{"an atomic object is one field", podLike, `{"whole":{"a":1,"b":2}}`, `{"whole":{"a":1,"b":3}}`, ".whole", ""},
		{"an atomic object that is new", podLike, `{}`, `{"whole":{"a":1,"b":3}}`, ".whole", ""},
		{"an item that is named by its key (H143)", podLike, `{"containers":[{"name":"app","image":"1"},{"name":"x"}]}`, `{"containers":[{"name":"app","image":"2"},{"name":"x"}]}`, `.containers[name="app"].image`, ""},
		{"an item that is named by two keys", podLike, `{"containers":[{"name":"app","ports":[{"containerPort":80,"protocol":"TCP","x":1}]}]}`, `{"containers":[{"name":"app","ports":[{"containerPort":80,"protocol":"TCP","x":2}]}]}`,
			`.containers[name="app"].ports[containerPort=80,protocol="TCP"].x`, ""},
		{"an item that is new is one field", podLike, `{"containers":[]}`, `{"containers":[{"name":"app","image":"1"}]}`, `.containers[name="app"]`, ""},
		{"a list that is new is told by its items", podLike, `{}`, `{"containers":[{"name":"a"},{"name":"b"}]}`, `.containers[name="a"] .containers[name="b"]`, ".containers"},
		{"an item that comes between two is no other order", podLike, `{"containers":[{"name":"a"},{"name":"b"}]}`, `{"containers":[{"name":"a"},{"name":"x"},{"name":"b"}]}`, `.containers[name="x"]`, ""},
		{"items in another order", podLike, `{"containers":[{"name":"a"},{"name":"b"}]}`, `{"containers":[{"name":"b"},{"name":"a"}]}`, ".containers", ""},
		{"items in another order, and one that changed", podLike, `{"containers":[{"name":"a"},{"name":"b"}]}`, `{"containers":[{"name":"b","image":"1"},{"name":"a"}]}`, ".containers", ""},
		{"an empty list that is new", podLike, `{}`, `{"containers":[]}`, ".containers", ""},
		{"items without their key are one field", podLike, `{"containers":[{"image":"1"}]}`, `{"containers":[{"image":"2"}]}`, ".containers", ""},
		{"items that share a key are one field", podLike, `{"containers":[{"name":"a"},{"name":"a"}]}`, `{"containers":[{"name":"a"}]}`, ".containers", ""},
		{"a list with keys that is no list", podLike, `{"containers":[{"name":"a"}]}`, `{"containers":"x"}`, ".containers", ""},
		{"the items of a set are named by themselves", podLike, `{"tags":["a","b"]}`, `{"tags":["b","c"]}`, `.tags[="a"] .tags[="c"]`, `.tags[="c"] .tags[="a"]`},
		{"a set in another order", podLike, `{"tags":["a","b"]}`, `{"tags":["b","a"]}`, `.tags`, ""},
		{"a set that holds a value twice is one field", podLike, `{"tags":["a","a"]}`, `{"tags":["a"]}`, `.tags`, ""},
		{"nothing in a blunt shape is named by a value", blunt{podLike}, `{"containers":[{"name":"a","image":"1"}],"whole":{"a":1},"x":{"y":1}}`, `{"containers":[{"name":"a","image":"2"}],"whole":{"a":2},"x":{"y":2}}`, `.containers .whole .x.y`, ""},
		{"finalizers are a set, and owners are named by their uid, in every object", wholeObject{nil},
			`{"metadata":{"finalizers":["a"],"ownerReferences":[{"uid":"u","name":"x"}]},"spec":{"finalizers":["a"]}}`,
			`{"metadata":{"finalizers":["a","b"],"ownerReferences":[{"uid":"u","name":"y"}]},"spec":{"finalizers":["a","b"]}}`,
			`.metadata.finalizers[="b"] .metadata.ownerReferences[uid="u"] .spec.finalizers`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := printed(compare(c.shape, object(t, c.a), object(t, c.b))); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if c.back == "" {
				c.back = c.want
			}
			if got := printed(compare(c.shape, object(t, c.b), object(t, c.a))); got != c.back {
				t.Errorf("the other way round got %s, want %s", got, c.back)
			}
		})
	}
}

// Numbers are what they are worth, however they were read.
func TestWholeNumbers(t *testing.T) {
	for _, c := range []struct {
		a, b any
		want bool
	}{
		{int64(1), 1.0, true},
		{1.0, int64(1), true},
		{int64(1), 1.5, false},
		{int64(1), int64(2), false},
		{1.5, 1.5, true},
		{int64(1)<<53 + 1, float64(int64(1) << 53), false},
		{int64(math.MaxInt64), float64(1 << 63), false},
		{int64(1), "1", false},
		{int64(0), nil, false},
		{int64(1), true, false},
	} {
		if equal(c.a, c.b) != c.want || equal(c.b, c.a) != c.want {
			t.Errorf("%v and %v: want %v", c.a, c.b, c.want)
		}
	}
}

func TestDeepObjectsAreComparedInOneWalk(t *testing.T) {
	const depth = 9000 // as deep as a decoder lets through
	nested := func(end string) map[string]any {
		return object(t, strings.Repeat(`{"a":`, depth)+end+strings.Repeat(`}`, depth))
	}
	got := compare(nil, nested("1"), nested("2"))
	if len(got) != 1 || len(got[0]) != depth {
		t.Errorf("found %d paths", len(got))
	}
}

func TestTouch(t *testing.T) {
	path := func(names ...any) fieldPath { return fieldpath.MakePathOrDie(names...) }
	ab := indexed([]fieldPath{path("a", "b"), path("d.e")})
	for _, c := range []struct {
		path fieldPath
		want bool
	}{
		{path("a", "b"), true},
		{path("a"), true},
		{path("a", "b", "c"), true},
		{path("a", "c"), false},
		{path("b"), false},
		{path("d.e"), true},
		{path("d", "e"), false},
	} {
		if got := ab.touch(c.path); got != c.want {
			t.Errorf("%s: got %v; a path touches itself, what is above it and what is below it, and nothing else", c.path, got)
		}
	}
	if indexed(nil).touch(path("a")) {
		t.Error("no path touches a path")
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
		{`{"a":[1,2]}`, `{"a":[2,1]}`}, {`{"":{"":1}}`, `{"":{"":2}}`}, {`{"tags":[1,2,{"a":[]}]}`, `{"tags":[2,{"a":[]},null,1]}`},
	} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var am, bm map[string]any
		if json.Unmarshal(a, &am) != nil || json.Unmarshal(b, &bm) != nil || am == nil || bm == nil {
			return
		}
		for _, shape := range []Shape{nil, podLike} {
			found := compare(shape, am, bm)
			if same := reflect.DeepEqual(am, bm); same != (len(found) == 0) {
				t.Fatalf("equal is %v, and found is %s", same, printed(found))
			}
			for i, p := range found {
				if !strings.HasPrefix(p.String(), ".") {
					t.Fatalf("path %q", p)
				}
				if slices.ContainsFunc(found[i+1:], func(q fieldPath) bool { return indexed([]fieldPath{q}).touch(p) }) {
					t.Fatalf("%s are not apart", printed(found))
				}
			}
			if back := compare(shape, bm, am); len(back) == 0 != (len(found) == 0) {
				t.Fatalf("one way %s, the other %s", printed(found), printed(back))
			}
		}
	})
}
