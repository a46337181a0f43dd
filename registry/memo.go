package registry

import (
	"container/list"
	"sync"
)

// A memo keeps what was worked out for the keys that it was asked about last: no more than so
// many, and together no heavier than a weight. Many who ask for one at the same time have it worked
// out once. It is safe for concurrent use; nobody may change what it keeps.
type memo[K comparable, V any] struct {
	itemsMax, weightMax int

	mu     sync.Mutex // guards what follows; it may be taken while a thought's is held, never the other way
	items  map[K]*list.Element
	order  *list.List // of *thought[K, V], the one asked for last in front
	weight int
}

// A thought is what is kept for a key, or is being worked out.
type thought[K comparable, V any] struct {
	key    K
	weight int // guarded by the memo

	mu    sync.Mutex // guards what follows, and is held while it is worked out
	known bool
	value V
}

func newMemo[K comparable, V any](itemsMax, weightMax int) *memo[K, V] {
	return &memo[K, V]{itemsMax: itemsMax, weightMax: weightMax, items: map[K]*list.Element{}, order: list.New()}
}

// recall returns what work returned for key, and calls it if that is not known, which also says how
// heavy it is. Errors are not kept.
func (m *memo[K, V]) recall(key K, work func() (V, int, error)) (V, error) {
	t := m.thought(key)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known {
		return t.value, nil
	}
	value, weight, err := work()
	if err != nil {
		return value, err
	}
	t.known, t.value = true, value
	m.weigh(t, weight)
	return value, nil
}

// thought returns that of key, which may have to be worked out yet.
func (m *memo[K, V]) thought(key K) *thought[K, V] {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.items[key]; ok {
		m.order.MoveToFront(e)
		return e.Value.(*thought[K, V])
	}
	t := &thought[K, V]{key: key}
	m.items[key] = m.order.PushFront(t)
	m.trim()
	return t
}

// weigh notes the weight of a thought, if it has not been forgotten meanwhile.
func (m *memo[K, V]) weigh(t *thought[K, V], weight int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.items[t.key]; ok && e.Value == any(t) {
		t.weight = weight
		m.weight += weight
		m.trim()
	}
}

// trim forgets what was not asked for longest until everything fits.
func (m *memo[K, V]) trim() {
	for m.order.Len() > m.itemsMax || m.weight > m.weightMax {
		oldest := m.order.Back()
		t := m.order.Remove(oldest).(*thought[K, V])
		delete(m.items, t.key)
		m.weight -= t.weight
	}
}
