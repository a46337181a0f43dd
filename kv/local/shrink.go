package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// Shrink does what [Engine.Compact] does, and returns once the disk holds nothing any more that only
// the history before rev needed; Compact alone leaves that to snapshots to come. It
// writes a snapshot of rev, so it costs what there is, not what is forgotten.
func (e *Engine) Shrink(ctx context.Context, rev kv.Revision) error {
	if e.log == nil {
		return e.Compact(ctx, rev)
	}
	e.log.turn.Store(true) // what is written already is to be in files that can go
	if err := e.Compact(ctx, rev); err != nil {
		return err
	}
	if !e.log.work() {
		return &kv.Error{Op: "compact", Kind: kv.ErrClosed}
	}
	defer e.log.idle.Done()
	defer e.log.rest()
	if err := e.shrink(ctx); err != nil {
		return fmt.Errorf("kv/local: history was compacted, but its files were not removed: %w", err)
	}
	return nil
}

// work begins work on snapshots once nobody else is at it, unless there is to be no more.
// It is ended by [journal.rest] and by leaving the group idle.
func (j *journal) work() (ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.snapshotting {
		j.calm.Wait()
	}
	if j.stop {
		return false
	}
	j.snapshotting = true
	j.idle.Add(1)
	return true
}

// shrink sees that there is a snapshot to begin history with, and removes what came before.
func (e *Engine) shrink(ctx context.Context) error {
	_, tables, floor := e.index.Checkpoint()
	state, err := e.index.Read(ctx, kv.Exactly(floor))
	switch {
	case errors.Is(err, kv.ErrCompacted): // history begins later than that by itself
		return e.log.prune(floor)
	case err != nil:
		return err
	case e.log.hasSnapshot(floor) || floor == emptyRevision:
		return e.log.prune(floor)
	}
	for name, last := range tables {
		tables[name] = min(last, floor)
	}
	if err := e.log.writeSnapshot(snapshotHead{floor, youngest(state), floor}, tables, state); err != nil {
		return err
	}
	return e.log.prune(floor)
}

func (j *journal) hasSnapshot(rev kv.Revision) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.snapshots {
		if s.rev == rev {
			return true
		}
	}
	return false
}

// youngest returns when the last commit was whose work s still shows.
func youngest(s kv.Snapshot) time.Time {
	var at kv.Instant
	for v := range s.Ascend("", "") {
		at = max(at, v.Time)
	}
	return time.Unix(0, int64(at)).UTC()
}
