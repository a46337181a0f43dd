package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pawl-dev/pawl/kv"
)

var commits = []promise{
	{"an empty store has a revision that is not zero", func(s *store) {
		oldest, newest := s.Revisions()
		if oldest == 0 || newest == 0 || oldest > newest {
			s.Errorf("revisions %d to %d", oldest, newest)
		}
		if got := s.read(kv.Latest).Revision(); got == 0 {
			s.Error("an empty list would have no revision")
		}
		if err := s.Err(); err != nil {
			s.Errorf("it takes no writes: %v", err)
		}
	}},
	{"a commit is the next revision, however many keys it touches", func(s *store) {
		first := s.put(a, "1")
		done := s.commit(kv.Txn{Ops: []kv.Op{kv.Put(a, []byte("2")), kv.Put(b, []byte("2"))}})
		if done.Revision <= first {
			s.Errorf("revision %d came after %d", done.Revision, first)
		}
		for i, key := range []string{a, b} {
			if v := done.Versions[i]; v.Key != key || v.Revision != done.Revision {
				s.Errorf("version %d is %s at %d", i, v.Key, v.Revision)
			}
		}
		if got := s.newest(); got != done.Revision {
			s.Errorf("newest is %d after commit %d", got, done.Revision)
		}
	}},
	{"a version says what it is", func(s *store) {
		who := kv.Author{User: "ada", Manager: "kubectl", Verb: "update", Subresource: "status"}
		created := s.put(a, "1")
		done := s.commit(kv.Txn{Author: who, Ops: []kv.Op{{Key: a, Value: []byte("2"), Slot: "mine"}}})
		v := s.read(kv.Latest).Get(a)
		if v != done.Versions[0] {
			s.Error("the version that was committed is not the one that is read")
		}
		if v.Created != created || v.By() != who || v.Deleted || v.Slot.Load() != "mine" || !v.Expires.IsZero() || v.Time.IsZero() {
			s.Errorf("got %+v", v)
		}
		if p := v.Prev(); p == nil || p.Revision != created || string(p.Value) != "1" || p.Prev() != nil {
			s.Errorf("before it was %+v", p)
		}
	}},
	{"a deletion says who made it", func(s *store) {
		who := kv.Author{User: "ada", Verb: "delete"}
		s.put(a, "1")
		w := s.watch(ns, s.newest())
		done := s.commit(kv.Txn{Author: who, Ops: []kv.Op{kv.Delete(a)}})
		if e := s.next(w); e.Version != done.Versions[0] || !e.Version.Deleted || e.Version.By() != who {
			s.Errorf("got %+v", e.Version)
		}
	}},
	{"a key that is made anew remembers that it was deleted", func(s *store) {
		s.put(a, "1")
		gone := s.commit(one(kv.Delete(a))).Versions[0]
		again := s.put(a, "2")
		v := s.read(kv.Latest).Get(a)
		if v.Created != again || v.Prev() != gone || !gone.Deleted || gone.Value != nil || string(gone.Prev().Value) != "1" {
			s.Errorf("got %+v, before it %+v", v, v.Prev())
		}
	}},
	{"time never goes back", func(s *store) {
		first := s.commit(one(kv.Put(a, []byte("1")))).Versions[0]
		if s.clock != nil {
			s.clock.Set(-1e12)
		}
		second := s.commit(one(kv.Put(a, []byte("2")))).Versions[0]
		if second.Time < (first.Time) {
			s.Errorf("%v came after %v", second.Time, first.Time)
		}
	}},
	{"what is committed later has the larger revision", laterIsLarger},
	{"nobody sees half of a transaction", seesNoHalf},
	{"a condition that holds lets a commit through", func(s *store) {
		rev := s.commit(one(kv.Put(a, []byte("1")), cond(a, kv.Absent), cond(b, kv.Absent))).Revision
		rev = s.commit(one(kv.Put(a, []byte("2")), cond(a, rev))).Revision
		s.commit(one(kv.Put(b, []byte("2")), cond(a, rev))) // of a version that is not the first, at a revision that is not the newest
		s.commit(one(kv.Put(b, []byte("3")), cond(a, rev)))
		s.holds(s.read(kv.Latest), b, "3")
	}},
	{"a conflict names the first key that had moved on, and nothing is written", func(s *store) {
		old := s.put(a, "1")
		was := s.put(b, "1")
		now := s.put(b, "2")
		_, err := s.Commit(s.Context(), kv.Txn{
			Conditions: []kv.Condition{cond(a, old), cond(b, was), cond(c, old)},
			Ops:        []kv.Op{kv.Put(a, []byte("x")), kv.Put(c, []byte("x"))},
		})
		e := s.fails(err, kv.ErrConflict)
		if e.Op != "commit" || e.Key != b || e.Want != was || e.Have != now {
			s.Errorf("got %+v", e)
		}
		s.holds(s.read(kv.Latest), a, "1")
		s.holds(s.read(kv.Latest), c, "")
		if got := s.newest(); got != now {
			s.Errorf("the newest revision went from %d to %d", now, got)
		}
	}},
	{"a refusal rests on nothing that cannot be read", restsOnWhatIsRead},
	{"what exists is not absent, and what was deleted is", func(s *store) {
		rev := s.put(a, "1")
		_, err := s.Commit(s.Context(), one(kv.Put(a, []byte("2")), cond(a, kv.Absent)))
		if e := s.fails(err, kv.ErrConflict); e.Want != kv.Absent || e.Have != rev {
			s.Errorf("got %+v", e)
		}
		gone := s.del(a)
		for _, at := range []kv.Revision{rev, gone} {
			_, err = s.Commit(s.Context(), one(kv.Put(a, []byte("2")), cond(a, at)))
			if e := s.fails(err, kv.ErrConflict); e.Want != at || e.Have != kv.Absent {
				s.Errorf("got %+v", e)
			}
		}
		s.commit(one(kv.Put(a, []byte("2")), cond(a, kv.Absent)))
		comeAndGo(s)
	}},
	{"deleting what is absent changes nothing", func(s *store) {
		rev := s.put(a, "1")
		done := s.commit(kv.Txn{Ops: []kv.Op{kv.Delete(b), kv.Delete(c)}})
		if done.Revision != rev || len(done.Versions) != 2 || done.Versions[0] != nil || done.Versions[1] != nil {
			s.Errorf("got %+v, want revision %d", done, rev)
		}
		done = s.commit(kv.Txn{Ops: []kv.Op{kv.Delete(b), kv.Delete(a)}})
		if done.Revision == rev || done.Versions[0] != nil || done.Versions[1] == nil || !done.Versions[1].Deleted {
			s.Errorf("got %+v", done)
		}
	}},
	{"a transaction without changes checks its conditions", func(s *store) {
		rev := s.put(a, "1")
		newest := s.put(b, "1")
		done := s.commit(kv.Txn{Conditions: []kv.Condition{cond(a, rev)}})
		if done.Revision != newest || len(done.Versions) != 0 {
			s.Errorf("got %+v, want revision %d", done, newest)
		}
		_, err := s.Commit(s.Context(), kv.Txn{Conditions: []kv.Condition{cond(a, newest)}})
		s.fails(err, kv.ErrConflict)
		if got := s.newest(); got != newest {
			s.Errorf("the newest revision went from %d to %d", newest, got)
		}
	}},
	{"a transaction without anything answers with the newest revision", func(s *store) {
		rev := s.put(a, "1")
		if done := s.commit(kv.Txn{}); done.Revision != rev || len(done.Versions) != 0 {
			s.Errorf("got %+v, want revision %d", done, rev)
		}
	}},
	{"a caller may change its slices afterwards", func(s *store) {
		value := []byte("1")
		txn := one(kv.Put(a, value), cond(a, kv.Absent))
		s.commit(txn)
		value[0], txn.Ops[0].Key, txn.Conditions[0].Key = 'x', b, b
		snap := s.read(kv.Latest)
		s.holds(snap, a, "1")
		s.keys(snap, "", "", a)
	}},
	{"an empty value is not nothing", func(s *store) {
		s.commit(one(kv.Put(a, []byte{})))
		if v := s.read(kv.Latest).Get(a); v == nil || v.Value == nil || len(v.Value) != 0 {
			s.Errorf("got %+v", v)
		}
	}},
	{"what breaks a rule is refused and changes nothing", breakRules},
	{"what is just within the limits is taken", fillToTheBrim},
	{"what is more than the engine takes is refused and changes nothing", overfill},
	{"a context that was cancelled makes the outcome unknown", func(s *store) {
		_, err := s.Commit(s.cancelled(), one(kv.Put(a, []byte("1"))))
		if err != nil {
			s.fails(err, kv.ErrUnknown)
			if !errors.Is(err, context.Canceled) {
				s.Errorf("error %v does not say why", err)
			}
		}
		s.put(b, "1")
	}},
	{"what is answered as unknown is there wholly or not at all", unknownIsWhole},
	{"of many writers who saw the same version one wins", func(s *store) {
		const writers, rounds = 8, 20
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for range rounds {
					increment(s, w)
				}
			})
		}
		wg.Wait()
		s.holds(s.read(kv.Latest), a, fmt.Sprint(writers*rounds))
	}},
	{"a ring whose links are swapped by transactions stays a ring", swapRing},
}

