package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/pawl-dev/pawl/integration/cutdisk"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
)

// Every operation fails, reads included, each in its turn, and the disk goes on. What the
// store cannot do without makes it take no more writes; it is opened again, or the
// power goes first, or right after it was opened.
func TestEveryOperationFailsOnce(t *testing.T) {
	inTurn(t, func(t *testing.T, seed uint64, n int) (happened bool, operations int) {
		w := newWorld(t, seed, cutdisk.New())
		w.about = fmt.Sprintf(", n = %d", n)
		w.breaks(cutdisk.Nth(n))
		w.trouble = func(err error) {
			if !errors.Is(err, cutdisk.ErrInjected) {
				w.fatal(err)
			}
			w.afterFailure(err, n%3)
		}
		w.live(steps() / 2)
		return w.broke.Load(), w.disk.Ops()
	})
}

// Every operation fails from one on, as it does for a process that is killed. The store is opened
// again, with what the system had in memory, writes a little or nothing, and then the power goes.
func TestKilledAtEveryOperation(t *testing.T) {
	inTurn(t, func(t *testing.T, seed uint64, n int) (happened bool, operations int) {
		w := newWorld(t, seed, cutdisk.New())
		w.about = fmt.Sprintf(", n = %d", n)
		w.breaks(cutdisk.From(n))
		dead := false
		w.trouble = func(err error) {
			if !errors.Is(err, cutdisk.ErrInjected) {
				w.fatal(err)
			}
			dead = true
		}
		w.liveUntil(steps()/2, &dead)
		operations = w.disk.Ops()
		if w.broke.Load() {
			w.afterKill(n)
		}
		return w.broke.Load(), operations
	})
}

// afterKill goes on after the process was killed.
func (w *world) afterKill(n int) {
	w.Helper()
	if w.e != nil {
		w.e.Close()
	}
	w.breaks(nil)
	w.trouble = w.fatal
	w.mustOpen()
	for range n % 3 {
		w.asked++
		w.commit(kv.Txn{Ops: []kv.Op{kv.Put(tables[0]+"ns/more", fmt.Append(nil, w.asked))}}, nil)
	}
	w.see()
	w.crash(cutdisk.Nothing)
	w.mustOpen()
	w.crash(cutdisk.Survival{Percent: 50, Rand: rand.New(rand.NewPCG(w.seed, uint64(n)))})
	w.mustOpen()
}

// inTurn calls run for n = 1, 2, 3, … until nothing happens in it any more. It says what happened
// and how many operations there were.
func inTurn(t *testing.T, run func(t *testing.T, seed uint64, n int) (happened bool, operations int)) {
	for _, seed := range seeds() {
		points := 0
		for n := 1; ; n++ {
			var happened bool
			var operations int
			synctest.Test(t, func(t *testing.T) { happened, operations = run(t, seed, n) })
			if happened {
				points++
				continue
			}
			t.Logf("seed %d: %d crash points; a clean run has %d operations", seed, points, operations)
			if points < operations || operations == 0 {
				t.Error("there are fewer crash points than operations")
			}
			break
		}
	}
}

// mustOpen opens the store, where nothing is in the way.
func (w *world) mustOpen() {
	w.Helper()
	if err := w.open(); err != nil {
		w.fatal(err)
	}
}

// crash takes the power, and what was not synced as far as s says.
func (w *world) crash(s cutdisk.Survival) {
	after := w.disk.Cut(s)
	w.e.Close()
	w.use(after)
}

// afterFailure goes on after something failed: the store if it can, or another that is opened in
// one of three ways.
func (w *world) afterFailure(err error, way int) {
	w.Helper()
	if w.now.Load() != nil {
		if w.e.Err() == nil {
			return // it was nothing that writing depends on
		}
		w.refuses(err)
		w.e.Close()
	}
	if way == 0 {
		w.use(w.disk.Cut(cutdisk.Survival{Percent: 50, Rand: rand.New(rand.NewPCG(w.seed, uint64(w.asked)))}))
	}
	w.mustOpen()
	if way == 1 {
		w.crash(cutdisk.Nothing)
		w.mustOpen()
	}
}

// refuses ends the test unless the store takes no writes because its disk failed, says so,
// and goes on being read.
func (w *world) refuses(err error) {
	w.Helper()
	var failed *local.FailedError
	if !errors.Is(err, kv.ErrUnknown) && !errors.Is(err, kv.ErrReadOnly) || !errors.As(err, &failed) {
		w.fatal(errors.Join(errors.New("a write says"), err))
	}
	if says := w.e.Err(); !errors.As(says, &failed) || !errors.Is(says, cutdisk.ErrInjected) {
		w.fatal(errors.Join(errors.New("it says of itself"), says))
	}
	err = w.try(-1, kv.Txn{Ops: []kv.Op{kv.Put(tables[0]+"ns/late", []byte("late"))}})
	if !errors.Is(err, kv.ErrReadOnly) || !errors.As(err, &failed) {
		w.fatal(errors.Join(errors.New("a later write says"), err))
	}
	if err := w.e.Compact(noContext, 1); !errors.Is(err, kv.ErrReadOnly) {
		w.fatal(errors.Join(errors.New("a compaction says"), err))
	}
	w.reads()
}

// reads ends the test unless what was shown can still be read.
func (w *world) reads() {
	w.Helper()
	w.see()
	if err := w.m.shows(w.e, w.m.shown); err != nil {
		w.fatal(err)
	}
}
