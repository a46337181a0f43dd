package etcd

import (
	"context"
	"sync/atomic"
	"time"
)

// A patience gives those who wait a time at which they give up. Who comes within a short time of another is given the
// same, so that a thousand commits a second need no timers of their own.
type patience struct {
	of    time.Duration
	ctx   context.Context // ends them all, once nothing will be seen any more
	given atomic.Pointer[term]
}

// A term ends when those give up that it was given to.
type term struct {
	began time.Time
	ctx   context.Context
}

// term returns a context that ends when patience does that begins now, or a hundredth of it later.
func (p *patience) term() context.Context {
	now := time.Now()
	share := p.of / 100
	if t := p.given.Load(); t != nil && now.Sub(t.began) < share {
		return t.ctx
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.of+share)
	context.AfterFunc(ctx, cancel)
	p.given.Store(&term{now, ctx})
	return ctx
}

// A wait ends when its caller goes away, or its term does.
type wait struct {
	caller, term context.Context

	both   context.Context // nil until somebody asked for it
	cancel context.CancelFunc
}

// ctx returns what ends when the wait does, for what takes one context.
func (w *wait) ctx() context.Context {
	if w.both == nil {
		ends, _ := w.term.Deadline()
		w.both, w.cancel = context.WithDeadline(w.caller, ends)
	}
	return w.both
}

// err returns why the wait has ended, nil if it has not.
func (w *wait) err() error {
	if err := w.caller.Err(); err != nil {
		return err
	}
	return context.Cause(w.term)
}

// over releases what the wait holds.
func (w *wait) over() {
	if w.cancel != nil {
		w.cancel()
	}
}
