package local

import (
	"container/heap"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// ExpirySlack is how long after its time an expired key is deleted at the latest, as far
// as the machine keeps up.
const ExpirySlack = time.Second

// Expirer is the author of the commits that delete expired keys.
var Expirer = kv.Author{Manager: "pawl", Verb: "expire"}

// expireBatch is how many keys expire in one go, before others get their turn.
const expireBatch = 1024

// A lapse is one key that will go by itself.
type lapse struct {
	key   string
	due   time.Duration // on the engine's timeline
	index int           // in the heap
}

// lapses holds the keys that expire, the next one first.
type lapses struct {
	heap  []*lapse
	byKey map[string]*lapse
}

// set notes that key goes when the timeline shows due.
func (l *lapses) set(key string, due time.Duration) {
	if e := l.byKey[key]; e != nil {
		e.due = due
		heap.Fix(l, e.index)
		return
	}
	if l.byKey == nil {
		l.byKey = map[string]*lapse{}
	}
	e := &lapse{key: key, due: due}
	l.byKey[key] = e
	heap.Push(l, e)
}

// unset notes that key stays.
func (l *lapses) unset(key string) {
	if e := l.byKey[key]; e != nil {
		heap.Remove(l, e.index)
		delete(l.byKey, key)
	}
}

// next returns when the next key goes, and whether there is one.
func (l *lapses) next() (key string, due time.Duration, ok bool) {
	if len(l.heap) == 0 {
		return "", 0, false
	}
	return l.heap[0].key, l.heap[0].due, true
}

// Len, Less, Swap, Push and Pop are for container/heap.
func (l *lapses) Len() int           { return len(l.heap) }
func (l *lapses) Less(i, j int) bool { return l.heap[i].due < l.heap[j].due }
func (l *lapses) Swap(i, j int) {
	l.heap[i], l.heap[j] = l.heap[j], l.heap[i]
	l.heap[i].index, l.heap[j].index = i, j
}
func (l *lapses) Push(x any) {
	e := x.(*lapse)
	e.index = len(l.heap)
	l.heap = append(l.heap, e)
}
func (l *lapses) Pop() any {
	e := l.heap[len(l.heap)-1]
	l.heap[len(l.heap)-1] = nil
	l.heap = l.heap[:len(l.heap)-1]
	return e
}

// expire deletes what has lapsed. Deciding and sequencing happen under the same lock as
// every commit, so nothing can be written to the key in between.
func (e *Engine) expire() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.alarm = nil
	if e.closed || e.failure != nil {
		return
	}
	now, elapsed := e.time.now()
	for range expireBatch {
		key, due, ok := e.lapses.next()
		if !ok || due > elapsed {
			break
		}
		e.sequence(now, elapsed, kv.Txn{Author: Expirer, Ops: []kv.Op{kv.Delete(key)}})
	}
	e.arm(elapsed)
}

// arm sets the alarm for the next key that lapses. It never sleeps longer than the slack,
// because the clock may be set forward meanwhile. The caller holds e.mu.
func (e *Engine) arm(elapsed time.Duration) {
	if e.alarm != nil || e.closed {
		return
	}
	if _, due, ok := e.lapses.next(); ok {
		e.alarm = e.opts.Clock.AfterFunc(min(max(due-elapsed, 0), ExpirySlack), e.expire)
	}
}
