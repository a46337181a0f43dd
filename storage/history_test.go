package storage

import (
	"context"
	"errors"
	"testing"

	"github.com/pawl-dev/pawl/kv"
)

func TestTheLastOfAnObjectIsFoundAlsoWhenItIsGone(t *testing.T) {
	f := newFixture(t)
	f.put(thing("a", "one", "red"))
	f.put(thing("a", "two", "red"))
	f.put(thing("b", "two", "red"))
	f.remove("b", "two")
	gone := f.remove("a", "two")
	f.put(thing("a", "three", "red"))
	f.remove("a", "three")
	last := func(name string) Version {
		t.Helper()
		v, err := f.Last(t.Context(), "a", name)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := last("one"); v.Removed() || is(t, v) != "red" {
		t.Errorf("%v", v)
	}
	if v := last("two"); !v.Removed() || v.Revision() != gone || v.Name() != "two" || is(t, v.Prev()) != "red" {
		t.Errorf("%v", v)
	}
	f.put(thing("a", "two", "blue"))
	second := f.remove("a", "two")
	if v := last("two"); v.Revision() != second || is(t, v.Prev()) != "blue" || v.Prev().Prev().Revision() != gone {
		t.Errorf("%v", v)
	}
	if _, err := f.Last(t.Context(), "a", "none"); !IsKind(err, NotFound) {
		t.Error(err)
	}
	f.compact(second)
	if _, err := f.Last(t.Context(), "a", "two"); !IsKind(err, NotFound) {
		t.Error(err)
	}
}

// A forgetful engine forgets everything just before the first watch begins.
type forgetful struct {
	*awkward
	forget func()
}

func (e *forgetful) Watch(prefix string, after kv.Revision) (kv.Watch, error) {
	if forget := e.forget; forget != nil {
		e.forget = nil
		forget()
	}
	return e.Engine.Watch(prefix, after)
}

func TestWhatIsForgottenWhileItIsSoughtIsNotFound(t *testing.T) {
	f := newFixture(t)
	f.put(thing("a", "one", "red"))
	f.remove("a", "one")
	f.put(thing("a", "two", "red"))
	_, newest := f.engine.Revisions()
	f.Table.engine = &forgetful{f.engine, func() { f.compact(newest) }}
	if _, err := f.Last(t.Context(), "a", "one"); !IsKind(err, NotFound) {
		t.Error(err)
	}
	f.engine.Close()
	if _, err := f.Last(t.Context(), "a", "one"); !errors.Is(err, kv.ErrClosed) {
		t.Error(err)
	}
}

func TestASearchForWhatIsGoneEndsWithItsContext(t *testing.T) {
	f := newFixture(t)
	for range cancelEvery + 1 {
		f.put(thing("a", "one", "red"))
	}
	f.remove("a", "one")
	ctx, cancel := context.WithCancel(t.Context())
	f.Table.engine = &forgetful{f.engine, cancel}
	if _, err := f.Last(ctx, "a", "one"); !IsKind(err, Timeout) {
		t.Error(err)
	}
}
