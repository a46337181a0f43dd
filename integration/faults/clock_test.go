package faults

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/integration/cutdisk"
)

// The clock is set, forward or back, a little or a lot, before every step in turn, and then
// before every one. In half of the runs the power goes some steps later.
func TestTheClockJumps(t *testing.T) {
	jumps := []time.Duration{-48 * time.Hour, -3 * time.Second, 40 * time.Second, 3 * time.Hour}
	for _, seed := range seeds() {
		points := 0
		n := min(steps()/2, 60)
		for at := -1; at < n; at++ {
			for _, jump := range jumps {
				for _, crash := range []bool{false, true} {
					synctest.Test(t, func(t *testing.T) {
						w := newWorld(t, seed, cutdisk.New())
						w.m.jumps = true
						w.about = fmt.Sprintf(", the clock set by %v before step %d, crash %v", jump, at, crash)
						w.mustOpen()
						for i := range n {
							if i == at || at < 0 {
								points++
								w.set(jump)
							}
							w.live1(i)
							if crash && i == min(at+5, n-1) {
								w.crash(cutdisk.Survival{Percent: 50, Rand: rand.New(rand.NewPCG(seed, uint64(i)))})
								w.time.restart()
								w.mustOpen()
							}
						}
						if err := w.close(); err != nil {
							w.fatal(err)
						}
						w.mustOpen()
					})
				}
			}
		}
		t.Logf("seed %d: the clock jumped %d times", seed, points)
		if points < n*len(jumps)*2 {
			t.Errorf("there are %d steps and %d jumps", n, len(jumps))
		}
	}
}

// set sets the clock forward or back.
func (w *world) set(d time.Duration) {
	w.clock.Set(d)
	w.time.set(d)
}
