package local

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

// snapshotFiles is how many segments may gather before a snapshot is written, however
// short they are: a store that is opened often makes one each time.
const snapshotFiles = 64

// tidy begins a snapshot in the background if enough log has gathered since the last one.
// It is called after each group, by who appends, when index shows exactly what is in the log.
func (j *journal) tidy(index *mvcc.Index) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.snapshotting || j.stop || !j.due() {
		return
	}
	j.fresh, j.freshFiles = 0, 0
	state, tables, floor := index.Checkpoint()
	if n := len(j.snapshots); n > 0 && j.snapshots[n-1].rev == state.Revision() {
		return
	}
	j.snapshotting = true
	head := snapshotHead{state.Revision(), j.last, floor}
	j.idle.Go(func() { j.snapshot(head, tables, state) })
}

// sweepEvery is how often a store in which nothing happens looks for history to forget.
const sweepEvery = mvcc.MinHistory / 5

// sweepLater has the writer forget, in a while, what has become too old by then, whether or not
// there are more commits. The caller holds e.mu.
func (e *Engine) sweepLater() {
	if e.sweeping == nil && !e.closed {
		e.sweeping = e.opts.Clock.AfterFunc(sweepEvery, func() { e.ask(&e.sweep) })
	}
}

// sweepHistory forgets what has become too old, and goes on to until nothing can.
func (e *Engine) sweepHistory() {
	e.index.Trim(e.opts.Clock.Now())
	oldest, newest := e.index.Revisions()
	more := oldest < newest
	if e.log != nil {
		more = e.log.sweep() || more
	}
	if more {
		e.mu.Lock()
		e.sweepLater()
		e.mu.Unlock()
	}
}

// sweep removes, in the background, what is no longer needed, and says whether there may be
// more of that in time.
func (j *journal) sweep() (more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stop || len(j.snapshots) == 0 || len(j.snapshots) == 1 && j.dead(j.snapshots[0].rev) == 0 {
		return false
	}
	if _, ok := j.base(0); ok && !j.snapshotting {
		j.snapshotting = true
		j.idle.Go(func() {
			defer j.rest()
			j.tidyUp(0)
		})
	}
	return true
}

// dead returns how many segments hold nothing newer than rev. The caller holds j.mu.
func (j *journal) dead(rev kv.Revision) (n int) {
	for n+1 < len(j.segments) && j.segments[n+1].first <= rev+1 {
		n++
	}
	return n
}

// snapshotSpacing weighs what snapshots write against what opening reads.
const snapshotSpacing = 4

// due reports whether the log since the newest snapshot is long enough for another: snapshotSpacing
// times as long as the snapshot itself, so that they add at most a quarter to what goes to disk.
func (j *journal) due() bool {
	size := j.opts.SnapshotSize
	if n := len(j.snapshots); n > 0 {
		size = max(size, snapshotSpacing*j.snapshots[n-1].size)
	}
	return j.fresh >= size || j.freshFiles > snapshotFiles
}

// snapshot writes state to disk and removes what is no longer needed then. A failure
// costs nothing but room on the disk: the log holds everything.
func (j *journal) snapshot(head snapshotHead, tables map[string]kv.Revision, state kv.Snapshot) {
	defer j.rest()
	if err := j.writeSnapshot(head, tables, state); err != nil {
		if !j.stopping() {
			j.opts.Logger.Warn("a snapshot could not be written; the log is kept instead and will be tried again", "file", j.snapshotName(head.rev), "cause", err)
		}
		return
	}
	j.tidyUp(head.floor)
}

// tidyUp removes what is no longer needed. That it cannot be costs nothing but room.
func (j *journal) tidyUp(floor kv.Revision) {
	if err := j.prune(floor); err != nil && !j.stopping() {
		j.opts.Logger.Warn("old files of the store could not be removed; they do no harm", "dir", j.opts.Dir, "cause", err)
	}
}

// rest ends the work on snapshots, of which there is one at a time.
func (j *journal) rest() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.snapshotting = false
	j.calm.Broadcast()
}

