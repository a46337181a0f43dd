package storage

import (
	"context"
	"errors"
	"testing"

	"github.com/pawl-dev/pawl/kv"
)

// claiming puts a config map, and a key of its own beside it if that is free.
func claiming(name, key string) Judge {
	return func(_ context.Context, _ Version, view *View) (Verdict, error) {
		if v := view.Get(key); v != nil && !v.Deleted {
			return Verdict{}, errors.New("taken by " + string(v.Value))
		}
		view.Put(key, []byte(name))
		return Verdict{Action: Put, Object: thing("a", name, "first")}, nil
	}
}

func TestKeysBesideAnObject(t *testing.T) {
	f := newFixture(t)
	var key string
	write := func(name string, dry bool, judge Judge) error {
		_, err := f.Modify(t.Context(), "a", name, dry, judge)
		return err
	}
	held := func() string {
		snap, err := f.engine.Read(t.Context(), kv.Latest)
		if err != nil {
			t.Fatal(err)
		}
		if v := snap.Get(key); v != nil && !v.Deleted {
			return string(v.Value)
		}
		return ""
	}
	if err := write("one", true, func(_ context.Context, _ Version, view *View) (Verdict, error) {
		key = view.ClaimPrefix("keys") + "k"
		if view.Peek(key) != nil {
			t.Error("the key is there already")
		}
		return Verdict{}, nil
	}); err != nil || key != "default/claims/keys/k" {
		t.Fatalf("looking: %v, key %s", err, key)
	}
	if err := write("one", true, claiming("one", key)); err != nil || held() != "" {
		t.Errorf("a dry run: %v, and the key is held by %q", err, held())
	}
	if err := write("one", false, claiming("one", key)); err != nil || held() != "one" {
		t.Errorf("the first: %v, and the key is held by %q", err, held())
	}
	if err := write("two", false, claiming("two", key)); err == nil || err.Error() != "taken by one" || held() != "one" {
		t.Errorf("the second: %v, and the key is held by %q", err, held())
	}
	if err := write("one", false, func(_ context.Context, current Version, view *View) (Verdict, error) {
		view.Delete(key)
		obj, err := current.Object()
		if err != nil {
			return Verdict{}, err
		}
		return Verdict{Action: Put, Object: obj}, nil
	}); err != nil || held() != "" {
		t.Errorf("giving it back, with nothing else to write: %v, and the key is held by %q", err, held())
	}
}

func TestOfTwoWhoWantOneKeyOneGetsIt(t *testing.T) {
	f := newFixture(t)
	const key = "default/claims/keys/k"
	race := make(chan error)
	for _, name := range []string{"one", "two"} {
		go func() {
			_, err := f.Modify(context.Background(), "a", name, false, claiming(name, key))
			race <- err
		}()
	}
	if a, b := <-race, <-race; (a == nil) == (b == nil) {
		t.Errorf("got %v and %v", a, b)
	}
}

func TestPeekingIsNoCondition(t *testing.T) {
	f := newFixture(t)
	const key = "default/core/configmaps/a/other"
	runs := 0
	_, err := f.Modify(t.Context(), "a", "one", false, func(_ context.Context, _ Version, view *View) (Verdict, error) {
		runs++
		view.Peek(key)
		if runs == 1 {
			f.put(thing("a", "other", "second"))
		}
		return Verdict{Action: Put, Object: thing("a", "one", "first")}, nil
	})
	if err != nil || runs != 1 {
		t.Errorf("judged %d times, %v", runs, err)
	}
}
