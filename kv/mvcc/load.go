package mvcc

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// A Loader makes an index of what was published before, at a fraction of what publishing it again
// would cost: nobody reads or watches meanwhile, so that there need be no tree before the end, only a
// table of the newest versions. What comes of it is what New and Publish make.
//
// Each key has an origin, which is whatever the caller has set Origin to when it was added last.
type Loader struct {
	Origin int

	x       *Index
	newest  kv.Revision
	entries []entry // one for each key, in the order in which they came
	based   int     // how many of them came with the base, in key order
	slots   []slot  // a hash table of indexes into entries; its length is a power of two
	seed    maphash.Seed
	table   *table // of the last key
	nodes   []node // to be used next
}

// An entry is the newest version of a key, which may be a deletion.
type entry struct {
	version *kv.Version
	origin  int
}

// A slot refers to an entry; 0 is free.
type slot struct {
	hash  uint32
	index uint32 // plus one
}

// nodeSlab is how many nodes are made at a time. Those made together are about equally old,
// and go together.
const nodeSlab = 64

// NewLoader returns a loader of an index that begins with base.
func NewLoader(opts Options, base Base) *Loader {
	versions := base.Versions
	base.Versions = nil
	l := &Loader{x: New(opts, base), newest: base.Revision, seed: maphash.MakeSeed(), slots: make([]slot, 64)}
	if versions != nil {
		l.Base(versions)
	}
	return l
}

// Base loads the versions of the base, in key order, unless NewLoader was given them. It comes before all else.
func (l *Loader) Base(versions iter.Seq[*kv.Version]) {
	for v := range versions {
		at, _ := l.find(v.Key)
		l.insert(at, v)
	}
	l.based = len(l.entries)
}

// find returns the slot of key, or where it would be.
func (l *Loader) find(key string) (at int, found bool) {
	mask := len(l.slots) - 1
	hash := l.hash(key)
	for at := int(hash) & mask; ; at = (at + 1) & mask {
		switch s := l.slots[at]; {
		case s.index == 0:
			return at, false
		case s.hash == hash && l.entries[s.index-1].version.Key == key:
			return at, true
		}
	}
}

func (l *Loader) hash(key string) uint32 { return uint32(maphash.String(l.seed, key)) }

// insert puts the first version of a key at a free slot.
func (l *Loader) insert(at int, v *kv.Version) {
	l.entries = append(l.entries, entry{v, l.Origin})
	l.slots[at] = slot{l.hash(v.Key), uint32(len(l.entries))}
	if len(l.entries) > len(l.slots)/4*3 {
		l.grow()
	}
}

func (l *Loader) grow() {
	old := l.slots
	l.slots = make([]slot, 2*len(old))
	mask := len(l.slots) - 1
	for _, s := range old {
		if s.index == 0 {
			continue
		}
		at := int(s.hash) & mask
		for l.slots[at].index != 0 {
			at = (at + 1) & mask
		}
		l.slots[at] = s
	}
}

// Add loads a version, in the order in which they were published.
func (l *Loader) Add(v *kv.Version) {
	x := l.x
	t := l.tableOf(v.Key)
	var was *kv.Version
	slot, found := l.find(v.Key)
	if found {
		e := &l.entries[l.slots[slot].index-1]
		if !e.version.Deleted {
			was = e.version
		}
		*e = entry{v, l.Origin}
	} else {
		l.insert(slot, v)
	}
	t.follow(v, was)
	x.seq++
	n := l.node()
	n.event, n.rev, n.seq = kv.Event{Version: v, Prev: was}, v.Revision, x.seq
	t.append(n)
	x.bytes += n.bytes()
	t.topic.tail.next.Store(n)
	t.topic.tail = n
	l.newest = v.Revision
}

// tableOf returns the table of key. Its name is a copy: a key may be part of something large.
func (l *Loader) tableOf(key string) *table {
	if l.table == nil || !strings.HasPrefix(key, l.table.name) {
		name := kv.TableOf(key)
		if l.table = l.x.tables[name]; l.table == nil {
			l.table = l.x.table(strings.Clone(name))
		}
	}
	return l.table
}

