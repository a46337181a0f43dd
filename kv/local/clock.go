package local

import "time"

// A Clock tells the time and wakes.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f on a goroutine of its own once d has passed, unless stopped before.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}

// A timeline measures how long something takes by a clock that people may set. It goes
// on while the clock is set back, and follows the clock when that is set forward or the
// machine was asleep; so what it measures is never longer than what passed by any measure.
type timeline struct {
	clock   Clock
	seen    time.Time
	elapsed time.Duration
}

func newTimeline(c Clock) timeline { return timeline{clock: c, seen: c.Now()} }

// now returns the clock's time and what has elapsed since the timeline began.
func (t *timeline) now() (time.Time, time.Duration) {
	n := t.clock.Now()
	ran := n.Sub(t.seen) // monotonic, where the clock can tell
	shown := n.Round(0).Sub(t.seen.Round(0))
	t.elapsed += max(ran, shown, 0)
	t.seen = n
	return n, t.elapsed
}
