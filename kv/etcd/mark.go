package etcd

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/pawl-dev/pawl/kv"
)

// A mark is the revision up to which nothing is missing in the index. It may be ahead of the newest revision that the
// index shows: what happened since was not under the prefix, or was the engine's own.
type mark struct {
	rev atomic.Uint64

	mu    sync.Mutex    // guards what follows
	moved chan struct{} // closed when the mark has moved; nil while nobody waits
}

func (m *mark) revision() kv.Revision { return kv.Revision(m.rev.Load()) }

// move moves the mark forward, and wakes who waits. One goroutine calls it.
func (m *mark) move(rev kv.Revision) {
	m.rev.Store(uint64(rev))
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.moved != nil {
		close(m.moved)
		m.moved = nil
	}
}

// await returns nil once the mark is at rev. It gives up with the context's error, or with [kv.ErrClosed] when over is closed.
func (m *mark) await(ctx context.Context, rev kv.Revision, over <-chan struct{}) error {
	for {
		m.mu.Lock()
		if m.revision() >= rev { // looked at under the lock that move takes after it has moved
			m.mu.Unlock()
			return nil
		}
		if m.moved == nil {
			m.moved = make(chan struct{})
		}
		moved := m.moved
		m.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return kv.ErrClosed
		}
	}
}
