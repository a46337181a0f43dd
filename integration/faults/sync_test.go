package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/integration/cutdisk"
	"github.com/pawl-dev/pawl/kv/local"
)

// Every fsync fails, each in its turn, and those after it say that all is well. What it should
// have made durable is not, and never will be. A store that depends on it takes no more
// writes, however long it is asked; what it then reads when it is opened again it makes durable first.
func TestAnFsyncThatFailsIsForGood(t *testing.T) {
	inTurn(t, func(t *testing.T, seed uint64, n int) (happened bool, operations int) {
		w := newWorld(t, seed, cutdisk.New())
		w.about = fmt.Sprintf(", n = %d", n)
		w.breaks(cutdisk.Nth(n, cutdisk.Sync, cutdisk.SyncDir))
		w.trouble = func(err error) {
			if !errors.Is(err, cutdisk.ErrInjected) {
				w.fatal(err)
			}
			if w.now.Load() != nil && w.e.Err() != nil {
				w.refuses(err)
				w.pass(3 * time.Second)
				w.refuses(err)
			}
			w.afterFailure(err, 1+n%2)
			w.crash(cutdisk.Survival{Percent: 50, Rand: rand.New(rand.NewPCG(seed, uint64(n)))})
			w.mustOpen()
		}
		w.live(steps() / 2)
		return w.broke.Load(), w.disk.Ops(cutdisk.Sync, cutdisk.SyncDir)
	})
}

// A disk that is full and a disk that failed are told apart.
func TestAFullDiskThatFailsIsAFailedDisk(t *testing.T) {
	inTurn(t, func(t *testing.T, seed uint64, n int) (happened bool, operations int) {
		w := newWorld(t, seed, cutdisk.New())
		w.about = fmt.Sprintf(", n = %d", n)
		nth := cutdisk.Nth(n)
		w.room = 4000
		w.disk.Limit(w.room)
		var wasFull atomic.Bool
		var since atomic.Int64 // operations since it was full
		w.breaks(func(op cutdisk.Op) error {
			if !wasFull.Load() {
				return nil
			}
			since.Add(1)
			return nth(op)
		})
		w.trouble = func(err error) {
			var failed *local.FailedError
			switch {
			case errors.As(err, &failed) || errors.Is(err, cutdisk.ErrInjected):
				w.afterFailure(err, 2)
			default:
				wasFull.Store(true)
				w.afterFull(err, false)
			}
			w.moreRoom()
		}
		w.live(steps() / 2)
		return w.broke.Load(), int(since.Load())
	})
}
