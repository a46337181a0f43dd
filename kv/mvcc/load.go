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
	slots   []slot               // a hash table of indexes into entries, once there is something to find; its length is a power of two
	seed    maphash.Seed
	table   *table // of the last key
	nodes   []node // to be used next
}

// An entry is the newest version of a key, which may be a deletion. It says itself what has to be known
// when another version comes, for those that are loaded by then are far away.
type entry struct {
	version *kv.Version
	key     string // a copy, which lies beside others
	origin  int32
	size    int32 // of the value; less than 0 if deleted
}

func (e *entry) deleted() bool { return e.size < 0 }

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
	l := &Loader{x: New(opts, base), newest: base.Revision, seed: maphash.MakeSeed()}
	if versions != nil {
		l.Base(versions)
	}
	return l
}

// Base loads the versions of the base, in key order, unless NewLoader was given them. It comes before all else.
func (l *Loader) Base(versions iter.Seq[*kv.Version]) {
	for v := range versions {
		l.append(v)
	}
	l.based = l.count
}

// place makes the hash table of what has been loaded. Where nothing follows the base there is no need for it.
func (l *Loader) place() {
	size := 64
	for l.count > size/4*3 {
		size *= 2
	}
	l.slots = make([]slot, size)
	for i := range l.count {
		key := l.at(i).key
		hash := l.hash(key)
		at, _ := l.find(key, hash)
		l.slots[at] = slot{hash, uint32(i + 1)}
	}
}

// find returns the slot of key, or where it would be.
func (l *Loader) find(key string, hash uint32) (at int, found bool) {
	mask := len(l.slots) - 1
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

// append makes an entry of the first version of a key.
func (l *Loader) append(v *kv.Version) {
	if l.count%entryBlock == 0 {
		l.entries = append(l.entries, new([entryBlock]entry))
	}
	*l.at(l.count) = l.entry(v, l.copied(v.Key))
	l.count++
}

// insert puts the first version of a key at a free slot.
func (l *Loader) insert(at int, hash uint32, v *kv.Version) {
	l.append(v)
	l.slots[at] = slot{hash, uint32(l.count)}
	if l.count > len(l.slots)/4*3 {
		l.grow()
	}
}

func (l *Loader) entry(v *kv.Version, key string) entry {
	e := entry{v, key, int32(l.Origin), int32(len(v.Value))}
	if v.Deleted {
		e.size = -1
	}
	return e
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
	if l.slots == nil {
		l.place()
	}
	x := l.x
	t := l.tableOf(v.Key)
	var was *kv.Version
	var freed int64
	hash := l.hash(v.Key)
	slot, found := l.find(v.Key, hash)
	if found {
		e := l.at(int(l.slots[slot].index) - 1)
		if !e.deleted() {
			was, freed = e.version, int64(e.size)
		}
		*e = l.entry(v, e.key)
	} else {
		l.insert(slot, hash, v)
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
			if e := l.at(i); !e.deleted() && !yield(e.version, int(e.origin)) {
				return
			}
		}
	}
}

// Index returns the index. The loader must not be used any more.
func (l *Loader) Index() *Index {
	l.slots = nil
	base, later := l.live(0, l.based), l.live(l.based, l.count)
	l.sort(later, l.commonBytes(later))
	x := l.x
	for len(base) > 0 || len(later) > 0 {
		from := &base
		if len(base) == 0 || len(later) > 0 && l.key(later[0]) < l.key(base[0]) {
			from = &later
		}
		v := l.at(int((*from)[0].entry)).version
		*from = (*from)[1:]
		x.tree.Load(v.Key, v)
	}
	l.entries, l.keys = nil, nil
	x.state.Store(&state{x.tree.Copy(), l.newest})
	x.linked.Store(uint64(l.newest))
	return x
}

// A keyed entry is one that is being sorted: by a part of its key at a time.
type keyed struct {
	part  [2]uint64
	entry uint32
}

// partBytes is how long a part is.
const partBytes = 16

// live returns the entries of versions that exist, of some.
func (l *Loader) live(from, to int) []keyed {
	all := make([]keyed, 0, to-from)
	for i := from; i < to; i++ {
		if !l.at(i).deleted() {
			all = append(all, keyed{entry: uint32(i)})
		}
	}
	return all
}

func (l *Loader) key(k keyed) string { return l.at(int(k.entry)).key }

// commonBytes returns how many bytes all keys begin with.
func (l *Loader) commonBytes(all []keyed) int {
	if len(all) == 0 {
		return 0
	}
	common := l.key(all[0])
	for _, k := range all {
		key := l.key(k)
		n := 0
		for n < len(common) && n < len(key) && common[n] == key[n] {
			n++
		}
		common = common[:n]
	}
	return len(common)
}

// sort sorts what has its first bytes in common, so many of them. It looks at a part of the keys at a time, and
// so mostly at numbers that lie beside each other rather than at keys that lie anywhere.
func (l *Loader) sort(all []keyed, common int) {
	const few = 8 // are compared whole
	if len(all) <= few || common >= kv.MaxKeyBytes {
		slices.SortFunc(all, func(a, b keyed) int { return strings.Compare(l.key(a), l.key(b)) })
		return
	}
	for i := range all {
		key := l.key(all[i])
		all[i].part = [2]uint64{wordAt(key, common), wordAt(key, common+8)}
	}
	if !slices.IsSortedFunc(all, byPart) {
		sortByPart(all)
	}
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].part == all[from].part {
			to++
		}
		if to-from > 1 {
			l.sort(all[from:to], common+partBytes)
		}
		from = to
	}
}

func byPart(a, b keyed) int {
	return cmp.Or(cmp.Compare(a.part[0], b.part[0]), cmp.Compare(a.part[1], b.part[1]))
}

// sortByPart sorts by the part of each: many by one byte after the other, from the last, of
// those in which parts differ.
func sortByPart(all []keyed) {
	const many = 256
	if len(all) < many {
		slices.SortFunc(all, byPart)
		return
	}
	from, to := all, make([]keyed, len(all))
	sorted := true // what is in all
	for word := 1; word >= 0; word-- {
		var differ uint64
		for i := range all {
			differ |= all[i].part[word] ^ all[0].part[word]
		}
		for shift := 0; shift < 64; shift += 8 {
			if byte(differ>>shift) != 0 {
				distribute(from, to, word, shift)
				from, to, sorted = to, from, !sorted
			}
		}
	}
	if !sorted {
		copy(all, from)
	}
}

// distribute moves what is in from to where it belongs by one byte of its part; what is equal there
// stays in order.
func distribute(from, to []keyed, word, shift int) {
	var place [256]int
	for i := range from {
		place[byte(from[i].part[word]>>shift)]++
	}
	next := 0
	for b, n := range place {
		place[b] = next
		next += n
	}
	for i := range from {
		b := byte(from[i].part[word] >> shift)
		to[place[b]] = from[i]
		place[b]++
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
