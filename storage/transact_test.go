package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawl-dev/pawl/kv"
)

// want is a change of one object of the fixture's: "name=value" puts it, "name=" removes it, "name"
// leaves it, and "name!text" is refused with that text.
func (f *fixture) want(what string) Change {
	name, text, refuse := strings.Cut(what, "!")
	name, value, puts := strings.Cut(name, "=")
	return Change{f.Table, "a", name, func(context.Context, Version, *View) (Verdict, error) {
		switch {
		case refuse:
			return Verdict{}, errors.New(text)
		case !puts:
			return Verdict{}, nil
		case value == "":
			return Verdict{Action: Remove}, nil
		}
		return Verdict{Action: Put, Object: thing("a", name, value)}, nil
	}}
}

// state is what there is, as name=value.
func (f *fixture) state() string {
	f.Helper()
	page, err := f.List(f.Context(), ListOptions{})
	if err != nil {
		f.Fatal(err)
	}
	var all []string
	for _, v := range page.Items {
		all = append(all, v.Name()+"="+is(f, v))
	}
	return strings.Join(all, " ")
}

// Over {one=red, two=blue}.
func TestATransactionIsAllOrNothing(t *testing.T) {
	for _, c := range []struct {
		name    string
		changes string
		err     string
		then    string
		commits int
		wrote   string // by each change
	}{
		{"no changes at all", "", "", "one=red two=blue", 0, "[]"},
		{"a create, an update and a removal are one commit", "new=green one=gold two=", "", "new=green one=gold", 1, "[true true true]"},
		{"what is left alone is left alone", "one two=gold", "", "one=red two=gold", 1, "[false true]"},
		{"what would change nothing is left out", "one=red two=gold", "", "one=red two=gold", 1, "[false true]"},
		{"if nothing would change nothing is written", "one=red two none=", "", "one=red two=blue", 0, "[false false false]"},
		{"one that is refused refuses all, and is named", "one=gold two!sorry new=green", "storage: change 1: sorry", "one=red two=blue", 0, "[]"},
		{"one that cannot be encoded, too", "new=green one=unencodable", "storage: change 1: cannot be encoded", "one=red two=blue", 0, "[]"},
		{"one object is changed once", "one=gold two=gold one=green", "storage: bad request: a/one: changes 0 and 2 are of the same object", "one=red two=blue", 0, "[]"},
	} {
		for _, dry := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dry run %v", c.name, dry), func(t *testing.T) {
				f := newFixture(t)
				f.put(thing("a", "one", "red"))
				f.put(thing("a", "two", "blue"))
				_, before := f.engine.Revisions()
				var changes []Change
				for _, what := range strings.Fields(c.changes) {
					changes = append(changes, f.want(what))
				}
				results, err := Transact(t.Context(), dry, changes...)
				if text := fmt.Sprint(err); text != c.err && err != nil || err == nil && c.err != "" {
					t.Fatalf("%v, want %q", err, c.err)
				}
				then, commits := c.then, c.commits
				if dry {
					then, commits = "one=red two=blue", 0
				}
				if got := f.state(); got != then || f.engine.commits != commits {
					t.Errorf("now %s after %d commits, want %s after %d", got, f.engine.commits, then, commits)
				}
				wrote := []bool{}
				_, now := f.engine.Revisions()
				for i, r := range results {
					wrote = append(wrote, r.Wrote)
					if r.Wrote && !dry && (r.Version.Revision() != now || now != before+1) {
						t.Errorf("change %d is of revision %d, the store was at %d and is at %d", i, r.Version.Revision(), before, now)
					}
				}
				if fmt.Sprint(wrote) != c.wrote {
					t.Errorf("wrote %v, want %s", wrote, c.wrote)
				}
			})
		}
	}
}

func TestAllChangesAreJudgedAgainWhenARaceIsLost(t *testing.T) {
	f := newFixture(t)
	f.put(thing("a", "one", "red"))
	var told observed
	f.observer = &told
	asked := map[string]int{}
	counting := func(name string, then Judge) Change {
		return Change{f.Table, "a", name, func(ctx context.Context, v Version, w *View) (Verdict, error) {
			asked[name]++
			return then(ctx, v, w)
		}}
	}
	results, err := Transact(t.Context(), false,
		counting("new", putting(thing("a", "new", "green"))),
		counting("one", func(_ context.Context, v Version, _ *View) (Verdict, error) {
			if asked["one"] == 1 {
				f.put(thing("a", "one", "blue"))
			}
			return Verdict{Action: Put, Object: thing("a", "one", is(t, v)+"+")}, nil
		}),
		counting("watched", func(context.Context, Version, *View) (Verdict, error) {
			if asked["watched"] == 2 {
				f.put(thing("a", "watched", "came to be"))
			}
			return Verdict{}, nil
		}))
	if err != nil || is(t, results[1].Version) != "blue+" || is(t, results[2].Version) != "came to be" {
		t.Fatal(results, err)
	}
	if got := f.state(); got != "new=green one=blue+ watched=came to be" || asked["new"] != 3 || asked["one"] != 3 {
		t.Errorf("now %s, asked %v", got, asked)
	}
	if want := []string{"retried: configmaps a/one by ", "retried: configmaps a/watched by "}; !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
}

func TestARefusalStandsOnlyInTheNewestState(t *testing.T) {
	f := newFixture(t)
	f.put(thing("a", "one", "red"))
	f.lag()
	f.put(thing("a", "one", "blue"))
	refuse := func(_ context.Context, v Version, _ *View) (Verdict, error) {
		if is(t, v) == "red" {
			return Verdict{}, errors.New("red")
		}
		return Verdict{Action: Put, Object: thing("a", "one", is(t, v)+"+")}, nil
	}
	if _, err := Transact(t.Context(), false, Change{f.Table, "a", "one", refuse}); err != nil {
		t.Error(err)
	}
	if got := f.state(); got != "one=blue+" {
		t.Error(got)
	}
}

