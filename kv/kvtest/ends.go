package kvtest

import (
	"errors"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

var ends = []promise{
	{"a closed engine says so, and what was read stays", func(s *store) {
		rev := s.put(a, "1")
		snap := s.read(kv.Latest)
		idle := s.watch(ns, rev)
		full := s.watch(ns, rev-1)
		ready := idle.Wait()
		if err := s.Close(); err != nil {
			s.Fatalf("close: %v", err)
		}
		select {
		case <-ready:
		case <-time.After(s.patience):
			s.Fatal("whoever waits was not woken")
		}
		for _, w := range []kv.Watch{idle, full} {
			_, _, err := w.Next()
			s.fails(err, kv.ErrClosed)
			s.wait(w)
		}
		_, err := s.Commit(s.Context(), one(kv.Put(b, []byte("1"))))
		s.fails(err, kv.ErrClosed)
		for _, at := range []kv.Freshness{kv.Latest, kv.Any, kv.AtLeast(rev + 1), kv.Exactly(rev)} {
			_, err = s.Read(s.Context(), at)
			s.fails(err, kv.ErrClosed)
		}
		_, err = s.Watch(ns, rev)
		s.fails(err, kv.ErrClosed)
		if s.Err() == nil {
			s.Error("it takes writes")
		}
		if c, ok := s.Engine.(kv.Compactor); ok {
			s.fails(c.Compact(s.Context(), rev), kv.ErrClosed)
		}
		s.holds(snap, a, "1")
		s.keys(snap, "", "", a)
		if err := s.Close(); err != nil {
			s.Errorf("closed again: %v", err)
		}
	}},
	{"closing ends a read that waits", func(s *store) {
		rev := s.newest()
		failed := make(chan error, 1)
		go func() {
			_, err := s.Read(s.Context(), kv.AtLeast(rev+1))
			failed <- err
		}()
		s.Close()
		select {
		case err := <-failed:
			s.fails(err, kv.ErrClosed)
		case <-time.After(s.patience):
			s.Fatal("it waits on")
		}
	}},
	{"closing waits for the commits under way", func(s *store) {
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for {
					done, err := s.Commit(s.Context(), one(kv.Put(a, []byte("1"))))
					if err != nil {
						if !errors.Is(err, kv.ErrClosed) {
							s.Errorf("commit: %v", err)
						}
						return
					}
					if got := s.newest(); got < done.Revision {
						s.Errorf("committed %d, but the newest is %d", done.Revision, got)
					}
				}
			})
		}
		for s.newest() < 20 {
			s.put(b, "1")
		}
		if err := s.Close(); err != nil {
			s.Errorf("close: %v", err)
		}
		wg.Wait()
	}},
}
