package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-dev/pawl/integration/etcd"
	"github.com/pawl-dev/pawl/kv"
	kvetcd "github.com/pawl-dev/pawl/kv/etcd"
	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/local"
)

// far is where revisions go on after a restore in these tests: further than any etcd here has counted.
const far kv.Revision = 1_790_000_000_000_000

// all yields versions, and then an error if that is not nil.
func all(versions []*kv.Version, err error) iter.Seq2[*kv.Version, error] {
	return func(yield func(*kv.Version, error) bool) {
		for _, v := range versions {
			if !yield(v, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// restore makes a store of versions, and returns the revision that it begins at.
func restore(t testing.TB, opts kvetcd.Options, versions ...*kv.Version) kv.Revision {
	t.Helper()
	rev, err := kvetcd.Restore(t.Context(), opts, far, all(versions, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if rev <= far {
		t.Errorf("the store begins at %d, want it after %d", rev, far)
	}
	return rev
}

// lived returns the versions of a store in which several have written in some order.
func lived(t testing.TB, n int) []*kv.Version {
	t.Helper()
	clock := kvtest.NewClock()
	e, err := local.Open(t.Context(), local.Options{Memory: true, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for i := range n {
		key := fmt.Sprintf("%s%04d", ns, (i*7919)%n) // not in the order of keys
		author := kv.Author{User: fmt.Sprint("user", i%3), Manager: "m", Verb: "update"}
		op := kv.Put(key, fmt.Appendf(nil, "value %d", i))
		if i%5 == 0 {
			op.Expiry = kv.Expiry{Kind: kv.After, For: time.Until(clock.Now()).Abs() + time.Duration(i+10)*time.Minute}
		}
		if _, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{op}, Author: author}); err != nil {
			t.Fatal(err)
		}
		clock.Advance(time.Second)
	}
	now, err := e.Read(t.Context(), kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(now.Ascend("", ""))
}

// keepsAll fails the test unless what s has is what there was, by the same authors, of the same times.
func keepsAll(t testing.TB, s *subject, want []*kv.Version) {
	t.Helper()
	got := slices.Collect(s.read(kv.Latest).Ascend("", ""))
	if len(got) != len(want) {
		t.Fatalf("there are %d keys, want %d", len(got), len(want))
	}
	for i, w := range want {
		if g := got[i]; g.Key != w.Key || string(g.Value) != string(w.Value) || g.By() != w.By() || g.Time != w.Time || g.Expires != w.Expires {
			t.Fatalf("%s is %q by %v at %v until %v, want %q by %v at %v until %v", w.Key, g.Value, g.By(), g.Time, g.Expires, w.Value, w.By(), w.Time, w.Expires)
		}
	}
}

// Everything is there again, and is one state: nobody is told how it came there, and whoever has seen a
// revision from before is told that it is gone.
func TestARestoredStore(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	subjectOn(t, kvetcd.Options{Endpoints: []string{m.URL}, Prefix: "/other"}).put(a, "of another store")
	want := lived(t, 300)
	rev := restore(t, on(m), want...)
	one, other := subjectOn(t, on(m)), subjectOn(t, on(m))
	for _, s := range []*subject{one, other} {
		keepsAll(t, s, want)
		if oldest, newest := s.Revisions(); oldest != rev || newest < rev {
			t.Errorf("revisions from %d to %d can be read, and it begins at %d", oldest, newest, rev)
		}
		for _, old := range []kv.Revision{1, 41, far, rev - 1} {
			_, err := s.Read(t.Context(), kv.Exactly(old))
			fails(t, err, kv.ErrCompacted)
			w, err := s.Watch(ns, old)
			if err == nil {
				_, _, err = w.Next()
			}
			fails(t, err, kv.ErrCompacted)
		}
	}
	at := one.read(kv.Latest).Get(want[0].Key)
	_, err := one.Commit(t.Context(), kv.Txn{Conditions: []kv.Condition{{Key: at.Key, At: want[0].Revision}}, Ops: []kv.Op{kv.Put(at.Key, []byte("stale"))}})
	fails(t, err, kv.ErrConflict)
	w := other.watch(ns, rev)
	done := one.commit(kv.Txn{Conditions: []kv.Condition{{Key: at.Key, At: at.Revision}}, Ops: []kv.Op{kv.Put(at.Key, []byte("new"))}})
	if done.Revision <= rev {
		t.Errorf("written at %d, and the store begins at %d", done.Revision, rev)
	}
	if e, err := other.next(w); err != nil || e.Version.Revision != done.Revision || e.Version.Created != at.Created || string(e.Prev.Value) != string(want[0].Value) {
		t.Errorf("the watch tells %+v, %v", e, err)
	}
	if e := done.Versions[0]; e.Time < want[len(want)-1].Time {
		t.Errorf("it was written at %v, before something that was restored", e.Time)
	}
	if err := one.Compact(t.Context(), done.Revision); err != nil {
		t.Errorf("compact: %v", err)
	}
	late := subjectOn(t, on(m))
	late.holds(late.read(kv.Latest), at.Key, "new")
	if oldest, _ := late.Revisions(); oldest != done.Revision {
		t.Errorf("the oldest revision after a compaction is %d, want %d", oldest, done.Revision)
	}
}

// What expires goes when it was to go, and what was to go by now is not there.
func TestWhatIsRestoredExpires(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	const d = 2 * time.Second
	now := time.Now()
	version := func(name string, expires time.Time) *kv.Version {
		v := &kv.Version{Key: ns + name, Value: []byte(name), Revision: 7, Created: 7, Time: kv.InstantOf(now.Add(-time.Hour))}
		if !expires.IsZero() {
			v.Expires = kv.InstantOf(expires)
		}
		return v
	}
	rev := restore(t, on(m), version("gone", now.Add(-time.Second)), version("soon", now.Add(d)), version("stays", time.Time{}))
	s := subjectOn(t, on(m))
	s.holds(s.read(kv.Latest), ns+"gone", "")
	w := s.watch(ns, rev)
	e, err := s.next(w)
	if err != nil || !e.Version.Deleted || e.Version.Key != ns+"soon" || e.Version.By() != kvetcd.Expirer {
		t.Fatalf("got %+v, %v", e.Version, err)
	}
	if late := time.Since(now.Add(d)); late < 0 || late > kvetcd.Slack(d)+2*time.Second {
		t.Errorf("it went %v after its time", late)
	}
	s.holds(s.read(kv.Latest), ns+"stays", "stays")
}

// keys returns what is under a prefix in etcd.
func keys(t testing.TB, c *clientv3.Client, prefix string) []string {
	t.Helper()
	r, err := c.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, have := range r.Kvs {
		names = append(names, string(have.Key))
	}
	return names
}

// A restore needs a place where nothing is, and one that fails leaves it so.
func TestARestoreThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	c := raw(t, m.URL)
	torn := errors.New("the backup is torn")
	big := &kv.Version{Key: ns + "big", Value: make([]byte, kvetcd.MaxBytes), Revision: 7, Created: 7}
	for name, k := range map[string]struct {
		versions []*kv.Version
		err      error
		want     error
	}{
		"the backup ends too early":       {lived(t, 300), torn, torn},
		"it holds nothing, and is torn":   {nil, torn, torn},
		"an object is too large for etcd": {append(lived(t, 200), big), nil, kv.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kvetcd.Restore(t.Context(), on(m), far, all(k.versions, k.err), nil)
			fails(t, err, k.want)
			if left := keys(t, c, "/"); len(left) > 0 {
				t.Errorf("it left %v", left)
			}
		})
	}
	s := subjectOn(t, on(m))
	s.put(a, "mine")
	before := keys(t, c, "/")
	_, err := kvetcd.Restore(t.Context(), on(m), far, all(lived(t, 3), nil), nil)
	var occupied *kvetcd.OccupiedError
	if !errors.As(err, &occupied) || occupied.Prefix != kvetcd.DefaultPrefix {
		t.Errorf("into a store: %v", err)
	}
	if after := keys(t, c, "/"); !slices.Equal(before, after) {
		t.Errorf("there was %v, and is %v", before, after)
	}
	s.holds(s.read(kv.Latest), a, "mine")
	s.put(a, "still mine")
}

// A restore that fails because somebody else writes under its prefix takes away what it wrote, and not what they did.
func TestARestoreThatIsNotAlone(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	c := raw(t, m.URL)
	versions := func(yield func(*kv.Version, error) bool) {
		for i, v := range lived(t, 300) {
			if i == 200 {
				if _, err := c.Put(t.Context(), "/pawl/theirs", "x"); err != nil {
					t.Error(err)
				}
			}
			if !yield(v, nil) {
				return
			}
		}
	}
	_, err := kvetcd.Restore(t.Context(), on(m), far, versions, map[string][]byte{"name": []byte("kept")})
	if err == nil || !strings.Contains(err.Error(), "somebody else wrote under /pawl") {
		t.Errorf("got %v", err)
	}
	if left := keys(t, c, "/"); !slices.Equal(left, []string{"/pawl/theirs"}) {
		t.Errorf("it left %v", left)
	}
}

// A restore that is broken off is no store: nobody opens it, and another restore begins anew, once it is certain
// that the first is gone.
func TestARestoreThatIsBrokenOff(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	p := etcd.NewProxy(t, m)
	c := raw(t, m.URL)
	broken := errors.New("the cable is pulled")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	versions := func(yield func(*kv.Version, error) bool) {
		for i, v := range lived(t, 3000) {
			if i == 2900 {
				p.Cut()
				p.Break()
				yield(nil, broken)
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
	_, err := kvetcd.Restore(ctx, through(p), far, versions, nil)
	fails(t, err, broken)
	if left := keys(t, c, "/pawl/kv/"); len(left) < 2500 {
		t.Fatalf("only %d keys are left: this is no restore that was broken off", len(left))
	}
	var unfinished *kvetcd.UnfinishedError
	if _, err := kvetcd.Open(t.Context(), on(m)); !errors.As(err, &unfinished) {
		t.Errorf("opened: %v", err)
	}
	want := lived(t, 10)
	if _, err := kvetcd.Restore(t.Context(), on(m), far, all(want, nil), nil); !errors.As(err, &unfinished) {
		t.Errorf("restored while another may be at it: %v", err)
	}
	if _, err := c.Delete(t.Context(), "/pawl/leader/restore"); err != nil { // as its lease would, in a while
		t.Fatal(err)
	}
	restore(t, on(m), want...)
	keepsAll(t, subjectOn(t, on(m)), want)
}

// Whoever has a store open learns that another was restored in its place, or that what it was restored from was removed.
func TestAStoreThatIsReplacedByARestore(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	c := raw(t, m.URL)
	stops := func(s *subject) {
		t.Helper()
		var replaced *kvetcd.ReplacedError
		eventually(t, "the engine has stopped", func() bool { return errors.As(s.Err(), &replaced) })
		_, err := s.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(a, []byte("lost"))}})
		fails(t, err, kv.ErrClosed)
	}
	idle := subjectOn(t, on(m)) // it has written nothing
	restore(t, on(m), lived(t, 3)...)
	stops(idle)
	open := subjectOn(t, on(m))
	if _, err := c.Delete(t.Context(), "/pawl/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	stops(open)
}

// Two restores at once, or a restore and a server: one of them has the place.
func TestARestoreIsAlone(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	c := raw(t, m.URL)
	var second error
	want := lived(t, 500)
	versions := func(yield func(*kv.Version, error) bool) {
		for i, v := range want {
			if i == 300 {
				_, second = kvetcd.Restore(t.Context(), on(m), far, all(nil, nil), nil)
			}
			if !yield(v, nil) {
				return
			}
		}
	}
	if _, err := kvetcd.Restore(t.Context(), on(m), far, versions, nil); err != nil {
		t.Errorf("the first: %v", err)
	}
	var unfinished *kvetcd.UnfinishedError
	if !errors.As(second, &unfinished) {
		t.Errorf("the second: %v", second)
	}
	keepsAll(t, subjectOn(t, on(m)), want)

	opts := on(m)
	opts.Prefix = "/pawl2"
	intruder := func(yield func(*kv.Version, error) bool) {
		if _, err := c.Put(t.Context(), "/pawl2/once/identity", "of a server that was quicker"); err != nil {
			t.Error(err)
		}
		all(lived(t, 200), nil)(yield)
	}
	if _, err := kvetcd.Restore(t.Context(), opts, far, intruder, nil); err == nil {
		t.Error("it was restored beside what somebody else wrote")
	}
	taken := func(yield func(*kv.Version, error) bool) {
		for i, v := range lived(t, 500) {
			if i == 300 {
				if _, err := c.Put(t.Context(), "/pawl3/kv//origin", "of another"); err != nil {
					t.Error(err)
				}
			}
			if !yield(v, nil) {
				return
			}
		}
	}
	opts.Prefix = "/pawl3"
	if _, err := kvetcd.Restore(t.Context(), opts, far, taken, nil); err == nil {
		t.Error("it was restored though another took over")
	}
}

// A restored store keeps every promise, at revisions that are far ahead of etcd's.
func TestPromisesAfterARestore(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.Engine {
		opts := on(etcd.Start(t, etcd.Options{}))
		restore(t, opts)
		return kvtest.Rig{
			Engine: open(t, opts),
			Reopen: func() (kv.Engine, error) { return kvetcd.Open(context.Background(), opts) },
			Limits: kvtest.Limits{Ops: kvetcd.MaxOps, ValueBytes: kvetcd.MaxBytes - 16<<10, Bytes: kvetcd.MaxBytes - 16<<10},
		}
	})
}
