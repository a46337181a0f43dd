package histories

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/integration/cutdisk"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/kvtest/broken"
	"github.com/pawl-dev/pawl/kv/local"
)

// A Subject is a store under test.
type Subject struct {
	// Open opens the store for one of its replicas: empty the first time, later with what it
	// holds then. That replica does not have it open when this is called.
	Open func(replica int) (kv.Engine, error)

	// Replicas is how many engines have the store open at once; 0 means one.
	Replicas int

	// Lasts says that the store outlives its engine, and so can be opened again.
	Lasts bool

	// Cut has the power fail at the change of the disk that comes after that many others,
	// at once if none are left to come: whoever has the store open gets errors from its disk
	// from then on, and the next Open finds what survived. Nil if the power never fails.
	Cut func(after int)

	// Disturb makes trouble between a replica and the store, of a kind that a number stands for,
	// and ends it. Nil if there is nothing between them.
	Disturb func(replica, kind int)

	// Clock is what the store goes by; nil if that is not given to it.
	Clock *kvtest.Clock

	// Haste is what the time is divided by after which keys expire, where no clock can be
	// advanced; 0 means nothing.
	Haste time.Duration
}

// An Opener makes a new and empty store. What it does by chance follows from the seed.
type Opener func(t testing.TB, seed uint64) Subject

// tiny makes an engine do all the time what it otherwise does rarely: begin segments, write
// snapshots, drop what is old. How often it does each follows from the seed.
func tiny(clock *kvtest.Clock, seed uint64) local.Options {
	r := rand.New(rand.NewPCG(seed, 2<<32))
	return local.Options{
		Clock:           clock,
		SegmentSize:     1 << (10 + r.IntN(6)),
		SnapshotSize:    1 << (11 + r.IntN(6)),
		HistoryDuration: 90 * time.Second,
		HistorySize:     1 << (13 + r.IntN(6)),
	}
}

// Memory is a local store that keeps nothing.
func Memory(_ testing.TB, seed uint64) Subject {
	clock := kvtest.NewClock()
	opts := tiny(clock, seed)
	opts.Memory = true
	return Subject{Clock: clock, Open: func(int) (kv.Engine, error) { return local.Open(context.Background(), opts) }}
}

// Disk is a local store on the machine's disk. When its power is cut it is killed: what it
// had handed to the operating system is still there.
func Disk(t testing.TB, seed uint64) Subject {
	clock := kvtest.NewClock()
	opts := tiny(clock, seed)
	opts.Dir = t.TempDir()
	return powered(opts, clock, func() *supply { return newSupply(local.OS, func() {}) })
}

// CutDisk is a local store on a disk that is simulated. When its power is cut, some of what was not
// synced is there afterwards, and some is not.
func CutDisk(_ testing.TB, seed uint64) Subject {
	clock := kvtest.NewClock()
	opts := tiny(clock, seed)
	opts.Dir = "store"
	disk := cutdisk.New()
	chance := rand.New(rand.NewPCG(seed, 1<<32))
	return powered(opts, clock, func() *supply {
		before := disk
		return newSupply(before, func() {
			share := []int{0, 100, chance.IntN(101)}[chance.IntN(3)]
			disk = before.Cut(cutdisk.Survival{Percent: share, Rand: chance})
		})
	})
}

// powered is a local store on a disk that can lose its power. Restored is called for each
// opening, and returns the power of what there is by then.
func powered(opts local.Options, clock *kvtest.Clock, restored func() *supply) Subject {
	var s *supply
	return Subject{
		Clock: clock,
		Lasts: true,
		Cut:   func(after int) { s.cut(after) },
		Open: func(int) (kv.Engine, error) {
			s = restored()
			opts.FS = s
			return local.Open(context.Background(), opts)
		},
	}
}

// Broken is what open makes, with a fault in each engine that is opened on it.
func Broken(open Opener, f broken.Fault) Opener {
	return func(t testing.TB, seed uint64) Subject {
		s, breaks := open(t, seed), f.Break()
		whole := s.Open
		s.Open = func(replica int) (kv.Engine, error) {
			e, err := whole(replica)
			if err != nil {
				return nil, err
			}
			return breaks(e), nil
		}
		return s
	}
}
