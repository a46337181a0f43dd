package kvtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

var reads = []promise{
	{"a writer reads its own write, however fresh it asks", func(s *store) {
		for i := range 50 {
			value := fmt.Sprint(i)
			rev := s.put(a, value)
			for _, at := range []kv.Freshness{kv.Latest, kv.Any, kv.AtLeast(rev), kv.Exactly(rev)} {
				snap := s.read(at)
				s.holds(snap, a, value)
				if snap.Revision() != rev {
					s.Errorf("a snapshot at %d, want %d", snap.Revision(), rev)
				}
			}
		}
	}},
	{"the latest state holds every commit that was answered before", latestIsLatest},
	{"a version is walked backwards through all that can be read", walksBack},
	{"a snapshot never changes", func(s *store) {
		s.put(a, "1")
		s.put(b, "1")
		snap := s.read(kv.Latest)
		s.put(a, "2")
		s.del(b)
		s.put(c, "1")
		s.holds(snap, a, "1")
		s.holds(snap, b, "1")
		s.holds(snap, c, "")
		s.keys(snap, "", "", a, b)
	}},
	{"keys are yielded in order, under a prefix, from a key on", func(s *store) {
		other := "default/core/configmaps2/ns/a"
		cluster := "default/core/namespaces/ns"
		second := table + "ns2/a"
		space := "other/core/configmaps/ns/a"
		for _, key := range []string{space, second, c, a, cluster, other, b} {
			s.put(key, "1")
		}
		snap := s.read(kv.Latest)
		s.keys(snap, "", "", a, b, c, second, other, cluster, space)
		s.keys(snap, "default/", "", a, b, c, second, other, cluster)
		s.keys(snap, table, "", a, b, c, second)
		s.keys(snap, ns, "", a, b, c)
		s.keys(snap, ns, b, b, c)
		s.keys(snap, ns, b+"\x00", c)
		s.keys(snap, ns, "default/", a, b, c)
		s.keys(snap, ns, "e")
		s.keys(snap, "nowhere/", "")
		for v := range snap.Ascend("", "") {
			if v.Key != a {
				s.Errorf("%s comes first", v.Key)
			}
			break
		}
	}},
	{"a read at least at a revision waits for it", waits},
	{"a read at least at a revision that does not come says so", func(s *store) {
		rev := s.put(a, "1")
		_, err := s.Read(s.cancelled(), kv.AtLeast(rev+7))
		e := s.fails(err, kv.ErrFuture)
		if e.Op != "read" || e.Want != rev+7 || e.Have != rev || !errors.Is(err, context.Canceled) {
			s.Errorf("got %+v", e)
		}
		snap := s.read(kv.AtLeast(rev))
		s.holds(snap, a, "1")
	}},
	{"a read exactly at a revision that does not exist says so at once", func(s *store) {
		rev := s.put(a, "1")
		_, err := s.Read(s.Context(), kv.Exactly(rev+1))
		if e := s.fails(err, kv.ErrFuture); e.Want != rev+1 || e.Have != rev {
			s.Errorf("got %+v", e)
		}
		_, err = s.Read(s.Context(), kv.Exactly(0))
		s.fails(err, kv.ErrCompacted)
	}},
	{"the past is what it was", pastIsPast},
	{"a snapshot of the past stays when that past is forgotten", func(s *store) {
		rev := s.put(a, "1")
		s.put(b, "1")
		mid := s.put(c, "1")
		s.put(a, "2")
		s.del(b)
		s.put(b, "3")
		snap := s.read(kv.Exactly(mid))
		compact(s, s.del(c))
		s.holds(snap, a, "1")
		s.holds(snap, b, "1")
		s.holds(snap, c, "1")
		s.keys(snap, ns, "", a, b, c)
		if v := snap.Get(a); v == nil || v.Revision != rev {
			s.Errorf("got %+v", v)
		}
	}},
}

