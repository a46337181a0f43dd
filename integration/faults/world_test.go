package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/integration/cutdisk"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/local"
)

var noContext = context.Background()

var heavy = os.Getenv("PAWL_FAULTS") == "all"

// tables are those that the workload writes to.
var tables = []string{"default/core/configmaps/", "default/core/events/"}

// A client uses a store and remembers what it was told.
type client struct {
	e *local.Engine
	w kv.Watch
	m *memory
}

// open opens the store, which must hold what the client knows. The error that is returned
// first is the store's, the other one is what is wrong with it.
func (c *client) open(opts local.Options, r *rand.Rand) (refused, wrong error) {
	e, err := local.Open(noContext, opts)
	if err != nil {
		return err, nil
	}
	c.e = e
	if err := c.m.audit(e, opts.Clock.Now(), r); err != nil {
		return nil, err
	}
	c.w, err = e.Watch("default/", c.m.shown)
	return nil, err
}

// try commits txn as the client of that number.
func (c *client) try(number int, txn kv.Txn) error {
	who := fmt.Sprintf("c%d", number)
	txn.Author = kv.Author{User: who}
	c.m.ask(who, txn)
	done, err := c.e.Commit(noContext, txn)
	c.m.answer(who, done, err)
	return err
}

// A world is a store on a disk, by a clock, with the clients that use it.
type world struct {
	*testing.T
	client
	seed  uint64
	about string // what is special about this one
	disk  *cutdisk.Disk
	clock *kvtest.Clock
	asked int

	refused, opened int // how often
	foreseen        int // that a disk was found full before anything was refused
	time            timeline
	timed           int                                    // how many commits it knows
	room            int64                                  // that the disk has, where that is limited
	now             atomic.Pointer[local.Engine]           // that is open, for whoever looks on
	fault           atomic.Pointer[func(cutdisk.Op) error] // asked before each operation, if there is one
	gate            atomic.Pointer[chan struct{}]          // that syncs wait at, if there is one
	broke           atomic.Bool                            // an operation was made to fail

	// trouble is told of what a client was answered that is no ordinary answer, and makes
	// the store take writes again.
	trouble func(error)
}

func newWorld(t *testing.T, seed uint64, d *cutdisk.Disk) *world {
	w := &world{T: t, seed: seed, disk: d, clock: kvtest.NewClock(), client: client{m: newMemory()}}
	w.trouble = func(err error) { w.fatal(err) }
	w.use(d)
	return w
}

// use makes d the disk.
func (w *world) use(d *cutdisk.Disk) {
	w.disk = d
	d.Before(func(op cutdisk.Op) error {
		if gate := w.gate.Load(); gate != nil && op.Kind == cutdisk.Sync {
			<-*gate
		}
		if fault := w.fault.Load(); fault != nil {
			err := (*fault)(op)
			if err != nil {
				w.broke.Store(true)
			}
			return err
		}
		return nil
	})
}

// breaks has f asked before each operation from now on; nil for nobody.
func (w *world) breaks(f func(cutdisk.Op) error) {
	if f == nil {
		w.fault.Store(nil)
		return
	}
	w.fault.Store(&f)
}

// fatal ends the test, and says what to type to see it again.
func (w *world) fatal(err error) {
	w.Helper()
	w.Fatalf("seed %d%s, after %d commits and %d operations: %v", w.seed, w.about, w.asked, w.disk.Ops(), err)
}

// tiny makes a store write segments and snapshots all the time, and drop old ones.
func tiny(d *cutdisk.Disk, clock *kvtest.Clock) local.Options {
	return local.Options{
		Dir: "store", FS: d, Clock: clock,
		SegmentSize: 1500, SnapshotSize: 3000, HistorySize: 6000, HistoryDuration: 2 * time.Minute,
	}
}

// open opens the store, which must hold what the clients know.
func (w *world) open() error {
	refused, wrong := w.client.open(tiny(w.disk, w.clock), rand.New(rand.NewPCG(w.seed, 0)))
	if refused == nil {
		e := w.e
		w.opened++
		w.Cleanup(func() { e.Close() })
		w.now.Store(e)
	}
	if wrong != nil {
		w.fatal(wrong)
	}
	w.keepTime()
	return refused
}

// published returns the newest revision that can be read.
func (w *world) published() kv.Revision {
	e := w.now.Load()
	if e == nil {
		return 0
	}
	_, newest := e.Revisions()
	return newest
}

// close closes the store, and looks at what was shown last.
func (w *world) close() error {
	w.see()
	w.now.Store(nil)
	w.time.restart()
	return w.e.Close()
}

// see takes in what has been shown.
func (w *world) see() {
	w.Helper()
	synctest.Wait()
	if err := w.m.see(w.w); err != nil {
		w.fatal(err)
	}
	w.keepTime()
}

// keepTime has the timeline learn of the commits that it has not been told.
func (w *world) keepTime() {
	w.Helper()
	for ; w.timed < len(w.m.commits); w.timed++ {
		t, now := w.m.commits[w.timed], w.clock.Now()
		if now.Before(t.at) || w.m.jumps {
			now = t.at // it was made just now
		}
		if err := w.time.told(t, now); err != nil {
			w.fatal(err)
		}
	}
}

// live1 lives through the i-th step of the workload. The same seed and step do the same.
func (w *world) live1(i int) {
	r := rand.New(rand.NewPCG(w.seed, uint64(i)))
	w.step(i, r)
	if w.now.Load() == nil {
		return // it could not be opened again
	}
	w.see()
	w.pass(time.Duration(r.IntN(8_000)) * time.Millisecond)
}

