package storage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawl-dev/pawl/kv"
)

// told drains a watch: "ADDED a/one=big@5", one for each event.
func told(t *testing.T, w *Watch) []string {
	t.Helper()
	out := []string{}
	for {
		e, ok, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return out
		}
		v := e.Version
		out = append(out, fmt.Sprintf("%s %s/%s=%s@%d", e.Type, v.Namespace(), v.Name(), is(t, v), v.Revision()))
	}
}

func TestWatchEventsAreTypedByTheSelector(t *testing.T) {
	for _, c := range []struct {
		name           string
		labels, fields string
		do             func(f *fixture) kv.Revision
		want           string // with %d for the revision of the last thing done
	}{
		{"a create that matches is ADDED", "color=red", "", func(f *fixture) kv.Revision {
			return f.put(thing("a", "new", "big", "color=red"))
		}, "ADDED a/new=big@%d"},
		{"a create that does not match is nothing", "color=red", "", func(f *fixture) kv.Revision {
			return f.put(thing("a", "new", "big", "color=blue"))
		}, ""},
		{"an object that begins to match is ADDED", "color=red", "", func(f *fixture) kv.Revision {
			return f.put(thing("a", "blue", "big", "color=red"))
		}, "ADDED a/blue=big@%d"},
		{"an object that goes on matching is MODIFIED", "color=red", "", func(f *fixture) kv.Revision {
			return f.put(thing("a", "red", "big", "color=red"))
		}, "MODIFIED a/red=big@%d"},
		{"an object that no longer matches is DELETED, as it was, at the revision of the change (K77)", "color=red", "", func(f *fixture) kv.Revision {
			return f.put(thing("a", "red", "big", "color=blue"))
		}, "DELETED a/red=first@%d"},
		{"an object that matches neither before nor after is nothing", "color=red", "", func(f *fixture) kv.Revision {
			return f.put(thing("a", "blue", "big", "color=green"))
		}, ""},
		{"the removal of an object that matches is DELETED, as it was, at the revision of the removal (K77)", "color=red", "", func(f *fixture) kv.Revision {
			return f.remove("a", "red")
		}, "DELETED a/red=first@%d"},
		{"the removal of an object that does not match is nothing", "color=red", "", func(f *fixture) kv.Revision {
			return f.remove("a", "blue")
		}, ""},
		{"without a selector every change is told", "", "", func(f *fixture) kv.Revision {
			return f.put(thing("a", "blue", "big"))
		}, "MODIFIED a/blue=big@%d"},
		{"fields type events as labels do", "", "data.is=first", func(f *fixture) kv.Revision {
			return f.put(thing("a", "red", "second", "color=red"))
		}, "DELETED a/red=first@%d"},
		{"an object whose fields are not known does not match (K79)", "", "data.is=first", func(f *fixture) kv.Revision {
			return f.put(thing("a", "red", "odd", "color=red"))
		}, "DELETED a/red=first@%d"},
		{"another namespace whose name begins alike is another namespace (K78)", "", "", func(f *fixture) kv.Revision {
			return f.put(thing("a-b", "red", "big"))
		}, ""},
		{"delete and create anew are two events (K80)", "", "metadata.name=red", func(f *fixture) kv.Revision {
			f.remove("a", "red")
			return f.put(thing("a", "red", "big"))
		}, "DELETED a/red=first@%[2]d ADDED a/red=big@%[1]d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.put(thing("a", "red", "first", "color=red"))
			before := f.put(thing("a", "blue", "first", "color=blue"))
			w, err := f.Watch(t.Context(), WatchOptions{Namespace: "a", Selector: picking(t, c.labels, c.fields), From: After{before}})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			rev := c.do(f)
			want := c.want
			if strings.Contains(want, "%") {
				if !strings.Contains(want, "[2]") {
					want = strings.Replace(want, "%d", "%[1]d", 1)
				} else {
					want = strings.ReplaceAll(want, "%[2]d", fmt.Sprint(rev-1))
				}
				want = fmt.Sprintf(want, rev)
			}
			if got := strings.Join(told(t, w), " "); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if at, ok := w.Progress(); !ok || at != rev {
				t.Errorf("progress %d, %v; want %d: nothing up to it is missing", at, ok, rev)
			}
		})
	}
}