// waits reads a revision before it is committed, several times.
func waits(s *store) {
	for range 20 {
		next := s.newest() + 1
		begun, got := make(chan struct{}), make(chan kv.Snapshot, 1)
		go func() {
			close(begun)
			snap, err := s.Read(s.Context(), kv.AtLeast(next))
			if err != nil {
				s.Errorf("read: %v", err)
			}
			got <- snap
		}()
		<-begun
		for s.newest() < next {
			s.put(a, "1")
		}
		select {
		case snap := <-got:
			if snap == nil || snap.Revision() < next {
				s.Fatalf("got %v, want revision %d", snap, next)
			}
			s.holds(snap, a, "1")
		case <-time.After(s.patience):
			s.Fatal("it waits on")
		}
	}
}

// latestIsLatest has some write, and others read what those have been answered.
func latestIsLatest(s *store) {
	var answered atomic.Uint64
	over := make(chan struct{})
	var wg, readers sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			for range 100 {
				rev := uint64(s.put(fmt.Sprintf("%sk%d", ns, w), "x"))
				for known := answered.Load(); known < rev && !answered.CompareAndSwap(known, rev); known = answered.Load() {
				}
			}
		})
	}
	for range 2 {
		w := s.watch(ns, s.newest())
		readers.Go(func() {
			for {
				before := kv.Revision(answered.Load())
				if got := s.read(kv.Latest).Revision(); got < before {
					s.Errorf("the latest was revision %d after %d was answered", got, before)
				}
				select {
				case <-over:
					return
				case <-w.Wait():
					w.Next()
				}
			}
		})
	}
	wg.Wait()
	close(over)
	readers.Wait()
}

// walksBack compares each key's versions with what a twin remembers of them.
func walksBack(s *store) {
	tw := newTwin(s, 6)
	for range 200 {
		tw.step()
	}
	for _, key := range tw.keys {
		v := s.read(kv.Latest).Get(key)
		if v == nil {
			continue
		}
		events := tw.under(key, 0)
		for i := len(events) - 1; i >= 0; i-- {
			if !Same(v, events[i].Version) {
				s.Fatalf("seed %d: %s before %d more changes was %+v, want %+v", tw.seed, key, len(events)-1-i, v, events[i].Version)
			}
			v = v.Prev()
		}
		if v != nil {
			s.Fatalf("seed %d: %s was %+v before it was made", tw.seed, key, v)
		}
	}
}

// pastIsPast compares every revision of a random history with what a twin remembers.
func pastIsPast(s *store) {
	tw := newTwin(s, 1)
	for range 400 {
		tw.step()
	}
	revs := tw.revisions()
	oldest, _ := s.Revisions()
	for range 300 {
		i := tw.rand.IntN(len(revs))
		if revs[i] < oldest {
			continue
		}
		prefix := tw.prefix()
		from := ""
		if tw.rand.IntN(2) == 0 {
			from = tw.key()
		}
		tw.compare(s.read(kv.Exactly(revs[i])), i, prefix, from)
	}
	if s.Failed() {
		s.Logf("seed %d", tw.seed)
	}
}

// compare compares snap with what the store was after the i-th commit.
func (tw *twin) compare(snap kv.Snapshot, i int, prefix, from string) {
	s := tw.s
	s.Helper()
	want := tw.states[i]
	var expect, got []string
	for _, key := range tw.sorted(want) {
		if key >= from && len(key) >= len(prefix) && key[:len(prefix)] == prefix {
			expect = append(expect, key+"="+string(want[key].Value))
		}
	}
	for v := range snap.Ascend(prefix, from) {
		got = append(got, v.Key+"="+string(v.Value))
	}
	if !slices.Equal(got, expect) {
		s.Fatalf("at revision %d under %q from %q there is\n%q, want\n%q", snap.Revision(), prefix, from, got, expect)
	}
	for _, key := range tw.keys {
		if !Same(snap.Get(key), want[key]) {
			s.Fatalf("at revision %d %s is %+v, want %+v", snap.Revision(), key, snap.Get(key), want[key])
		}
	}
}
