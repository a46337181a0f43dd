package compat

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/pawl-dev/pawl/kv"
)

func TestWherePathsLie(t *testing.T) {
	s := newStore(t, options(memory(t)))
	for _, c := range []struct{ name, path, key, err string }{
		{"a namespace and a name", "/configmaps/a/color", "a/color", ""},
		{"a name alone", "/configmaps/color", "color", ""},
		{"a name in no namespace", "/configmaps//color", ".%/color", ""},
		{"a namespace as a name", "/configmaps/a/", "a/.%", ""},
		{"the prefix itself", "/configmaps/", ".%", ""},
		{"the prefix without its end", "/configmaps", "", "lacks resource prefix"},
		{"another prefix", "/secrets/a/b", "", "lacks resource prefix"},
		{"a longer one", "/configmaps/a/b/c", "", "there can be a namespace and a name"},
		{"one that looks like what is not there", "/configmaps/a/.%", "", "neither is called"},
		{"one that goes back", "/configmaps/../a", "", "invalid key"},
		{"nothing", "", "", "empty key"},
	} {
		p, err := s.placeOf(c.path)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		key := s.table.Key(p.namespace, p.name)
		if want := DefaultSpace + "/core/configmaps/" + c.key; key != want {
			t.Errorf("%s: %s, want %s", c.name, key, want)
		}
		if problem := kv.CheckKey(key); problem != "" {
			t.Errorf("%s: %s: %s", c.name, key, problem)
		}
		if back := s.pathOf(key); back != c.path {
			t.Errorf("%s: back comes %s", c.name, back)
		}
	}
}

// A list is in the order of paths, so keys must be.
func TestKeysAreInTheOrderOfPaths(t *testing.T) {
	s := newStore(t, options(memory(t)))
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	parts := []string{"", "a", "a-b", "a.b", "ab", "b", "0", "Z", "a0"}
	key := func(path string) string {
		p, err := s.placeOf(path)
		if err != nil {
			t.Fatal(err)
		}
		return s.table.Key(p.namespace, p.name)
	}
	var paths, keys []string
	for range 200 {
		path := s.prefix + parts[r.IntN(len(parts))] + "/" + parts[1+r.IntN(len(parts)-1)]
		paths, keys = append(paths, path), append(keys, key(path))
	}
	slices.Sort(paths)
	slices.Sort(keys)
	for i := range paths {
		if want := key(paths[i]); keys[i] != want {
			t.Fatalf("seed %d: %s is where %s should be", seed, keys[i], want)
		}
	}
}

func TestWhatListsAndWatchesAreOf(t *testing.T) {
	s := newStore(t, options(memory(t)))
	for _, c := range []struct {
		name, path string
		recursive  bool
		want       scope
	}{
		{"everything", "/configmaps", true, scope{}},
		{"everything, with the end of the prefix", "/configmaps/", true, scope{}},
		{"a namespace", "/configmaps/a", true, scope{place: place{namespace: "a"}}},
		{"a namespace, with its end", "/configmaps/a/", true, scope{place: place{namespace: "a"}}},
		{"no namespace", "/configmaps//", true, scope{place: place{namespace: hollow}}},
		{"what is below an object", "/configmaps/a/color", true, scope{place{namespace: "a"}, true}},
		{"an object", "/configmaps/a/color", false, scope{place: place{"a", "color"}}},
	} {
		if got, err := s.scopeOf(c.path, c.recursive); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, err, c.want)
		}
	}
	if _, err := s.scopeOf("/secrets", true); err == nil {
		t.Error("another resource will do")
	}
}

// Below an object there is nothing, and asking is no error.
func TestNothingIsBelowAnObject(t *testing.T) {
	s := newStore(t, options(memory(t)))
	create(t, s, "color", "red")
	opts := apistorage.ListOptions{Recursive: true, Predicate: apistorage.Everything}
	w, err := s.Watch(t.Context(), "/configmaps/a/color", opts)
	if err != nil {
		t.Fatal(err)
	}
	create(t, s, "colors", "red")
	w.Stop()
	if got := drained(t, w); len(got) != 0 {
		t.Errorf("watched %v", got)
	}
}
