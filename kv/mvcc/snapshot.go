package mvcc

import (
	"iter"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync/atomic"

	"github.com/tidwall/btree"

	"github.com/pawl-dev/pawl/kv"
)

// A state is the newest state at some time. Nobody changes it.
type state struct {
	tree *btree.Map[string, *kv.Version]
	rev  kv.Revision
}

// Revision implements [kv.Snapshot].
func (s *state) Revision() kv.Revision { return s.rev }

// Len returns how many keys exist.
func (s *state) Len() int { return s.tree.Len() }

// Get implements [kv.Snapshot].
func (s *state) Get(key string) *kv.Version {
	v, _ := s.tree.Get(key)
	return v
}

// Ascend implements [kv.Snapshot].
func (s *state) Ascend(prefix, from string) iter.Seq[*kv.Version] {
	return func(yield func(*kv.Version) bool) {
		s.tree.Ascend(max(prefix, from), func(key string, v *kv.Version) bool {
			return strings.HasPrefix(key, prefix) && yield(v)
		})
	}
}

// Count implements [kv.Counter]. Each branch of the tree knows how many keys are under it, so
// there is a first key to be looked for at either end, and nothing to be counted.
func (s *state) Count(prefix, from string) int {
	begin := s.before(func(key string) bool { return key >= from && key >= prefix })
	end := s.before(func(key string) bool { return key > prefix && !strings.HasPrefix(key, prefix) })
	return max(end-begin, 0)
}

// before returns how many keys come before the first that is reached; those after it are, too.
func (s *state) before(reached func(key string) bool) int {
	return sort.Search(s.tree.Len(), func(i int) bool {
		key, _, _ := s.tree.GetAt(i)
		return reached(key)
	})
}

// A past is the newest state of some time, seen through the events after an older
// revision. It holds those events itself: they may be forgotten while it is in use.
type past struct {
	newest *state
	rev    kv.Revision
	since  map[string][]*node // by table
	oldest *atomic.Uint64     // what the index can still tell
}

// Revision implements [kv.Snapshot].
func (p *past) Revision() kv.Revision { return p.rev }

// Get implements [kv.Snapshot].
func (p *past) Get(key string) *kv.Version {
	since := p.since[kv.TableOf(key)]
	newest := p.newest.Get(key)
	if len(since) == 0 {
		return newest
	}
	if newest != nil {
		if v, sure := p.walk(newest); sure {
			return v
		}
	}
	for _, n := range since {
		if n.event.Version.Key == key {
			return n.event.Prev
		}
	}
	return newest
}

// walk goes back from v to what its key held at p.rev, nil if it did not exist. It is not
// sure where it comes to an end that may be due to forgetting.
func (p *past) walk(v *kv.Version) (was *kv.Version, sure bool) {
	for v != nil && v.Revision > p.rev {
		v = v.Prev()
	}
	switch {
	case v == nil:
		// Forgetting raises oldest before it cuts a link.
		return nil, kv.Revision(p.oldest.Load()) <= p.rev
	case v.Deleted:
		return nil, true
	}
	return v, true
}

// Ascend implements [kv.Snapshot].
func (p *past) Ascend(prefix, from string) iter.Seq[*kv.Version] {
	return func(yield func(*kv.Version) bool) {
		var overlay map[string]*kv.Version // made when a walk is not sure
		at := func(v *kv.Version) *kv.Version {
			was, sure := p.walk(v)
			if sure {
				return was
			}
			if overlay == nil {
				overlay = p.overlay(prefix, from)
			}
			return overlay[v.Key]
		}
		deleted := p.deleted(prefix, from)
		for v := range p.newest.Ascend(prefix, from) {
			for len(deleted) > 0 && deleted[0].Key < v.Key {
				if was := at(deleted[0]); was != nil && !yield(was) {
					return
				}
				deleted = deleted[1:]
			}
			if v.Revision > p.rev {
				v = at(v)
			}
			if v != nil && !yield(v) {
				return
			}
		}
		for _, v := range deleted {
			if was := at(v); was != nil && !yield(was) {
				return
			}
		}
	}
}

// Count implements [kv.Counter]: what there is now, less what has come to be since, and with what
// has gone.
func (p *past) Count(prefix, from string) int {
	n := p.newest.Count(prefix, from)
	for e := range p.under(prefix, from) {
		switch was, is := e.event.Prev != nil, !e.event.Version.Deleted; {
		case is && !was:
			n--
		case was && !is:
			n++
		}
	}
	return n
}

// under yields the events since then of keys under prefix, from a key on.
func (p *past) under(prefix, from string) iter.Seq[*node] {
	return func(yield func(*node) bool) {
		for table, since := range p.since {
			if !strings.HasPrefix(table, prefix) && !strings.HasPrefix(prefix, table) {
				continue
			}
			for _, n := range since {
				key := n.event.Version.Key
				if key >= from && strings.HasPrefix(key, prefix) && !yield(n) {
					return
				}
			}
		}
	}
}

// deleted returns the deletions since then of keys that no longer exist, one for each, in
// key order.
func (p *past) deleted(prefix, from string) []*kv.Version {
	found := map[string]*kv.Version{}
	for n := range p.under(prefix, from) {
		if v := n.event.Version; v.Deleted && p.newest.Get(v.Key) == nil {
			found[v.Key] = v
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b *kv.Version) int { return strings.Compare(a.Key, b.Key) })
}

// overlay returns what the keys that have changed since were then, nil if they did not exist.
func (p *past) overlay(prefix, from string) map[string]*kv.Version {
	was := map[string]*kv.Version{}
	for n := range p.under(prefix, from) {
		if _, known := was[n.event.Version.Key]; !known {
			was[n.event.Version.Key] = n.event.Prev
		}
	}
	return was
}
