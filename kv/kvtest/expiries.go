package kvtest

import (
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// slack is how late a key may go.
const slack = time.Second

var expiries = []promise{
	{"a key goes when its time has come, not before, as a deletion like any other", func(s *store) {
		s.needsClock()
		w := s.watch(ns, s.newest())
		v := s.commit(s.expiring(a, kv.After, time.Minute)).Versions[0]
		if v.Expires != v.Time.Add(time.Minute) {
			s.Errorf("made at %v it expires at %v", v.Time, v.Expires)
		}
		s.next(w)
		s.clock.Advance(time.Minute - 1)
		s.put(b, "a commit after what could have been one")
		s.next(w)
		s.holds(s.read(kv.Latest), a, "x")
		s.clock.Advance(1 + slack)
		e := s.next(w)
		if !e.Version.Deleted || e.Version.Key != a || e.Prev != v || e.Version.Time < v.Expires {
			s.Errorf("got %+v", e.Version)
		}
		if e.Version.By() != (kv.Author{Manager: "pawl", Verb: "expire"}) {
			s.Errorf("by %+v", e.Version.Author)
		}
		s.holds(s.read(kv.Latest), a, "")
	}},
	{"a put keeps the expiry, drops it, or gives another", func(s *store) {
		s.needsClock()
		for _, key := range []string{a, b, c} {
			s.commit(s.expiring(key, kv.After, time.Minute))
		}
		d := ns + "d"
		s.clock.Advance(30 * time.Second)
		kept := s.commit(s.expiring(a, kv.Keep, 0)).Versions[0]
		dropped := s.commit(s.expiring(b, kv.Forever, 0)).Versions[0]
		s.commit(s.expiring(c, kv.After, time.Minute))
		s.commit(s.expiring(d, kv.Keep, 0))
		if kept.Expires.IsZero() || !dropped.Expires.IsZero() {
			s.Errorf("kept %v, dropped %v", kept.Expires, dropped.Expires)
		}
		w := s.watch(ns, s.newest())
		s.clock.Advance(30*time.Second + slack)
		if e := s.next(w); e.Version.Key != a || !e.Version.Deleted {
			s.Errorf("got %+v", e.Version)
		}
		s.clock.Advance(30 * time.Second)
		if e := s.next(w); e.Version.Key != c || !e.Version.Deleted {
			s.Errorf("got %+v", e.Version)
		}
		s.clock.Advance(time.Hour)
		s.put(ns+"e", "")
		s.next(w)
		s.quiet(w)
		s.keys(s.read(kv.Latest), ns, "", b, d, ns+"e")
	}},
	{"a key that is deleted and made anew does not go with the old one", func(s *store) {
		s.needsClock()
		s.commit(s.expiring(a, kv.After, time.Minute))
		s.del(a)
		s.commit(s.expiring(a, kv.Keep, 0))
		s.clock.Advance(time.Hour)
		s.put(b, "")
		s.holds(s.read(kv.Latest), a, "x")
	}},
	{"a clock that is set back lengthens nothing", func(s *store) {
		s.needsClock()
		w := s.watch(ns, s.newest())
		s.commit(s.expiring(a, kv.After, time.Minute))
		s.next(w)
		s.clock.Set(-24 * time.Hour)
		s.clock.Advance(time.Minute + 2*slack)
		if e := s.next(w); !e.Version.Deleted {
			s.Errorf("got %+v", e.Version)
		}
	}},
	{"a clock that is set forward is followed", func(s *store) {
		s.needsClock()
		w := s.watch(ns, s.newest())
		s.commit(s.expiring(a, kv.After, time.Hour))
		s.next(w)
		s.clock.Set(time.Hour)
		s.clock.Advance(slack)
		if e := s.next(w); !e.Version.Deleted {
			s.Errorf("got %+v", e.Version)
		}
	}},
	{"many keys that expire together all go", func(s *store) {
		s.needsClock()
		const n = 3000
		w := s.watch(ns, s.newest())
		for i := range n / 1000 {
			var txn kv.Txn
			for j := range 1000 {
				op := s.expiring(fmt.Sprintf("%sk%d-%d", ns, i, j), kv.After, time.Minute).Ops[0]
				txn.Ops = append(txn.Ops, op)
			}
			s.commit(txn)
		}
		s.clock.Advance(time.Minute + slack)
		deleted := map[string]bool{}
		for range 2 * n {
			if e := s.next(w); e.Version.Deleted {
				deleted[e.Version.Key] = true
			}
		}
		if len(deleted) != n {
			s.Errorf("%d are gone, want %d", len(deleted), n)
		}
	}},
}

func (s *store) needsClock() {
	s.Helper()
	if s.clock == nil {
		s.Skip("the engine has a clock of its own")
	}
}

func (s *store) expiring(key string, kind kv.ExpiryKind, d time.Duration) kv.Txn {
	return one(kv.Op{Key: key, Value: []byte("x"), Expiry: kv.Expiry{Kind: kind, For: d}})
}
