package etcd

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// An asker asks one question for all who want to know at once. An answer is of use only to who was there before it
// was asked for: while one is on its way, all who come wait for the next.
type asker struct {
	ask func() (kv.Revision, error)

	mu    sync.Mutex // guards what follows
	next  *answer    // that nobody has asked for yet; nil if nobody waits for one
	crowd crowd      // who waits for it
	under bool       // one is on its way
}

// An answer is there once done is closed.
type answer struct {
	done chan struct{}
	rev  kv.Revision
	err  error
}

// revision returns what ask answers that is called after revision was.
func (a *asker) revision(ctx context.Context) (kv.Revision, error) {
	a.mu.Lock()
	if a.next == nil {
		a.next = &answer{done: make(chan struct{})}
	}
	mine := a.next
	a.crowd.come()
	if !a.under {
		a.under = true
		go a.run()
	}
	a.mu.Unlock()
	select {
	case <-mine.done:
		return mine.rev, mine.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// run asks for as long as somebody waits.
func (a *asker) run() {
	for {
		a.mu.Lock()
		now, askers := a.next, a.crowd.here
		a.next = nil
		a.crowd.serve(askers)
		a.under = now != nil
		a.mu.Unlock()
		if now == nil {
			return
		}
		began := time.Now()
		now.rev, now.err = a.ask()
		close(now.done)
		a.crowd.gather(&a.mu, askers, math.MaxInt, time.Since(began))
	}
}
