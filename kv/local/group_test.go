package local_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
)

func TestManyWritersShareAnFsync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const writers, each = 64, 50
		d := newDisk()
		d.onSync = func() { time.Sleep(100 * time.Microsecond) } // a quick disk, as disks go
		e := mustOpen(t, local.Options{Dir: "store", FS: d})
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for range each {
					txn := kv.Txn{Ops: []kv.Op{kv.Put(fmt.Sprintf("default/core/configmaps/ns/k%d", w), []byte("x"))}}
					if _, err := e.Commit(t.Context(), txn); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		s := e.Stats()
		t.Logf("%d commits, %d fsyncs", s.Commits, s.Syncs)
		// On a machine that does nothing else it is nearly all of the writers: BenchmarkDurable tells how many.
		if s.Commits != writers*each || s.Commits < 10*s.Syncs {
			t.Errorf("%d commits took %d fsyncs, want at least 10 commits for each", s.Commits, s.Syncs)
		}
	})
}

// A heldGroup is an engine that waits for the disk with one commit, and three that came
// after: one that rests on it, one that is refused because of it, and one that only asks.
type heldGroup struct {
	*local.Engine
	d       *disk
	release chan struct{}
	errs    [4]chan error
}

const heldKey = "default/core/configmaps/ns/held"

func hold(t *testing.T) *heldGroup {
	h := &heldGroup{d: newDisk(), release: make(chan struct{})}
	h.Engine = mustOpen(t, local.Options{Dir: "store", FS: h.d})
	if _, err := h.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(heldKey+"0", []byte("before"))}}); err != nil {
		t.Fatal(err)
	}
	h.d.onSync = func() { <-h.release }
	put := []kv.Op{kv.Put(heldKey, []byte("x"))}
	for i, txn := range []kv.Txn{
		{Ops: put},
		{Ops: put, Conditions: []kv.Condition{{Key: heldKey, At: 3}}},
		{Ops: put, Conditions: []kv.Condition{{Key: heldKey, At: kv.Absent}}},
		{Conditions: []kv.Condition{{Key: heldKey, At: 4}}},
	} {
		h.errs[i] = make(chan error, 1)
		go func() {
			_, err := h.Commit(t.Context(), txn)
			h.errs[i] <- err
		}()
		synctest.Wait()
	}
	for i, err := range h.errs {
		if len(err) > 0 {
			t.Fatalf("commit %d was answered before anything was durable: %v", i, <-err)
		}
	}
	if _, newest := h.Revisions(); newest != 2 {
		t.Fatalf("revision %d can be read before it is durable", newest)
	}
	return h
}

func TestAnAnswerComesWhenWhatItRestsOnIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(t)
		h.release <- struct{}{} // the first group
		synctest.Wait()
		if _, newest := h.Revisions(); newest != 3 {
			t.Errorf("newest is %d, want 3", newest)
		}
		if err := <-h.errs[0]; err != nil {
			t.Error(err)
		}
		for i := 1; i < 4; i++ {
			if len(h.errs[i]) > 0 {
				t.Errorf("commit %d was answered before what it rests on was durable: %v", i, <-h.errs[i])
			}
		}
		close(h.release)
		synctest.Wait()
		if err := <-h.errs[1]; err != nil {
			t.Error(err)
		}
		if err := <-h.errs[2]; !errors.Is(err, kv.ErrConflict) {
			t.Error(err)
		}
		if err := <-h.errs[3]; err != nil {
			t.Error(err)
		}
	})
}

func TestAGroupThatFailsTakesWithItWhatRestsOnIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(t)
		h.d.mu.Lock()
		h.d.failAt = h.d.ops + 1
		h.d.mu.Unlock()
		close(h.release)
		if err := <-h.errs[0]; !errors.Is(err, kv.ErrUnknown) || !errors.Is(err, errDisk) {
			t.Error(err)
		}
		for i := 1; i < 4; i++ {
			if err := <-h.errs[i]; !errors.Is(err, kv.ErrReadOnly) || !errors.Is(err, errDisk) {
				t.Errorf("commit %d: %v", i, err)
			}
		}
		if _, newest := h.Revisions(); newest != 2 {
			t.Errorf("newest is %d, want 2", newest)
		}
		snap, err := h.Read(t.Context(), kv.Latest)
		if err != nil || snap.Get(heldKey) != nil || snap.Get(heldKey+"0") == nil {
			t.Errorf("read: %v", err)
		}
	})
}

func TestAGroupThatDoesNotFitTakesWithItWhatRestsOnItAndWritingGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(t)
		h.d.mu.Lock()
		h.d.failAt = h.d.ops + 2 // the write of the second group
		h.d.failure = local.ErrFull
		h.d.mu.Unlock()
		close(h.release)
		if err := <-h.errs[0]; err != nil {
			t.Error(err)
		}
		var full *local.FullError
		for i := 1; i < 4; i++ {
			if err := <-h.errs[i]; !errors.Is(err, kv.ErrReadOnly) || errors.Is(err, kv.ErrUnknown) || !errors.As(err, &full) {
				t.Errorf("commit %d: %v", i, err)
			}
		}
		if err := h.Err(); !errors.As(err, &full) {
			t.Errorf("it says of itself: %v", err)
		}
		time.Sleep(2 * time.Second) // until it has looked for room
		if err := h.Err(); err != nil {
			t.Errorf("when there is room it says of itself: %v", err)
		}
		done, err := h.Commit(t.Context(), kv.Txn{
			Ops:        []kv.Op{kv.Put(heldKey, []byte("y"))},
			Conditions: []kv.Condition{{Key: heldKey, At: 3}},
		})
		if err != nil || done.Revision != 4 {
			t.Errorf("the next commit is revision %d, %v, want 4", done.Revision, err)
		}
	})
}

func TestACancelledWaitDoesNotEndTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hold(t)
		ctx, cancel := context.WithCancel(t.Context())
		const key = heldKey + "2"
		answer := make(chan error, 1)
		go func() {
			_, err := h.Commit(ctx, kv.Txn{Ops: []kv.Op{kv.Put(key, []byte("x"))}})
			answer <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-answer; !errors.Is(err, kv.ErrUnknown) || !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(h.release)
		synctest.Wait()
		if snap, err := h.Read(t.Context(), kv.Latest); err != nil || snap.Get(key) == nil {
			t.Errorf("it was not written: %v", err)
		}
	})
}
