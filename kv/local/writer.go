package local

import (
	"context"
	"errors"

	"github.com/pawl-dev/pawl/kv"
)

// groupBytes is how large a group of commits may grow before the next one is begun.
const groupBytes = 16 << 20

// enqueue puts t at the end of the queue. The caller holds e.mu, and sees that it gets written: it wakes
// the writer, or does the writer's work.
func (e *Engine) enqueue(t *ticket) { e.queue = append(e.queue, t) }

// write runs until the engine is closed: it takes what is queued as one group, makes that
// durable, makes it readable, and answers its writers. While it is busy with one group
// the next one gathers; that is what makes one fsync serve many commits.
func (e *Engine) write() {
	defer close(e.done)
	for {
		what := e.take()
		e.writing.Lock()
		switch what {
		case toWrite:
			e.writeNext()
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

// writeNow does the writer's work until t is answered, in memory, where there is nothing to wait for: waking
// the writer would take longer than all the rest of a commit.
func (e *Engine) writeNow(t *ticket) {
	e.writing.Lock()
	defer e.writing.Unlock()
	for {
		select {
		case <-t.done:
			return
		default:
			e.writeNext()
		}
	}
}

// writeNext takes what is queued as one group, and writes it. The caller holds e.writing.
func (e *Engine) writeNext() {
	e.mu.Lock()
	group := e.dequeue()
	e.mu.Unlock()
	if len(group) > 0 {
		e.writeGroup(group)
	}
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

// dequeue takes the next group off the queue. The caller holds e.mu.
func (e *Engine) dequeue() []*ticket {
	n, size := 0, 0
	for n < len(e.queue) && (n == 0 || size+e.queue[n].size() <= groupBytes) {
		size += e.queue[n].size()
		n++
	}
	group := e.queue[:n:n]
	e.queue = e.queue[n:]
	if len(e.queue) == 0 {
		e.queue = nil
	}
	return group
}

// writeGroup makes group durable and readable, and sees that there is room for the next.
func (e *Engine) writeGroup(group []*ticket) {
	e.stats.groups.observe(int64(len(group)))
	if e.log == nil {
		e.publish(group)
		return
	}
	commits := make([]*commit, len(group))
	for i, t := range group {
		commits[i] = &t.commit
	}
	if became, err := e.log.append(commits); became != stored {
		e.end(group, became, err)
		return
	}
	e.publish(group)
	e.log.tidy(e.index)
	if err := e.log.makeRoom(); err != nil {
		e.end(nil, refused, err)
	}
}

// publish makes group readable and answers its writers.
func (e *Engine) publish(group []*ticket) {
	var versions []*kv.Version
	var forget kv.Revision
	for _, t := range group {
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
	for _, t := range group {
		close(t.done)
	}
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
