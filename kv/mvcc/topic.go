package mvcc

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pawl-dev/pawl/kv"
)

// A node is one event in the list of one topic, or a bare place between events.
type node struct {
	event kv.Event // without a version if the place is bare
	rev   kv.Revision
	seq   uint64 // the order of events of different tables

	next atomic.Pointer[node]
	gone atomic.Bool // what came next here is forgotten
}

func (n *node) bare() bool { return n.event.Version == nil }

// A topic is the list of the events of one table, namespace, key or space.
type topic struct {
	name string

	// Index.mu guards these.
	base       kv.Revision // events after it are in the list, unless forgotten
	head, tail *node       // what is kept begins after head
	watchers   int
	restarts   int

	mu      sync.Mutex // guards the watches waiting here, and what they wait on
	waiting map[*watch]struct{}
}

func newTopic(name string, base kv.Revision) *topic {
	n := &node{rev: base}
	return &topic{name: name, base: base, head: n, tail: n, waiting: map[*watch]struct{}{}}
}

// link puts the event n into the lists of its topics.
func (x *Index) link(n *node) {
	key := n.event.Version.Key
	t := x.tables[kv.TableOf(key)]
	t.topic.push(n)
	for _, tp := range x.subtopics(t, key) {
		tp.push(n.copy())
	}
}

func (n *node) copy() *node {
	return &node{event: n.event, rev: n.rev, seq: n.seq}
}

// subtopics returns the topics besides the table that key's events belong to and that
// are being watched.
func (x *Index) subtopics(t *table, key string) []*topic {
	var all []*topic
	if len(t.topics) > 0 {
		if tp := t.topics[key]; tp != nil {
			all = append(all, tp)
		}
		if tp := t.topics[kv.NamespaceOf(key)]; tp != nil {
			all = append(all, tp)
		}
	}
	if len(x.spaces) > 0 {
		if tp := x.spaces[spaceOf(key)]; tp != nil {
			all = append(all, tp)
		}
	}
	return all
}

// spaceOf returns the prefix of all keys of key's space.
func spaceOf(key string) string { return key[:strings.IndexByte(key, '/')+1] }

// push appends n and wakes who waits for it.
func (tp *topic) push(n *node) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	tp.tail.next.Store(n)
	tp.tail = n
	for w := range tp.waiting {
		if n.rev > w.after {
			tp.wake(w)
		}
	}
}

// wake ends w's wait. The caller holds tp.mu.
func (tp *topic) wake(w *watch) {
	close(w.ready)
	w.ready = nil
	delete(tp.waiting, w)
}

func (tp *topic) wakeAll() {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	for w := range tp.waiting {
		tp.wake(w)
	}
}

// trimTo forgets the events up to rev. The places before them become gone; the last of
// them stays, as the place where the list now begins.
func (tp *topic) trimTo(rev kv.Revision) {
	last := tp.head
	for n := tp.head.next.Load(); n != nil && n.rev <= rev; n = n.next.Load() {
		if !n.bare() {
			last = n
		}
	}
	for tp.head != last {
		n := tp.head
		tp.head = n.next.Load()
		n.gone.Store(true)
		n.next.Store(nil)
	}
}

// reach makes the list hold the events after rev. Source returns the events after one
// revision and up to another that belong to the topic.
func (tp *topic) reach(rev kv.Revision, source func(after, upTo kv.Revision) []*node) {
	if rev >= tp.base {
		return
	}
	head := &node{rev: rev}
	n := head
	for _, e := range source(rev, tp.base) {
		c := e.copy()
		n.next.Store(c)
		n = c
	}
	n.next.Store(tp.head) // a bare place: nothing after base has been forgotten, see Watch
	tp.head, tp.base = head, rev
}

// place returns the place after all events up to rev.
func (tp *topic) place(rev kv.Revision) *node {
	if tp.tail.rev <= rev {
		return tp.tail
	}
	at := tp.head
	for n := at.next.Load(); n != nil && n.rev <= rev; n = n.next.Load() {
		at = n
	}
	return at
}
