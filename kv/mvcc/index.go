package mvcc

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/btree"

	"github.com/pawl-dev/pawl/kv"
)

// MinHistory is the age below which no event is forgotten, whatever the limits say (rule H121).
const MinHistory = 75 * time.Second

// sweepEvery is how often, at most, the age of all tables' history is looked at.
const sweepEvery = time.Second

// Options limit the history that is kept.
type Options struct {
	Duration time.Duration // what is older is forgotten; 0 means 1 h, less than MinHistory means that
	Bytes    int64         // what all tables' history may occupy; 0 means 512 MiB
}

// Limits returns opts with what is left out filled in.
func Limits(opts Options) Options {
	if opts.Duration == 0 {
		opts.Duration = time.Hour
	}
	if opts.Bytes == 0 {
		opts.Bytes = 512 << 20
	}
	opts.Duration = max(opts.Duration, MinHistory)
	return opts
}

// A Base is the state that an index starts from.
type Base struct {
	Revision kv.Revision            // at least 1: readers take 0 for nothing
	Versions iter.Seq[*kv.Version]  // in key order; nil if there are none
	Tables   map[string]kv.Revision // the last change to each table; those left out never changed
	Floor    kv.Revision            // nothing older may be read, whatever Tables says
}

// An Index is the newest state of one store, its recent history and its watchers.
// It is safe for concurrent use, but one goroutine publishes.
type Index struct {
	opts   Options
	state  atomic.Pointer[state]
	linked atomic.Uint64 // events up to this revision are in their topics' lists
	oldest atomic.Uint64 // the oldest revision that can be read everywhere
	closed atomic.Bool

	mu      sync.Mutex // guards what follows
	tree    *btree.Map[string, *kv.Version]
	tables  map[string]*table
	spaces  map[string]*topic
	floor   kv.Revision
	bytes   int64     // of all tables
	seq     uint64    // counts events
	swept   time.Time // when the ages were last looked at
	crowded bool      // bytes are over the limit, and all that was left then was too young to forget
	waiters map[*waiter]struct{}
}

// New returns an index that shows base.
func New(opts Options, base Base) *Index {
	x := &Index{
		opts:    Limits(opts),
		tree:    btree.NewMap[string, *kv.Version](0),
		tables:  map[string]*table{},
		spaces:  map[string]*topic{},
		floor:   base.Floor,
		waiters: map[*waiter]struct{}{},
	}
	if base.Versions != nil {
		for v := range base.Versions {
			x.tree.Load(v.Key, v)
		}
	}
	x.oldest.Store(uint64(base.Floor))
	for name, last := range base.Tables {
		t := x.table(name)
		t.last = last
		t.oldest = max(t.oldest, last)
		x.raise(t.oldest)
	}
	x.state.Store(&state{x.tree.Copy(), base.Revision})
	x.linked.Store(uint64(base.Revision))
	return x
}

// Publish makes versions readable, as the commits up to revision newest. They are in the
// order of their revisions, and of each commit's changes; the index links each to the one
// it replaces. Now tells the age of what is kept of history.
func (x *Index) Publish(now time.Time, newest kv.Revision, versions []*kv.Version) {
	x.mu.Lock()
	defer x.mu.Unlock()
	events := make([]*node, len(versions))
	for i, v := range versions {
		events[i] = x.apply(v)
	}
	x.state.Store(&state{x.tree.Copy(), newest})
	for _, n := range events {
		x.link(n)
	}
	x.linked.Store(uint64(newest))
	x.wake(newest)
	if x.due(now) {
		x.trim(now)
	}
}

// due reports whether it is time to look for what the limits do not allow.
func (x *Index) due(now time.Time) bool {
	return x.bytes > x.opts.Bytes && !x.crowded || now.Sub(x.swept) >= sweepEvery
}

// apply puts v into the tree and its event into its table's history.
func (x *Index) apply(v *kv.Version) *node {
	t := x.table(kv.TableOf(v.Key))
	var was *kv.Version
	if v.Deleted {
		was, _ = x.tree.Delete(v.Key)
	} else {
		was, _ = x.tree.Set(v.Key, v)
	}
	t.follow(v, was)
	x.seq++
	n := &node{event: kv.Event{Version: v, Prev: was}, rev: v.Revision, seq: x.seq}
	size := n.bytes()
	t.append(n, size)
	x.bytes += size
	return n
}

