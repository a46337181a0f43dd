package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/integration/cutdisk"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
)

// The disk has room for so much, a little more in each run, and is full again and again; there
// is a little more room each time. No commit is unknown because of it, and the store goes on by
// itself. In some runs room cannot be reserved; in some the power goes while the disk is full.
func TestADiskThatFillsUp(t *testing.T) {
	for _, seed := range seeds() {
		fulls, runs, foreseen := 0, 0, 0
		most, operations := used(t, seed)
		for limit := int64(1); limit <= most; limit += most/50 + 1 {
			for way := range 4 {
				runs++
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, seed, cutdisk.New())
					w.room = limit
					w.disk.Limit(limit)
					if way&1 != 0 {
						w.disk.Unreserving()
					}
					w.trouble = func(err error) { fulls++; w.afterFull(err, way&2 != 0) }
					w.live(steps() / 2)
					w.mustOpen()
					if way&1 == 0 {
						w.fitted()
						foreseen += w.foreseen
					}
				})
			}
		}
		t.Logf("seed %d: the disk was full %d times in %d runs, with up to %d bytes, and %d times this was found before anything was refused; a clean run has %d operations that change the disk",
			seed, fulls, runs, most, foreseen, operations)
		if fulls < operations || operations == 0 || foreseen == 0 {
			t.Error("that is fewer times than operations, or it was never foreseen")
		}
	}
}

// used returns how much a run in which nothing happens takes of the disk, and how many of its
// operations change it.
func used(t *testing.T, seed uint64) (most int64, operations int) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed, cutdisk.New())
		w.breaks(func(cutdisk.Op) error {
			most = max(most, w.disk.Used())
			return nil
		})
		w.live(steps() / 2)
		operations = w.disk.Ops(cutdisk.Changes...)
	})
	return most, operations
}

// afterFull goes on after something did not fit.
func (w *world) afterFull(err error, crash bool) {
	w.Helper()
	if !errors.Is(err, local.ErrFull) || errors.Is(err, kv.ErrUnknown) {
		w.fatal(err)
	}
	switch {
	case w.now.Load() == nil: // the folder could not be made
		for err != nil {
			if !errors.Is(err, local.ErrFull) {
				w.fatal(err)
			}
			w.moreRoom()
			err = w.open()
		}
	case w.e.Err() == nil: // it was a snapshot that did not fit
	case crash:
		w.isFull(err)
		s := cutdisk.Survival{Percent: 50, Rand: rand.New(rand.NewPCG(w.seed, uint64(w.asked)))}
		if w.asked%2 == 0 { // and the store is closed before
			if err := w.close(); err != nil {
				w.fatal(err)
			}
		}
		w.crash(s)
		w.mustOpen()
		w.moreRoom()
	default:
		w.isFull(err)
		w.pass(3 * time.Second)
		if w.brokeMeanwhile() {
			return
		}
		if w.e.Err() != nil { // it may have made room itself, by pruning
			w.isFull(err)
		}
		for more := 0; w.e.Err() != nil; more++ {
			if more > 20 {
				w.fatal(errors.New("there is room, and it takes no writes"))
			}
			w.moreRoom()
			w.pass(time.Second)
			if w.brokeMeanwhile() {
				return
			}
		}
		w.pass(local.ExpirySlack)
	}
}

// brokeMeanwhile reports whether the disk failed after it was full; then the store has been
// opened again.
func (w *world) brokeMeanwhile() bool {
	w.Helper()
	var failed *local.FailedError
	err := w.e.Err()
	if !errors.As(err, &failed) || !errors.Is(err, cutdisk.ErrInjected) {
		return false
	}
	w.afterFailure(&kv.Error{Op: "commit", Kind: kv.ErrReadOnly, Err: err}, 2)
	return true
}

// fitted ends the test if a group of commits was begun that did not fit, though room can be
// reserved. The head of a segment is no group.
func (w *world) fitted() {
	w.Helper()
	for _, o := range w.disk.Overruns() {
		if path.Ext(o.Name) == ".seg" && o.At > 0 {
			w.fatal(fmt.Errorf("a write to %s at %d did not fit", o.Name, o.At))
		}
	}
}

// moreRoom makes the disk a little larger.
func (w *world) moreRoom() {
	w.room += 700
	w.disk.Limit(w.room)
}

// isFull ends the test unless the store takes no writes because the disk is full, says so, and
// goes on being read.
func (w *world) isFull(err error) {
	w.Helper()
	var full *local.FullError
	says := map[string]error{
		"it of itself":    w.e.Err(),
		"another write":   w.try(-1, kv.Txn{Ops: []kv.Op{kv.Put(tables[0]+"ns/late", []byte("late"))}}),
		"a compaction":    w.e.Compact(noContext, 1),
		"a mere question": w.try(-1, kv.Txn{Conditions: []kv.Condition{{Key: tables[0] + "ns/late"}}}),
	}
	if errors.Is(err, kv.ErrReadOnly) { // and not of a snapshot that Shrink could not write
		says["a write"] = err
	}
	for what, err := range says {
		if !errors.As(err, &full) || !errors.Is(err, local.ErrFull) || what != "it of itself" && !errors.Is(err, kv.ErrReadOnly) {
			w.fatal(fmt.Errorf("%s says: %w", what, err))
		}
	}
	w.reads()
}
