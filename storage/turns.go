package storage

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// turnPatience is how long a turn may last before those who wait for it go on without: a turn is a place
	// in a queue, not a lock, so one who is slow (a webhook, a stopped process) is passed over. While the
	// queue moves they wait, however long it is: going on would only make it slower.
	turnPatience = 500 * time.Millisecond
	// joinPatience is that of those who have lost nothing yet.
	joinPatience = turnPatience / 2
)

// Turns lets those who write one key at the same time go one after another, first come first served.
// A key has a queue while there is somebody who lost a race for it: until all who wait there have had
// their turn, whoever comes to write the key joins them, since a race with the one whose turn it is
// would be lost by one of them. So under contention each write is judged once, and all come equally
// far. All tables over one engine share one Turns. Its zero value is ready.
type Turns struct {
	contended atomic.Int64 // how many queues there are
	mu        sync.Mutex
	queues    map[string][]*turn // by key; the first of each is whose turn it is
}

// A turn is a place in a queue.
type turn struct {
	come  chan struct{} // closed when it has come
	since time.Time     // when that was
}

func newTurn() *turn { return &turn{come: make(chan struct{})} }

func (t *turn) begin() {
	t.since = time.Now()
	close(t.come)
}

// take waits for the caller's turn at key, and returns what ends it. It returns early, with
// the turn of nobody, when ctx ends or a turn takes long.
func (t *Turns) take(ctx context.Context, key string) (done func()) {
	t.mu.Lock()
	mine := t.enter(key)
	t.mu.Unlock()
	return t.wait(ctx, key, mine, turnPatience)
}

// join is take for one who has lost nothing: it does not wait, and returns nil, if there is no queue.
func (t *Turns) join(ctx context.Context, key string) (done func()) {
	if t.contended.Load() == 0 {
		return nil
	}
	t.mu.Lock()
	if len(t.queues[key]) == 0 {
		t.mu.Unlock()
		return nil
	}
	mine := t.enter(key)
	t.mu.Unlock()
	return t.wait(ctx, key, mine, joinPatience)
}

// wait ends when it is mine's turn, when ctx ends, or when the turn that it waits for has lasted too long.
func (t *Turns) wait(ctx context.Context, key string, mine *turn, patience time.Duration) (done func()) {
	done = func() { t.leave(key, mine) }
	timer := time.NewTimer(patience - t.lasts(key))
	defer timer.Stop()
	for {
		select {
		case <-mine.come:
			return done
		case <-ctx.Done():
			return done
		case <-timer.C:
		}
		left := patience - t.lasts(key)
		if left <= 0 {
			return done
		}
		timer.Reset(left)
	}
}

// lasts returns how long the turn at key has lasted. There has to be one.
func (t *Turns) lasts(key string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Since(t.queues[key][0].since)
}

// enter takes a place at the end of the queue. The caller holds t.mu.
func (t *Turns) enter(key string) *turn {
	mine := newTurn()
	if t.queues == nil {
		t.queues = map[string][]*turn{}
	}
	queue := append(t.queues[key], mine)
	t.queues[key] = queue
	if len(queue) == 1 {
		t.contended.Add(1)
		mine.begin()
	}
	return mine
}

func (t *Turns) leave(key string, mine *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.queues[key]
	i := slices.Index(queue, mine)
	if i < 0 {
		return // it left before
	}
	queue = slices.Delete(queue, i, i+1)
	if len(queue) == 0 {
		delete(t.queues, key)
		t.contended.Add(-1)
		return
	}
	if i == 0 {
		queue[0].begin()
	}
	t.queues[key] = queue
}

// places are those of a transaction in the queues of its keys. It takes them in the order of the keys,
// so that no two wait for each other.
type places struct {
	lost bool // a race, after which it waits at every key
	held []func()
}

// join waits where others wait already.
func (p *places) join(ctx context.Context, changes []Change, keys []string) {
	p.each(ctx, changes, keys, (*Turns).join)
}

// take waits at every key, unless it does so already.
func (p *places) take(ctx context.Context, changes []Change, keys []string) {
	if p.lost {
		return
	}
	p.leave() // those it joined come in their order among the others
	p.lost = true
	p.each(ctx, changes, keys, (*Turns).take)
}

func (p *places) each(ctx context.Context, changes []Change, keys []string, get func(*Turns, context.Context, string) func()) {
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	for _, i := range order {
		if done := get(changes[i].Table.turns, ctx, keys[i]); done != nil {
			p.held = append(p.held, done)
		}
	}
}

func (p *places) leave() {
	for _, done := range p.held {
		done()
	}
	p.held = nil
}