// increment adds one to the number under a, however often that takes.
func increment(s *store, w int) {
	for {
		n, at := 0, kv.Absent
		if v := s.read(kv.Latest).Get(a); v != nil {
			at = v.Revision
			fmt.Sscan(string(v.Value), &n)
		}
		_, err := s.Commit(s.Context(), one(kv.Put(a, fmt.Append(nil, n+1)), cond(a, at)))
		if err == nil {
			return
		}
		var e *kv.Error
		if !errors.As(err, &e) || e.Kind != kv.ErrConflict {
			s.Errorf("writer %d: %v", w, err)
			return
		}
		// The revision it lost to can be read.
		if got := s.read(kv.Latest).Revision(); got < e.Have {
			s.Errorf("lost to revision %d, but the newest is %d", e.Have, got)
		}
	}
}

// comeAndGo has writers make a key where it is absent, and delete what they made. Nobody who is refused
// is told of a deletion, even of one that is so new that it cannot be read yet.
func comeAndGo(s *store) {
	const writers, rounds = 4, 50
	var mu sync.Mutex
	gone, met := map[kv.Revision]bool{}, map[kv.Revision]bool{}
	turn := func() error {
		made, err := s.Commit(s.Context(), one(kv.Put(b, []byte("1")), cond(b, kv.Absent)))
		var e *kv.Error
		if errors.As(err, &e) && e.Kind == kv.ErrConflict {
			mu.Lock()
			met[e.Have] = true
			mu.Unlock()
			return nil
		}
		if err != nil {
			return err
		}
		deleted, err := s.Commit(s.Context(), one(kv.Delete(b), cond(b, made.Revision)))
		mu.Lock()
		gone[deleted.Revision] = true
		mu.Unlock()
		return err
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for range rounds {
				if err := turn(); err != nil {
					s.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	wg.Wait()
	for rev := range met {
		if rev == kv.Absent || gone[rev] {
			s.Errorf("a put where nothing was to be lost to revision %d, at which the key was absent", rev)
		}
	}
}

// laterIsLarger has many commit and tell each other what they got.
func laterIsLarger(s *store) {
	var answered atomic.Uint64
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for range 50 {
				before := answered.Load()
				rev := uint64(s.put(fmt.Sprintf("%sk%d", ns, w), "x"))
				if rev <= before {
					s.Errorf("revision %d was committed after %d was answered", rev, before)
				}
				for known := answered.Load(); known < rev && !answered.CompareAndSwap(known, rev); known = answered.Load() {
				}
			}
		})
	}
	wg.Wait()
}

