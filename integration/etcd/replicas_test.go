package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-dev/pawl/integration/etcd"
	"github.com/pawl-dev/pawl/kv"
	kvetcd "github.com/pawl-dev/pawl/kv/etcd"
	"github.com/pawl-dev/pawl/kv/kvtest"
)

// What one replica was answered, the other reads, at any freshness that speaks of it.
func TestTwoReplicasAreOneStore(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	one, other := subjectOn(t, on(m)), subjectOn(t, on(m))
	for i := range 100 {
		value := fmt.Sprint(i)
		one.put(a, value)
		other.holds(other.read(kv.Latest), a, value)
		rev := one.put(a, value+"!")
		other.holds(other.read(kv.AtLeast(rev)), a, value+"!")
		rev = one.put(a, value+"?")
		snap := other.read(kv.Exactly(rev))
		if other.holds(snap, a, value+"?"); snap.Revision() != rev {
			t.Errorf("the state at %d is of %d", rev, snap.Revision())
		}
		if _, err := other.Read(t.Context(), kv.Exactly(rev+1)); err == nil {
			t.Errorf("revision %d can be read", rev+1)
		}
		rev = one.put(a, value)
		w := other.watch(ns, rev) // whether the other has seen it or not
		if next := one.put(b, value); true {
			if e, err := other.next(w); err != nil || e.Version.Revision != next {
				t.Errorf("after %d came %+v, %v, want %d", rev, e.Version, err, next)
			}
		}
		// A condition on what only the other has seen holds.
		rev = one.put(a, value)
		other.commit(kv.Txn{Conditions: []kv.Condition{{Key: a, At: rev}}, Ops: []kv.Op{kv.Put(a, []byte("x"))}})
	}
	same(t, one, other)
}

// A replica that is told everything late refuses a write with what there is, not with what it has seen of it.
func TestARefusalIsNotStale(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	p := etcd.NewProxy(t, m)
	one, late := subjectOn(t, on(m)), subjectOn(t, through(p))
	first := one.put(a, "1")
	second := one.put(a, "2")
	late.holds(late.read(kv.Latest), a, "2")
	p.Delay(50 * time.Millisecond)
	third := one.put(a, "3")
	if _, newest := late.Revisions(); newest != second {
		t.Fatalf("it has seen revision %d already", newest)
	}
	_, err := late.Commit(t.Context(), kv.Txn{Conditions: []kv.Condition{{Key: a, At: first}}, Ops: []kv.Op{kv.Put(a, []byte("x"))}})
	var conflict *kv.Error
	if !errors.As(err, &conflict) || conflict.Kind != kv.ErrConflict || conflict.Have != third {
		t.Errorf("got %v, want a conflict with revision %d", err, third)
	}
}

// A commit that changes nothing is answered with a revision at which what it rests on was so, though the replica may
// have seen a later one by then.
func TestConditionsHoldAtTheRevisionThatIsAnswered(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	p := etcd.NewProxy(t, m)
	one, late := subjectOn(t, on(m)), subjectOn(t, through(p))
	p.Delay(time.Millisecond)
	held := 0
	for i := range 100 {
		at := one.put(a, fmt.Sprint(i))
		var wg sync.WaitGroup
		wg.Go(func() {
			<-time.After(time.Duration(i%10) * 500 * time.Microsecond)
			one.put(a, fmt.Sprint(i, "!"))
		})
		done, err := late.Commit(t.Context(), kv.Txn{Conditions: []kv.Condition{{Key: a, At: at}}})
		wg.Wait()
		if errors.Is(err, kv.ErrConflict) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		held++
		if v := late.read(kv.Exactly(done.Revision)).Get(a); v == nil || v.Revision != at {
			t.Errorf("%s at %d holds at %d, it is said, where it is %+v", a, at, done.Revision, v)
		}
	}
	t.Logf("held %d times of 100", held)
}

