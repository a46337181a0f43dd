package mvcc

import (
	"iter"
	"slices"
	"strings"

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

// A past is the newest state of some time, seen through the events after an older
// revision. It holds those events itself: they may be forgotten while it is in use.
type past struct {
	newest *state
	rev    kv.Revision
	since  map[string][]*node // by table
}

// Revision implements [kv.Snapshot].
func (p *past) Revision() kv.Revision { return p.rev }

// Get implements [kv.Snapshot]. Walking back from the newest version is quick where it
// works; the walk ends early at a deletion, or where history is being forgotten.
func (p *past) Get(key string) *kv.Version {
	since := p.since[kv.TableOf(key)]
	newest := p.newest.Get(key)
	if len(since) == 0 {
		return newest
	}
	for v := newest; v != nil; v = v.Prev() {
		switch {
		case v.Revision > p.rev:
		case v.Deleted:
			return nil
		default:
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

// Ascend implements [kv.Snapshot].
func (p *past) Ascend(prefix, from string) iter.Seq[*kv.Version] {
	return func(yield func(*kv.Version) bool) {
		was, deleted := p.overlay(prefix, from)
		for v := range p.newest.Ascend(prefix, from) {
			for len(deleted) > 0 && deleted[0].Key < v.Key {
				if !yield(deleted[0]) {
					return
				}
				deleted = deleted[1:]
			}
			if old, changed := was[v.Key]; changed {
				v = old
			}
			if v != nil && !yield(v) {
				return
			}
		}
		for _, v := range deleted {
			if !yield(v) {
				return
			}
		}
	}
}

// overlay returns what the keys that have changed since were then, nil if they did not
// exist; and those of them, in order, that no longer exist.
func (p *past) overlay(prefix, from string) (was map[string]*kv.Version, deleted []*kv.Version) {
	was = map[string]*kv.Version{}
	for table, since := range p.since {
		if !strings.HasPrefix(table, prefix) && !strings.HasPrefix(prefix, table) {
			continue
		}
		for _, n := range since {
			key := n.event.Version.Key
			if key < from || !strings.HasPrefix(key, prefix) {
				continue
			}
			if _, known := was[key]; !known {
				was[key] = n.event.Prev
			}
		}
	}
	for key, v := range was {
		if v != nil && p.newest.Get(key) == nil {
			deleted = append(deleted, v)
		}
	}
	slices.SortFunc(deleted, func(a, b *kv.Version) int { return strings.Compare(a.Key, b.Key) })
	return was, deleted
}
