package histories

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// A stage is the store while a run goes on: clients enter it for each operation, and wait
// at its door while it is closed and opened.
type stage struct {
	subject  Subject
	spaces   []string      // that are watched
	patience time.Duration // how long anything may take that must come
	ticks    atomic.Int64

	mu     sync.Mutex // guards what follows
	moved  sync.Cond  // shut or inside has changed
	shut   bool
	inside int
	spans  []*span
	err    error // why the run cannot go on
}

// A span is the time from one opening of the store to its end.
type span struct {
	number int
	engine kv.Engine
	audit  *audit
	opened *Answer // what the store held when it was opened
	ended  int64   // when nobody was inside any more; 0 if it has not ended

	cut     atomic.Int64 // when the power was to fail, 0 if it was not
	closing atomic.Int64 // when the store was told to close
}

func newStage(s Subject, patience time.Duration, spaces []string) (*stage, error) {
	st := &stage{subject: s, patience: patience, spaces: spaces}
	st.moved.L = &st.mu
	return st, st.open(nil)
}

// tick returns a time that is later than all before.
func (st *stage) tick() int64 { return st.ticks.Add(1) }

// enter waits until the store is open, and returns nil if it never will be.
func (st *stage) enter() *span {
	st.mu.Lock()
	defer st.mu.Unlock()
	for st.shut && st.err == nil {
		st.moved.Wait()
	}
	if st.err != nil {
		return nil
	}
	st.inside++
	return st.spans[len(st.spans)-1]
}

func (st *stage) leave() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.inside--
	st.moved.Broadcast()
}

// again closes the store while clients are inside, or cuts its power, and opens it again.
func (st *stage) again(crash bool) {
	if !st.subject.Lasts {
		return
	}
	s := st.shutDoor()
	if s == nil {
		return
	}
	err := st.end(s, crash)
	if err == nil {
		err = st.open(s)
	}
	st.openDoor(err)
}

// shutDoor lets nobody in any more. It returns nil if the run is over.
func (st *stage) shutDoor() *span {
	st.mu.Lock()
	defer st.mu.Unlock()
	for st.shut && st.err == nil {
		st.moved.Wait()
	}
	if st.err != nil {
		return nil
	}
	st.shut = true
	return st.spans[len(st.spans)-1]
}

func (st *stage) openDoor(err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if err != nil {
		st.err = err
	}
	st.shut = false
	st.moved.Broadcast()
}

// end closes the store, and waits for those inside.
func (st *stage) end(s *span, crash bool) error {
	if crash && st.subject.Cut != nil {
		s.cut.CompareAndSwap(0, st.tick())
		st.subject.Cut(0)
	}
	s.closing.Store(st.tick())
	err := s.engine.Close()
	st.mu.Lock()
	for st.inside > 0 {
		st.moved.Wait()
	}
	st.mu.Unlock()
	s.audit.end()
	s.ended = st.tick()
	if err != nil && s.cut.Load() == 0 {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// open opens the store after the span before, or for the first time.
func (st *stage) open(before *span) error {
	e, err := st.subject.Open()
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	s := &span{engine: e}
	var resume *audit
	if before != nil {
		s.number, resume = before.number+1, before.audit
	}
	s.opened = &Answer{name: name{-1, s.number}, op: Op{Kind: Read}, span: s}
	s.opened.read(st, kv.Latest)
	if s.opened.err != nil {
		return errors.Join(fmt.Errorf("read what was opened: %w", s.opened.err), e.Close())
	}
	if s.audit, err = newAudit(e, st.spaces, resume, st.patience); err != nil {
		return errors.Join(fmt.Errorf("watch what was opened: %w", err), e.Close())
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.spans = append(st.spans, s)
	return nil
}

// arm has the power fail after some more changes of the disk.
func (st *stage) arm(s *span, after int) {
	if st.subject.Cut != nil {
		s.cut.CompareAndSwap(0, st.tick())
		st.subject.Cut(after)
	}
}

// pass lets time pass. Nothing that the audit has not seen gets any older by that; nor does
// anything while the store cannot write, and may hold what nobody can see yet.
func (st *stage) pass(s *span, d time.Duration) {
	_, newest := s.engine.Revisions()
	if clock := st.subject.Clock; clock != nil && s.engine.Err() == nil && s.audit.await(newest) == nil {
		clock.Advance(d)
	}
}

// finish ends the run, when all clients have, and returns what there was in the end: if the
// store lasts, after it was closed and opened once more.
func (st *stage) finish() (last *Answer, err error) {
	s := st.shutDoor()
	if s == nil {
		return nil, st.err
	}
	if st.subject.Lasts {
		if err := st.end(s, false); err != nil {
			return nil, err
		}
		if err := st.open(s); err != nil {
			return nil, err
		}
		s = st.spans[len(st.spans)-1]
	}
	last = &Answer{name: name{-1, s.number + 1}, op: Op{Kind: Read}, span: s}
	last.read(st, kv.Latest)
	if last.err != nil {
		return nil, last.err
	}
	return last, errors.Join(s.audit.await(last.view.rev), st.end(s, false))
}

// read reads all there is.
func (a *Answer) read(st *stage, at kv.Freshness) {
	a.call = st.tick()
	snap, err := a.span.engine.Read(context.Background(), at)
	a.ret = st.tick()
	if a.err = err; err == nil {
		a.view = look(snap, "", "")
	}
}
