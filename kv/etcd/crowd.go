package etcd

import (
	"sync"
	"time"
)

// gatherMax is how long those who were answered are waited for, at most.
const gatherMax = 5 * time.Millisecond

// A crowd is those who wait for what is asked next for all of them. Its owner's lock guards it.
type crowd struct {
	here   int
	enough int           // who are waited for
	ready  chan struct{} // closed when there are so many; nil if nobody waits for them
}

// come counts one in.
func (c *crowd) come() {
	c.here++
	if c.ready != nil && c.here >= c.enough {
		close(c.ready)
		c.ready = nil
	}
}

// serve counts some out.
func (c *crowd) serve(n int) { c.here -= n }

// gather waits a little for those who were just answered, which took so long: many of them are back at once, and share a
// question with those who came meanwhile instead of having to wait for theirs. There need be no more than most. Who was alone
// is not waited for. Mu is the owner's lock, which the caller does not hold.
func (c *crowd) gather(mu *sync.Mutex, answered, most int, took time.Duration) {
	if answered < 2 {
		return
	}
	ready := make(chan struct{})
	mu.Lock()
	c.ready, c.enough = ready, min(c.here+answered, most)
	if c.here >= c.enough {
		c.ready = nil
		close(ready)
	}
	mu.Unlock()
	patience := time.NewTimer(min(took/4, gatherMax))
	defer patience.Stop()
	select {
	case <-ready:
	case <-patience.C:
		mu.Lock()
		c.ready = nil
		mu.Unlock()
	}
}