// same fails the test unless two replicas tell the same history.
func same(t testing.TB, one, other *subject) {
	t.Helper()
	rev := one.read(kv.Latest).Revision()
	other.read(kv.AtLeast(rev))
	first, second := one.watch("default/", 1), other.watch("default/", 1)
	for n := 0; ; n++ {
		x, ok, err := first.Next()
		y, alsoOk, alsoErr := second.Next()
		switch {
		case err != nil || alsoErr != nil || ok != alsoOk:
			t.Fatalf("event %d: %v %v, and %v %v", n, ok, err, alsoOk, alsoErr)
		case !ok:
			t.Logf("%d events", n)
			return
		case !kvtest.Same(x.Version, y.Version) || !kvtest.Same(x.Prev, y.Prev):
			t.Fatalf("event %d is %+v, and %+v", n, x.Version, y.Version)
		}
	}
}

// Many write to the same few keys through both, and everybody is answered the truth.
func TestWritersOnTwoReplicas(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	one, other := subjectOn(t, on(m)), subjectOn(t, on(m))
	l := newLedger()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for w := range 8 {
		s := []*subject{one, other}[w%2]
		wg.Go(func() { l.write(ctx, s, w, 3) })
	}
	for _, s := range []*subject{one, other} {
		wg.Go(func() {
			for ctx.Err() == nil {
				l.mu.Lock()
				before := l.answered
				l.mu.Unlock()
				if got := s.read(kv.Latest).Revision(); got < before {
					t.Errorf("the latest is %d after %d was answered", got, before)
				}
			}
		})
	}
	wg.Wait()
	same(t, one, other)
	l.judge(t, one)
	if l.conflicts == 0 {
		t.Error("nobody was in anybody's way")
	}
}

// What others keep in the same etcd moves its revision, and keeps nobody waiting: what is quiet stays at its revision, and
// whoever names one of theirs is answered at it.
func TestRevisionsOfOthersKeepNobodyWaiting(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	s := subjectOn(t, on(m))
	rev := s.put(a, "1")
	c := raw(t, m.URL)
	began := time.Now()
	const n = 200
	for i := range n {
		r, err := c.Put(t.Context(), "/registry/pods/a", fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		theirs := revisionOf(r.Header.Revision)
		switch i % 4 {
		case 0:
			if got := s.read(kv.Latest).Revision(); got >= theirs {
				t.Errorf("the latest is %d, and etcd was at %d without a change", got, theirs)
			}
		case 1:
			if got := s.read(kv.AtLeast(theirs)).Revision(); got < theirs {
				t.Errorf("a state at least at %d is at %d", theirs, got)
			}
		case 2:
			if got := s.read(kv.Exactly(theirs)).Revision(); got != theirs {
				t.Errorf("the state at %d is at %d", theirs, got)
			}
			_, err := s.Read(t.Context(), kv.Exactly(theirs+1))
			fails(t, err, kv.ErrFuture)
		default:
			rev = s.commit(kv.Txn{Conditions: []kv.Condition{{Key: a, At: rev}}, Ops: []kv.Op{kv.Put(a, []byte("2"))}}).Revision
		}
	}
	if took := time.Since(began) / n; took > 50*time.Millisecond {
		t.Errorf("a write of another's and a read took %v", took)
	}
}

// Two prefixes are two stores.
func TestPrefixesAreApart(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	opts := on(m)
	one := subjectOn(t, opts)
	opts.Prefix = "/pawl2/"
	other := subjectOn(t, opts)
	one.put(a, "1")
	other.put(b, "2")
	one.holds(one.read(kv.Latest), b, "")
	other.holds(other.read(kv.Latest), a, "")
	other.holds(other.read(kv.Latest), b, "2")
}

// No store begins among another program's keys. One that lies under them, or under another store's prefix, is apart from them.
func TestAPrefixThatOthersUse(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	c := raw(t, m.URL)
	at := func(prefix string) kvetcd.Options {
		o := on(m)
		o.Prefix = prefix
		return o
	}
	for _, key := range []string{"/registry/pods/default/a", "/registry/kva", "/registry/a", "/late/z", "/exact"} {
		if _, err := c.Put(t.Context(), key, "k8s"); err != nil {
			t.Fatal(err)
		}
	}
	before := keys(t, c, "/")
	for prefix, names := range map[string]string{"/registry": "/registry/a", "/registry/pods/": "/registry/pods/default/a", "/late": "/late/z"} {
		_, err := kvetcd.Open(t.Context(), at(prefix))
		var occupied *kvetcd.OccupiedError
		if !errors.As(err, &occupied) || occupied.Key != names || !strings.Contains(err.Error(), names) {
			t.Errorf("opened at %s: %v", prefix, err)
		}
	}
	if after := keys(t, c, "/"); !slices.Equal(before, after) {
		t.Errorf("there was %v, and is %v", before, after)
	}
	subjectOn(t, at("/exact")).put(a, "1")
	outer := subjectOn(t, at("/registry/pawl"))
	outer.put(a, "outer")
	inner := subjectOn(t, at("/registry/pawl/inner"))
	inner.put(a, "inner")
	again := subjectOn(t, at("/registry/pawl"))
	again.holds(again.read(kv.Latest), a, "outer")
	inner.holds(inner.read(kv.Latest), a, "inner")
	if n := len(keys(t, c, "/registry/pods/")); n != 1 {
		t.Errorf("%d of the other program's keys are there", n)
	}
}

// What one replica is told to forget all forget, however young it is, as does whoever comes later. Their watches that
// have not come so far end.
func TestAllReplicasForgetWhatOneIsTold(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	one, other := subjectOn(t, on(m)), subjectOn(t, on(m))
	first := one.put(a, "1")
	rev := one.put(a, "2")
	one.put(a, "3")
	other.read(kv.Latest)
	behind, told := other.watch(ns, first), other.watch(ns, rev)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := one.Compact(t.Context(), rev); err != nil {
				t.Errorf("compact: %v", err)
			}
		})
	}
	wg.Wait()
	other.read(kv.Latest) // shows what was answered before: so, too, that history was forgotten
	for _, s := range []*subject{one, other, subjectOn(t, on(m))} {
		if oldest, _ := s.Revisions(); oldest != rev {
			t.Errorf("the oldest is %d, want %d", oldest, rev)
		}
		_, err := s.Read(t.Context(), kv.Exactly(rev-1))
		fails(t, err, kv.ErrCompacted)
		s.holds(s.read(kv.Exactly(rev)), a, "2")
		s.holds(s.read(kv.Latest), a, "3")
	}
	if _, err := other.next(behind); !errors.Is(err, kv.ErrCompacted) {
		t.Errorf("a watch that was behind: %v", err)
	}
	if e, err := other.next(told); err != nil || string(e.Version.Value) != "3" {
		t.Errorf("a watch from there on tells %+v, %v", e.Version, err)
	}
	if err := other.Compact(t.Context(), first); err != nil {
		t.Errorf("forgetting what is forgotten: %v", err)
	}
}

