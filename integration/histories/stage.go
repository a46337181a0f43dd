package histories

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// A theatre is a store while a run goes on, with a stage for each engine that has it open at
// the same time.
type theatre struct {
	subject  Subject
	spaces   []string      // that are watched
	patience time.Duration // how long anything may take that must come
	ticks    atomic.Int64
	stages   []*stage
	first    kv.Revision // the newest before the run

	disturbing sync.Mutex // held while trouble is made; taken before mu
	mu         sync.Mutex // guards what follows
	troubles   []trouble
}

// A trouble is that something between the engines and their store was broken on purpose, until
// all of them were answered again. What was asked for meanwhile may be refused or remain unknown.
type trouble struct{ from, to int64 }

// newTheatre opens a store as often as it is to be open at once.
func newTheatre(s Subject, patience time.Duration, spaces []string) (*theatre, error) {
	th := &theatre{subject: s, patience: patience, spaces: spaces}
	for i := range max(s.Replicas, 1) {
		st := &stage{theatre: th, number: i}
		st.moved.L = &st.mu
		if err := st.open(nil); err != nil {
			for _, open := range th.stages {
				err = errors.Join(err, open.end(open.current(), false))
			}
			return nil, err
		}
		th.stages = append(th.stages, st)
	}
	th.first = th.stages[0].spans[0].opened.view.rev
	return th, nil
}

// tick returns a time that is later than all before.
func (th *theatre) tick() int64 { return th.ticks.Add(1) }

// shared says whether several engines have the store open at once.
func (th *theatre) shared() bool { return len(th.stages) > 1 }

// spans returns all openings of all engines.
func (th *theatre) spans() []*span {
	var all []*span
	for _, st := range th.stages {
		all = append(all, st.spans...)
	}
	return all
}

// disturb makes trouble of some kind at a stage, and returns when all is well again.
func (th *theatre) disturb(st *stage, kind int) {
	th.disturbing.Lock()
	defer th.disturbing.Unlock()
	end := th.begin()
	th.subject.Disturb(st.number, kind)
	for _, other := range th.stages {
		other.recover()
	}
	end()
}

// begin notes that there is trouble, until end is called.
func (th *theatre) begin() (end func()) {
	th.mu.Lock()
	defer th.mu.Unlock()
	i := len(th.troubles)
	th.troubles = append(th.troubles, trouble{th.tick(), math.MaxInt64})
	return func() {
		th.mu.Lock()
		defer th.mu.Unlock()
		th.troubles[i].to = th.tick()
	}
}

// audited returns once every audit has seen everything up to rev, so that nobody needs what
// is before it any more. If an engine is closed first it returns an error.
func (th *theatre) audited(rev kv.Revision) error {
	for _, st := range th.stages {
		s := st.current()
		if th.shared() { // this engine may have nothing at a revision that another was asked to show
			ctx, cancel := context.WithTimeout(context.Background(), th.patience)
			_, err := s.engine.Read(ctx, kv.AtLeast(rev))
			if cancel(); err != nil {
				return err
			}
		}
		if err := s.audit.await(rev); err != nil {
			return err
		}
	}
	return nil
}

// troubled says whether there was trouble at any time between two ticks.
func (th *theatre) troubled(from, to int64) bool {
	th.mu.Lock()
	defer th.mu.Unlock()
	for _, t := range th.troubles {
		if from <= t.to && to >= t.from {
			return true
		}
	}
	return false
}

// A stage is a store as one engine has it: clients enter it for each operation, and wait
// at its door while it is closed and opened.
type stage struct {
	*theatre
	number int

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
	stage  *stage
	engine kv.Engine
	audit  *audit
	opened *Answer // what the store held when it was opened
	ended  int64   // when nobody was inside any more; 0 if it has not ended

	cut     atomic.Int64 // when the power was to fail, 0 if it was not
	closing atomic.Int64 // when the store was told to close
}

// current is the newest opening.
func (st *stage) current() *span {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.spans[len(st.spans)-1]
}

// recover returns once the engine is answered again, or is closed.
func (st *stage) recover() {
	ctx, cancel := context.WithTimeout(context.Background(), st.patience)
	defer cancel()
	for ctx.Err() == nil {
		e := st.current().engine
		if _, err := e.Commit(ctx, kv.Txn{}); errors.Is(err, kv.ErrClosed) || err == nil && e.Err() == nil {
			return
		}
		runtime.Gosched()
	}
}

// enter waits until the store is open, and returns nil if it never will be.
func (st *stage) enter() *span {
	st.mu.Lock()
	defer st.mu.Unlock()
	s := st.atDoor()
	if s != nil {
		st.inside++
	}
	return s
}

// atDoor waits until the store is open, and returns what goes on there; nil if it never will be. The caller holds st.mu.
func (st *stage) atDoor() *span {
	for st.shut && st.err == nil {
		st.moved.Wait()
	}
	if st.err != nil {
		return nil
	}
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
	s := st.atDoor()
	if s != nil {
		st.shut = true
	}
	return s
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
	e, err := st.subject.Open(st.number)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	s := &span{engine: e, stage: st}
	var resume *audit
	if before != nil {
		s.number, resume = before.number+1, before.audit
	}
	s.opened = &Answer{name: name{-1 - 2*st.number, s.number}, op: Op{Kind: Read}, span: s}
	s.opened.read(st, kv.Latest)
	if s.opened.err != nil {
		return errors.Join(fmt.Errorf("read what was opened: %w", s.opened.err), e.Close())
	}
	if s.audit, err = newAudit(s, st.spaces, resume, st.patience); err != nil {
		return errors.Join(fmt.Errorf("watch what was opened: %w", err), e.Close())
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.spans = append(st.spans, s)
	return nil
}

// arm has the power fail after some more changes of the disk; where a store does not have
// power, it makes trouble of another kind.
func (st *stage) arm(s *span, after int) {
	if st.subject.Disturb != nil {
		st.disturb(st, after)
	}
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
	last = &Answer{name: name{-1 - 2*st.number, s.number + 1}, op: Op{Kind: Read}, span: s}
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
