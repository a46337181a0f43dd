package etcd

import (
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-dev/pawl/kv"
)

// A keyspace is where in etcd the store's keys are, and what its revisions are called.
type keyspace struct {
	root  string      // ends in '/'
	end   string      // the first key behind all that begin with root
	ahead kv.Revision // how far the store's revisions are ahead of etcd's; see origin
	wide  uint        // bits of a revision that tell commits apart which are one transaction of etcd's; see group
}

// Parts returns the names of the parts that a store has under its prefix. A prefix with such a part may lie in what another
// store keeps; any other may lie under another store's, and be apart from it.
func Parts() []string { return []string{"kv", "leader", "once"} } // in order

// placeBits is wide enough for all commits of a group.
const placeBits = 7

// The engine's own keys: no key of a store has an empty space.
const (
	deletedKey = "/deleted"
	floorKey   = "/floor"
	roomKey    = "/room"
	originKey  = "/origin"
)

func newKeyspace(prefix string) keyspace {
	root := strings.TrimRight(prefix, "/") + "/kv/"
	return keyspace{root: root, end: clientv3.GetPrefixRangeEnd(root), wide: placeBits}
}

// whole returns where all keys are, the store's and what is kept beside it.
func (k keyspace) whole() (from, to []byte) {
	prefix := strings.TrimSuffix(k.root, "kv/")
	return []byte(prefix), []byte(clientv3.GetPrefixRangeEnd(prefix))
}

// A span is the keys from one on, and before another.
type span struct{ from, to []byte }

// parts returns where the parts of a store are, and what lies about them under the prefix.
func (k keyspace) parts() (ours, others []span) {
	at, end := k.whole()
	for _, name := range Parts() {
		from := k.beside(name, "")
		to := []byte(clientv3.GetPrefixRangeEnd(string(from)))
		ours, others = append(ours, span{from, to}), append(others, span{at, from})
		at = to
	}
	return ours, append(others, span{at, end})
}

// beside returns the key in etcd of something that is kept beside the store, where no reader of it looks.
func (k keyspace) beside(kind, name string) []byte {
	prefix, _ := k.whole()
	return append(prefix, kind+"/"+name...)
}

// in returns the key in etcd of a key of the store, or of the engine's own.
func (k keyspace) in(key string) []byte {
	b := make([]byte, 0, len(k.root)+len(key))
	return append(append(b, k.root...), key...)
}

// out returns what in was given.
func (k keyspace) out(b []byte) []byte { return b[min(len(k.root), len(b)):] }

// ours returns what the store calls a revision of etcd's: the last of those that it may know it by.
func (k keyspace) ours(rev int64) kv.Revision {
	if rev == never {
		return kv.Absent
	}
	return kv.Revision(rev+1)<<k.wide - 1 + k.ahead
}

// behind returns how many more revisions the store may know by the revision of etcd's that rev is part of.
func (k keyspace) behind(rev kv.Revision) uint8 {
	if rev <= k.ahead {
		return 0
	}
	return uint8(k.ours(k.theirs(rev)) - rev)
}

// theirs returns what etcd calls a revision of the store's. One from before all that the store can name is -1, at
// which no key ever is.
func (k keyspace) theirs(rev kv.Revision) int64 {
	switch {
	case rev == kv.Absent:
		return never
	case rev <= k.ahead:
		return -1
	}
	return max(int64((rev-k.ahead)>>k.wide), emptyRevision)
}

// first returns the revision that a store begins with, before anything is written.
func (k keyspace) first() kv.Revision { return emptyRevision + k.ahead }

// own says whether key is one of the engine's own, or may be one of a later engine's.
func own(key []byte) bool { return len(key) > 0 && key[0] == '/' }