// seesNoHalf has writers put one value under keys of several tables and spaces. Whoever
// reads sees one value everywhere, and whoever watches is told of all or none of it.
func seesNoHalf(s *store) {
	const writers, rounds = 3, 40
	all := []string{a, b, "default/core/secrets/ns/a", "default/core/namespaces/ns"}
	everywhere := append([]string{"other/core/configmaps/ns/a"}, all...)
	w := s.watch("default/", s.newest())
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for j := range rounds {
				var txn kv.Txn
				for _, key := range everywhere {
					txn.Ops = append(txn.Ops, kv.Put(key, fmt.Append(nil, i, " ", j)))
				}
				rev := s.commit(txn).Revision
				for _, at := range []kv.Freshness{kv.Latest, kv.Any, kv.AtLeast(rev), kv.Exactly(rev)} {
					alike(s, s.read(at), everywhere)
				}
			}
		})
	}
	wg.Wait()
	told := map[kv.Revision]int{}
	for range writers * rounds * len(all) {
		told[s.next(w).Version.Revision]++
	}
	for rev, n := range told {
		if n != len(all) {
			s.Errorf("%d changes were told of revision %d, want %d", n, rev, len(all))
		}
	}
}

// alike fails the test unless snap holds the same version everywhere.
func alike(s *store, snap kv.Snapshot, keys []string) {
	first := snap.Get(keys[0])
	for _, key := range keys {
		if v := snap.Get(key); first == nil || v == nil || v.Revision != first.Revision || !bytes.Equal(v.Value, first.Value) {
			s.Errorf("at revision %d %s is %+v, and %s is %+v", snap.Revision(), keys[0], first, key, v)
			return
		}
	}
}