func (l *Loader) node() *node {
	if len(l.nodes) == 0 {
		l.nodes = make([]node, nodeSlab)
	}
	n := &l.nodes[0]
	l.nodes = l.nodes[1:]
	return n
}

// Newest returns the newest revision that was loaded.
func (l *Loader) Newest() kv.Revision { return l.newest }

// Trim forgets what the limits do not allow at the time now, if it is time to look. It is
// called between two commits.
func (l *Loader) Trim(now time.Time) {
	if l.x.due(now) {
		l.x.trim(now)
	}
}

// Compact forgets what only revisions before rev need. It is called between two commits.
func (l *Loader) Compact(rev kv.Revision) { l.x.compact(rev) }

// Live yields the version of each key that exists, with its origin. Key and Value may be replaced
// by copies of themselves.
func (l *Loader) Live() iter.Seq2[*kv.Version, int] {
	return func(yield func(*kv.Version, int) bool) {
		for _, e := range l.entries {
			if !e.version.Deleted && !yield(e.version, e.origin) {
				return
			}
		}
	}
}

// Index returns the index. The loader must not be used any more.
func (l *Loader) Index() *Index {
	l.slots = nil
	base, later := l.live(l.entries[:l.based]), l.live(l.entries[l.based:])
	l.entries = nil
	sortByKey(later, 0)
	x := l.x
	for len(base) > 0 || len(later) > 0 {
		from := &base
		if len(base) == 0 || len(later) > 0 && later[0].Key < base[0].Key {
			from = &later
		}
		v := (*from)[0]
		*from = (*from)[1:]
		x.tree.Load(v.Key, v)
	}
	x.state.Store(&state{x.tree.Copy(), l.newest})
	x.linked.Store(uint64(l.newest))
	return x
}

func (l *Loader) live(entries []entry) []*kv.Version {
	all := make([]*kv.Version, 0, len(entries))
	for _, e := range entries {
		if !e.version.Deleted {
			all = append(all, e.version)
		}
	}
	return all
}

// sortByKey sorts versions whose keys have their first bytes in common, so many of them. It looks
// at eight bytes at a time, and so mostly at numbers that lie beside each other rather
// than at keys that lie anywhere.
func sortByKey(versions []*kv.Version, common int) {
	type item struct {
		word    uint64
		version *kv.Version
	}
	if len(versions) < 2 {
		return
	}
	items := make([]item, len(versions))
	for i, v := range versions {
		items[i] = item{wordAt(v.Key, common), v}
	}
	byWord := func(a, b item) int { return cmp.Compare(a.word, b.word) }
	if !slices.IsSortedFunc(items, byWord) {
		slices.SortFunc(items, byWord)
	}
	for i, it := range items {
		versions[i] = it.version
	}
	for from := 0; from < len(items); {
		to := from + 1
		for to < len(items) && items[to].word == items[from].word {
			to++
		}
		sortTies(versions[from:to], common+8)
		from = to
	}
}

// sortTies sorts versions whose keys have their first bytes in common. Few are compared whole.
func sortTies(versions []*kv.Version, common int) {
	const few = 16
	if len(versions) > few && common < kv.MaxKeyBytes {
		sortByKey(versions, common)
		return
	}
	slices.SortFunc(versions, func(a, b *kv.Version) int { return strings.Compare(a.Key, b.Key) })
}

// wordAt returns the eight bytes of key at a place as a number that is ordered as they are,
// with zeros for what is beyond the end of key.
func wordAt(key string, at int) uint64 {
	if at+8 <= len(key) {
		return binary.BigEndian.Uint64([]byte(key[at : at+8]))
	}
	var b [8]byte
	copy(b[:], key[min(at, len(key)):])
	return binary.BigEndian.Uint64(b[:])
}