// pass lets time pass, and sees that what should have expired then has.
func (w *world) pass(d time.Duration) {
	w.Helper()
	halted := w.e.Err() != nil                           // so nothing can expire
	for left := d; left >= 0; left -= 10 * time.Second { // and see what happens before it is forgotten
		some := min(left, 10*time.Second)
		w.time.elapsed += some
		w.clock.Advance(some)
		w.see()
		var failed *local.FailedError
		if errors.As(w.e.Err(), &failed) {
			return // what it wrote last, if it did, is to be found in its history still
		}
	}
	if halted || w.e.Err() != nil {
		return
	}
	snap, err := w.e.Read(noContext, kv.Latest)
	if err != nil {
		w.fatal(err)
	}
	for v := range snap.Ascend("", "") {
		if err := w.time.mayStay(v); err != nil {
			w.fatal(err)
		}
	}
}

func (w *world) step(i int, r *rand.Rand) {
	switch {
	case i%37 == 36:
		w.reopen()
	case i%23 == 15:
		w.compact(r, w.e.Compact)
	case i%41 == 32:
		w.compact(r, w.e.Shrink)
	case i%29 == 8:
		w.pass(100 * time.Second)
	case i%11 == 5:
		w.commitAtOnce(r)
	case i%17 == 3:
		w.commit(kv.Txn{Ops: []kv.Op{kv.Delete(tables[0] + "ns/a"), kv.Delete(tables[0] + "ns/a")}}, kv.ErrInvalid)
	default:
		txn, holds := w.draw(r)
		if holds {
			w.commit(txn, nil)
		} else {
			w.commit(txn, kv.ErrConflict)
		}
	}
}

// draw returns a transaction, and whether its conditions hold.
func (w *world) draw(r *rand.Rand) (txn kv.Txn, holds bool) {
	snap, err := w.e.Read(noContext, kv.Latest)
	if err != nil {
		w.fatal(err)
	}
	holds = true
	w.asked++
	changed := map[string]bool{}
	for range 1 + r.IntN(3) {
		key := fmt.Sprintf("%sns/k%d", tables[r.IntN(2)], r.IntN(7))
		if changed[key] {
			continue
		}
		changed[key] = true
		at := kv.Absent
		if v := snap.Get(key); v != nil {
			at = v.Revision
		}
		switch r.IntN(12) {
		case 0:
			holds = false
			txn.Conditions = append(txn.Conditions, kv.Condition{Key: key, At: at + 1})
		case 1, 2, 3, 4:
			txn.Conditions = append(txn.Conditions, kv.Condition{Key: key, At: at})
		}
		txn.Ops = append(txn.Ops, w.op(r, key))
	}
	return txn, holds
}

// op returns a change of key.
func (w *world) op(r *rand.Rand, key string) kv.Op {
	size := 1 + r.IntN(60)
	if r.IntN(25) == 0 {
		size = 5000 // more than a block of the disk, and than a segment
	}
	op := kv.Put(key, []byte(fmt.Sprintf("%d ", w.asked)+strings.Repeat("x", size)))
	switch r.IntN(9) {
	case 0, 1:
		return kv.Delete(key)
	case 2, 3:
		op.Expiry = kv.Expiry{Kind: kv.After, For: time.Duration(5+r.IntN(60)) * time.Second}
	case 4:
		op.Expiry.Kind = kv.Forever
	}
	return op
}

// commit commits txn, whose answer should be of that kind.
func (w *world) commit(txn kv.Txn, want error) {
	err := w.try(w.asked, txn)
	if want != nil && errors.Is(err, want) {
		w.refused++
	}
	if err == nil {
		synctest.Wait()
		var full *local.FullError
		if errors.As(w.e.Err(), &full) {
			w.foreseen++
		}
	}
	if !errors.Is(err, want) {
		w.trouble(err)
	}
}

// commitAtOnce makes several commits while the disk is busy with the first, so that the others
// become one group. Some of them rest on others.
func (w *world) commitAtOnce(r *rand.Rand) {
	gate := make(chan struct{})
	w.gate.Store(&gate)
	const n = 4
	var errs [n]error
	var wg sync.WaitGroup
	for i := range n {
		txn, _ := w.draw(r)
		if i < 3 {
			txn.Conditions = nil
		}
		number := w.asked
		wg.Go(func() { errs[i] = w.try(number, txn) })
		synctest.Wait()
	}
	w.gate.Store(nil)
	close(gate)
	wg.Wait()
	var worst error
	for _, err := range errs {
		ordinary := err == nil || errors.Is(err, kv.ErrConflict)
		if !ordinary && (worst == nil || errors.Is(err, kv.ErrUnknown)) {
			worst = err
		}
	}
	if worst != nil {
		w.trouble(worst)
	}
}

// compact forgets the older half of history.
func (w *world) compact(r *rand.Rand, f func(context.Context, kv.Revision) error) {
	oldest, newest := w.e.Revisions()
	rev := oldest + kv.Revision(r.IntN(int(newest-oldest)/2+1))
	w.m.forget(rev, false)
	if err := f(noContext, rev); err != nil {
		w.trouble(err)
		return
	}
	w.m.forget(rev, true)
}

// reopen closes the store and opens it again.
func (w *world) reopen() {
	if err := w.close(); err != nil {
		w.trouble(err)
		return
	}
	if err := w.open(); err != nil {
		w.trouble(err)
	}
}
