package server

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/registry"
)

const (
	// turnMax is how long whoever lost a race has the object to themselves, to read it and write it again, before the
	// next one who lost is answered. Most have come back sooner; who has further to go is overtaken.
	turnMax = 10 * time.Millisecond
	// paceMax is how long a refusal may be held back.
	paceMax = 250 * time.Millisecond
	// leadMax is how long a success waits for the refusal that it lets go to be sent.
	leadMax = time.Millisecond
)

// A pacer answers those whose writes were refused, because somebody had written the object before them, one after
// another: the next when the one before has written, or has taken too long. All of them read and write again once
// they are answered; were they answered at once they would meet again, and all but one lose again. So the refused
// come back to an object as fast as it can be written, and no faster. It is a courtesy and no lock: nobody else waits, and
// whoever is the only one to write an object is answered at once. Its zero value is ready.
type pacer struct {
	mu      sync.Mutex
	objects map[objectKey]*pace // that are being written, or were lately fought over
}

// An objectKey tells objects apart, by whatever subresource they are written.
type objectKey struct{ group, resource, namespace, name string }

// A pace is how an object is being written.
type pace struct {
	writing int         // requests that have come, whole, and are not decided
	waiting []*refusal  // first come first
	turn    *time.Timer // ends the turn of the last who was answered; nil if it is nobody's
}

// A refusal is an answer that is held back.
type refusal struct {
	come chan struct{} // closed when it may be sent
	sent chan struct{} // closed when it has been
}

// A write is one request among those that write an object.
type write struct {
	pacer *pacer
	key   objectKey
	pace  *pace
	left  bool
	held  *refusal // nil if its answer is not held back
}

// enter counts a request in that is going to write an object. It has to leave.
func (p *pacer) enter(key objectKey) *write {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.objects == nil {
		p.objects = map[objectKey]*pace{}
	}
	o := p.objects[key]
	if o == nil {
		o = &pace{}
		p.objects[key] = o
	}
	o.writing++
	return &write{pacer: p, key: key, pace: o}
}

// succeeded notes that the object has been written, before its writer is told. It returns once the first who waits has
// been told, and so is ahead of a writer who comes again at once. It does nothing to a write of nobody.
func (w *write) succeeded() {
	if w == nil {
		return
	}
	w.pacer.mu.Lock()
	first := w.pacer.next(w.key, w.pace)
	w.pacer.mu.Unlock()
	if first == nil {
		return
	}
	patience := time.NewTimer(leadMax)
	defer patience.Stop()
	select {
	case <-first.sent:
	case <-patience.C:
	}
}

// leave counts the request out, and returns when its answer may be sent, which err tells. What the answer takes
// should be done by then. It does nothing if it was called before, or to a write of nobody.
func (w *write) leave(ctx context.Context, err error) {
	if w == nil || w.left {
		return
	}
	w.left = true
	if w.held = w.decided(err); w.held != nil {
		w.wait(ctx)
	}
}

// holds reports whether the answer was held back, and has not been sent.
func (w *write) holds() bool { return w != nil && w.held != nil }

// told notes that the answer has been sent. It does nothing to a write of nobody.
func (w *write) told() {
	if w.holds() {
		close(w.held.sent)
		w.held = nil
	}
}

// decided counts the request out, and returns its answer if that is to be held back.
func (w *write) decided(err error) (held *refusal) {
	p, o := w.pacer, w.pace
	p.mu.Lock()
	defer p.mu.Unlock()
	o.writing--
	var lost *registry.ConflictError
	switch {
	case !errors.As(err, &lost):
	case o.turn != nil:
		held = &refusal{make(chan struct{}), make(chan struct{})}
		o.waiting = append(o.waiting, held)
	case o.writing > 0:
		p.begin(w.key, o)
	}
	p.tidy(w.key, o)
	return held
}

// begin gives the object to one who is answered now. The caller holds p.mu.
func (p *pacer) begin(key objectKey, o *pace) {
	var turn *time.Timer
	turn = time.AfterFunc(turnMax, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if o.turn == turn {
			p.next(key, o)
			p.tidy(key, o)
		}
	})
	o.turn = turn
}

// next ends a turn and begins that of the first who waits, if somebody does. The caller holds p.mu.
func (p *pacer) next(key objectKey, o *pace) (first *refusal) {
	if o.turn == nil {
		return nil
	}
	o.turn.Stop()
	o.turn = nil
	if len(o.waiting) == 0 {
		return nil
	}
	first, o.waiting = o.waiting[0], o.waiting[1:]
	close(first.come)
	p.begin(key, o)
	return first
}

// tidy forgets an object that nobody writes. The caller holds p.mu.
func (p *pacer) tidy(key objectKey, o *pace) {
	if o.writing == 0 && o.turn == nil {
		delete(p.objects, key)
	}
}

// wait returns when the answer that is held back may be sent, or must be.
func (w *write) wait(ctx context.Context) {
	patience := time.NewTimer(paceMax)
	defer patience.Stop()
	select {
	case <-w.held.come:
		return
	case <-ctx.Done():
	case <-patience.C:
	}
	w.pacer.mu.Lock()
	defer w.pacer.mu.Unlock()
	if i := slices.Index(w.pace.waiting, w.held); i >= 0 {
		w.pace.waiting = slices.Delete(w.pace.waiting, i, i+1)
	}
}

// pace counts the call in if it writes its object. All that the client has to send should have come by then, so that
// nobody is taken for a writer who stops half-way.
func (c *call) pace(o writing) {
	if !o.dryRun {
		c.write = c.s.pacer.enter(objectKey{c.rt.group, c.rt.resource, c.namespace(), c.rt.name})
	}
}

// unpace counts the call out, if that has not been done.
func (c *call) unpace() {
	c.write.leave(c.r.Context(), nil)
	c.write.told()
}
