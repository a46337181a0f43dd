package registry

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

func TestMemo(t *testing.T) {
	m := newMemo[string, int](3, 100)
	worked := 0
	recall := func(key string, weight int) {
		t.Helper()
		if v, err := m.recall(key, func() (int, int, error) { worked++; return len(key), weight, nil }); v != len(key) || err != nil {
			t.Errorf("%s: %d, %v", key, v, err)
		}
	}
	expect := func(why string, n int) {
		t.Helper()
		if worked != n {
			t.Errorf("%s: worked %d times, want %d", why, worked, n)
		}
		worked = 0
	}
	recall("a", 1)
	recall("a", 1)
	expect("what is known is not worked out again", 1)
	recall("bb", 1)
	recall("ccc", 1)
	recall("a", 1)
	recall("dddd", 1) // forgets bb, which was not asked for longest
	expect("new ones", 3)
	recall("a", 1)
	recall("ccc", 1)
	recall("dddd", 1)
	expect("three are kept", 0)
	recall("bb", 1)
	expect("what was forgotten is worked out again", 1)
	recall("heavy", 99)
	recall("bb", 1)
	expect("a heavy one leaves room for one", 1)
	recall("ccc", 1)
	expect("and no more", 1)
	recall("too heavy", 101)
	recall("too heavy", 101)
	expect("what is too heavy is not kept", 2)
	recall("ccc", 1)
	expect("and took the place of all", 1)
	if len(m.items) != m.order.Len() || m.weight != 1 || len(m.items) != 1 {
		t.Errorf("it has %d of weight %d", len(m.items), m.weight)
	}
}

func TestErrorsAreNotRemembered(t *testing.T) {
	m := newMemo[string, int](3, 100)
	fail := errors.New("no")
	if _, err := m.recall("a", func() (int, int, error) { return 0, 0, fail }); err != fail {
		t.Error(err)
	}
	if v, err := m.recall("a", func() (int, int, error) { return 7, 1, nil }); v != 7 || err != nil {
		t.Error(v, err)
	}
}

func TestManyWhoAskAtOnceHaveItWorkedOutOnce(t *testing.T) {
	m := newMemo[int, int](2, 100)
	var worked atomic.Int32
	begun, go_ := make(chan bool), make(chan bool)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			v, err := m.recall(1, func() (int, int, error) {
				worked.Add(1)
				close(begun)
				<-go_
				return 5, 1, nil
			})
			if v != 5 || err != nil {
				t.Errorf("%d: %d, %v", i, v, err)
			}
		})
	}
	<-begun
	if v, err := m.recall(2, func() (int, int, error) { return 6, 1, nil }); v != 6 || err != nil {
		t.Error("who asks for something else waits for nobody")
	}
	close(go_)
	all.Wait()
	if worked.Load() != 1 {
		t.Errorf("worked %d times", worked.Load())
	}
}
