// Package kvtest is what every engine of package kv must pass: one test for each
// promise made there. An engine runs all of it with one line:
//
//	kvtest.Run(t, func(t *testing.T) kv.Engine { return open(t) })
//
// If the opener returns the engine in a [Rig], what depends on time and on being opened
// again is tested as well.
package kvtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// A Rig is an engine and what a test can do to it from outside.
type Rig struct {
	kv.Engine

	// Clock is what the engine goes by; nil if it goes by another.
	Clock *Clock

	// Reopen opens the store once more, after its engine was closed; nil if the store is gone then.
	Reopen func() (kv.Engine, error)

	// Limits are those of the engine, where they are less than every engine's. Zero is package kv's limit.
	Limits Limits
}

// Limits are what one transaction may hold.
type Limits struct {
	Ops        int // conditions and changes, taken together
	ValueBytes int // of one value
	Bytes      int // of the keys and values that are written
}

// complete returns l with package kv's limits where it says nothing.
func (l Limits) complete() Limits {
	return Limits{cmp.Or(l.Ops, kv.MaxTxnOps), cmp.Or(l.ValueBytes, kv.MaxValueBytes), cmp.Or(l.Bytes, kv.MaxTxnBytes)}
}

// Run tests engines that open makes, a new and empty one for each promise, in parallel.
// They are closed at the end of each test.
func Run(t *testing.T, open func(t *testing.T) kv.Engine) {
	for _, p := range promises() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.keep(t, open(t), patience)
		})
	}
}

// A promise is a sentence and its test.
type promise struct {
	name string
	test func(s *store)
}

// promises returns everything that an engine promises.
func promises() []promise {
	return slices.Concat(commits, reads, watches, histories, expiries, restarts, ends)
}

// keep fails t unless e keeps the promise, within that time for whatever must come.
func (p promise) keep(t testing.TB, e kv.Engine, patience time.Duration) {
	s := &store{TB: t, Engine: e, patience: patience}
	if rig, ok := e.(Rig); ok {
		s.Engine, s.clock, s.again, s.limits = rig.Engine, rig.Clock, rig.Reopen, rig.Limits
	}
	t.Cleanup(func() { s.Engine.Close() })
	p.test(s)
}

// A store is an engine under test.
type store struct {
	testing.TB
	kv.Engine
	clock    *Clock                    // nil if the engine goes by another
	again    func() (kv.Engine, error) // nil if the store cannot be opened again
	limits   Limits
	patience time.Duration // how long a test waits for what must come
}

// patience is how long it waits usually.
const patience = 20 * time.Second

// reopen closes the store and opens it again, or skips the test.
func (s *store) reopen() {
	s.Helper()
	if s.again == nil {
		s.Skip("the store is gone when it is closed")
	}
	if err := s.Close(); err != nil {
		s.Fatalf("close: %v", err)
	}
	e, err := s.again()
	if err != nil {
		s.Fatalf("open again: %v", err)
	}
	s.Engine = e
}

const (
	table = "default/core/configmaps/"
	ns    = table + "ns/"
	a     = ns + "a"
	b     = ns + "b"
	c     = ns + "c"
)

// commit commits and expects success.
func (s *store) commit(txn kv.Txn) kv.Committed {
	s.Helper()
	done, err := s.Commit(s.Context(), txn)
	if err != nil {
		s.Fatalf("commit: %v", err)
	}
	return done
}

// put sets key and returns the revision.
func (s *store) put(key, value string) kv.Revision {
	s.Helper()
	return s.commit(kv.Txn{Ops: []kv.Op{kv.Put(key, []byte(value))}}).Revision
}

// del deletes key and returns the revision.
func (s *store) del(key string) kv.Revision {
	s.Helper()
	return s.commit(kv.Txn{Ops: []kv.Op{kv.Delete(key)}}).Revision
}

