package mvcc

import (
	"context"
	"slices"
	"sort"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// eventOverhead is what an event is taken to occupy besides the value it replaced.
const eventOverhead = 512

// A table is the history of one table. [Index.mu] guards it.
type table struct {
	name    string
	events  []*node // kept, oldest first; elements are never overwritten, see past
	dropped int     // elements of the array before events[0] that still hold memory
	bytes   int64
	oldest  kv.Revision            // the state of the table can be told from here on
	last    kv.Revision            // the last change
	dead    map[string]*kv.Version // deletions that are kept, where nothing came after
	topic   *topic                 // all events
	topics  map[string]*topic      // of namespaces and keys, while watched
}

// table returns the table of that name, making it if need be.
func (x *Index) table(name string) *table {
	t := x.tables[name]
	if t == nil {
		t = &table{
			name:   name,
			oldest: x.floor,
			dead:   map[string]*kv.Version{},
			topic:  newTopic(name, x.floor),
			topics: map[string]*topic{},
		}
		x.tables[name] = t
	}
	return t
}

// bytes returns what forgetting the event gives back. The value that it brought is not
// part of it: that is either the newest, or counted with the event that replaced it.
func (n *node) bytes() int64 {
	if p := n.event.Prev; p != nil {
		return eventBytes(n.event.Version.Key, int64(len(p.Value)))
	}
	return eventBytes(n.event.Version.Key, 0)
}

func eventBytes(key string, replaced int64) int64 { return eventOverhead + int64(len(key)) + replaced }

// age is how long ago the event was committed.
func (n *node) age(now time.Time) time.Duration { return kv.InstantOf(now).Sub(n.event.Version.Time) }

// append adds an event, of which forgetting will give back so many bytes.
func (t *table) append(n *node, bytes int64) {
	t.events = append(t.events, n)
	t.bytes += bytes
	t.last = n.rev
}

// follow links v to what it follows: was, the version that it replaces, or, if that is nil, the
// deletion that is still kept.
func (t *table) follow(v, was *kv.Version) {
	if was != nil {
		v.SetPrev(was)
	} else if len(t.dead) > 0 && t.dead[v.Key] != nil {
		v.SetPrev(t.dead[v.Key])
		delete(t.dead, v.Key)
	}
	if v.Deleted {
		t.dead[v.Key] = v
	}
}

// after returns the events after rev.
func (t *table) after(rev kv.Revision) []*node {
	return t.events[t.search(rev):]
}

// search returns how many of the events are not after rev.
func (t *table) search(rev kv.Revision) int {
	if n := len(t.events); n == 0 || t.events[n-1].rev <= rev {
		return n
	}
	return sort.Search(len(t.events), func(i int) bool { return t.events[i].rev > rev })
}

// Trim forgets what the limits do not allow at the time now.
func (x *Index) Trim(now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.trim(now)
}

func (x *Index) trim(now time.Time) {
	x.swept = now
	for _, t := range x.tables {
		x.forget(t, t.olderThan(now, x.opts.Duration))
	}
	x.crowded = false
	if x.bytes <= x.opts.Bytes {
		return
	}
	// A little more, so that not every commit has to look at all tables.
	for target := x.opts.Bytes - x.opts.Bytes/64; x.bytes > target; {
		largest, limit := x.largest(now)
		if largest == nil { // all that is left is too young
			x.crowded = x.bytes > x.opts.Bytes
			return
		}
		x.shrink(largest, now, limit, target)
	}
}

// olderThan returns how many events are older than age.
func (t *table) olderThan(now time.Time, age time.Duration) int {
	if len(t.events) == 0 || t.events[0].age(now) <= age {
		return 0
	}
	return sort.Search(len(t.events), func(i int) bool { return t.events[i].age(now) <= age })
}

// largest returns the table with the most bytes of those that may forget something, and
// how far it may shrink before another is larger.
func (x *Index) largest(now time.Time) (t *table, second int64) {
	for _, c := range x.tables {
		switch {
		case c.olderThan(now, MinHistory) == 0:
		case t == nil:
			t = c
		case c.bytes > t.bytes:
			t, second = c, t.bytes
		default:
			second = max(second, c.bytes)
		}
	}
	return t, second
}

// shrink forgets t's oldest revisions, at least one, until all tables together are within
// the target, t is no larger than limit, or what is left is too young.
func (x *Index) shrink(t *table, now time.Time, limit, target int64) {
	may := t.olderThan(now, MinHistory)
	over := min(x.bytes-target, max(t.bytes-limit, 1))
	n := 0
	for n < may && over > 0 {
		over -= t.events[n].bytes()
		n++
	}
	x.forget(t, n)
}

// forget drops the first n events of t, and the rest of the last one's revision, so that
// no commit is ever half there.
func (x *Index) forget(t *table, n int) {
	if n == 0 {
		return
	}
	to := t.events[n-1].rev
	n = t.search(to)
	x.raise(to) // before any link is cut; see past.walk
	t.oldest = max(t.oldest, to)
	for _, e := range t.events[:n] {
		v := e.event.Version
		size := e.bytes()
		t.bytes -= size
		x.bytes -= size
		v.SetPrev(nil)
		if t.dead[v.Key] == v {
			delete(t.dead, v.Key)
		}
		for _, tp := range x.subtopics(t, v.Key) {
			tp.trimTo(to)
		}
	}
	t.topic.trimTo(to)
	t.drop(n)
}

// drop takes n events off the front. A past may still hold the array, so they are not
// cleared; instead the array is left behind when half of it is dead weight.
func (t *table) drop(n int) {
	t.events = t.events[n:]
	t.dropped += n
	if t.dropped > len(t.events) {
		t.events, t.dropped = slices.Clone(t.events), 0
	}
}

// raise notes that revisions before rev can no longer be read everywhere.
func (x *Index) raise(rev kv.Revision) {
	if uint64(rev) > x.oldest.Load() {
		x.oldest.Store(uint64(rev))
	}
}

// Compact forgets what only revisions before rev need, however young; see [kv.Compactor].
func (x *Index) Compact(_ context.Context, rev kv.Revision) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if newest := x.state.Load().rev; rev > newest {
		return &kv.Error{Op: "compact", Want: rev, Have: newest, Kind: kv.ErrFuture}
	}
	x.compact(rev)
	return nil
}

func (x *Index) compact(rev kv.Revision) {
	x.floor = max(x.floor, rev)
	x.raise(rev)
	for _, t := range x.tables {
		x.forget(t, t.search(rev))
		t.oldest = max(t.oldest, rev)
	}
}