// A waning context is cancelled when it is looked at for the last of so many times.
type waning struct {
	context.Context
	cancel context.CancelFunc
	looks  atomic.Int64
}

func (w *waning) look() {
	if w.looks.Add(-1) == 0 {
		w.cancel()
	}
}

// Err looks at the context.
func (w *waning) Err() error { w.look(); return w.Context.Err() }

// Done looks at the context.
func (w *waning) Done() <-chan struct{} { w.look(); return w.Context.Done() }

// restsOnWhatIsRead has one client make and delete a key, and others commit on the condition
// that it is absent and that another is, which it never is. Whenever the second is the first
// to be found wrong the first one was absent, at a revision that can be read by then.
func restsOnWhatIsRead(s *store) {
	there := s.put(b, "1")
	var wg sync.WaitGroup
	over := make(chan struct{})
	wg.Go(func() {
		defer close(over)
		for range 60 {
			s.put(a, "1")
			s.del(a)
		}
	})
	for range 3 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-over:
					if n >= 20 { // where the others are not let in earlier they still ask
						return
					}
				default:
				}
				before := s.newest()
				_, err := s.Commit(s.Context(), one(kv.Put(c, []byte("1")), cond(a, kv.Absent), cond(b, kv.Absent)))
				after := s.newest()
				var e *kv.Error
				if !errors.As(err, &e) || e.Kind != kv.ErrConflict {
					s.Errorf("commit: %v", err)
					return
				}
				if e.Key == b && e.Have == there && !wasAbsent(s, a, before, after) {
					s.Errorf("%v, and nothing is wrong with %s, though that existed at each revision from %d to %d", err, a, before, after)
					return
				}
			}
		})
	}
	wg.Wait()
}

// wasAbsent says whether a key did not exist at some revision between two.
func wasAbsent(s *store, key string, from, to kv.Revision) bool {
	for rev := from; rev <= to; rev++ {
		if snap, err := s.Read(s.Context(), kv.Exactly(rev)); err == nil && snap.Get(key) == nil {
			return true
		}
	}
	return false
}

