package kvtest

import (
	"sync"
	"time"
)

// A Clock shows the time that it is told to show. It fits every engine that takes a clock.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*timer]struct{}
}

type timer struct {
	left time.Duration // until it fires
	f    func()
}

// NewClock returns a clock that shows a fixed day.
func NewClock() *Clock {
	return &Clock{
		now:    time.Date(2026, time.March, 14, 15, 9, 26, 535_897_932, time.UTC),
		timers: map[*timer]struct{}{},
	}
}

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc arranges for f to be called when the clock has advanced by d.
func (c *Clock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &timer{d, f}
	c.timers[t] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waiting := c.timers[t]
		delete(c.timers, t)
		return waiting
	}
}

// Advance lets time pass, calling on its way what was to be called.
func (c *Clock) Advance(d time.Duration) {
	for {
		f, passed := c.step(d)
		d -= passed
		if f == nil {
			return
		}
		f()
	}
}

// step lets time pass until the next timer fires, and returns what that calls; or d if
// none does.
func (c *Clock) step(d time.Duration) (f func(), passed time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var next *timer
	for t := range c.timers {
		if t.left <= d && (next == nil || t.left < next.left) {
			next = t
		}
	}
	passed = d
	if next != nil {
		passed, f = max(next.left, 0), next.f
		delete(c.timers, next)
	}
	c.now = c.now.Add(passed)
	for t := range c.timers {
		t.left -= passed
	}
	return f, passed
}

// Set sets the clock forward or back by d. Nothing is called: nothing has passed.
func (c *Clock) Set(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
