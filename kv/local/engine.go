package local

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

// emptyRevision is the newest revision of a store that has never been written: not 0,
// which readers take for no revision at all.
const emptyRevision kv.Revision = 1

// Options say where a store is kept and how. One of Dir and Memory must be given.
type Options struct {
	Dir    string // the folder that holds the store; made if it does not exist
	Memory bool   // keep nothing: the store is gone when the engine is closed

	FS     FS           // nil means the operating system's
	Clock  Clock        // nil means the machine's
	Logger *slog.Logger // nil means silence

	Progress Progress // of reading the store while it is opened, in bytes; nil means nobody wants to know

	HistoryDuration time.Duration // what is older is forgotten; 0 means 1 h, and less than 75 s means that
	HistorySize     int64         // bytes that history older than 75 s may take, and so may the log; 0 means 512 MiB
	SegmentSize     int64         // bytes after which a segment is closed; 0 means 64 MiB
	SnapshotSize    int64         // bytes of log after which a snapshot is written; 0 means 64 MiB

	entropy io.Reader // of segment ids; nil means crypto/rand
}

// An Engine is a store in one folder, or in memory.
type Engine struct {
	opts  Options
	index *mvcc.Index
	log   *journal  // nil in memory
	lock  io.Closer // nil in memory
	stats *counters

	done     chan struct{} // closed when the writer has ended
	hurry    int           // how many groups are not waited for; the writer's
	released chan struct{} // closed when closing is set
	closing  error         // what Close returns

	writing sync.Mutex // held by whoever takes a group off the queue, until it is answered; before mu
	mu      sync.Mutex // guards what follows
	work    sync.Cond  // there is something queued, or the engine was closed
	queue   []*group
	probe   bool                   // the writer is to look for room
	sweep   bool                   // the writer is to forget history that has become too old
	pending map[string]*kv.Version // newest sequenced versions that cannot be read yet
	newest  kv.Revision            // sequenced
	last    time.Time              // of the last commit sequenced
	author  signature              // of that
	time    timeline
	lapses  lapses
	era     *era
	closed  bool

	alarm    func() bool // stops the timer of the next lapse; nil if none is set
	probing  func() bool // stops that of probe
	sweeping func() bool // stops that of sweep; nil if none is set
}

var (
	_ kv.Engine    = (*Engine)(nil)
	_ kv.Compactor = (*Engine)(nil)
)

// Read implements [kv.Engine]. Everything that was answered has been published, so the
// newest state that can be read is the latest.
func (e *Engine) Read(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
	return e.index.Read(ctx, at)
}

// Watch implements [kv.Engine].
func (e *Engine) Watch(prefix string, after kv.Revision) (kv.Watch, error) {
	return e.index.Watch(prefix, after)
}

// Revisions implements [kv.Engine].
func (e *Engine) Revisions() (oldest, newest kv.Revision) { return e.index.Revisions() }

// Compact implements [kv.Compactor]. That history is gone is written to the log too, so
// that it does not come back when the store is opened again.
func (e *Engine) Compact(ctx context.Context, rev kv.Revision) error {
	if _, newest := e.index.Revisions(); rev > newest {
		return &kv.Error{Op: "compact", Want: rev, Have: newest, Kind: kv.ErrFuture}
	}
	t := &ticket{commit: commit{forget: max(rev, emptyRevision)}}
	e.mu.Lock()
	why, closed := e.era.ended(), e.closed
	if why == nil && !closed {
		e.enqueue(t)
		t.group.waiting.Add(1)
		e.work.Signal()
	}
	e.mu.Unlock()
	switch {
	case why != nil:
		return &kv.Error{Op: "compact", Kind: kv.ErrReadOnly, Err: why}
	case closed:
		return &kv.Error{Op: "compact", Kind: kv.ErrClosed}
	}
	defer t.group.waiting.Done()
	select {
	case <-t.group.done:
		return t.err
	case <-ctx.Done():
		return &kv.Error{Op: "compact", Kind: kv.ErrUnknown, Err: ctx.Err()}
	}
}
