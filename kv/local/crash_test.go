package local_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/local"
)

// tiny makes a store write segments and snapshots all the time, and drop old ones.
func tiny(d *disk, clock *kvtest.Clock) local.Options {
	return local.Options{Dir: "store", FS: d, Clock: clock, SegmentSize: 600, SnapshotSize: 1500, HistorySize: 2000, HistoryDuration: time.Minute}
}

// A journal is what a client remembers of what it was told.
type journal struct {
	acknowledged map[string]string // key to value, "" if deleted
	unknown      map[string]string // the one write whose outcome nobody knows, if any
	newest       kv.Revision
}

// write commits to e what depends on nothing but i, until something fails.
func (j *journal) write(t *testing.T, e kv.Engine, clock *kvtest.Clock, from, to int) error {
	r := rand.New(rand.NewPCG(7, uint64(from)))
	for i := from; i < to; i++ {
		txn := kv.Txn{Author: kv.Author{User: fmt.Sprint("user", i%3)}}
		change := map[string]string{}
		for range 1 + r.IntN(3) {
			key := fmt.Sprintf("default/core/configmaps/ns/k%d", r.IntN(8))
			if _, twice := change[key]; twice {
				continue
			}
			if r.IntN(4) == 0 {
				change[key] = ""
				txn.Ops = append(txn.Ops, kv.Delete(key))
			} else {
				change[key] = fmt.Sprint(i)
				txn.Ops = append(txn.Ops, kv.Put(key, fmt.Append(nil, i)))
			}
		}
		done, err := e.Commit(t.Context(), txn)
		if err != nil {
			if errors.Is(err, kv.ErrUnknown) {
				j.unknown = change
			}
			return err
		}
		for k, v := range change {
			j.acknowledged[k] = v
		}
		j.newest = done.Revision
		clock.Advance(5 * time.Second)
	}
	return nil
}

// check fails the test unless e holds what was acknowledged, with or without what is unknown.
func (j *journal) check(t *testing.T, e kv.Engine) {
	t.Helper()
	snap, err := e.Read(t.Context(), kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	differs := func(also map[string]string) string {
		want := map[string]string{}
		for _, m := range []map[string]string{j.acknowledged, also} {
			for k, v := range m {
				want[k] = v
			}
		}
		for k, value := range want {
			got := ""
			if v := snap.Get(k); v != nil {
				got = string(v.Value)
			}
			if got != value {
				return fmt.Sprintf("%s holds %q, want %q", k, got, value)
			}
		}
		return ""
	}
	with, without := differs(j.unknown), differs(nil)
	if with != "" && without != "" {
		t.Fatalf("at revision %d, acknowledged %d: %s", snap.Revision(), j.newest, without)
	}
	if snap.Revision() < j.newest {
		t.Fatalf("the newest revision is %d, %d was acknowledged", snap.Revision(), j.newest)
	}
	if with == "" {
		for k, v := range j.unknown {
			j.acknowledged[k] = v
		}
	}
	j.unknown = nil
	j.newest = snap.Revision()
}

const (
	writesBefore = 60
	writesAfter  = 20
)

// The disk stops at its k-th change, for every k, and the power goes. What was
// acknowledged is there, what was not is there wholly or not at all, and the store goes on.
func TestPowerCutAtEveryChange(t *testing.T) {
	for k := 1; ; k++ {
		r := rand.New(rand.NewPCG(uint64(k), 0))
		d := newDisk()
		d.failAt, d.dies = k, true
		j := &journal{acknowledged: map[string]string{}}
		finished := runOnce(t, d, j, 0, writesBefore)
		d = d.powerCut(r)
		if !goOn(t, d, j) {
			t.Fatalf("k = %d", k)
		}
		if finished {
			t.Logf("%d changes", k)
			return
		}
	}
}

// One change fails, each in its turn, and the disk goes on. Nothing is lost, and nothing
// is acknowledged after a group failed.
func TestEveryChangeFailsOnce(t *testing.T) {
	for k := 1; ; k++ {
		d := newDisk()
		d.failAt = k
		j := &journal{acknowledged: map[string]string{}}
		runOnce(t, d, j, 0, writesBefore)
		finished := d.ops < k
		d.failAt = 0
		if !goOn(t, d, j) {
			t.Fatalf("k = %d", k)
		}
		if finished {
			t.Logf("%d changes", k)
			return
		}
	}
}

// runOnce opens the store, writes and closes it, and says whether nothing failed.
func runOnce(t *testing.T, d *disk, j *journal, from, to int) bool {
	clock := kvtest.NewClock()
	e, err := local.Open(t.Context(), tiny(d, clock))
	if err != nil {
		if !errors.Is(err, errDisk) {
			t.Fatalf("open: %v", err)
		}
		return false
	}
	err = j.write(t, e, clock, from, to)
	if err != nil {
		stopped(t, e, err)
	}
	return errors.Join(err, e.Close()) == nil
}

// stopped fails the test unless e takes no more writes because the disk failed, and reads go on.
func stopped(t *testing.T, e kv.Engine, err error) {
	t.Helper()
	if !errors.Is(err, kv.ErrUnknown) && !errors.Is(err, kv.ErrReadOnly) || !errors.Is(err, errDisk) {
		t.Fatalf("commit: %v", err)
	}
	if !errors.Is(e.Err(), errDisk) {
		t.Fatalf("it says of itself: %v", e.Err())
	}
	_, err = e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put("default/core/configmaps/ns/late", []byte{})}})
	if !errors.Is(err, kv.ErrReadOnly) || !errors.Is(err, errDisk) {
		t.Fatalf("a later commit: %v", err)
	}
	if _, err := e.Read(t.Context(), kv.Latest); err != nil {
		t.Fatalf("read: %v", err)
	}
}

// goOn opens the store after an accident, twice, writing in between.
func goOn(t *testing.T, d *disk, j *journal) bool {
	t.Helper()
	for round := range 2 {
		clock := kvtest.NewClock()
		clock.Advance(time.Duration(round+1) * time.Hour)
		e, err := local.Open(t.Context(), tiny(d, clock))
		if err != nil {
			t.Errorf("open again: %v", err)
			return false
		}
		j.check(t, e)
		if err := j.write(t, e, clock, 1000*(round+1), 1000*(round+1)+writesAfter); err != nil {
			t.Errorf("commit: %v", err)
		}
		j.check(t, e)
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	return !t.Failed()
}
