package kvtest

import (
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

var restarts = []promise{
	{"what was committed is there after a restart as it was, and what was refused is not", func(s *store) {
		who := kv.Author{User: "ada", Manager: "kubectl", Verb: "update", Subresource: "status"}
		s.put(a, "1")
		s.commit(kv.Txn{Author: who, Ops: []kv.Op{kv.Put(a, []byte("2")), kv.Put(b, []byte{})}})
		s.put(ns+"d", "1")
		s.del(ns + "d")
		s.commit(s.expiring(c, kv.After, time.Hour))
		_, err := s.Commit(s.Context(), one(kv.Put(ns+"e", []byte("1")), cond(a, 1)))
		s.fails(err, kv.ErrConflict)
		before := s.read(kv.Latest)
		s.reopen()
		_, err = s.Commit(s.Context(), one(kv.Put(ns+"f", []byte("1")), cond(a, 1)))
		s.fails(err, kv.ErrConflict)
		after := s.read(kv.Latest)
		if after.Revision() != before.Revision() {
			s.Errorf("at revision %d, was at %d", after.Revision(), before.Revision())
		}
		s.keys(after, "", "", a, b, c)
		for _, key := range []string{a, b, c} {
			was, is := before.Get(key), after.Get(key)
			if !Same(was, is) {
				s.Errorf("%s is %+v, was %+v", key, is, was)
			}
			if p := is.Prev(); (p == nil) != (was.Prev() == nil) || p != nil && !Same(p, was.Prev()) {
				s.Errorf("%s was %+v before, it was %+v", key, p, was.Prev())
			}
		}
	}},
	{"revisions and time go on after a restart", func(s *store) {
		last := s.commit(one(kv.Put(a, []byte("1")))).Versions[0]
		if s.clock != nil {
			s.clock.Set(-time.Hour)
		}
		s.reopen()
		if got := s.newest(); got != last.Revision {
			s.Errorf("newest is %d after a restart, was %d", got, last.Revision)
		}
		next := s.commit(one(kv.Put(a, []byte("2")), cond(a, last.Revision))).Versions[0]
		if next.Revision <= last.Revision || next.Time < last.Time {
			s.Errorf("revision %d of %v came after %d of %v", next.Revision, next.Time, last.Revision, last.Time)
		}
	}},
	{"a watch joined at any revision misses nothing and repeats nothing, across compaction and restart", watchAcross},
	{"the past is what it was, across compaction and restart", readAcross},
	{"what is forgotten does not come back", func(s *store) {
		first := s.put(a, "1")
		second := s.put(a, "2")
		third := s.put(a, "3")
		compact(s, second)
		s.reopen()
		if oldest, newest := s.Revisions(); oldest != second || newest != third {
			s.Errorf("revisions %d to %d, want %d to %d", oldest, newest, second, third)
		}
		_, err := s.Read(s.Context(), kv.Exactly(first))
		s.fails(err, kv.ErrCompacted)
		_, err = s.Watch(ns, first)
		s.fails(err, kv.ErrCompacted)
		s.holds(s.read(kv.Exactly(second)), a, "2")
	}},
	{"a key expires though the store was closed and opened", func(s *store) {
		s.needsClock()
		s.commit(s.expiring(a, kv.After, time.Minute))
		s.commit(s.expiring(b, kv.After, time.Hour))
		last := s.commit(s.expiring(c, kv.Forever, 0)).Revision
		s.reopen()
		w := s.watch(ns, last)
		s.clock.Advance(time.Minute - time.Second)
		s.keys(s.read(kv.Latest), ns, "", a, b, c)
		s.quiet(w)
		s.clock.Advance(time.Second + slack)
		if e := s.next(w); e.Version.Key != a || !e.Version.Deleted {
			s.Errorf("got %+v", e.Version)
		}
		s.clock.Advance(time.Hour)
		if e := s.next(w); e.Version.Key != b || !e.Version.Deleted {
			s.Errorf("got %+v", e.Version)
		}
		s.keys(s.read(kv.Latest), ns, "", c)
	}},
}

// live has a twin and the store go on together, with two restarts, and history forgotten
// before the second of them. It returns from which revision on there is history.
func live(s *store, tw *twin) (oldest kv.Revision) {
	for range 100 {
		tw.step()
	}
	s.reopen()
	for range 100 {
		tw.step()
	}
	revs := tw.revisions()
	oldest = revs[len(revs)/2]
	if _, ok := s.Engine.(kv.Compactor); ok {
		compact(s, oldest)
	}
	s.reopen()
	for range 100 {
		tw.step()
	}
	oldest, _ = s.Revisions()
	return oldest
}

func watchAcross(s *store) {
	tw := newTwin(s, 4)
	oldest := live(s, tw)
	revs := tw.revisions()
	for range 200 {
		after, topic := revs[tw.rand.IntN(len(revs))], tw.topic()
		if after < oldest {
			if _, err := s.Watch(topic, after); !errors.Is(err, kv.ErrCompacted) {
				s.Fatalf("seed %d: a watch of %s after %d, though %d is the oldest: %v", tw.seed, topic, after, oldest, err)
			}
			continue
		}
		tw.told(topic, after, s.drain(s.watch(topic, after)))
	}
}

func readAcross(s *store) {
	tw := newTwin(s, 5)
	oldest := live(s, tw)
	for i, rev := range tw.revisions() {
		if rev < oldest {
			_, err := s.Read(s.Context(), kv.Exactly(rev))
			s.fails(err, kv.ErrCompacted)
			continue
		}
		tw.compare(s.read(kv.Exactly(rev)), i, "", "")
	}
}

// told compares what a watch told with what the twin knows.
func (tw *twin) told(topic string, after kv.Revision, events []kv.Event) {
	s := tw.s
	s.Helper()
	want := tw.under(topic, after)
	for i := range max(len(events), len(want)) {
		got, expect := "nothing", "nothing"
		if i < len(events) {
			got = fmt.Sprintf("%+v in place of %+v", events[i].Version, events[i].Prev)
		}
		if i < len(want) {
			expect = fmt.Sprintf("%+v in place of %+v", want[i].Version, want[i].Prev)
		}
		if i >= len(events) || i >= len(want) || !Same(events[i].Version, want[i].Version) || !Same(events[i].Prev, want[i].Prev) {
			s.Fatalf("seed %d: a watch of %s after %d told as number %d\n%s, want\n%s", tw.seed, topic, after, i, got, expect)
		}
	}
}
