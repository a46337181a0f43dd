package mvcc

import (
	"github.com/tidwall/btree"

	"github.com/pawl-dev/pawl/kv"
)

// Restart shows base, which is newer than anything published, in place of all that came before. An engine
// does so if it cannot tell how one led to the other: every watch ends with [kv.ErrCompacted], and
// nothing older than base can be read.
func (x *Index) Restart(base Base) {
	x.mu.Lock()
	defer x.mu.Unlock()
	tree := btree.NewMap[string, *kv.Version](0)
	if base.Versions != nil {
		for v := range base.Versions {
			tree.Load(v.Key, v)
		}
	}
	floor := max(base.Floor, base.Revision)
	x.floor = floor
	x.raise(floor) // before any link is cut; see past.walk
	for _, t := range x.tables {
		x.forget(t, len(t.events))
		t.oldest, t.last = floor, base.Revision
		t.topic.restart(base.Revision)
		for _, tp := range t.topics {
			tp.restart(base.Revision)
		}
	}
	for _, tp := range x.spaces {
		tp.restart(base.Revision)
	}
	x.tree = tree
	x.state.Store(&state{x.tree.Copy(), base.Revision})
	x.linked.Store(uint64(base.Revision)) // after every place is gone; see watch.Progress
	x.wake(base.Revision)
}

// restart begins the list anew after rev: whoever stands anywhere in it has missed something.
func (tp *topic) restart(rev kv.Revision) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	for n := tp.head; n != nil; {
		next := n.next.Load()
		n.gone.Store(true)
		n.next.Store(nil)
		n = next
	}
	tp.head = &node{rev: rev}
	tp.tail, tp.base = tp.head, rev
	tp.restarts++
	for w := range tp.waiting {
		tp.wake(w)
	}
}
