package etcd

import (
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A keyspace is where in etcd the store's keys are.
type keyspace struct {
	root string // ends in '/'
	end  string // the first key behind all that begin with root
}

// The engine's own keys: no key of a store has an empty space.
const (
	deletedKey = "/deleted"
	floorKey   = "/floor"
	roomKey    = "/room"
)

func newKeyspace(prefix string) keyspace {
	root := strings.TrimRight(prefix, "/") + "/kv/"
	return keyspace{root: root, end: clientv3.GetPrefixRangeEnd(root)}
}

// in returns the key in etcd of a key of the store, or of the engine's own.
func (k keyspace) in(key string) []byte {
	b := make([]byte, 0, len(k.root)+len(key))
	return append(append(b, k.root...), key...)
}

// out returns what in was given.
func (k keyspace) out(b []byte) []byte { return b[min(len(k.root), len(b)):] }

// own says whether key is one of the engine's own, or may be one of a later engine's.
func own(key []byte) bool { return len(key) > 0 && key[0] == '/' }
