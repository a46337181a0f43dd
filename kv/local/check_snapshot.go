package local

import (
	"errors"
	"fmt"

	"github.com/pawl-dev/pawl/kv"
)

// comeTo checks the snapshots of revisions before rev, which the log has led to.
func (c *checker) comeTo(rev kv.Revision) {
	for len(c.snapshots) > 0 && c.snapshots[0] < rev {
		if err := c.snapshot(c.snapshots[0]+1 == rev); err != nil {
			c.failed = errors.Join(c.failed, err)
			return
		}
	}
}

// snapshot checks the next snapshot, and compares it with what the log has led to, if that
// is known; otherwise it is known afterwards, if what comes next in the log rests on just this state.
func (c *checker) snapshot(next bool) error {
	rev := c.snapshots[0]
	c.snapshots = c.snapshots[1:]
	name := c.journal.snapshotName(rev)
	made := SnapshotReport{File: name, Revision: rev}
	var now held
	err := c.journal.withFile(name, func(f File, size int64) (err error) {
		made.Bytes = size
		now, err = c.readSnapshot(&made, counted{f, c}, size)
		return err
	})
	c.report.Snapshots = append(c.report.Snapshots, made)
	advice := snapshotAdvice(rev == c.base, len(c.snapshots) > 0)
	var damage *DamageError
	switch {
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	case errors.As(err, &damage):
		c.damage(name, damage.Offset, damage.What, advice)
	case err != nil:
		c.damage(name, 0, fmt.Sprintf("it cannot be read: %v", err), advice)
	case c.now == nil && next:
		c.now = now
	}
	if err != nil && rev == c.base {
		c.now = nil
	}
	return nil
}

// readSnapshot reads a snapshot to its end.
func (c *checker) readSnapshot(made *SnapshotReport, in counted, size int64) (held, error) {
	r, err := newSnapshotReader(made.File, in, size)
	if err != nil {
		return nil, err
	}
	if err := r.fits(made.Revision); err != nil {
		return nil, err
	}
	made.Time = r.head.time
	now := held{}
	known := c.now != nil && made.Revision != c.base
	for v := range r.versions() {
		now[v.Key] = digestOf(v)
		made.Objects++
		if c.now == nil {
			c.look(v, made.File, r.offset)
		}
		if was, ok := c.now[v.Key]; known && (!ok || was != now[v.Key]) {
			return nil, r.damage(fmt.Sprintf("%s is not as the log says it was at revision %d", v.Key, made.Revision))
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	if known && len(now) != len(c.now) {
		return nil, r.damage(fmt.Sprintf("it holds %d objects, where the log says that there were %d at revision %d", len(now), len(c.now), made.Revision))
	}
	if made.Revision == c.base {
		c.begin(r)
	}
	return now, nil
}

// begin goes on from the snapshot that history begins with.
func (c *checker) begin(r *snapshotReader) {
	c.floor = max(c.floor, r.head.floor)
	for _, last := range r.tables {
		c.floor = max(c.floor, min(last, c.base))
	}
	c.time = r.head.time
	c.mark(c.base, c.time)
	c.report.Newest = max(c.report.Newest, c.base)
}
