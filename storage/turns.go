package storage

import (
	"context"
	"sync"
	"time"
)

// turnWaitMax bounds how long somebody waits for a turn: a turn is a place in a queue, not
// a lock, so one whose holder is slow (a webhook, a stopped process) is passed over.
const turnWaitMax = 500 * time.Millisecond

// Turns lets those who have lost a race for a key go one after another, first come first
// served. All tables over one engine share one. Its zero value is ready.
type Turns struct {
	mu     sync.Mutex
	queues map[string][]chan struct{} // by key; the first of each is whose turn it is
}

// take waits for the caller's turn at key, and returns what ends it. It returns early, with
// the turn of nobody, when ctx ends or the wait is too long.
func (t *Turns) take(ctx context.Context, key string) (done func()) {
	mine := make(chan struct{})
	t.mu.Lock()
	if t.queues == nil {
		t.queues = map[string][]chan struct{}{}
	}
	queue := append(t.queues[key], mine)
	t.queues[key] = queue
	if len(queue) == 1 {
		close(mine)
	}
	t.mu.Unlock()

	timer := time.NewTimer(turnWaitMax)
	defer timer.Stop()
	select {
	case <-mine:
	case <-ctx.Done():
	case <-timer.C:
	}
	return func() { t.leave(key, mine) }
}

func (t *Turns) leave(key string, mine chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	queue := t.queues[key]
	for i, c := range queue {
		if c != mine {
			continue
		}
		queue = append(queue[:i], queue[i+1:]...)
		if i == 0 && len(queue) > 0 {
			close(queue[0])
		}
		break
	}
	if len(queue) == 0 {
		delete(t.queues, key)
		return
	}
	t.queues[key] = queue
}
