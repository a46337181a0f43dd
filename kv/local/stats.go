package local

import (
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

// Stats count what an engine has done since it was opened.
type Stats struct {
	Commits uint64 // that were to be written
	Groups  uint64 // of commits, written together
	Syncs   uint64 // waits for the disk to hold a group
	Bytes   uint64 // written to the log

	GroupCommits Histogram // of how many commits a group has
	SyncSeconds  Histogram // of how long a wait for the disk took

	Snapshots     uint64 // written
	SnapshotBytes uint64
}

// A Histogram says how often something was how large.
type Histogram struct {
	Bounds []float64 // what is counted under an index is at most the bound there
	Counts []uint64  // one more than there are bounds
	Sum    float64   // of all
}

// Count returns how often there was something at all.
func (h Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// counters are written by who writes to the disk, and read by anybody.
type counters struct {
	groups                          tally // of commits
	syncs                           tally // of nanoseconds
	bytes, snapshots, snapshotBytes atomic.Uint64
}

func newCounters() *counters {
	c := &counters{}
	for n := int64(1); n <= 1024; n *= 2 {
		c.groups.bounds = append(c.groups.bounds, n)
	}
	for _, d := range []time.Duration{100 * time.Microsecond, time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second} {
		c.syncs.bounds = append(c.syncs.bounds, int64(d), int64(5*d/2), int64(5*d))
	}
	c.groups.counts = make([]atomic.Uint64, len(c.groups.bounds)+1)
	c.syncs.counts = make([]atomic.Uint64, len(c.syncs.bounds)+1)
	return c
}

// A tally is a histogram that is being made.
type tally struct {
	bounds []int64
	counts []atomic.Uint64
	sum    atomic.Int64
}

func (t *tally) observe(n int64) {
	i := 0
	for i < len(t.bounds) && n > t.bounds[i] {
		i++
	}
	t.counts[i].Add(1)
	t.sum.Add(n)
}

// read returns the histogram in a unit that is so many of the tally's.
func (t *tally) read(unit float64) Histogram {
	h := Histogram{Bounds: make([]float64, len(t.bounds)), Counts: make([]uint64, len(t.counts)), Sum: float64(t.sum.Load()) / unit}
	for i, b := range t.bounds {
		h.Bounds[i] = float64(b) / unit
	}
	for i := range t.counts {
		h.Counts[i] = t.counts[i].Load()
	}
	return h
}

// Stats returns what the engine has done so far.
func (e *Engine) Stats() Stats {
	s := Stats{
		GroupCommits: e.stats.groups.read(1), SyncSeconds: e.stats.syncs.read(float64(time.Second)),
		Bytes: e.stats.bytes.Load(), Snapshots: e.stats.snapshots.Load(), SnapshotBytes: e.stats.snapshotBytes.Load(),
	}
	s.Groups, s.Commits, s.Syncs = s.GroupCommits.Count(), uint64(s.GroupCommits.Sum), s.SyncSeconds.Count()
	return s
}

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
