// Package tally judges a counter that many count up at once, by what each of them was told. It is a tool
// of tests.
//
// Whoever counts up reads a number and writes the next one. How that ended it tells a [Counter]: the
// number was made, or no answer came. What was refused is not told, since it is not to have happened.
// Then the counter must stand at no less than all that was acknowledged, and at no more than that and
// what was not answered. Within that room an increment could still be lost unseen, in the place of one that
// was not answered but made; so no number may have been made twice either.
package tally

import (
	"fmt"
	"sync"
)

// A Counter is what is known of one that begins at 0. The zero value knows of no increment. It is safe for
// concurrent use.
type Counter struct {
	mu         sync.Mutex // guards what follows
	stood      int        // where it was when it was judged last
	made       map[int]string
	unanswered int
	total      int
	wrong      error // the first number that was made twice
}

// Made says that who was told to have counted up to n.
func (c *Counter) Made(n int, who string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total++
	first, twice := c.made[n]
	switch {
	case c.wrong != nil:
	case twice:
		c.wrong = fmt.Errorf("%s and %s were both told that they had counted up to %d", first, who, n)
	case n <= c.stood:
		c.wrong = fmt.Errorf("%s was told that it had counted up to %d, and it was at %d before", who, n, c.stood)
	}
	if c.made == nil {
		c.made = map[int]string{}
	}
	c.made[n] = who
}

// Unanswered says that somebody counted up, and does not know whether it happened.
func (c *Counter) Unanswered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unanswered++
}

// Total is how many increments were acknowledged, since the beginning.
func (c *Counter) Total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// Stands returns an error unless the counter may be at n. Nobody may be counting: what was not answered has
// happened by now, or never will, and judgement goes on from n.
func (c *Counter) Stands(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wrong != nil {
		return c.wrong
	}
	for number, who := range c.made {
		if number > n {
			return fmt.Errorf("%s was told that it had counted up to %d, and it is at %d", who, number, n)
		}
	}
	switch acknowledged := len(c.made); {
	case n < c.stood+acknowledged:
		return fmt.Errorf("it was at %d, %d increments were acknowledged, and it is at %d", c.stood, acknowledged, n)
	case n > c.stood+acknowledged+c.unanswered:
		return fmt.Errorf("it was at %d, %d increments were acknowledged and %d not answered, and it is at %d", c.stood, acknowledged, c.unanswered, n)
	}
	c.stood, c.made, c.unanswered = n, nil, 0
	return nil
}
