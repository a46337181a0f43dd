package kv_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/kv"
)

func TestErrorsSayWhatStoodInTheWay(t *testing.T) {
	const a = "default/core/configmaps/ns/a"
	for want, e := range map[string]*kv.Error{
		"kv: commit: conflict on " + a + ": caller saw revision 41, now 43":         {Op: "commit", Key: a, Want: 41, Have: 43, Kind: kv.ErrConflict},
		"kv: commit: conflict on " + a + ": caller saw nothing, now revision 43":    {Op: "commit", Key: a, Have: 43, Kind: kv.ErrConflict},
		"kv: commit: conflict on " + a + ": caller saw revision 41, now nothing":    {Op: "commit", Key: a, Want: 41, Kind: kv.ErrConflict},
		"kv: watch: history is gone on default/: asked for revision 1, oldest is 9": {Op: "watch", Key: "default/", Want: 1, Have: 9, Kind: kv.ErrCompacted},
		"kv: read: no such revision yet: asked for revision 10, newest is 9":        {Op: "read", Want: 10, Have: 9, Kind: kv.ErrFuture},
		"kv: commit: the store takes no more writes: unexpected EOF":                {Op: "commit", Kind: kv.ErrReadOnly, Err: io.ErrUnexpectedEOF},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if !errors.Is(e, e.Kind) || e.Err != nil && !errors.Is(e, e.Err) {
			t.Errorf("%v is neither its kind nor its cause", e)
		}
	}
}

func TestTheTableAndNamespaceOfAKey(t *testing.T) {
	for _, c := range []struct{ name, key, table, namespace string }{
		{"a key with a namespace", "default/core/pods/ns/a", "default/core/pods/", "default/core/pods/ns/"},
		{"a key without one", "default/core/nodes/a", "default/core/nodes/", ""},
		{"a namespace", "default/core/pods/ns/", "default/core/pods/", "default/core/pods/ns/"},
		{"a table", "default/core/pods/", "default/core/pods/", ""},
		{"something shorter", "default/core/pods", "", ""},
		{"a space", "default/", "", ""},
		{"nothing", "", "", ""},
	} {
		if got := kv.TableOf(c.key); got != c.table {
			t.Errorf("%s: the table of %q is %q, want %q", c.name, c.key, got, c.table)
		}
		if got := kv.NamespaceOf(c.key); got != c.namespace {
			t.Errorf("%s: the namespace of %q is %q, want %q", c.name, c.key, got, c.namespace)
		}
	}
}

func TestKeysThatAreNotKeys(t *testing.T) {
	for name, key := range map[string]string{
		"too few parts":       "default/core/a",
		"too many parts":      "default/core/pods/ns/a/b",
		"an empty part":       "default//pods/a",
		"a trailing slash":    "default/core/pods/ns/",
		"a part that is .":    "default/core/pods/./a",
		"a part that is ..":   "default/core/pods/ns/..",
		"nothing":             "",
		"more than the limit": "default/core/pods/ns/" + strings.Repeat("a", kv.MaxKeyBytes),
	} {
		if kv.CheckKey(key) == "" {
			t.Errorf("%s: %q passes", name, key)
		}
	}
	for _, key := range []string{"default/core/nodes/a", "default/core/pods/ns/a"} {
		if problem := kv.CheckKey(key); problem != "" {
			t.Errorf("%q: %s", key, problem)
		}
	}
}