func TestWatchesBeginWhereTheTableSays(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		initial *bool
		rv      string // "first" for the revision of the first object
		want    string // state (at hand or newest) and what follows
	}{
		{nil, "", "state at hand, then changes"},
		{nil, "0", "state at hand, then changes"},
		{nil, "first", "changes after it"},
		{&yes, "", "newest state, then changes"},
		{&yes, "0", "state at hand, then changes"},
		{&yes, "first", "newest state, then changes"}, // not older than it
		{&no, "", "changes after the newest state"},
		{&no, "0", "changes after the state at hand"},
		{&no, "first", "changes after it"},
	} {
		name := "sendInitialEvents unset"
		if c.initial != nil {
			name = fmt.Sprint("sendInitialEvents ", *c.initial)
		}
		t.Run(fmt.Sprintf("%s, resourceVersion %q (K88)", name, c.rv), func(t *testing.T) {
			f := newFixture(t)
			first := f.put(thing("a", "b-first", "first"))
			f.lag()
			second := f.put(thing("a", "a-second", "second"))
			rv := c.rv
			if rv == "first" {
				rv = first.String()
			}
			q := WatchQuery{ResourceVersion: rv, SendInitialEvents: c.initial}
			if c.initial != nil {
				q.ResourceVersionMatch = "NotOlderThan"
			}
			from, err := q.Parse()
			if err != nil {
				t.Fatal(err)
			}
			w, err := f.Watch(t.Context(), WatchOptions{From: from})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			if strings.Contains(c.want, "state, then") || strings.Contains(c.want, "hand, then") {
				select {
				case <-w.Wait():
				default:
					t.Error("there is a state to tell, and nobody says so")
				}
				if _, done := w.StateRevision(); done {
					t.Error("the state is said to have been told")
				}
				if at, ok := w.Progress(); ok {
					t.Errorf("progress %d before the state was told", at)
				}
			}
			got := told(t, w)
			at, done := w.StateRevision()
			if !done {
				t.Error("the state has been told, and that is denied")
			}
			third := f.put(thing("a", "third", "third"))
			got = append(got, told(t, w)...)
			one, two, three := fmt.Sprintf("ADDED a/b-first=first@%d", first), fmt.Sprintf("ADDED a/a-second=second@%d", second), fmt.Sprintf("ADDED a/third=third@%d", third)
			want := map[string][]string{
				"state at hand, then changes":     {one, two, three},
				"newest state, then changes":      {two, one, three}, // in key order (K89)
				"changes after it":                {two, three},
				"changes after the newest state":  {three},
				"changes after the state at hand": {two, three},
			}[c.want]
			if !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			if wantAt := map[string]kv.Revision{"state at hand, then changes": first, "newest state, then changes": second}[c.want]; wantAt != 0 && at != wantAt {
				t.Errorf("the state is said to be that of %d, want %d", at, wantAt)
			}
		})
	}
}

