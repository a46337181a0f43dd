package mvcc

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/pawl-dev/pawl/kv"
)

// Watch returns the place after revision after in the list of changes under prefix, as
// [kv.Engine] promises it. The prefix is a space, a table, a namespace or a whole key.
func (x *Index) Watch(prefix string, after kv.Revision) (kv.Watch, error) {
	scope := scopeOf(prefix)
	if scope == nothing {
		return nil, &kv.Error{Op: "watch", Key: prefix, Kind: kv.ErrInvalid,
			Err: errors.New("watch a space, a table, a namespace of a table, or one whole key")}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed.Load() {
		return nil, &kv.Error{Op: "watch", Key: prefix, Kind: kv.ErrClosed}
	}
	if oldest := x.oldestOf(scope, prefix); after < oldest {
		return nil, &kv.Error{Op: "watch", Key: prefix, Want: after, Have: oldest, Kind: kv.ErrCompacted}
	}
	tp, at := x.join(scope, prefix, min(after, x.state.Load().rev))
	tp.watchers++
	return &watch{index: x, topic: tp, prefix: prefix, after: after, restarts: tp.restarts, at: at}, nil
}

// A scope is what kind of thing a prefix names.
type scope uint8

const (
	nothing scope = iota // that can be watched
	wholeSpace
	wholeTable
	partOfTable // a namespace or a key
)

func scopeOf(prefix string) scope {
	slashes := strings.Count(prefix, "/")
	isPrefix := strings.HasSuffix(prefix, "/")
	whole := prefix
	if isPrefix { // complete it to a key
		whole += strings.Repeat("x/", max(0, 3-slashes)) + "x"
	}
	switch {
	case kv.CheckKey(whole) != "":
		return nothing
	case !isPrefix:
		return partOfTable
	case slashes == 1:
		return wholeSpace
	case slashes == 3:
		return wholeTable
	case slashes == 4:
		return partOfTable
	}
	return nothing
}

// oldestOf returns the revision from which on the history under prefix is known.
func (x *Index) oldestOf(s scope, prefix string) kv.Revision {
	oldest := x.floor
	if s != wholeSpace {
		if t := x.tables[kv.TableOf(prefix)]; t != nil {
			oldest = t.oldest
		}
		return oldest
	}
	for name, t := range x.tables {
		if strings.HasPrefix(name, prefix) {
			oldest = max(oldest, t.oldest)
		}
	}
	return oldest
}

// join returns the topic of prefix and the place after rev in it.
func (x *Index) join(s scope, prefix string, rev kv.Revision) (*topic, *node) {
	switch s {
	case wholeTable:
		t := x.table(prefix)
		if i := t.search(rev); i > 0 {
			return t.topic, t.events[i-1]
		}
		return t.topic, t.topic.head
	case wholeSpace:
		return x.joinIn(x.spaces, prefix, rev, func(after, upTo kv.Revision) []*node {
			return x.spaceEvents(prefix, after, upTo)
		})
	}
	t := x.table(kv.TableOf(prefix))
	return x.joinIn(t.topics, prefix, rev, func(after, upTo kv.Revision) []*node {
		var found []*node
		for _, n := range t.between(after, upTo) {
			if key := n.event.Version.Key; key == prefix || kv.NamespaceOf(key) == prefix {
				found = append(found, n)
			}
		}
		return found
	})
}

// joinIn does what join does for the topics that exist only while they are watched.
func (x *Index) joinIn(topics map[string]*topic, name string, rev kv.Revision,
	source func(after, upTo kv.Revision) []*node) (*topic, *node) {
	tp := topics[name]
	if tp == nil {
		tp = newTopic(name, x.state.Load().rev)
		topics[name] = tp
	}
	tp.reach(rev, source)
	return tp, tp.place(rev)
}

// between returns the events after one revision and up to another.
func (t *table) between(after, upTo kv.Revision) []*node {
	return t.events[t.search(after):t.search(upTo)]
}

// spaceEvents returns the events of all tables of a space, in order.
func (x *Index) spaceEvents(space string, after, upTo kv.Revision) []*node {
	var found []*node
	for name, t := range x.tables {
		if strings.HasPrefix(name, space) {
			found = append(found, t.between(after, upTo)...)
		}
	}
	slices.SortFunc(found, func(a, b *node) int { return int(int64(a.seq - b.seq)) })
	return found
}

// leave takes one watcher from tp, and drops a topic that nobody watches any more.
func (x *Index) leave(tp *topic) {
	x.mu.Lock()
	defer x.mu.Unlock()
	tp.watchers--
	if tp.watchers > 0 {
		return
	}
	switch t := x.tables[kv.TableOf(tp.name)]; {
	case t == nil:
		delete(x.spaces, tp.name)
	case t.topic != tp:
		delete(t.topics, tp.name)
	}
	// A table that was looked for but never written leaves nothing behind.
	if t := x.tables[kv.TableOf(tp.name)]; t != nil && t.last == 0 && t.topic.watchers == 0 && len(t.topics) == 0 {
		delete(x.tables, t.name)
	}
}

// A watch is a place in the list of one topic.
type watch struct {
	index    *Index
	topic    *topic
	prefix   string
	after    kv.Revision
	restarts int // of topic, when the watch began
	stopped  atomic.Bool

	// Only who uses the watch touches these.
	at  *node
	err error

	ready chan struct{} // closed to end the wait under way; guarded by topic.mu
}

var nothingToWaitFor = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// over returns why the watch is at its end, nil if it is not.
func (w *watch) over() error {
	switch {
	case w.err != nil:
	case w.stopped.Load() || w.index.closed.Load():
		w.err = &kv.Error{Op: "watch", Key: w.prefix, Kind: kv.ErrClosed}
	case w.at.gone.Load():
		oldest, ok := w.rejoin()
		if ok {
			return nil
		}
		w.err = &kv.Error{Op: "watch", Key: w.prefix, Want: max(w.at.rev, w.after), Have: oldest, Kind: kv.ErrCompacted}
		w.Stop()
	}
	return w.err
}

// rejoin moves a watch from the future off a place that is gone, if all that was forgotten of
// its topic is what it would not have told. It returns from which revision on there is history.
func (w *watch) rejoin() (oldest kv.Revision, ok bool) {
	w.index.mu.Lock()
	defer w.index.mu.Unlock()
	oldest = w.index.oldestOf(scopeOf(w.prefix), w.prefix)
	if w.restarts != w.topic.restarts || w.at.rev >= w.after || w.after < w.topic.head.rev {
		return oldest, false
	}
	w.at = w.topic.place(min(w.after, w.index.state.Load().rev))
	return oldest, true
}

// look returns what is next, nil if there is nothing, or why the watch is at its end.
func (w *watch) look() (*node, error) {
	if n := w.peek(); n != nil {
		return n, nil
	}
	if err := w.over(); err != nil {
		return nil, err
	}
	return w.peek(), nil // over may have moved it
}

// peek skips what is not to be told and returns what is next, nil if there is nothing.
func (w *watch) peek() *node {
	for {
		n := w.at.next.Load()
		if n == nil || !n.bare() && n.rev > w.after {
			return n
		}
		w.at = n
	}
}

// Next implements [kv.Watch].
func (w *watch) Next() (kv.Event, bool, error) {
	if w.err != nil || w.stopped.Load() || w.index.closed.Load() {
		return kv.Event{}, false, w.over()
	}
	n, err := w.look()
	if n == nil {
		return kv.Event{}, false, err
	}
	w.at = n
	return n.event, true, nil
}

// Wait implements [kv.Watch].
func (w *watch) Wait() <-chan struct{} {
	w.topic.mu.Lock()
	defer w.topic.mu.Unlock()
	// Looked at under the lock that push and Stop take, so that neither is missed.
	if w.peek() != nil || w.err != nil || w.at.gone.Load() || w.stopped.Load() || w.index.closed.Load() {
		return nothingToWaitFor
	}
	if w.ready == nil {
		w.ready = make(chan struct{})
		w.topic.waiting[w] = struct{}{}
	}
	return w.ready
}

// Progress implements [kv.Watch].
func (w *watch) Progress() (kv.Revision, bool) {
	linked := kv.Revision(w.index.linked.Load()) // before look; see the note in doc.go
	if n, err := w.look(); n != nil || err != nil {
		return 0, false
	}
	return max(linked, w.after), true
}

// Stop implements [kv.Watch].
func (w *watch) Stop() {
	if w.stopped.Swap(true) {
		return
	}
	w.topic.mu.Lock()
	if w.ready != nil {
		w.topic.wake(w)
	}
	w.topic.mu.Unlock()
	w.index.leave(w.topic)
}