// Commits that were sent together can be forgotten apart: who is opened afterwards still reads and watches from the first
// that is kept.
func TestHistoryIsForgottenBetweenCommitsThatWereSentTogether(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	one, other := subjectOn(t, on(m)), subjectOn(t, on(m))
	first, second := together(one)
	if err := one.Compact(t.Context(), first.Revision); err != nil {
		t.Fatal(err)
	}
	other.read(kv.Latest)
	for _, s := range []*subject{one, other, subjectOn(t, on(m))} {
		if oldest, _ := s.Revisions(); oldest != first.Revision {
			t.Errorf("the oldest is %d, want %d", oldest, first.Revision)
		}
		snap := s.read(kv.Exactly(first.Revision))
		key, later := first.Versions[0].Key, second.Versions[0].Key
		if v := snap.Get(key); v == nil || v.Revision != first.Revision || v.Created != first.Versions[0].Created {
			t.Errorf("%s is %+v, want %+v", key, v, first.Versions[0])
		}
		if v := snap.Get(later); v != nil && v.Revision >= second.Revision {
			t.Errorf("%s is there already: %+v", later, v)
		}
		w := s.watch(later, first.Revision)
		if e, err := s.next(w); err != nil || e.Version.Revision != second.Revision {
			t.Errorf("a watch from there on tells %+v, %v", e.Version, err)
		}
		w.Stop()
	}
}

