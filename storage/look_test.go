package storage

import (
	"slices"
	"testing"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
)

func TestOccupiedFindsTheResourcesWithObjectsInANamespace(t *testing.T) {
	engine, err := local.Open(t.Context(), local.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	keys := []string{
		"default/core/configmaps/a/one", "default/core/configmaps/a/two", "default/core/configmaps/b/one",
		"default/core/configmaps-x/a/one", "default/core/configmaps.x/ab/one", "default/core/namespaces/a", "default/core/secrets/b/a",
		"default/test.example/widgets/a/one", "default/zz/leases/a/one", "other/core/secrets/a/one",
	}
	var txn kv.Txn
	for _, key := range keys {
		txn.Ops = append(txn.Ops, kv.Put(key, []byte("x")))
	}
	if _, err := engine.Commit(t.Context(), txn); err != nil {
		t.Fatal(err)
	}
	snap, err := engine.Read(t.Context(), kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, space, namespace string
		want                   []string
	}{
		{"a namespace with objects of many resources", "", "a", []string{"/configmaps-x", "/configmaps", "test.example/widgets", "zz/leases"}},
		{"a namespace whose name begins like another", "", "ab", []string{"/configmaps.x"}},
		{"a namespace without objects", "", "c", nil},
		{"another space", "other", "a", []string{"/secrets"}},
		{"a space that holds nothing", "none", "a", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for group, plural := range Occupied(snap, c.space, c.namespace) {
				got = append(got, group+"/"+plural)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
