package kvtest

import (
	"time"

	"github.com/pawl-dev/pawl/kv"
)

var histories = []promise{
	{"what is compacted is gone, and says so", func(s *store) {
		s.put(a, "1")
		second := s.put(a, "2")
		third := s.put(a, "3")
		slow := s.watch(ns, second-1)
		joined := s.watch(ns, second)
		compact(s, second)
		if oldest, _ := s.Revisions(); oldest != second {
			s.Errorf("oldest is %d, want %d", oldest, second)
		}
		_, err := s.Read(s.Context(), kv.Exactly(second-1))
		if e := s.fails(err, kv.ErrCompacted); e.Want != second-1 || e.Have != second {
			s.Errorf("got %+v", e)
		}
		_, err = s.Watch(ns, second-1)
		if e := s.fails(err, kv.ErrCompacted); e.Op != "watch" || e.Key != ns || e.Want != second-1 || e.Have != second {
			s.Errorf("got %+v", e)
		}
		s.holds(s.read(kv.Exactly(second)), a, "2")
		s.wait(slow)
		if _, _, err = slow.Next(); err == nil {
			s.Error("a watch that fell behind goes on")
		}
		s.fails(err, kv.ErrCompacted)
		if e := s.next(joined); e.Version.Revision != third {
			s.Errorf("got %+v", e.Version)
		}
		if e := s.next(s.watch(ns, second)); e.Version.Revision != third || string(e.Prev.Value) != "2" {
			s.Errorf("got %+v", e.Version)
		}
		v := s.read(kv.Latest).Get(a)
		if p := v.Prev(); p == nil || p.Revision != second || p.Prev() != nil {
			s.Errorf("before it was %+v", p)
		}
	}},
	{"compacting twice or backwards does nothing", func(s *store) {
		first := s.put(a, "1")
		second := s.put(a, "2")
		compact(s, second)
		compact(s, second)
		compact(s, first)
		if oldest, _ := s.Revisions(); oldest != second {
			s.Errorf("oldest is %d, want %d", oldest, second)
		}
	}},
	{"the future cannot be compacted", func(s *store) {
		rev := s.put(a, "1")
		err := compactor(s).Compact(s.Context(), rev+1)
		if e := s.fails(err, kv.ErrFuture); e.Op != "compact" || e.Want != rev+1 || e.Have != rev {
			s.Errorf("got %+v", e)
		}
	}},
	{"a quiet watch survives what is forgotten elsewhere", func(s *store) {
		quiet := s.watch(b, s.newest())
		table := s.watch("default/core/secrets/", s.newest())
		s.put(b, "1")
		s.next(quiet)
		for range 10 {
			s.put(a, "x")
		}
		compact(s, s.newest())
		s.quiet(quiet)
		s.quiet(table)
		rev := s.put(b, "2")
		if e := s.next(quiet); e.Version.Revision != rev {
			s.Errorf("got %+v", e.Version)
		}
	}},
	{"a watch from the future misses nothing when what comes before that is forgotten", func(s *store) {
		after := s.soon()
		w := s.watch(ns, after)
		for s.newest() < after {
			s.put(a, "old")
		}
		compact(s, after)
		s.quiet(w)
		ready := w.Wait()
		select {
		case <-ready:
			s.Error("it was woken by what it must not tell")
		default:
		}
		rev := s.put(b, "new")
		s.wait(w)
		if e := s.next(w); e.Version.Revision != rev {
			s.Errorf("got %+v", e.Version)
		}
	}},
	{"a deletion that is forgotten leaves no trace", func(s *store) {
		s.put(a, "1")
		compact(s, s.del(a))
		s.put(a, "2")
		v := s.read(kv.Latest).Get(a)
		if p := v.Prev(); p != nil && !p.Deleted {
			s.Errorf("before it was %+v", p)
		}
		if v.Created != v.Revision {
			s.Errorf("created at %d, is at %d", v.Created, v.Revision)
		}
	}},
	{"what is younger than 75 seconds is never forgotten by itself", func(s *store) {
		if s.clock == nil {
			s.Skip("the engine has a clock of its own")
		}
		first := s.put(a, "1")
		for range 10 {
			s.clock.Advance(7 * time.Second)
			s.put(a, "2")
		}
		w := s.watch(ns, first)
		if got := len(s.drain(w)); got != 10 {
			s.Errorf("%d events, want 10", got)
		}
		s.holds(s.read(kv.Exactly(first)), a, "1")
	}},
}

// compactor returns the engine as a compactor, or skips the test.
func compactor(s *store) kv.Compactor {
	c, ok := s.Engine.(kv.Compactor)
	if !ok {
		s.Skip("the engine cannot be told to forget")
	}
	return c
}

func compact(s *store, rev kv.Revision) {
	s.Helper()
	if err := compactor(s).Compact(s.Context(), rev); err != nil {
		s.Fatalf("compact: %v", err)
	}
}