// together makes commits until two of them are one transaction of etcd's, and returns those.
func together(s *subject) (first, second kv.Committed) {
	s.t.Helper()
	for round := range 100 {
		done := make([]kv.Committed, 16)
		var wg sync.WaitGroup
		for i := range done {
			wg.Go(func() {
				key := fmt.Sprintf("%sk%02d", ns, i)
				var err error
				if done[i], err = s.Commit(s.t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(key, fmt.Append(nil, round))}}); err != nil {
					s.t.Error(err)
				}
			})
		}
		wg.Wait()
		slices.SortFunc(done, func(a, b kv.Committed) int { return int(int64(a.Revision) - int64(b.Revision)) })
		for i := range done[1:] {
			if revisionIn(done[i].Revision) == revisionIn(done[i+1].Revision) {
				return done[i], done[i+1]
			}
		}
	}
	s.t.Fatal("no two commits were sent together")
	return first, second
}

// What is kept beside the store is made by one, and replaced by one of all who know what it was: the others are told.
func TestWhatIsKeptBesideAStore(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	one, other := subjectOn(t, on(m)), subjectOn(t, on(m))
	ctx := t.Context()
	for s, makes := range map[*subject]string{one: "1", other: "2"} {
		must[[]byte](t)(s.Once(ctx, "x", func() ([]byte, error) { return []byte(makes), nil }))
	}
	first := must[[]byte](t)(one.Once(ctx, "x", nil))
	for _, c := range []struct {
		s             *subject
		was, by, want string
	}{
		{one, string(first), "3", "3"}, {other, string(first), "4", "3"}, {other, "3", "5", "5"}, {one, "3", "6", "5"},
	} {
		if got := must[[]byte](t)(c.s.Replace(ctx, "x", []byte(c.was), []byte(c.by))); string(got) != c.want {
			t.Errorf("%s in place of %s: %q is kept, want %q", c.by, c.was, got, c.want)
		}
	}
	if got := must[[]byte](t)(one.Once(ctx, "x", nil)); string(got) != "5" {
		t.Errorf("%q is kept", got)
	}
	if _, err := one.Replace(ctx, "nothing", []byte("1"), []byte("2")); err == nil {
		t.Error("what is not there was replaced")
	}
}

// What somebody else has etcd forget, a replica notices. It goes on with what it has of the last 75 seconds, and
// forgets the rest.
func TestCompactionIsNoticed(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	clock := kvtest.NewClock()
	opts := on(m)
	opts.Clock = clock
	other := subjectOn(t, opts)
	other.put(a, "1")
	rev := other.put(a, "2")
	other.put(a, "3")
	if _, err := raw(t, m.URL).Compact(t.Context(), revisionIn(rev)); err != nil {
		t.Fatal(err)
	}
	other.holds(other.read(kv.Exactly(rev-1)), a, "1")
	clock.Advance(2 * time.Minute)
	eventually(t, "it has noticed", func() bool {
		oldest, _ := other.Revisions()
		return oldest == rev
	})
}

// History that has become too old is cut in etcd, by one of the replicas.
func TestOneReplicaCutsHistory(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	clock := kvtest.NewClock()
	opts := on(m)
	opts.Clock, opts.CompactEvery = clock, time.Millisecond
	one, other := subjectOn(t, opts), subjectOn(t, opts)
	one.put(a, "1")
	old := one.put(a, "2")
	clock.Advance(2 * time.Hour)
	one.put(a, "3")
	eventually(t, "both replicas have forgotten", func() bool {
		first, _ := one.Revisions()
		second, _ := other.Revisions()
		return first == old && second == old
	})
	opts.CompactEvery = -1
	eventually(t, "etcd has forgotten", func() bool {
		_, err := raw(t, m.URL).Get(t.Context(), "a", clientv3.WithRev(revisionIn(old)-1))
		return errors.Is(err, rpctypes.ErrCompacted)
	})
	if oldest, _ := subjectOn(t, opts).Revisions(); oldest != old {
		t.Errorf("the oldest is %d for who comes later, want %d", oldest, old)
	}
	r, err := raw(t, m.URL).Get(t.Context(), kvetcd.DefaultPrefix+"/kv//floor")
	if err != nil || len(r.Kvs) != 1 || r.Kvs[0].Version != 1 {
		t.Errorf("the floor was moved not once: %v, %v", r, err)
	}
}