// writeSnapshot writes state to disk.
func (j *journal) writeSnapshot(head snapshotHead, tables map[string]kv.Revision, state kv.Snapshot) error {
	counter := &countingWriter{}
	err := writeWhole(j.opts.FS, j.snapshotName(head.rev), func(w io.Writer) error {
		counter.w = w
		return image{head: head, tables: tables, versions: state.Ascend("", "")}.write(counter, j.proceed)
	})
	if err != nil {
		return err
	}
	j.stats.snapshots.Add(1)
	j.stats.snapshotBytes.Add(uint64(counter.n))
	j.mu.Lock()
	defer j.mu.Unlock()
	i, _ := slices.BinarySearchFunc(j.snapshots, head.rev, func(s snapshotFile, rev kv.Revision) int { return cmp.Compare(s.rev, rev) })
	j.snapshots = slices.Insert(j.snapshots, i, snapshotFile{rev: head.rev, time: head.time, size: counter.n})
	return nil
}

func (j *journal) stopping() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stop
}

// proceed returns an error if what is being written is no longer wanted.
func (j *journal) proceed(int) error {
	if j.stopping() {
		return errStopped
	}
	return nil
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// prune removes the snapshots before the one that history is to begin with, and the
// segments that hold nothing newer than it. Snapshots go first, and their names from the
// disk: opening begins with the oldest that it finds, and needs all that follows it.
//
// No revision before floor is to be read.
func (j *journal) prune(floor kv.Revision) error {
	j.mu.Lock()
	base, ok := j.base(floor)
	if !ok {
		j.mu.Unlock()
		return nil
	}
	rev := j.snapshots[base].rev
	old := slices.Clone(j.segments[:j.dead(rev)])
	j.mu.Unlock()
	if base == 0 && len(old) == 0 {
		return nil
	}
	if err := j.verify(rev); err != nil {
		var damage *DamageError
		if errors.As(err, &damage) {
			j.mu.Lock()
			j.snapshots[base].bad = true
			j.mu.Unlock()
		}
		return err
	}
	if err := j.dropSnapshots(rev); err != nil {
		return err
	}
	for _, s := range old {
		if err := j.opts.FS.Remove(j.segmentName(s.first)); err != nil {
			return err
		}
		j.mu.Lock()
		j.segments = j.segments[1:]
		j.mu.Unlock()
		if s.first == emptyRevision+1 {
			// Where this one is, opening takes the log for whole, and begins with it.
			if err := j.opts.FS.SyncDir(j.logDir()); err != nil {
				return err
			}
		}
	}
	return j.opts.FS.SyncDir(j.logDir())
}

// dropSnapshots removes the snapshots before rev. It asks the disk which there are: one
// that could not be finished properly may be there all the same.
func (j *journal) dropSnapshots(rev kv.Revision) error {
	found, err := j.list(j.snapDir(), ".snap")
	if err != nil {
		return err
	}
	for _, old := range found {
		if old >= rev {
			break
		}
		if err := j.opts.FS.Remove(j.snapshotName(old)); err != nil {
			return err
		}
		j.mu.Lock()
		j.snapshots = slices.DeleteFunc(j.snapshots, func(s snapshotFile) bool { return s.rev == old })
		j.mu.Unlock()
	}
	return j.opts.FS.SyncDir(j.snapDir())
}

// base returns which snapshot history should begin with: the newest that shows no more
// than the floor of what may be read, or is old enough, or has enough log after it and is not
// younger than what is always kept. If none is, history goes on to begin where it does. The
// caller holds j.mu.
func (j *journal) base(floor kv.Revision) (i int, ok bool) {
	limits := mvcc.Limits(j.opts.history())
	now := j.opts.Clock.Now()
	var after int64
	next := len(j.segments)
	for i := len(j.snapshots) - 1; i >= 0; i-- {
		s := j.snapshots[i]
		if s.bad {
			continue
		}
		for next > 0 && j.segments[next-1].first > s.rev {
			next--
			after += j.segments[next].size
		}
		age := now.Sub(s.time)
		if s.rev <= floor || age > limits.Duration || after >= limits.Bytes && age > mvcc.MinHistory {
			return i, true
		}
	}
	return 0, false
}

// verify reads the snapshot at rev back, before what it stands in for is removed.
func (j *journal) verify(rev kv.Revision) error {
	return j.eachSnapshot(rev, func(r *snapshotReader, _ int64) error {
		for range r.versions() {
			if j.stopping() {
				return errStopped
			}
		}
		return r.err
	})
}