func TestWatchOfOneObject(t *testing.T) {
	f := newFixture(t)
	one := f.put(thing("a", "one", "first"))
	f.put(thing("a", "one-more", "first"))
	w, err := f.Watch(t.Context(), WatchOptions{Namespace: "a", Name: "one", From: State{At: kv.Any}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	f.put(thing("a", "one-more", "second"))
	gone := f.remove("a", "one")
	want := []string{fmt.Sprintf("ADDED a/one=first@%d", one), fmt.Sprintf("DELETED a/one=first@%d", gone)}
	if got := told(t, w); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHowWatchesEnd(t *testing.T) {
	t.Run("one that falls behind the history is expired (K84)", func(t *testing.T) {
		f := newFixture(t)
		first := f.put(thing("a", "one", "first"))
		w, err := f.Watch(t.Context(), WatchOptions{From: After{first}})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		f.put(thing("a", "one", "second"))
		last := f.put(thing("a", "one", "third"))
		f.compact(last)
		_, _, err = w.Next()
		if want := fmt.Sprintf("too old resource version: %d (%d)", first, last); kindOf(err) != Expired || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %s (K14)", err, want)
		}
		if _, _, again := w.Next(); again == nil || again.Error() != err.Error() {
			t.Errorf("got %v the second time: a watch that ended stays so (K82)", again)
		}
		if _, err := f.Watch(t.Context(), WatchOptions{From: After{first}}); kindOf(err) != Expired {
			t.Errorf("got %v from a watch that begins there", err)
		}
	})
	t.Run("one that was stopped says nothing more", func(t *testing.T) {
		f := newFixture(t)
		f.put(thing("a", "one", "first"))
		w, err := f.Watch(t.Context(), WatchOptions{From: State{At: kv.Any}})
		if err != nil {
			t.Fatal(err)
		}
		w.Stop()
		w.Stop()
		if _, ok, err := w.Next(); ok || !IsClosed(err) {
			t.Errorf("got %v, %v", ok, err)
		}
	})
	t.Run("an engine that closes ends it", func(t *testing.T) {
		f := newFixture(t)
		w, err := f.Watch(t.Context(), WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wait := w.Wait()
		f.engine.Close()
		<-wait
		if _, _, err := w.Next(); kindOf(err) != Unavailable || !IsClosed(err) {
			t.Errorf("got %v", err)
		}
		if _, err := f.Watch(t.Context(), WatchOptions{From: After{1}}); kindOf(err) != Unavailable {
			t.Errorf("got %v from a watch that begins then", err)
		}
	})
	t.Run("an object that a selector cannot look at ends it", func(t *testing.T) {
		f := newFixture(t)
		w, err := f.Watch(t.Context(), WatchOptions{Selector: picking(t, "color=red", "")})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		f.raw(kv.Put(f.Key("a", "rotten"), []byte("rotten")))
		f.put(thing("a", "one", "first", "color=red"))
		_, _, err = w.Next()
		if kindOf(err) != Corrupt {
			t.Fatalf("got %v, want %v", err, Corrupt)
		}
		if _, ok, again := w.Next(); ok || !errors.Is(again, err) {
			t.Errorf("got %v, %v: nothing newer follows an error (K82)", ok, again)
		}
		if _, ok := w.Progress(); ok {
			t.Error("a watch that failed makes progress")
		}
	})
	t.Run("one whose history is forgotten while it tells the state tells all of the state first (K99)", func(t *testing.T) {
		f := newFixture(t)
		for i := range 5 {
			f.put(thing("a", fmt.Sprint(i), "first"))
		}
		w, err := f.Watch(t.Context(), WatchOptions{From: State{At: kv.Latest}})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		if _, ok, err := w.Next(); !ok || err != nil {
			t.Fatal(ok, err)
		}
		for i := range 5 {
			f.put(thing("a", fmt.Sprint(i), "second"))
		}
		f.compact(f.remove("a", "4"))
		for i := 1; i < 5; i++ {
			if e, ok, err := w.Next(); !ok || err != nil || e.Type != Added || e.Version.Name() != fmt.Sprint(i) || is(t, e.Version) != "first" {
				t.Fatalf("event %d: %+v, %v, %v", i, e, ok, err)
			}
		}
		if _, ok, err := w.Next(); ok || kindOf(err) != Expired {
			t.Errorf("got %v, %v; what came in between is gone, and that has to be said", ok, err)
		}
	})
	t.Run("a state from the future is waited for, then refused (K92)", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t)
			if _, err := f.Watch(t.Context(), WatchOptions{From: State{At: kv.AtLeast(99)}}); kindOf(err) != TooNew {
				t.Errorf("got %v, want %v", err, TooNew)
			}
		})
	})
	t.Run("changes from the future are nobody's error: nothing older is told (K75)", func(t *testing.T) {
		f := newFixture(t)
		now := f.put(thing("a", "one", "first"))
		w, err := f.Watch(t.Context(), WatchOptions{From: After{now + 1}})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		f.put(thing("a", "one", "second"))
		last := f.put(thing("a", "one", "third"))
		if got, want := told(t, w), []string{fmt.Sprintf("MODIFIED a/one=third@%d", last)}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
