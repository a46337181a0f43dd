package mvcc

import (
	"sort"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// Measures say how much an index holds.
type Measures struct {
	Keys    int       // that exist
	Events  int       // of history
	Bytes   int64     // that history is taken to occupy; see [Options.Bytes]
	Since   time.Time // of the oldest event; zero if there are none
	Watches int       // under way
}

// Measure returns how much the index holds.
func (x *Index) Measure() Measures {
	x.mu.Lock()
	defer x.mu.Unlock()
	m := Measures{Keys: x.tree.Len(), Bytes: x.bytes}
	for _, t := range x.tables {
		m.Events += len(t.events)
		if len(t.events) > 0 && (m.Since.IsZero() || t.events[0].event.Version.Time.Time().Before(m.Since)) {
			m.Since = t.events[0].event.Version.Time.Time()
		}
		m.Watches += t.topic.watchers
		for _, tp := range t.topics {
			m.Watches += tp.watchers
		}
	}
	for _, tp := range x.spaces {
		m.Watches += tp.watchers
	}
	return m
}

// NewestAt returns the revision that was the newest at a time, as the commits tell it. If history
// does not reach back as far, that is the oldest revision that can be read.
func (x *Index) NewestAt(at time.Time) kv.Revision {
	x.mu.Lock()
	defer x.mu.Unlock()
	rev, then := kv.Revision(x.oldest.Load()), kv.InstantOf(at)
	for _, t := range x.tables {
		later := sort.Search(len(t.events), func(i int) bool { return t.events[i].event.Version.Time > then })
		if later > 0 {
			rev = max(rev, t.events[later-1].rev)
		}
	}
	return rev
}
