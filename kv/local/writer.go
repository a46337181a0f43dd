package local

import (
	"context"
	"errors"

	"github.com/pawl-dev/pawl/kv"
)

// groupBytes is how large a group of commits may grow before the next one is begun.
const groupBytes = 16 << 20

// enqueue puts t at the end of the queue. The caller holds e.mu.
func (e *Engine) enqueue(t *ticket) {
	e.queue = append(e.queue, t)
	e.work.Signal()
}

// write runs until the engine is closed: it takes what is queued as one group, makes that
// durable, makes it readable, and answers its writers. While it is busy with one group
// the next one gathers; that is what makes one fsync serve many commits.
func (e *Engine) write() {
	defer close(e.done)
	for {
		group := e.take()
		if group == nil {
			return
		}
		if err := e.store(group); err != nil {
			e.fail(group, err)
			continue
		}
		e.publish(group)
	}
}

// take waits for commits and returns the next group; nil when there are no more to come.
func (e *Engine) take() []*ticket {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queue) == 0 {
		if e.closed {
			return nil
		}
		e.work.Wait()
	}
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

// store makes group durable.
func (e *Engine) store(group []*ticket) error {
	e.stats.commits.Add(uint64(len(group)))
	e.stats.groups.Add(1)
	if e.log == nil {
		return nil
	}
	commits := make([]*commit, len(group))
	for i, t := range group {
		commits[i] = &t.commit
	}
	return e.log.append(commits)
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
	e.mu.Unlock()
	for _, t := range group {
		close(t.done)
	}
	if e.log != nil {
		e.log.tidy(e.index)
	}
}

// fail ends writing for good. Nobody knows what became of the group; what was sequenced
// after it rests on it, and has certainly not been written.
func (e *Engine) fail(group []*ticket, cause error) {
	e.mu.Lock()
	e.failure = cause
	rest := e.queue
	e.queue = nil
	e.mu.Unlock()
	close(e.failed)
	e.opts.Logger.Error("the store takes no more writes; reads go on; restart once the cause is mended",
		"dir", e.opts.Dir, "cause", cause)
	for _, t := range group {
		t.err = &kv.Error{Op: "commit", Kind: kv.ErrUnknown, Err: cause}
		t.committed = kv.Committed{}
		close(t.done)
	}
	for _, t := range rest {
		t.err = e.readOnly()
		t.committed = kv.Committed{}
		close(t.done)
	}
}

// readOnly returns the error of a commit that came too late.
func (e *Engine) readOnly() error {
	return &kv.Error{Op: "commit", Kind: kv.ErrReadOnly, Err: e.failure}
}

// Err implements [kv.Engine].
func (e *Engine) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.failure != nil:
		return e.failure
	case e.closed:
		return kv.ErrClosed
	}
	return nil
}

// Close implements [kv.Engine].
func (e *Engine) Close() error {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	if e.alarm != nil {
		e.alarm()
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
		errs = append(errs, e.log.close(e.failure == nil))
	}
	if e.lock != nil {
		errs = append(errs, e.lock.Close())
	}
	return errors.Join(errs...)
}