// Newest returns the newest state.
func (x *Index) Newest() kv.Snapshot { return x.state.Load() }

// Revisions returns the oldest revision that can be read everywhere, and the newest.
func (x *Index) Revisions() (oldest, newest kv.Revision) {
	newest = x.state.Load().rev
	// Loaded second, so it may be younger than newest; never say so.
	return min(kv.Revision(x.oldest.Load()), newest), newest
}

// Checkpoint returns the newest state with the last change to each table at that state,
// and the revision below which history was given up: what a [Base] is made from.
func (x *Index) Checkpoint() (s kv.Snapshot, tables map[string]kv.Revision, floor kv.Revision) {
	x.mu.Lock()
	defer x.mu.Unlock()
	tables = make(map[string]kv.Revision, len(x.tables))
	for name, t := range x.tables {
		if t.last > 0 {
			tables[name] = t.last
		}
	}
	return x.state.Load(), tables, x.floor
}

// Read returns the state as fresh as asked, as [kv.Engine] promises it. What Latest means
// is the engine's to say: here it is what has been published.
func (x *Index) Read(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
	if x.closed.Load() {
		return nil, &kv.Error{Op: "read", Kind: kv.ErrClosed}
	}
	if rev, ok := at.Exactly(); ok {
		return x.exactly(rev)
	}
	rev := at.AtLeast()
	if err := x.Await(ctx, rev, nil); err != nil {
		if x.closed.Load() {
			return nil, &kv.Error{Op: "read", Kind: kv.ErrClosed}
		}
		return nil, &kv.Error{Op: "read", Want: rev, Have: x.state.Load().rev, Kind: kv.ErrFuture, Err: err}
	}
	return x.state.Load(), nil
}

// exactly returns the state at rev. What it needs of history it takes hold of now, so it
// does not change when history is forgotten afterwards.
func (x *Index) exactly(rev kv.Revision) (kv.Snapshot, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	newest := x.state.Load()
	oldest := kv.Revision(x.oldest.Load())
	switch {
	case rev > newest.rev:
		return nil, &kv.Error{Op: "read", Want: rev, Have: newest.rev, Kind: kv.ErrFuture}
	case rev < oldest:
		return nil, &kv.Error{Op: "read", Want: rev, Have: oldest, Kind: kv.ErrCompacted}
	case rev == newest.rev:
		return newest, nil
	}
	p := &past{newest: newest, rev: rev, since: map[string][]*node{}, oldest: &x.oldest}
	for name, t := range x.tables {
		if since := t.after(rev); len(since) > 0 {
			p.since[name] = since
		}
	}
	return p, nil
}

// Close ends all watches and waits with [kv.ErrClosed].
func (x *Index) Close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed.Store(true)
	for _, t := range x.tables {
		t.topic.wakeAll()
		for _, tp := range t.topics {
			tp.wakeAll()
		}
	}
	for _, tp := range x.spaces {
		tp.wakeAll()
	}
	for w := range x.waiters {
		close(w.ready)
	}
	clear(x.waiters)
}

// A waiter waits for a revision.
type waiter struct {
	rev   kv.Revision
	ready chan struct{}
}

// Await returns nil once revision rev can be read. It gives up with the context's error,
// with [kv.ErrClosed], or with [kv.ErrReadOnly] when abort is closed.
func (x *Index) Await(ctx context.Context, rev kv.Revision, abort <-chan struct{}) error {
	if x.state.Load().rev >= rev {
		return nil
	}
	w := &waiter{rev, make(chan struct{})}
	x.mu.Lock()
	if x.state.Load().rev >= rev {
		x.mu.Unlock()
		return nil
	}
	if x.closed.Load() {
		x.mu.Unlock()
		return kv.ErrClosed
	}
	x.waiters[w] = struct{}{}
	x.mu.Unlock()

	var why error
	select {
	case <-w.ready:
		why = kv.ErrClosed
	case <-ctx.Done():
		why = ctx.Err()
	case <-abort:
		why = kv.ErrReadOnly
	}
	x.mu.Lock()
	delete(x.waiters, w)
	x.mu.Unlock()
	if x.state.Load().rev >= rev {
		return nil
	}
	return why
}

// wake ends the waits for revisions up to newest.
func (x *Index) wake(newest kv.Revision) {
	for w := range x.waiters {
		if w.rev <= newest {
			close(w.ready)
			delete(x.waiters, w)
		}
	}
}
