package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pawl-dev/pawl/integration/etcd"
	"github.com/pawl-dev/pawl/kv"
	kvetcd "github.com/pawl-dev/pawl/kv/etcd"
)

const (
	ns = "default/core/configmaps/ns/"
	a  = ns + "a"
	b  = ns + "b"
)

// A subject is an engine under test.
type subject struct {
	*kvetcd.Engine
	t testing.TB
}

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// brief is how long engines of these tests wait for an etcd that is away.
const brief = time.Second

func subjectOn(t testing.TB, opts kvetcd.Options) *subject {
	t.Helper()
	if testing.Verbose() && opts.Logger == nil {
		opts.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return &subject{open(t, opts), t}
}

// through names an etcd behind a proxy.
func through(p *etcd.Proxy) kvetcd.Options {
	return kvetcd.Options{Endpoints: []string{p.URL}, Patience: brief}
}

func (s *subject) put(key, value string) kv.Revision {
	s.t.Helper()
	return s.commit(kv.Txn{Ops: []kv.Op{kv.Put(key, []byte(value))}}).Revision
}

func (s *subject) commit(txn kv.Txn) kv.Committed {
	s.t.Helper()
	done, err := s.Commit(s.t.Context(), txn)
	if err != nil {
		s.t.Fatalf("commit: %v", err)
	}
	return done
}

func (s *subject) read(at kv.Freshness) kv.Snapshot {
	s.t.Helper()
	snap, err := s.Read(s.t.Context(), at)
	if err != nil {
		s.t.Fatalf("read: %v", err)
	}
	return snap
}

// holds fails the test unless key holds value in snap; "" means that it does not exist.
func (s *subject) holds(snap kv.Snapshot, key, value string) {
	s.t.Helper()
	got := ""
	if v := snap.Get(key); v != nil {
		got = string(v.Value)
	}
	if got != value {
		s.t.Errorf("%s holds %q at revision %d, want %q", key, got, snap.Revision(), value)
	}
}

func (s *subject) watch(prefix string, after kv.Revision) kv.Watch {
	s.t.Helper()
	w, err := s.Watch(prefix, after)
	if err != nil {
		s.t.Fatalf("watch: %v", err)
	}
	s.t.Cleanup(w.Stop)
	return w
}

// next waits for what w tells next.
func (s *subject) next(w kv.Watch) (kv.Event, error) {
	s.t.Helper()
	deadline := time.After(patience)
	for {
		if e, ok, err := w.Next(); ok || err != nil {
			return e, err
		}
		select {
		case <-w.Wait():
		case <-deadline:
			s.t.Fatal("the watch tells nothing")
		}
	}
}

// fails fails the test unless err is of that kind.
func fails(t testing.TB, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("got %v, want an error that is %q", err, kind)
	}
}

// eventually waits until something is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for began := time.Now(); !so(); <-time.After(10 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("after %v it is not so: %s", patience, what)
		}
	}
}

// raw returns a client of etcd itself.
func raw(t testing.TB, urls ...string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: urls, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A ledger holds what many writers were answered.
type ledger struct {
	mu        sync.Mutex
	done      map[string]kv.Revision // what was written, by its value
	refused   map[string]error
	unknown   map[string]error
	answered  kv.Revision // the newest
	conflicts int
}

func newLedger() *ledger {
	return &ledger{done: map[string]kv.Revision{}, refused: map[string]error{}, unknown: map[string]error{}}
}

func (l *ledger) note(value string, done kv.Committed, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.done[value] = done.Revision
		l.answered = max(l.answered, done.Revision)
	case errors.Is(err, kv.ErrUnknown):
		l.unknown[value] = err
	case errors.Is(err, kv.ErrConflict):
		l.conflicts++
		l.refused[value] = err
	default:
		l.refused[value] = err
	}
}

// count is how many writes were done.
func (l *ledger) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.done)
}

// write commits values that nobody else writes, under keys that others write too, each on what was read just before,
// until ctx ends.
func (l *ledger) write(ctx context.Context, e kv.Engine, writer, keys int) {
	for i := 0; ctx.Err() == nil; i++ {
		value := fmt.Sprintf("%d-%d", writer, i)
		key := fmt.Sprintf("%sk%d", ns, i%keys)
		snap, err := e.Read(context.Background(), kv.Any)
		if err != nil {
			return
		}
		at := kv.Absent
		if v := snap.Get(key); v != nil {
			at = v.Revision
		}
		done, err := e.Commit(context.Background(), kv.Txn{Conditions: []kv.Condition{{Key: key, At: at}}, Ops: []kv.Op{kv.Put(key, []byte(value))}})
		l.note(value, done, err)
		if err != nil && !errors.Is(err, kv.ErrConflict) {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

// judge compares what writers were answered with everything that a watch from the beginning tells.
func (l *ledger) judge(t testing.TB, s *subject) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	w := s.watch(ns, 1)
	told := map[string]kv.Revision{}
	last := kv.Revision(0)
	prev := map[string]*kv.Version{}
	for {
		e, ok, err := w.Next()
		if err != nil {
			t.Fatalf("the watch ended: %v", err)
		}
		if !ok {
			break
		}
		v := e.Version
		if v.Revision <= last {
			t.Errorf("revision %d was told after %d", v.Revision, last)
		}
		if e.Prev != prev[v.Key] {
			t.Errorf("%s at %d replaces %v, and %v was told before", v.Key, v.Revision, e.Prev, prev[v.Key])
		}
		last, prev[v.Key] = v.Revision, v
		if was, twice := told[string(v.Value)]; twice {
			t.Errorf("%s was written at %d and at %d", v.Value, was, v.Revision)
		}
		told[string(v.Value)] = v.Revision
	}
	for value, rev := range l.done {
		if told[value] != rev {
			t.Errorf("%s was answered as revision %d, and is there at %d", value, rev, told[value])
		}
	}
	for value, err := range l.refused {
		if rev := told[value]; rev != 0 {
			t.Errorf("%s was refused, and is there at %d: %v", value, rev, err)
		}
	}
	t.Logf("%d done, %d conflicts, %d refused, %d unknown", len(l.done), l.conflicts, len(l.refused)-l.conflicts, len(l.unknown))
	if len(l.done) == 0 {
		t.Error("nothing was written")
	}
}

// revisionIn is the revision of etcd's that a revision is part of, in a store that was not restored.
func revisionIn(rev kv.Revision) int64 { return int64(rev >> 7) }

// revisionOf is the last revision that is part of one of etcd's.
func revisionOf(theirs int64) kv.Revision { return kv.Revision(theirs+1)<<7 - 1 }
