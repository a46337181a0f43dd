package registry

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// An expiring strategy keeps objects as long as it is told.
type expiring struct {
	*strategy
	ttl time.Duration
}

func (e *expiring) TTL(runtime.Object) time.Duration { return e.ttl }

func TestExpiry(t *testing.T) { // rules S77 to S79
	for _, c := range []struct {
		name      string
		speaks    bool
		ttl       time.Duration
		otherwise kv.ExpiryKind
		want      kv.Expiry
	}{
		{"nobody speaks of it, and the object is new", false, 0, kv.Forever, kv.Expiry{Kind: kv.Forever}},
		{"nobody speaks of it, and the object is there (S79)", false, 0, kv.Keep, kv.Expiry{Kind: kv.Keep}},
		{"a new object goes after a while", true, time.Hour, kv.Forever, kv.Expiry{Kind: kv.After, For: time.Hour}},
		{"one that is written again goes after a while from then on", true, time.Hour, kv.Keep, kv.Expiry{Kind: kv.After, For: time.Hour}},
		{"a new object stays", true, 0, kv.Forever, kv.Expiry{Kind: kv.Forever}},
		{"one that is written again stays from then on", true, 0, kv.Keep, kv.Expiry{Kind: kv.Forever}},
		{"less than nothing is nothing that is said of a new object", true, -time.Second, kv.Forever, kv.Expiry{Kind: kv.Forever}},
		{"less than nothing is nothing that is said of one that is there", true, -time.Second, kv.Keep, kv.Expiry{Kind: kv.Keep}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, namespaced)
			if c.speaks {
				s.Store.strategy = &expiring{s.strategy, c.ttl}
			}
			if got := s.expiry(thing("a"), c.otherwise); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// What a strategy says of expiry reaches the store, whichever way an object is written.
func TestObjectsExpireAsTheirStrategySays(t *testing.T) { // rules S77, S78
	s := newStand(t, Policy{Namespaced: true, CreateOnUpdate: true, UnconditionalUpdate: true})
	e := &expiring{s.strategy, time.Hour}
	s.Store.strategy = e
	left := func(v storage.Version, err error) time.Duration {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if v.Expires().IsZero() {
			return 0
		}
		return v.Expires().Sub(s.clock.Now())
	}
	updated := func(u Updated, err error) (storage.Version, error) { return u.Version, err }
	update := func(name, is string) time.Duration {
		t.Helper()
		return left(updated(s.Update(t.Context(), "ns", name, Exactly(thing(name, "is="+is)), UpdateOptions{})))
	}
	steps := []struct {
		name string
		do   func() time.Duration
		want time.Duration
	}{
		{"a create", func() time.Duration { return left(s.Create(t.Context(), "ns", thing("a", "is=old"), CreateOptions{})) }, time.Hour},
		{"an update that changes nothing, ten minutes later", func() time.Duration {
			s.clock.Advance(10 * time.Minute)
			return update("a", "old")
		}, 50 * time.Minute},
		{"an update that changes it", func() time.Duration { return update("a", "new") }, time.Hour},
		{"an update that does not speak of it, ten minutes later", func() time.Duration {
			s.clock.Advance(10 * time.Minute)
			e.ttl = -1
			return update("a", "newer")
		}, 50 * time.Minute},
		{"an update that makes it stay", func() time.Duration { e.ttl = 0; return update("a", "newest") }, 0},
		{"an update that creates", func() time.Duration { e.ttl = time.Minute; return update("b", "old") }, time.Minute},
	}
	for _, step := range steps {
		if got := step.do(); got != step.want {
			t.Errorf("after %s it goes in %v, want %v", step.name, got, step.want)
		}
	}
}
