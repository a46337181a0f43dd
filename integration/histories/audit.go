package histories

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// A Segment is what one watch told, from when it was begun to its end.
type Segment struct {
	name
	topic   string
	after   kv.Revision
	told    []kv.Event
	claims  []claim
	began   bool
	err     error // how it ended or why it could not begin; nil if it was left, or is under way
	stopped bool
	left    error // what it said after it was stopped
	when    moment
}

// A claim is the progress of a watch: up to rev it had told everything with so many events.
type claim struct {
	events int
	rev    kv.Revision
}

// claim notes the progress of w, if it has made any.
func (g *Segment) claim(w kv.Watch) kv.Revision {
	rev, ok := w.Progress()
	if !ok {
		return g.sure()
	}
	c := claim{len(g.told), rev}
	switch n := len(g.claims); {
	case n == 0 || g.claims[n-1].events < c.events || g.claims[n-1].rev > c.rev:
		g.claims = append(g.claims, c) // one that goes back is kept for the judge
	default:
		g.claims[n-1] = c
	}
	return rev
}

// sure is the revision up to which everything has been told for certain.
func (g *Segment) sure() kv.Revision {
	rev := g.after
	if n := len(g.claims); n > 0 {
		rev = max(rev, g.claims[n-1].rev)
	}
	if n := len(g.told); n > 0 { // of the last one's revision there may be more to come
		rev = max(rev, g.told[n-1].Version.Revision-1)
	}
	return rev
}

// An audit watches everything while a store is open. Together the audits of a run are the
// history of its commits.
type audit struct{ streams []*stream }

// A stream is the watch of one space.
type stream struct {
	watch kv.Watch
	poke  chan struct{} // somebody waits for progress
	ended chan struct{}

	mu       sync.Mutex // guards what follows
	segment  Segment
	wanted   kv.Revision
	patience time.Duration
	moved    sync.Cond // segment has grown, or ended
	over     bool
}

// newAudit begins where the one before ended, or at the beginning.
func newAudit(of *span, spaces []string, before *audit, patience time.Duration) (*audit, error) {
	a := &audit{}
	oldest, _ := of.engine.Revisions()
	for i, space := range spaces {
		after := oldest
		if before != nil {
			after = before.streams[i].segment.sure()
		}
		w, err := of.engine.Watch(space, after)
		if err != nil {
			a.end()
			return nil, err
		}
		s := &stream{watch: w, poke: make(chan struct{}, 1), ended: make(chan struct{}), patience: patience}
		s.moved.L = &s.mu
		s.segment = Segment{name: name{-2 - 2*of.stage.number, i}, topic: space, after: after}
		a.streams = append(a.streams, s)
		go s.follow()
	}
	return a, nil
}

// follow takes what the watch tells until it ends.
func (s *stream) follow() {
	defer close(s.ended)
	told, vain := time.Now(), 0 // since when, and how often it has been asked in vain
	for {
		e, ok, err := s.watch.Next()
		s.mu.Lock()
		switch {
		case err != nil:
			s.segment.err, s.over = err, true
		case ok:
			s.segment.told = append(s.segment.told, e)
		default:
			s.segment.claim(s.watch)
		}
		hurry := !s.over && s.segment.sure() < s.wanted
		s.moved.Broadcast()
		s.mu.Unlock()
		switch {
		case err != nil:
			return
		case ok:
			told, vain = time.Now(), 0
			continue
		}
		if vain++; vain > 1000 && time.Since(told) > s.patience { // it is broken, and should not keep others from running
			time.Sleep(10 * time.Millisecond)
		}
		if hurry {
			runtime.Gosched()
			continue
		}
		select {
		case <-s.watch.Wait():
		case <-s.poke:
		}
	}
}

var errAuditOver = errors.New("the store was closed")

// await returns once everything up to rev has been told. If the store is closed first it
// returns errAuditOver.
func (a *audit) await(rev kv.Revision) error {
	for _, s := range a.streams {
		if err := s.await(rev); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) await(rev kv.Revision) error {
	late := false
	timer := time.AfterFunc(s.patience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		late = true
		s.moved.Broadcast()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = max(s.wanted, rev)
	select {
	case s.poke <- struct{}{}:
	default:
	}
	for s.segment.sure() < rev {
		switch {
		case s.over:
			return errAuditOver
		case late:
			return fmt.Errorf("a watch of %s is sure of revision %d only, long after %d could be read", s.segment.topic, s.segment.sure(), rev)
		}
		s.moved.Wait()
	}
	return nil
}

// end ends the watches, if closing the store has not ended them.
func (a *audit) end() {
	for _, s := range a.streams {
		s.watch.Stop()
		<-s.ended
	}
}
