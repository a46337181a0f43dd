package local

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// roomEvery is how often a store that takes no writes, for want of room, looks whether there
// is room again.
const roomEvery = time.Second

// An era is a time in which all that is sequenced is published, but for what is still on its
// way when the era ends. It ends when a group cannot be written, or when there is no room for
// the next; and another begins when there is.
type era struct {
	over chan struct{} // closed when what follows is final
	last kv.Revision   // published
	why  error         // it ended: a FullError or a FailedError
}

func newEra() *era { return &era{over: make(chan struct{})} }

// ended returns why the era is over, nil if it is not.
func (e *era) ended() error {
	select {
	case <-e.over:
		return e.why
	default:
		return nil
	}
}

// A FullError says that a store takes no writes because its disk has no room for them.
type FullError struct {
	Dir string
	Err error // what did not fit
}

// Error says what did not fit, and what to do.
func (e *FullError) Error() string {
	return fmt.Sprintf("there is no room for %s (%v); reads go on, and so do writes once there is room on its disk", e.Dir, e.Err)
}

// Unwrap returns what did not fit; it is an [ErrFull].
func (e *FullError) Unwrap() error { return e.Err }

// A FailedError says that a store takes no more writes because its disk failed.
type FailedError struct {
	Dir string
	Err error // what failed
}

// Error says what failed, and what to do.
func (e *FailedError) Error() string {
	return fmt.Sprintf("the disk of %s failed (%v); reads go on, and writes once the store is opened again, which finds out what was written", e.Dir, e.Err)
}

// Unwrap returns what failed.
func (e *FailedError) Unwrap() error { return e.Err }

// end ends the era: g, which was being written, became what is said, and what was sequenced after it
// has certainly not been written. There may be no g.
func (e *Engine) end(g *group, became fate, cause error) {
	full := became == refused && errors.Is(cause, ErrFull)
	why := error(&FailedError{e.opts.Dir, cause})
	if full {
		why = &FullError{e.opts.Dir, cause}
	} else {
		e.log.halt()
	}
	e.opts.Logger.Error("the store takes no writes", "cause", why)
	kind := kv.ErrReadOnly
	if became == unknown {
		kind = kv.ErrUnknown
	}
	e.mu.Lock()
	late := e.queue
	e.queue = nil
	lost := late
	if g != nil {
		lost = slices.Insert(slices.Clone(late), 0, g)
	}
	e.era.why = why
	_, e.era.last = e.index.Revisions()
	close(e.era.over)
	if full {
		e.undo(lost)
		e.lookForRoom()
	}
	e.mu.Unlock()
	for _, l := range lost {
		if l == g {
			l.answer(kind, why)
		} else {
			l.answer(kv.ErrReadOnly, why)
		}
	}
}

// answer ends what was not written.
func (g *group) answer(kind, why error) {
	for _, t := range g.tickets {
		t.err = &kv.Error{Op: t.op(), Kind: kind, Err: why}
		t.committed = kv.Committed{}
	}
	close(g.done)
}

// undo makes the newest sequenced state the one that can be read, as if what is in groups had
// never been asked for. The caller holds e.mu.
func (e *Engine) undo(groups []*group) {
	clear(e.pending)
	e.newest = e.era.last
	for _, g := range slices.Backward(groups) {
		for _, t := range slices.Backward(g.tickets) {
			e.lapses.restore(t.lapses)
		}
	}
}

// lookForRoom has the writer look for room in a while. The caller holds e.mu.
func (e *Engine) lookForRoom() {
	if !e.closed {
		e.probing = e.opts.Clock.AfterFunc(roomEvery, func() { e.ask(&e.probe) })
	}
}

// ask asks the writer for something besides writing.
func (e *Engine) ask(what *bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	*what = true
	e.work.Signal()
}

// resumeWriting begins another era if there is room again.
func (e *Engine) resumeWriting() {
	err := e.log.probe()
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		e.era = newEra()
		e.opts.Logger.Info("there is room again; the store takes writes", "dir", e.opts.Dir)
		_, elapsed := e.time.now()
		e.arm(elapsed)
	case errors.Is(err, ErrFull):
		e.lookForRoom()
	default:
		e.log.halt()
		failed := newEra()
		failed.last, failed.why = e.era.last, &FailedError{e.opts.Dir, err}
		close(failed.over)
		e.era = failed
		e.opts.Logger.Error("the store takes no writes", "cause", failed.why)
	}
}
