package local

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/pawl-dev/pawl/kv"
)

// groupBytes is how large a group of commits may grow before the next one is begun.
const groupBytes = 16 << 20

// A group is commits that become durable, and are answered, together.
type group struct {
	tickets []*ticket
	size    int            // about how many bytes their records take
	done    chan struct{}  // closed when all their errors are final
	waiting sync.WaitGroup // for that; who has gone on is not in it
	one     [1]*ticket     // room for tickets, of which there mostly is one in memory
}

// enqueue puts t at the end of the queue: into the group there, or, if that is large, into another. The
// caller holds e.mu, and sees that it gets written: it wakes the writer, or does the writer's work.
func (e *Engine) enqueue(t *ticket) {
	size := t.size()
	n := len(e.queue)
	if n == 0 || e.queue[n-1].size+size > groupBytes {
		next := &group{done: make(chan struct{})}
		next.tickets = next.one[:0]
		e.queue = append(e.queue, next)
	}
	g := e.queue[len(e.queue)-1]
	g.tickets = append(g.tickets, t)
	g.size += size
	t.group = g
}

// write runs until the engine is closed: it takes the next group, makes that
// durable, makes it readable, and answers its writers. While it is busy with one group
// the next one gathers; that is what makes one fsync serve many commits.
func (e *Engine) write() {
	defer close(e.done)
	var answered *group
	for {
		what := e.take()
		if what == toWrite {
			e.gather(answered)
		}
		e.writing.Lock()
		switch what {
		case toWrite:
			answered = e.writeNext()
		case toProbe:
			e.resumeWriting()
		case toSweep:
			e.sweepHistory()
		}
		e.writing.Unlock()
		if what == toStop {
			return
		}
	}
}

// hurriedGroups is how many groups are not waited for, after one for which that took too long.
const hurriedGroups = 8

// gather waits until those who were just answered have gone on: many of them are back at once with their next
// commit, and then share an fsync with the others instead of having to wait for that. Where they have other
// work first, which keeps the processors busy for longer than the disk takes, most groups are not waited
// for. Who is alone waits for nobody.
func (e *Engine) gather(answered *group) {
	switch {
	case answered == nil:
		return
	case e.hurry > 0:
		e.hurry--
		return
	}
	began := e.opts.Clock.Now()
	answered.waiting.Wait()
	if e.log != nil && e.opts.Clock.Now().Sub(began) > e.log.syncTime {
		e.hurry = hurriedGroups
	}
}

// writeNow does the writer's work until t is answered, in memory, where there is nothing to wait for: waking
// the writer would take longer than all the rest of a commit.
func (e *Engine) writeNow(t *ticket) {
	e.writing.Lock()
	defer e.writing.Unlock()
	for {
		select {
		case <-t.group.done:
			return
		default:
			e.writeNext()
		}
	}
}

// writeNext takes the next group off the queue, and writes it; nil if there is none. The caller holds
// e.writing.
func (e *Engine) writeNext() (g *group) {
	e.mu.Lock()
	if len(e.queue) > 0 {
		g = e.queue[0]
		e.queue = slices.Delete(e.queue, 0, 1)
	}
	e.mu.Unlock()
	if g != nil {
		e.writeGroup(g)
	}
	return g
}

// A task is what the writer does next.
type task uint8

const (
	toStop  task = 1 + iota
	toWrite      // a group
	toProbe      // for room
	toSweep      // away what history is too old
)

// take waits for something to do and returns it.
func (e *Engine) take() task {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		switch {
		case len(e.queue) > 0:
			return toWrite
		case e.closed:
			return toStop
		case e.probe:
			e.probe = false
			return toProbe
		case e.sweep:
			e.sweep, e.sweeping = false, nil
			return toSweep
		}
		e.work.Wait()
	}
}

// writeGroup makes g durable and readable, and sees that there is room for the next.
func (e *Engine) writeGroup(g *group) {
	e.stats.groups.observe(int64(len(g.tickets)))
	if e.log == nil {
		e.publish(g)
		return
	}
	if became, err := e.log.append(g.tickets); became != stored {
		e.end(g, became, err)
		return
	}
	e.publish(g)
	e.log.tidy(e.index)
	if err := e.log.makeRoom(); err != nil {
		e.end(nil, refused, err)
	}
}

// publish makes g readable and answers its writers.
func (e *Engine) publish(g *group) {
	versions := make([]*kv.Version, 0, len(g.tickets))
	var forget kv.Revision
	for _, t := range g.tickets {
		forget = max(forget, t.forget)
		for _, c := range t.changes {
			versions = append(versions, c.version)
		}
	}
	if len(versions) > 0 {
		newest := versions[len(versions)-1].Revision
		e.index.Publish(e.opts.Clock.Now(), newest, versions)
	}
	if forget > 0 {
		e.index.Compact(context.Background(), forget) // no newer than what could be read when it was asked for
	}
	e.mu.Lock()
	for _, v := range versions {
		if e.pending[v.Key] == v {
			delete(e.pending, v.Key)
		}
	}
	e.sweepLater()
	e.mu.Unlock()
	close(g.done)
}

// Err implements [kv.Engine]. It is a [FullError] or a [FailedError], or that it is closed.
func (e *Engine) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if why := e.era.ended(); why != nil {
		return why
	}
	if e.closed {
		return kv.ErrClosed
	}
	return nil
}

// Close implements [kv.Engine].
func (e *Engine) Close() error {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	for _, stop := range []func() bool{e.alarm, e.probing, e.sweeping} {
		if stop != nil {
			stop()
		}
	}
	e.work.Broadcast()
	e.mu.Unlock()
	<-e.done
	if first {
		e.closing = e.release()
		close(e.released)
	}
	<-e.released
	return e.closing
}

// release gives back what the engine holds, when nobody writes any more.
func (e *Engine) release() error {
	e.index.Close()
	var errs []error
	if e.log != nil {
		var failed *FailedError
		errs = append(errs, e.log.close(!errors.As(e.era.ended(), &failed)))
	}
	if e.lock != nil {
		errs = append(errs, e.lock.Close())
	}
	return errors.Join(errs...)
}
