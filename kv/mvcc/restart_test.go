package mvcc

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// anew restarts s at a revision, with only key 1 of table a.
func (s *stage) anew(rev kv.Revision) {
	s.newest = rev
	v := &kv.Version{Key: key("a", 1), Revision: rev - 1, Created: 2, Time: kv.InstantOf(s.now)}
	s.Restart(Base{Revision: rev, Floor: rev, Versions: slices.Values([]*kv.Version{v})})
}

func TestARestartEndsEveryWatchAndNothingElse(t *testing.T) {
	s := newStage(t, Options{})
	s.put(1, key("a", 1), key("b", 1))
	var all []*watch
	for _, prefix := range []string{"default/", "default/core/a/", "default/core/a/ns/", key("a", 1), "default/core/never/"} {
		told := s.watch(prefix, s.newest)
		all = append(all, told, s.watch(prefix, 1), s.watch(prefix, 1000))
	}
	var ready []<-chan struct{}
	for _, w := range all {
		ready = append(ready, w.Wait())
	}
	s.anew(50)
	for i, w := range all {
		select {
		case <-ready[i]:
		default:
			t.Errorf("watch %d of %s was not woken", i, w.prefix)
		}
		if rev, ok := w.Progress(); ok {
			t.Errorf("watch %d of %s claims progress %d", i, w.prefix, rev)
		}
		if _, _, err := w.Next(); !errors.Is(err, kv.ErrCompacted) {
			t.Errorf("watch %d of %s: %v", i, w.prefix, err)
		}
	}
	w := s.watch("default/core/a/", 50)
	rev := s.put(1, key("a", 2))
	if e, ok, err := w.Next(); !ok || err != nil || e.Version.Revision != rev || e.Prev != nil {
		t.Errorf("the next event is %+v, %v, %v", e, ok, err)
	}
	if n := len(s.spaces) + len(s.tables["default/core/a/"].topics); n != 0 {
		t.Errorf("%d topics are left though nobody watches them", n)
	}
}

func TestARestartShowsTheNewStateAlone(t *testing.T) {
	s := newStage(t, Options{})
	old := s.put(100, key("a", 1), key("b", 1))
	s.put(100, key("a", 1))
	before, err := s.Read(t.Context(), kv.Exactly(old))
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() { waited <- s.Await(t.Context(), 50, nil) }()
	s.anew(50)
	if err := <-waited; err != nil {
		t.Errorf("whoever waited for revision 50: %v", err)
	}
	if oldest, newest := s.Revisions(); oldest != 50 || newest != 50 {
		t.Errorf("revisions %d to %d, want 50 to 50", oldest, newest)
	}
	now := s.Newest()
	if v := now.Get(key("a", 1)); now.Get(key("b", 1)) != nil || v == nil || v.Revision != 49 || v.Prev() != nil {
		t.Errorf("a is %+v, b %+v", v, now.Get(key("b", 1)))
	}
	for _, rev := range []kv.Revision{old, 49} {
		if _, err := s.Read(t.Context(), kv.Exactly(rev)); !errors.Is(err, kv.ErrCompacted) {
			t.Errorf("the state at %d: %v", rev, err)
		}
		if _, err := s.Watch("default/core/a/", rev); !errors.Is(err, kv.ErrCompacted) {
			t.Errorf("a watch after %d: %v", rev, err)
		}
	}
	// What was read before is what it was.
	if v := before.Get(key("a", 1)); v == nil || v.Revision != old || before.Get(key("b", 1)) == nil {
		t.Errorf("the state at %d has become %+v", old, v)
	}
	if m := s.Measure(); m.Bytes != 0 || m.Events != 0 || m.Keys != 1 {
		t.Errorf("it holds %+v", m)
	}
	if err := s.Await(context.Background(), 50, nil); err != nil {
		t.Error(err)
	}
	s.now = s.now.Add(time.Second)
	s.put(1, key("b", 1))
}
