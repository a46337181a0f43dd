package local_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/local"
)

// Time passes, and nothing else happens.
func TestAnIdleStoreForgetsAndShrinks(t *testing.T) {
	for name, opts := range map[string]local.Options{
		"in memory": {Memory: true},
		"on a disk": {Dir: "store", SegmentSize: 600, SnapshotSize: 1500},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := kvtest.NewClock()
				d := newDisk()
				opts.Clock, opts.HistoryDuration = clock, 10*time.Minute
				if !opts.Memory {
					opts.FS = d
				}
				e := mustOpen(t, opts)
				for range 20 {
					tell(t, e, clock)
					synctest.Wait() // for snapshots
				}
				before := d.size()
				clock.Advance(8 * time.Minute)
				synctest.Wait()
				oldest, newest := e.Revisions()
				if oldest >= newest-6 {
					t.Errorf("revisions before %d are gone already", oldest)
				}
				for range 12 { // as time passes: whoever wakes has to set the clock for the next time
					clock.Advance(15 * time.Second)
					synctest.Wait()
				}
				if oldest, _ := e.Revisions(); oldest != newest {
					t.Errorf("the oldest revision is %d, want %d", oldest, newest)
				}
				if after := d.size(); !opts.Memory && after > before/2 {
					t.Errorf("of %d bytes %d are kept", before, after)
				}
			})
		})
	}
}

func TestKeysThatLapseAtOneMomentShareCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := kvtest.NewClock()
		e := mustOpen(t, local.Options{Memory: true, Clock: clock})
		const keys = 300
		for i := range keys {
			op := kv.Op{Key: fmt.Sprintf("default/core/events/ns/e%d", i), Value: []byte{}, Expiry: kv.Expiry{Kind: kv.After, For: time.Minute}}
			if _, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{op}}); err != nil {
				t.Fatal(err)
			}
		}
		_, before := e.Revisions()
		w, err := e.Watch("default/", before)
		if err != nil {
			t.Fatal(err)
		}
		clock.Advance(time.Minute)
		synctest.Wait()
		inCommit := map[kv.Revision]int{}
		gone := 0
		for _, e := range drain(t, w) {
			if !e.Version.Deleted || e.Version.By() != local.Expirer {
				t.Errorf("got %+v", e.Version)
			}
			inCommit[e.Version.Revision]++
			gone++
		}
		if gone != keys || len(inCommit) != 3 {
			t.Errorf("%d of %d keys are gone, in %d commits, want 3", gone, keys, len(inCommit))
		}
		for rev, n := range inCommit {
			if n > 128 {
				t.Errorf("revision %d has %d keys, at most 128 are meant to share one", rev, n)
			}
		}
	})
}

// The engine counts time in nanoseconds, of which there are 292 years.
func TestAKeyThatIsToLastForAgesDoesNotGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := kvtest.NewClock()
		opts := local.Options{Dir: "store", FS: newDisk(), Clock: clock}
		e := mustOpen(t, opts)
		clock.Advance(time.Hour)
		op := kv.Op{Key: "default/core/events/ns/e", Value: []byte{}, Expiry: kv.Expiry{Kind: kv.After, For: 1<<63 - 1}}
		done, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{op}})
		if err != nil {
			t.Fatal(err)
		}
		if v := done.Versions[0]; v.Expires.Sub(v.Time) < 200*365*24*time.Hour {
			t.Errorf("it is said to go %v", v.Expires)
		}
		for range 2 {
			clock.Advance(time.Hour)
			synctest.Wait()
			snap, err := e.Read(t.Context(), kv.Latest)
			if err != nil {
				t.Fatal(err)
			}
			if snap.Get(op.Key) == nil {
				t.Error("it is gone")
			}
			e.Close()
			e = mustOpen(t, opts)
		}
	})
}