// Two objects that claim one key in one transaction see each other.
func TestAChangeSeesWhatThoseBeforeItLeave(t *testing.T) {
	f := newFixture(t)
	f.put(thing("a", "gone", "red"))
	key := func(w *View, n int) string { return w.ClaimPrefix("numbers") + fmt.Sprint(n) }
	claim := func(name string) Change {
		return Change{f.Table, "a", name, func(_ context.Context, v Version, w *View) (Verdict, error) {
			n := 1
			for w.Peek(key(w, n)) != nil && w.Get(key(w, n)) != nil {
				n++
			}
			w.Put(key(w, n), []byte(name))
			return Verdict{Action: Put, Object: thing("a", name, fmt.Sprint(n))}, nil
		}}
	}
	look := func(_ context.Context, v Version, w *View) (Verdict, error) {
		saw := f.Version(w.Get(f.Key("a", "one")))
		return Verdict{Action: Put, Object: thing("a", "look", fmt.Sprint(is(t, saw), ", ", w.Get(f.Key("a", "gone")) == nil))}, nil
	}
	release := func(_ context.Context, v Version, w *View) (Verdict, error) {
		w.Delete(key(w, 1))
		w.Delete(key(w, 2))
		return Verdict{Action: Put, Object: thing("a", "free", "released")}, nil
	}
	_, err := Transact(t.Context(), false,
		claim("one"), claim("two"), f.want("gone="), Change{f.Table, "a", "look", look}, Change{f.Table, "a", "free", release}, claim("three"))
	if err != nil {
		t.Fatal(err)
	}
	snap, err := f.engine.Read(t.Context(), kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	w := &View{table: f.Table}
	if one, two := snap.Get(key(w, 1)), snap.Get(key(w, 2)); one == nil || string(one.Value) != "three" || two != nil {
		t.Errorf("in the end 1 is %v and 2 is %v", one, two)
	}
	if got, want := f.state(), "free=released look=1, true one=1 three=1 two=2"; got != want {
		t.Errorf("now  %s\nwant %s", got, want)
	}
}

func TestATransactionHasLimits(t *testing.T) {
	f := newFixture(t)
	many := func(n int) []Change {
		var all []Change
		for i := range n {
			all = append(all, f.want(fmt.Sprintf("n%d=red", i)))
		}
		return all
	}
	for _, dry := range []bool{true, false} {
		_, err := Transact(t.Context(), dry, many(kv.MaxTxnOps/2+1)...)
		if !IsKind(err, TooLarge) || err.Error() != "storage: too large: the transaction comes to 4098 conditions and changes, and at most 4096 are allowed: make several of it" {
			t.Error(err)
		}
		if _, err := Transact(t.Context(), dry, many(kv.MaxTxnOps/2)...); err != nil {
			t.Error(err)
		}
	}
	large := func(name string) Change {
		return Change{f.Table, "a", name, func(context.Context, Version, *View) (Verdict, error) {
			return Verdict{Action: Put, Value: make([]byte, kv.MaxValueBytes)}, nil
		}}
	}
	_, err := Transact(t.Context(), false, large("a"), large("b"), large("c"), large("d"))
	if !IsKind(err, TooLarge) || !strings.Contains(err.Error(), "bytes, and at most 67108864 are allowed") {
		t.Error(err)
	}
	other := newFixture(t)
	if _, err := Transact(t.Context(), false, f.want("a=b"), other.want("c=d")); !IsKind(err, BadRequest) {
		t.Error(err)
	}
}

func TestATransactionWhoseTimeIsUpWritesNothing(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Transact(ctx, false, f.want("one=red"), Change{f.Table, "a", "two", func(context.Context, Version, *View) (Verdict, error) {
		cancel()
		return Verdict{Action: Put, Object: thing("a", "two", "red")}, nil
	}})
	if !IsKind(err, Timeout) || f.state() != "" {
		t.Errorf("%v, now %s", err, f.state())
	}
	f.engine.fail = &kv.Error{Op: "commit", Kind: kv.ErrUnknown}
	if _, err := Transact(t.Context(), false, f.want("one=red")); !IsKind(err, Unknown) {
		t.Error(err)
	}
}

// Many transactions over the same few objects, each naming them in its own order, form queues and no storm.
func TestManyTransactionsFormAQueue(t *testing.T) {
	f := newFixture(t)
	const writers, each = 16, 16
	var judgements atomic.Int64
	add := func(name string) Change {
		return Change{f.Table, "a", name, func(_ context.Context, v Version, _ *View) (Verdict, error) {
			judgements.Add(1)
			return Verdict{Action: Put, Object: thing("a", name, is(t, v)+"+")}, nil
		}}
	}
	orders := [][]string{{"one", "two"}, {"two", "one"}, {"three", "one"}, {"two", "three"}}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for range each {
				order := orders[w%len(orders)]
				if _, err := Transact(t.Context(), false, add(order[0]), add(order[1])); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := strings.Count(f.state(), "+"); got != 2*writers*each {
		t.Errorf("%d changes are there, want %d", got, 2*writers*each)
	}
	per := float64(judgements.Load()) / (2 * writers * each)
	t.Logf("%.2f judgements for each change", per)
	if per > 3 {
		t.Errorf("%.2f judgements for each change", per)
	}
	if len(f.turns.queues) != 0 {
		t.Errorf("%d queues are left behind", len(f.turns.queues))
	}
}
