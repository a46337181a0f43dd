package storage

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pawl-dev/pawl/kv"
)

// Tables over one engine, and objects in them whose names are alike: no key is under two
// prefixes of which neither holds the other (rules K4, K5).
func TestWhereObjectsLie(t *testing.T) {
	f := newFixture(t)
	table := func(space, group, resource string, namespaced bool) *Table {
		return NewTable(Options{Engine: f.engine, Space: space, Group: group, Resource: resource, Namespaced: namespaced, Codec: configMaps{7}})
	}
	places := []struct {
		name            string
		table           *Table
		namespace, want string
	}{
		{"the core group", table("", "", "things", true), "a", "default/core/things/a/x"},
		{"a namespace that begins alike", table("", "", "things", true), "a-b", "default/core/things/a-b/x"},
		{"a resource that begins alike", table("", "", "things-b", true), "a", "default/core/things-b/a/x"},
		{"another group", table("", "b.example", "things", true), "a", "default/b.example/things/a/x"},
		{"no namespaces", table("", "", "rooms", false), "", "default/core/rooms/x"},
		{"another space", table("other", "", "things", true), "a", "other/core/things/a/x"},
	}
	for _, p := range places {
		if got := p.table.Key(p.namespace, "x"); got != p.want {
			t.Errorf("%s: %s, want %s", p.name, got, p.want)
		}
		if _, err := p.table.Modify(t.Context(), p.namespace, "x", false, putting(thing(p.namespace, "x", p.name))); err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
	}
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			page, err := p.table.List(t.Context(), ListOptions{Namespace: p.namespace})
			if err != nil || len(page.Items) != 1 || is(t, page.Items[0]) != p.name {
				t.Errorf("listed %v, %v", page, err)
			}
			if n, err := p.table.Count(t.Context()); err != nil || (n == 2) != strings.HasPrefix(p.want, "default/core/things/") || n > 2 {
				t.Errorf("counted %d, %v (K121)", n, err) // both namespaces of things
			}
			v, err := p.table.Get(t.Context(), p.namespace, "x", kv.Latest)
			if err != nil || is(t, v) != p.name || v.Namespace() != p.namespace || v.Name() != "x" {
				t.Errorf("got %v, %v", v, err)
			}
		})
	}
}

// The version of an object is the revision of its write: it is shown, and not stored (rule K7).
func TestTheVersionIsShownAndNotStored(t *testing.T) {
	f := newFixture(t)
	res, err := f.Modify(t.Context(), "a", "one", false, putting(thing("a", "one", "first")))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(res.Version.Value(), []byte("resourceVersion")) {
		t.Errorf("stored %s", res.Version.Value())
	}
	want := res.Version.Revision().String()
	obj, err := res.Version.Object()
	if err != nil || obj.(*corev1.ConfigMap).ResourceVersion != want {
		t.Errorf("shown %v, %v; want version %s", obj, err, want)
	}
	sent, ok := res.Version.AppendJSON(nil, false)
	if !ok || !strings.Contains(string(sent), `"resourceVersion":"`+want+`"`) {
		t.Errorf("sent %s", sent)
	}
}

// What one reader does to an object it got, no other sees: not even one of the same version
// (rule K117).
func TestAnObjectIsItsReaders(t *testing.T) {
	f := newFixture(t)
	f.put(thing("a", "one", "first", "color=red"))
	w, err := f.Watch(t.Context(), WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	v, err := f.Get(t.Context(), "a", "one", kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	obj, err := v.Object()
	if err != nil {
		t.Fatal(err)
	}
	obj.(*corev1.ConfigMap).Data["is"] = "spoiled"
	obj.(*corev1.ConfigMap).Labels["color"] = "spoiled"
	if got := is(t, v); got != "first" {
		t.Errorf("the version became %s", got)
	}
	if ok, err := picking(t, "color=red", "").Matches(v); !ok || err != nil {
		t.Errorf("a selector sees %v, %v", ok, err)
	}
	if got := told(t, w); len(got) != 1 || !strings.Contains(got[0], "=first@") {
		t.Errorf("a watch tells %q", got)
	}
}
