package local

import (
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

// Sizes say how much a store holds.
type Sizes struct {
	Oldest, Newest kv.Revision // that can be read
	Index          mvcc.Measures

	Segments       int   // of the log; none in memory
	LogBytes       int64 // of all segments
	Snapshots      int
	SnapshotBytes  int64     // of all snapshots
	NewestSnapshot time.Time // of the last commit in it; zero if there is none
	OldestSnapshot time.Time
}

// Disk returns how many bytes the files of the store take.
func (s Sizes) Disk() int64 { return s.LogBytes + s.SnapshotBytes }

// Sizes returns how much the store holds now.
func (e *Engine) Sizes() Sizes {
	s := Sizes{Index: e.index.Measure()}
	s.Oldest, s.Newest = e.index.Revisions()
	if e.log != nil {
		e.log.measure(&s)
	}
	return s
}

func (j *journal) measure(s *Sizes) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s.Segments, s.Snapshots = len(j.segments), len(j.snapshots)
	for _, f := range j.segments {
		s.LogBytes += f.size
	}
	for _, f := range j.snapshots {
		s.SnapshotBytes += f.size
	}
	if n := len(j.snapshots); n > 0 {
		s.OldestSnapshot, s.NewestSnapshot = j.snapshots[0].time, j.snapshots[n-1].time
	}
}

// Size returns how many bytes the files of the store take.
func (e *Engine) Size() int64 { return e.Sizes().Disk() }

// NewestAt returns the revision that was the newest at a time, as the commits tell it; the oldest
// that can be read if history does not reach back as far.
func (e *Engine) NewestAt(at time.Time) kv.Revision { return e.index.NewestAt(at) }