// unknownIsWhole cancels commits of two keys while they are under way: half of them at some time, the
// others at each of the first times that the engine looks whether they are.
func unknownIsWhole(s *store) {
	for i := range 100 {
		under, cancel := context.WithCancel(s.Context())
		ctx := &waning{Context: under, cancel: cancel}
		if i%2 == 0 {
			go cancel()
		} else {
			ctx.looks.Store(int64(i / 2 % 10))
		}
		key := fmt.Sprintf("%sk%d", ns, i)
		_, err := s.Commit(ctx, kv.Txn{Ops: []kv.Op{kv.Put(key+"a", []byte("1")), kv.Put(key+"b", []byte("1"))}})
		if err != nil {
			if s.fails(err, kv.ErrUnknown); !errors.Is(err, context.Canceled) {
				s.Errorf("error %v does not say why", err)
			}
		}
		cancel()
		s.commit(kv.Txn{}) // what is under way is over
		snap := s.read(kv.Latest)
		if first, second := snap.Get(key+"a"), snap.Get(key+"b"); (first == nil) != (second == nil) || err == nil && first == nil {
			s.Errorf("commit %d, error %v: there is %v and %v", i, err, first, second)
		}
	}
}

// fillToTheBrim commits what is as large as the limits allow.
func fillToTheBrim(s *store) {
	limits := s.limits.complete()
	long := ns + strings.Repeat("k", kv.MaxKeyBytes-len(ns))
	big := bytes.Repeat([]byte{'v'}, limits.ValueBytes)
	s.commit(one(kv.Put(long, big)))
	if v := s.read(kv.Latest).Get(long); v == nil || !bytes.Equal(v.Value, big) {
		s.Error("it came back as something else")
	}
	s.commit(kv.Txn{Ops: manyOps(limits.Ops)})
	s.commit(kv.Txn{Ops: manyBytes(big, limits.Bytes)})
}

// manyBytes returns puts that come to so many bytes of keys and values, none larger than big.
func manyBytes(big []byte, size int) (ops []kv.Op) {
	for i := 0; size > 0; i++ {
		op := kv.Put(fmt.Sprintf("%sk%d", ns, i), big)
		op.Value = big[:max(min(len(big), size-len(op.Key)), 0)]
		size -= len(op.Key) + len(op.Value)
		ops = append(ops, op)
	}
	return ops
}

// overfill commits what is more than an engine takes that takes less than every engine must be able to.
func overfill(s *store) {
	if s.limits == (Limits{}) {
		s.Skip("it takes as much as package kv allows")
	}
	rev := s.put(a, "1")
	for name, ops := range map[string][]kv.Op{
		"too many changes": manyOps(2 * s.limits.Ops),
		"a large value":    {kv.Put(b, make([]byte, 2*s.limits.ValueBytes))},
		"too many bytes":   manyBytes(make([]byte, s.limits.ValueBytes/10), 2*s.limits.Bytes),
	} {
		_, err := s.Commit(s.Context(), kv.Txn{Ops: ops})
		if e := s.fails(err, kv.ErrTooLarge); e.Err == nil {
			s.Errorf("%s: %v does not say what is too much", name, err)
		}
	}
	if got := s.newest(); got != rev {
		s.Errorf("the newest revision went from %d to %d", rev, got)
	}
}

func manyOps(n int) []kv.Op {
	ops := make([]kv.Op, n)
	for i := range ops {
		ops[i] = kv.Put(fmt.Sprintf("%sk%d", ns, i), []byte{})
	}
	return ops
}

