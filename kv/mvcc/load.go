package mvcc

import (
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"time"
	"unsafe"

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
	entries []*[entryBlock]entry // one for each key, in the order in which they came
	count   int                  // how many of them there are
	based   int                  // how many of them came with the base, in key order
	keys    []byte               // room for keys
	slots   []slot               // a hash table of indexes into entries; its length is a power of two
	seed    maphash.Seed
	table   *table // of the last key
	nodes   []node // to be used next
}

// An entry is the newest version of a key, which may be a deletion. It says itself what has to be known
// when another version comes, for those that are loaded by then are far away.
type entry struct {
	version *kv.Version
	key     string // a copy, which lies beside others
	size    int    // of the value
	deleted bool
	origin  int
}

// Entries and copies of keys are made so many and so large at a time.
const (
	entryBlock = 512
	keyBlock   = 64 << 10
)

// at returns the i-th entry.
func (l *Loader) at(i int) *entry { return &l.entries[i/entryBlock][i%entryBlock] }

// copied returns a copy of key that lies beside the last.
func (l *Loader) copied(key string) string {
	if cap(l.keys)-len(l.keys) < len(key) {
		l.keys = make([]byte, 0, max(keyBlock, len(key)))
	}
	from := len(l.keys)
	l.keys = append(l.keys, key...)
	return unsafe.String(unsafe.SliceData(l.keys[from:]), len(key)) // nothing is written there again
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
	l.based = l.count
}

// find returns the slot of key, or where it would be.
func (l *Loader) find(key string) (at int, found bool) {
	mask := len(l.slots) - 1
	hash := l.hash(key)
	for at := int(hash) & mask; ; at = (at + 1) & mask {
		switch s := l.slots[at]; {
		case s.index == 0:
			return at, false
		case s.hash == hash && l.at(int(s.index)-1).key == key:
			return at, true
		}
	}
}

func (l *Loader) hash(key string) uint32 { return uint32(maphash.String(l.seed, key)) }

// insert puts the first version of a key at a free slot.
func (l *Loader) insert(at int, v *kv.Version) {
	if l.count%entryBlock == 0 {
		l.entries = append(l.entries, new([entryBlock]entry))
	}
	*l.at(l.count) = l.entry(v, l.copied(v.Key))
	l.count++
	l.slots[at] = slot{l.hash(v.Key), uint32(l.count)}
	if l.count > len(l.slots)/4*3 {
		l.grow()
	}
}

func (l *Loader) entry(v *kv.Version, key string) entry {
	return entry{v, key, len(v.Value), v.Deleted, l.Origin}
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
	var freed int64
	slot, found := l.find(v.Key)
	if found {
		e := l.at(int(l.slots[slot].index) - 1)
		if !e.deleted {
			was, freed = e.version, int64(e.size)
		}
		*e = l.entry(v, e.key)
	} else {
		l.insert(slot, v)
	}
	t.follow(v, was)
	x.seq++
	n := l.node()
	n.event, n.rev, n.seq = kv.Event{Version: v, Prev: was}, v.Revision, x.seq
	size := eventBytes(v.Key, freed)
	t.append(n, size)
	x.bytes += size
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
		for i := range l.count {
			if e := l.at(i); !e.deleted && !yield(e.version, e.origin) {
				return
			}
		}
	}
}

// Index returns the index. The loader must not be used any more.
func (l *Loader) Index() *Index {
	l.slots = nil
	base, later := l.live(0, l.based), l.live(l.based, l.count)
	l.entries, l.keys = nil, nil
	sortByKey(later, commonBytes(later))
	x := l.x
	for len(base) > 0 || len(later) > 0 {
		from := &base
		if len(base) == 0 || len(later) > 0 && later[0].key < base[0].key {
			from = &later
		}
		v := (*from)[0].version
		*from = (*from)[1:]
		x.tree.Load(v.Key, v)
	}
	x.state.Store(&state{x.tree.Copy(), l.newest})
	x.linked.Store(uint64(l.newest))
	return x
}

// A keyed version is one that is being sorted: by a part of its key at a time.
type keyed struct {
	word    uint64 // the part
	key     string
	version *kv.Version
}

// live returns the versions that exist among some of the entries.
func (l *Loader) live(from, to int) []keyed {
	all := make([]keyed, 0, to-from)
	for i := from; i < to; i++ {
		if e := l.at(i); !e.deleted {
			all = append(all, keyed{key: e.key, version: e.version})
		}
	}
	return all
}

// commonBytes returns how many bytes all keys begin with.
func commonBytes(all []keyed) int {
	if len(all) == 0 {
		return 0
	}
	common := all[0].key
	for _, k := range all {
		n := 0
		for n < len(common) && n < len(k.key) && common[n] == k.key[n] {
			n++
		}
		common = common[:n]
	}
	return len(common)
}

// sortByKey sorts what has its first bytes in common, so many of them. It looks at eight bytes at
// a time, and so mostly at numbers that lie beside each other rather than at keys that lie
// anywhere.
func sortByKey(all []keyed, common int) {
	const few = 8 // are compared whole
	if len(all) <= few || common >= kv.MaxKeyBytes {
		slices.SortFunc(all, func(a, b keyed) int { return strings.Compare(a.key, b.key) })
		return
	}
	for i := range all {
		all[i].word = wordAt(all[i].key, common)
	}
	byWord := func(a, b keyed) int { return cmp.Compare(a.word, b.word) }
	if !slices.IsSortedFunc(all, byWord) {
		slices.SortFunc(all, byWord)
	}
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].word == all[from].word {
			to++
		}
		if to-from > 1 {
			sortByKey(all[from:to], common+8)
		}
		from = to
	}
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
