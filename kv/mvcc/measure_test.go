package mvcc

import (
	"testing"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

func TestTheNewestRevisionAtATime(t *testing.T) {
	x := New(Options{}, Base{Revision: 1, Floor: 1})
	for i, table := range []string{"pods", "maps", "pods", "events", "maps"} { // revisions 2 to 6, a minute apart
		rev, now := kv.Revision(i+2), start.Add(time.Duration(i)*time.Minute)
		x.Publish(now, rev, []*kv.Version{{Key: key(table, i), Revision: rev, Time: kv.InstantOf(now)}})
	}
	for _, c := range []struct {
		name string
		at   time.Duration
		want kv.Revision
	}{
		{"before all that is known is the oldest", -time.Hour, 1},
		{"just then counts", 0, 2},
		{"between two is the earlier", 90 * time.Second, 3},
		{"a later change of another table counts", 3 * time.Minute, 5},
		{"after all is the newest", time.Hour, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := x.NewestAt(start.Add(c.at)); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
	if err := x.Compact(t.Context(), 4); err != nil {
		t.Fatal(err)
	}
	if got := x.NewestAt(start); got != 4 {
		t.Errorf("once that is forgotten it is %d, want the oldest there is, 4", got)
	}
}

func TestMeasures(t *testing.T) {
	s := newStage(t, Options{})
	if m := s.Measure(); m != (Measures{}) {
		t.Errorf("of nothing: %+v", m)
	}
	s.put(100, key("pods", 1), key("maps", 1))
	s.put(100, key("pods", 1))
	for _, prefix := range []string{"default/", "default/core/pods/", key("pods", 1), "default/core/pods/ns/", "default/core/pods/"} {
		s.watch(prefix, 1)
	}
	m := s.Measure()
	if m.Keys != 2 || m.Events != 3 || m.Watches != 5 || m.Bytes < 3*eventOverhead+100 {
		t.Errorf("%+v", m)
	}
}
