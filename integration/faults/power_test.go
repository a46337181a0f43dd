package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/integration/cutdisk"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
)

// steps is how long the workload is.
func steps() int {
	if heavy {
		return 400
	}
	return 120
}

// seeds are those that a test runs with.
func seeds() []uint64 {
	if heavy {
		return []uint64{30, 1, 2, 3, 4, 5, 6, 7, 8}
	}
	return []uint64{30} // whose first pruning drops several segments, among them the store's first: see TestTheWorkloadHasEverything
}

// live runs the workload from opening to closing.
func (w *world) live(steps int) {
	never := false
	w.liveUntil(steps, &never)
}

// liveUntil runs the workload, until something has happened if it does.
func (w *world) liveUntil(steps int, happened *bool) {
	if err := w.open(); err != nil {
		w.trouble(err)
	}
	for i := 0; i < steps && !*happened; i++ {
		w.live1(i)
	}
	if *happened {
		return
	}
	if err := w.close(); err != nil {
		w.trouble(err)
	}
}

// A crash is a disk as it was found after one, and what clients knew when it happened.
type crash struct {
	op   cutdisk.Op
	disk *cutdisk.Disk
	m    *memory
	now  time.Duration // since the clock began
	kept string
}

// The power goes before every operation that changes the disk, and none, half or all of what
// was not synced survives.
func TestPowerCutAtEveryWriteAndSync(t *testing.T) {
	for _, seed := range seeds() {
		crashes, operations := cuts(t, seed)
		points, syncs := map[int]bool{}, map[int]bool{}
		var failures atomic.Int64
		for _, c := range crashes {
			points[c.op.Number] = true
			if c.op.Kind == cutdisk.Sync || c.op.Kind == cutdisk.SyncDir {
				syncs[c.op.Number] = true
			}
		}
		each(crashes, func(c crash) {
			if err := c.goOn(seed); err != nil && failures.Add(1) <= 5 {
				t.Errorf("seed %d, power cut before %v, keeping %s of what was not synced: %v", seed, c.op, c.kept, err)
			}
		})
		t.Logf("seed %d: %d crash points, %d of them syncs, keeping none, some and all of what was not synced: %d crashes, and in each a second one while opening",
			seed, len(points), len(syncs), len(crashes))
		if len(points) < operations || operations == 0 {
			t.Errorf("the run has %d operations that change the disk", operations)
		}
	}
}

// cuts runs the workload, and returns the crashes that happened and how many operations
// changed the disk.
func cuts(t *testing.T, seed uint64) (crashes []crash, operations int) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		w := newWorld(t, seed, cutdisk.New())
		began := w.clock.Now()
		w.breaks(func(op cutdisk.Op) error {
			if !op.Kind.Changes() {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			some := rand.New(rand.NewPCG(seed, uint64(op.Number)))
			// Others go on meanwhile, as far as their next operation. What was shown was on the disk that is cut
			// afterwards; what is on it was asked for before.
			known := w.m.frozen(w.published())
			var disks []*cutdisk.Disk
			for _, percent := range survivals(op) {
				disks = append(disks, w.disk.Cut(cutdisk.Survival{Percent: percent, Rand: some}))
			}
			known.asked(w.m)
			for i, percent := range survivals(op) {
				crashes = append(crashes, crash{op, disks[i], known.frozen(0), w.clock.Now().Sub(began), fmt.Sprint(percent, "%")})
			}
			return nil
		})
		w.live(steps() * 3 / 4)
		operations = w.disk.Ops(cutdisk.Changes...)
	})
	return crashes, operations
}

// survivals returns in how many ways the power goes before op, and the chances in each. Which names
// survive matters more than which bytes, so more is tried where there are some.
func survivals(op cutdisk.Op) []int {
	switch op.Kind {
	case cutdisk.Remove, cutdisk.Rename, cutdisk.SyncDir:
		return []int{0, 50, 100, 20, 35, 50, 50, 65, 80}
	}
	return []int{0, 50, 100}
}

// each calls f with all of items, on both processors.
func each[T any](items []T, f func(T)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(items) {
					return
				}
				f(items[i])
			}
		})
	}
	wg.Wait()
}

// goOn opens the store after the crash, writes, and opens it again. While it is opened first
// the power goes once more.
func (c crash) goOn(seed uint64) error {
	clock := kvtest.NewClock()
	clock.Advance(c.now)
	r := rand.New(rand.NewPCG(seed, uint64(c.op.Number)))
	var again []crash
	c.disk.Before(func(op cutdisk.Op) error {
		if op.Kind.Changes() && (heavy || r.IntN(8) == 0) {
			s := cutdisk.Survival{Percent: 50, Rand: r}
			again = append(again, crash{op: op, disk: c.disk.Cut(s), m: c.m.frozen(0)})
		}
		return nil
	})
	first := client{m: c.m.frozen(0)}
	refused, wrong := first.open(tiny(c.disk, clock), r)
	if refused != nil {
		return refused
	}
	c.disk.Before(nil)
	err := errors.Join(wrong, first.e.Close())
	for _, a := range again {
		if err == nil {
			err = a.once(clock, r)
		}
		if err != nil {
			return fmt.Errorf("opening, and the power was cut again before %v: %w", a.op, err)
		}
	}
	for range 2 {
		if err == nil {
			err = c.once(clock, r)
		}
	}
	return err
}

// once opens the store for a while.
func (c crash) once(clock *kvtest.Clock, r *rand.Rand) error {
	cl := client{m: c.m}
	refused, wrong := cl.open(tiny(c.disk, clock), r)
	if refused != nil {
		return refused
	}
	defer cl.e.Close()
	if wrong != nil {
		return wrong
	}
	for range 3 {
		txn := kv.Txn{Ops: []kv.Op{kv.Put(tables[0]+"ns/k1", fmt.Append(nil, "later ", r.Int())), kv.Delete(tables[1] + "ns/k1")}}
		if err := cl.try(-r.Int(), txn); err != nil {
			return err
		}
	}
	if err := c.m.see(cl.w); err != nil {
		return err
	}
	return cl.e.Close()
}