func breakRules(s *store) {
	rev := s.put(a, "1")
	big := make([]byte, kv.MaxValueBytes+1)
	var huge []kv.Op
	for i := range kv.MaxTxnBytes/kv.MaxValueBytes + 1 {
		huge = append(huge, kv.Put(fmt.Sprintf("%sk%d", ns, i), big[1:]))
	}
	for name, txn := range map[string]kv.Txn{
		"a key that is too short":                 one(kv.Put("default/core/x", []byte("x"))),
		"a key with an empty part":                one(kv.Put("default/core/configmaps//x", []byte("x"))),
		"a key that is too long":                  one(kv.Put(ns+strings.Repeat("k", kv.MaxKeyBytes), []byte("x"))),
		"a condition on no key":                   one(kv.Put(b, []byte("x")), cond("", 0)),
		"a put without a value":                   one(kv.Op{Key: b}),
		"a value that is too long":                one(kv.Put(b, big)),
		"a deletion with a value":                 one(kv.Op{Key: b, Delete: true, Value: []byte("x")}),
		"an expiry that is over":                  one(kv.Op{Key: b, Value: []byte("x"), Expiry: kv.Expiry{Kind: kv.After}}),
		"an expiry of no kind":                    one(kv.Op{Key: b, Value: []byte("x"), Expiry: kv.Expiry{Kind: 9}}),
		"a key that is changed twice":             {Ops: []kv.Op{kv.Put(b, []byte("x")), kv.Delete(b)}},
		"too many changes":                        {Ops: manyOps(kv.MaxTxnOps + 1)},
		"too many conditions and changes":         {Ops: manyOps(kv.MaxTxnOps), Conditions: []kv.Condition{cond(b, 0)}},
		"too many bytes in one transaction":       {Ops: huge},
		"something good and something bad":        {Ops: []kv.Op{kv.Put(b, []byte("x")), kv.Put("bad", []byte("x"))}},
		"a broken rule where a condition is, too": {Conditions: []kv.Condition{cond(a, 99)}, Ops: []kv.Op{{Key: b}}},
	} {
		_, err := s.Commit(s.Context(), txn)
		if e := s.fails(err, kv.ErrInvalid); e.Err == nil {
			s.Errorf("%s: %v does not say what is wrong", name, err)
		}
	}
	if got := s.newest(); got != rev {
		s.Errorf("the newest revision went from %d to %d", rev, got)
	}
}

// swapRing keeps a ring of keys, each holding the number of the next. Writers take three
// neighbours and swap the middle two; what is read at any time is one ring.
func swapRing(s *store) {
	const size = 12
	key := func(i int) string { return fmt.Sprintf("%sr%02d", ns, i) }
	var ops []kv.Op
	for i := range size {
		ops = append(ops, kv.Put(key(i), fmt.Append(nil, (i+1)%size)))
	}
	s.commit(kv.Txn{Ops: ops})
	follow := func(snap kv.Snapshot, i int) (next int, at kv.Condition) {
		v := snap.Get(key(i))
		if v == nil {
			s.Fatalf("at revision %d link %d of the ring is gone", snap.Revision(), i)
		}
		fmt.Sscan(string(v.Value), &next)
		return next, cond(v.Key, v.Revision)
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for round := range 50 {
				snap := s.read(kv.Latest)
				i := (w*31 + round*7) % size
				second, c1 := follow(snap, i)
				third, c2 := follow(snap, second)
				fourth, c3 := follow(snap, third)
				s.Commit(s.Context(), kv.Txn{Conditions: []kv.Condition{c1, c2, c3}, Ops: []kv.Op{
					kv.Put(key(i), fmt.Append(nil, third)),
					kv.Put(key(third), fmt.Append(nil, second)),
					kv.Put(key(second), fmt.Append(nil, fourth)),
				}})
				length := 1
				now := s.read(kv.Latest)
				for j, _ := follow(now, 0); j != 0 && length <= size; j, _ = follow(now, j) {
					length++
				}
				if length != size {
					s.Errorf("at revision %d the ring has %d links, want %d", now.Revision(), length, size)
				}
			}
		})
	}
	wg.Wait()
}
