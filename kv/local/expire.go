package local

import (
	"container/heap"
	"math"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// ExpirySlack is how long after its time an expired key is deleted at the latest, as far
// as the machine keeps up.
const ExpirySlack = time.Second

// Expirer is the author of the commits that delete expired keys.
var Expirer = kv.Author{Manager: "pawl", Verb: "expire"}

// Keys that lapse at one moment go in commits of up to expireTxn keys each, and expireBatch keys in
// one go, before others get their turn.
const (
	expireTxn   = 128
	expireBatch = 1024
)

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

// never is the due of a key that does not go by itself.
const never time.Duration = math.MinInt64

// set notes that key goes when the timeline shows due, or stays if that is never, and returns
// when it was to go.
func (l *lapses) set(key string, due time.Duration) (was time.Duration) {
	e := l.byKey[key]
	switch {
	case e == nil && due == never:
		return never
	case e == nil:
		if l.byKey == nil {
			l.byKey = map[string]*lapse{}
		}
		e = &lapse{key: key, due: due}
		l.byKey[key] = e
		heap.Push(l, e)
		return never
	}
	was = e.due
	if due == never {
		heap.Remove(l, e.index)
		delete(l.byKey, key)
		return was
	}
	e.due = due
	heap.Fix(l, e.index)
	return was
}

// A lapsed is what a key's due was before it was set.
type lapsed struct {
	key string
	due time.Duration
}

// restore takes back what was set, the last first.
func (l *lapses) restore(were []lapsed) {
	for _, was := range slices.Backward(were) {
		l.set(was.key, was.due)
	}
}

// due returns deletions of the keys, up to n, that are to have gone when the timeline shows elapsed.
func (l *lapses) due(elapsed time.Duration, n int) (ops []kv.Op) {
	// Of a heap, the first few are found among the children of those found.
	for look := []int{0}; len(look) > 0 && len(ops) < n; look = look[1:] {
		if i := look[0]; i < len(l.heap) && l.heap[i].due <= elapsed {
			ops = append(ops, kv.Delete(l.heap[i].key))
			look = append(look, 2*i+1, 2*i+2)
		}
	}
	return ops
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
// every commit, so nothing can be written to the keys in between.
func (e *Engine) expire() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.alarm = nil
	if e.closed || e.era.ended() != nil {
		return
	}
	now, elapsed := e.time.now()
	for range expireBatch / expireTxn {
		ops := e.lapses.due(elapsed, expireTxn)
		if len(ops) == 0 {
			break
		}
		e.sequence(now, elapsed, kv.Txn{Author: Expirer, Ops: ops}, nil)
	}
	e.work.Signal()
	e.arm(elapsed)
}

// arm sets the alarm for the next key that lapses. It never sleeps longer than the slack,
// because the clock may be set forward meanwhile. The caller holds e.mu.
func (e *Engine) arm(elapsed time.Duration) {
	if e.alarm != nil || e.closed || e.era.ended() != nil {
		return
	}
	if _, due, ok := e.lapses.next(); ok {
		e.alarm = e.opts.Clock.AfterFunc(min(max(due-elapsed, 0), ExpirySlack), e.expire)
	}
}
