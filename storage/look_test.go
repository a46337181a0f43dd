package storage

import (
	"slices"
	"strings"
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

func TestAStoredValueIsChecked(t *testing.T) {
	sealed := func(json string) []byte {
		value, _, err := seal([]byte(json), 7)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	good := sealed(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"ns"},"data":{"x":"y"}}`)
	cut := func(n int) []byte { return append([]byte{}, good[:len(good)-n]...) }
	moved := append([]byte{}, good...)
	moved[9]-- // the first mark
	for _, c := range []struct {
		name, key string
		value     []byte
		want      string
	}{
		{"one that is sound", "pawl/core/configmaps/ns/a", good, ""},
		{"one of no namespace", "pawl/core/nodes/n", sealed(`{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"},"spec":{}}`), ""},
		{"nothing", "pawl/core/configmaps/ns/a", nil, "not an object in an envelope of format 1"},
		{"what was never sealed", "pawl/core/configmaps/ns/a", []byte(`{"kind":"ConfigMap"}`), "not an object in an envelope of format 1"},
		{"one that is cut off", "pawl/core/configmaps/ns/a", cut(3), "not JSON"},
		{"marks that point elsewhere", "pawl/core/configmaps/ns/a", moved, "its envelope does not fit what is in it"},
		{"another's name", "pawl/core/configmaps/ns/b", good, "it calls itself ns/a"},
		{"another's namespace", "pawl/core/configmaps/other/a", good, "it calls itself ns/a"},
		{"metadata that are none", "pawl/core/configmaps/ns/a", sealed(`{"metadata":{"name":7},"data":{}}`), "its metadata: json: cannot unmarshal number"},
		{"a key of no object", "pawl/claims/x/y", good, "its key is not one of an object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := CheckValue(&kv.Version{Key: c.key, Value: c.value})
			if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("it says %v, want %q", err, c.want)
			}
		})
	}
}