// read reads and expects success.
func (s *store) read(at kv.Freshness) kv.Snapshot {
	s.Helper()
	snap, err := s.Read(s.Context(), at)
	if err != nil {
		s.Fatalf("read: %v", err)
	}
	return snap
}

// newest returns the newest revision.
func (s *store) newest() kv.Revision {
	_, newest := s.Revisions()
	return newest
}

// soon returns the revision that the third commit from now will have. Revisions may have gaps; where nobody else
// writes these are all alike.
func (s *store) soon() kv.Revision {
	first := s.put(a, "1")
	second := s.put(a, "2")
	return second + 3*(second-first)
}

// holds fails the test unless key holds value in snap; "" means that it does not exist.
func (s *store) holds(snap kv.Snapshot, key, value string) {
	s.Helper()
	got := ""
	if v := snap.Get(key); v != nil {
		got = string(v.Value)
	}
	if got != value {
		s.Errorf("%s holds %q at revision %d, want %q", key, got, snap.Revision(), value)
	}
}

// keys fails the test unless these are the keys that snap yields.
func (s *store) keys(snap kv.Snapshot, prefix, from string, want ...string) {
	s.Helper()
	var got []string
	for v := range snap.Ascend(prefix, from) {
		got = append(got, v.Key)
	}
	if !slices.Equal(got, want) {
		s.Errorf("under %q from %q at revision %d there are\n%q, want\n%q", prefix, from, snap.Revision(), got, want)
	}
}

// fails fails the test unless err is an [kv.Error] of that kind, and returns it.
func (s *store) fails(err error, kind error) *kv.Error {
	s.Helper()
	var e *kv.Error
	if !errors.Is(err, kind) || !errors.As(err, &e) {
		s.Fatalf("got error %v, want a *kv.Error that is %q", err, kind)
	}
	return e
}

// watch opens a watch and expects success.
func (s *store) watch(prefix string, after kv.Revision) kv.Watch {
	s.Helper()
	w, err := s.Watch(prefix, after)
	if err != nil {
		s.Fatalf("watch: %v", err)
	}
	s.Cleanup(w.Stop)
	return w
}

// next waits for the next event of w.
func (s *store) next(w kv.Watch) kv.Event {
	s.Helper()
	for {
		e, ok, err := w.Next()
		if err != nil {
			s.Fatalf("watch ended: %v", err)
		}
		if ok {
			return e
		}
		s.wait(w)
	}
}

// wait waits until w has something to say.
func (s *store) wait(w kv.Watch) {
	s.Helper()
	select {
	case <-w.Wait():
	case <-time.After(s.patience):
		s.Fatal("nothing came")
	}
}

// quiet fails the test if w has something to say now.
func (s *store) quiet(w kv.Watch) {
	s.Helper()
	if e, ok, err := w.Next(); ok || err != nil {
		s.Fatalf("got %v, error %v, want nothing yet", e.Version, err)
	}
}

// drain returns the events that w has to tell now.
func (s *store) drain(w kv.Watch) []kv.Event {
	s.Helper()
	var all []kv.Event
	for {
		e, ok, err := w.Next()
		if err != nil {
			s.Fatalf("watch ended: %v", err)
		}
		if !ok {
			return all
		}
		all = append(all, e)
	}
}

// cancelled returns a context that has been cancelled.
func (s *store) cancelled() context.Context {
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	return ctx
}

// Same says whether two versions are alike in all that lasts.
func Same(a, b *kv.Version) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a == b || a.Key == b.Key && bytes.Equal(a.Value, b.Value) && (a.Value == nil) == (b.Value == nil) &&
		a.Revision == b.Revision && a.Created == b.Created && a.Time == b.Time && a.Author == b.Author &&
		a.Deleted == b.Deleted && a.Expires == b.Expires
}

func cond(key string, at kv.Revision) kv.Condition { return kv.Condition{Key: key, At: at} }

func one(op kv.Op, conditions ...kv.Condition) kv.Txn {
	return kv.Txn{Conditions: conditions, Ops: []kv.Op{op}}
}
