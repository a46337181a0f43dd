package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
)

func putting(cm *corev1.ConfigMap) Judge {
	return func(context.Context, Version, *View) (Verdict, error) { return Verdict{Action: Put, Object: cm}, nil }
}

// Only a commit may rest on a state that is not the newest. What happened after the state at
// hand is given as a change; the judge says what it saw.
func TestOnlyACommitMayRestOnAStaleState(t *testing.T) {
	errNo := errors.New("no")
	nothing := func(*fixture) {}
	changed := func(f *fixture) { f.put(thing("a", "one", "second")) }
	elsewhere := func(f *fixture) { f.put(thing("a", "other", "second")) }
	gone := func(f *fixture) { f.remove("a", "one") }
	guard := func(f *fixture) { f.put(thing("a", "guard", "second")) }

	refuse := func(string, *View) (Verdict, error) { return Verdict{}, errNo }
	leave := func(string, *View) (Verdict, error) { return Verdict{}, nil }
	remove := func(string, *View) (Verdict, error) { return Verdict{Action: Remove}, nil }
	mark := func(saw string, _ *View) (Verdict, error) {
		return Verdict{Action: Put, Object: thing("a", "one", saw+" and more")}, nil
	}
	same := func(string, *View) (Verdict, error) {
		return Verdict{Action: Put, Object: thing("a", "one", "first")}, nil
	}
	unencodable := func(string, *View) (Verdict, error) {
		return Verdict{Action: Put, Object: thing("a", "one", "unencodable")}, nil
	}
	guarded := func(then func(string, *View) (Verdict, error)) func(string, *View) (Verdict, error) {
		return func(saw string, view *View) (Verdict, error) {
			view.Get("default/core/configmaps/a/guard")
			view.Get("default/core/configmaps/a/guard")
			return then(saw, view)
		}
	}
	for _, c := range []struct {
		name   string
		change func(*fixture)
		judge  func(saw string, view *View) (Verdict, error)
		dry    bool

		saw     []string
		err     bool
		wrote   bool
		result  string // what is there, according to the result
		stored  string // what is there
		commits int
	}{
		{"an error stands if the object is the same", nothing, refuse, false, []string{"first"}, true, false, "", "first", 0},
		{"an error stands if only another object changed", elsewhere, refuse, false, []string{"first"}, true, false, "", "first", 0},
		{"an error is judged again if the object changed (K28)", changed, refuse, false, []string{"first", "second"}, true, false, "", "second", 0},
		{"an error is judged again if the object is gone (K30)", gone, refuse, false, []string{"first", "nothing"}, true, false, "", "nothing", 0},
		{"an object that cannot be encoded is judged again as well", changed, unencodable, false, []string{"first", "second"}, true, false, "", "second", 0},
		{"to leave it stands if the object is the same", elsewhere, leave, false, []string{"first"}, false, false, "first", "first", 0},
		{"to leave it is judged again if the object changed", changed, leave, false, []string{"first", "second"}, false, false, "second", "second", 0},
		{"to put what is there already stands if it is there (K33)", elsewhere, same, false, []string{"first"}, false, false, "first", "first", 0},
		{"to put what is there already is a write if it no longer is (K34)", changed, same, false, []string{"first", "second"}, false, true, "first", "first", 1},
		{"a dry run stands if the object is the same", elsewhere, mark, true, []string{"first"}, false, true, "first and more", "first", 0},
		{"a dry run is judged again if the object changed", changed, mark, true, []string{"first", "second"}, false, true, "second and more", "second", 0},
		{"a dry run of a removal is judged again if the object is gone", gone, remove, true, []string{"first", "nothing"}, false, false, "nothing", "nothing", 0},
		{"a put needs no newer state if the object is the same", elsewhere, mark, false, []string{"first"}, false, true, "first and more", "first and more", 1},
		{"a put that lost the race is judged again (K26)", changed, mark, false, []string{"first", "second"}, false, true, "second and more", "second and more", 2},
		{"a put onto an object that is gone is judged again", gone, mark, false, []string{"first", "nothing"}, false, true, "nothing and more", "nothing and more", 2},
		{"a removal needs no newer state if the object is the same", elsewhere, remove, false, []string{"first"}, false, true, "first", "nothing", 1},
		{"a removal that lost the race is judged again (K40)", changed, remove, false, []string{"first", "second"}, false, true, "second", "nothing", 2},
		{"a removal of what is gone already removes nothing", gone, remove, false, []string{"first", "nothing"}, false, false, "nothing", "nothing", 1},
		{"a guard that changed refuses the commit", guard, guarded(mark), false, []string{"first", "first"}, false, true, "first and more", "first and more", 2},
		{"a guard that changed makes an error be judged again", guard, guarded(refuse), false, []string{"first", "first"}, true, false, "", "first", 0},
		{"a guard that nobody looked at does not matter", guard, mark, false, []string{"first"}, false, true, "first and more", "first and more", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.put(thing("a", "one", "first"))
			f.put(thing("a", "guard", "first")) // so that the newest revision is not the object's
			f.lag()
			c.change(f)
			var saw []string
			res, err := f.Modify(t.Context(), "a", "one", c.dry, func(_ context.Context, current Version, view *View) (Verdict, error) {
				saw = append(saw, is(t, current))
				return c.judge(saw[len(saw)-1], view)
			})
			if (err != nil) != c.err || errors.Is(err, errNo) != (c.err && c.name != "an object that cannot be encoded is judged again as well") {
				t.Fatalf("error %v", err)
			}
			if !slices.Equal(saw, c.saw) {
				t.Errorf("the judge saw %q, want %q", saw, c.saw)
			}
			if f.engine.commits != c.commits {
				t.Errorf("%d commits were tried, want %d", f.engine.commits, c.commits)
			}
			if c.commits == 1 && len(c.saw) == 1 && f.engine.latest > 0 {
				t.Error("a commit asked for the newest state, and need not")
			}
			f.catchUp()
			now, gerr := f.Get(t.Context(), "a", "one", kv.Latest)
			if gerr != nil && kindOf(gerr) != NotFound {
				t.Fatal(gerr)
			}
			if got := is(t, now); got != c.stored {
				t.Errorf("stored is %q, want %q", got, c.stored)
			}
			if err != nil {
				return
			}
			if res.Wrote != c.wrote || is(t, res.Version) != c.result {
				t.Errorf("wrote %v, result %q; want %v, %q", res.Wrote, is(t, res.Version), c.wrote, c.result)
			}
			if !res.Wrote && now.Exists() && res.Version.Revision() != now.Revision() {
				t.Errorf("the result is at %d, and what is there at %d (K33)", res.Version.Revision(), now.Revision())
			}
			if want := c.saw[len(c.saw)-1]; res.Wrote && is(t, res.Prev) != want {
				t.Errorf("before it was %q, want %q", is(t, res.Prev), want)
			}
		})
	}
}

// A verdict that never settles is asked for again and again, but each time of a newer state:
// the loop ends when the writers do.
func TestModifySeesWhatItLostTo(t *testing.T) {
	f := newFixture(t)
	f.put(thing("a", "one", "0"))
	f.lag() // and stays so: what is at hand never shows any of the following
	n := 0
	_, err := f.Modify(t.Context(), "a", "one", false, func(_ context.Context, current Version, _ *View) (Verdict, error) {
		if got := is(t, current); got != fmt.Sprint(n) {
			t.Fatalf("judged %q, lost to %d", got, n)
		}
		if n++; n <= 100 {
			f.put(thing("a", "one", fmt.Sprint(n)))
		}
		return Verdict{Action: Put, Object: thing("a", "one", "mine")}, nil
	})
	if err != nil || n != 101 {
		t.Errorf("%d judgements, %v; want one more than there were races to lose (K26)", n, err)
	}
}

func TestResultsCarryTheirRevisions(t *testing.T) {
	f := newFixture(t)
	created, err := f.Modify(t.Context(), "a", "one", false, putting(thing("a", "one", "first")))
	if err != nil || created.Prev.Exists() {
		t.Fatal(created, err)
	}
	f.put(thing("a", "other", "first"))
	again, err := f.Modify(t.Context(), "a", "one", false, putting(thing("a", "one", "first")))
	if err != nil || again.Wrote || again.Version.Revision() != created.Version.Revision() {
		t.Errorf("putting the same wrote %v at %d (K33)", again.Wrote, again.Version.Revision())
	}
	draft, err := f.Modify(t.Context(), "a", "one", true, putting(thing("a", "one", "draft")))
	if err != nil || draft.Version.Revision() != created.Version.Revision() {
		t.Errorf("a dry run has version %d, want that of what exists (S132)", draft.Version.Revision())
	}
	if sent, ok := draft.Version.AppendJSON(nil, false); !ok || members(t, sent)["data"].(map[string]any)["is"] != "draft" {
		t.Errorf("a dry run sends %s, %v", sent, ok)
	}
	author := kv.Author{User: "me", Manager: "m", Verb: "update", Subresource: "status"}
	second, err := f.Modify(WithAuthor(t.Context(), author), "a", "one", false, putting(thing("a", "one", "second")))
	if err != nil || is(t, second.Version) != "second" || second.Version.Author() != author || second.Version.Revision() <= created.Version.Revision() {
		t.Errorf("%+v, %v", second, err)
	}
	gone, err := f.Modify(t.Context(), "a", "one", false, func(context.Context, Version, *View) (Verdict, error) { return Verdict{Action: Remove}, nil })
	_, newest := f.engine.Revisions()
	if err != nil || gone.Version.Revision() != newest || is(t, gone.Version) != "second" {
		t.Errorf("a removal gives %q at %d, want what was there at %d (K42)", is(t, gone.Version), gone.Version.Revision(), newest)
	}
	if v := second.Version.At(created.Version.Revision()); is(t, v) != "first" {
		t.Errorf("back then it was %q", is(t, v))
	}
	if v := second.Version.At(created.Version.Revision() - 1); v.Exists() {
		t.Errorf("before it was created it was %q", is(t, v))
	}
}

func TestExpiryIsKeptUnlessToldOtherwise(t *testing.T) {
	f := newFixture(t)
	put := func(is string, e kv.Expiry) Version {
		res, err := f.Modify(t.Context(), "a", "one", false, func(context.Context, Version, *View) (Verdict, error) {
			return Verdict{Action: Put, Object: thing("a", "one", is), Expiry: e}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return res.Version
	}
	first := put("first", kv.Expiry{Kind: kv.After, For: time.Hour})
	if first.Expires().IsZero() {
		t.Fatal("it does not expire")
	}
	if got := put("second", kv.Expiry{}).Expires(); !got.Equal(first.Expires()) {
		t.Errorf("a write that says nothing moved the end to %v", got)
	}
	f.clock.Advance(time.Minute)
	if got := put("second", kv.Expiry{Kind: kv.After, For: time.Hour}).Expires(); !got.Equal(first.Expires()) {
		t.Errorf("a write that changes nothing moved the end to %v (K46)", got)
	}
	if got := put("third", kv.Expiry{Kind: kv.Forever}).Expires(); !got.IsZero() {
		t.Errorf("it still ends at %v", got)
	}
}

// An object whose time has come is deleted as if somebody had done it (rule K44).
func TestAnObjectWhoseTimeHasComeIsDeleted(t *testing.T) {
	f := newFixture(t)
	res, err := f.Modify(t.Context(), "a", "one", false, func(context.Context, Version, *View) (Verdict, error) {
		return Verdict{Action: Put, Object: thing("a", "one", "first"), Expiry: kv.Expiry{Kind: kv.After, For: time.Hour}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.Watch(t.Context(), WatchOptions{From: After{res.Version.Revision()}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	f.clock.Advance(time.Hour - time.Second)
	if v, err := f.Get(t.Context(), "a", "one", kv.Latest); err != nil || is(t, v) != "first" {
		t.Errorf("before its time: %v, %v", v, err)
	}
	f.clock.Advance(time.Hour)
	<-w.Wait()
	_, newest := f.engine.Revisions()
	if got, want := told(t, w), fmt.Sprintf("DELETED a/one=first@%d", newest); len(got) != 1 || got[0] != want || newest <= res.Version.Revision() {
		t.Errorf("told %q, want %s", got, want)
	}
	if _, err := f.Get(t.Context(), "a", "one", kv.Latest); kindOf(err) != NotFound {
		t.Errorf("after its time: %v", err)
	}
}

// What is stored in other bytes than the codec would make is written anew, though the object is
// the same (rule K35).
func TestStoredBytesAreRenewed(t *testing.T) {
	f := newFixture(t)
	old, _, err := seal([]byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"a","name":"one"},"data":{"is":"first"}}`), 7)
	if err != nil {
		t.Fatal(err)
	}
	was := f.raw(kv.Put(f.Key("a", "one"), old))
	for i, wrote := range []bool{true, false} {
		res, err := f.Modify(t.Context(), "a", "one", false, putting(thing("a", "one", "first")))
		if err != nil || res.Wrote != wrote || res.Version.Revision() != was+1 {
			t.Errorf("write %d: wrote %v at %d, %v", i+1, res.Wrote, res.Version.Revision(), err)
		}
	}
}

func TestWhatEnginesSayHasAKind(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want Kind
	}{
		{"the engine takes no writes", &kv.Error{Op: "commit", Kind: kv.ErrReadOnly, Err: errors.New("disk full")}, Unavailable},
		{"the engine is closed", &kv.Error{Op: "commit", Kind: kv.ErrClosed}, Unavailable},
		{"nobody knows whether it was written", &kv.Error{Op: "commit", Kind: kv.ErrUnknown}, Unknown},
		{"it is more than the engine takes at once", &kv.Error{Op: "commit", Kind: kv.ErrTooLarge, Err: errors.New("129 changes")}, TooLarge},
		{"the engine's log is elsewhere, and away", &kv.Error{Op: "commit", Kind: kv.ErrAway}, Unavailable},
		{"the engine waited for it in vain", &kv.Error{Op: "read", Kind: kv.ErrAway, Err: context.DeadlineExceeded}, Timeout},
		{"it can never be written", &kv.Error{Op: "commit", Kind: kv.ErrInvalid, Err: errors.New("value too long")}, BadRequest},
		{"something else", errors.New("odd"), Unavailable},
	} {
		f := newFixture(t)
		f.engine.fail = c.err
		_, err := f.Modify(t.Context(), "a", "one", false, putting(thing("a", "one", "first")))
		if kindOf(err) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: got %v, want %v around it", c.name, err, c.want)
		}
	}
}

func TestACancelledWriteIsATimeout(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gone home"))
	_, err := f.Modify(ctx, "a", "one", false, func(context.Context, Version, *View) (Verdict, error) {
		t.Error("judged for nobody")
		return Verdict{}, nil
	})
	if kindOf(err) != Timeout {
		t.Errorf("got %v, want %v", err, Timeout)
	}
	f.engine.Close()
	if _, err := f.Modify(t.Context(), "a", "one", false, putting(thing("a", "one", "x"))); kindOf(err) != Unavailable {
		t.Errorf("got %v from a closed engine", err)
	}
}

func TestErrorsSayWhatTheyAreAbout(t *testing.T) {
	for _, c := range []struct {
		e    Error
		want string
	}{
		{Error{Kind: NotFound, Namespace: "default", Name: "color"}, "storage: not found: default/color"},
		{Error{Kind: Corrupt, Name: "color", Err: errors.New("no JSON")}, "storage: corrupt object: color: no JSON"},
		{Error{Kind: TooNew, Want: 9, Have: 7}, "storage: version too new: asked for 9, have 7"},
	} {
		if got := c.e.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
		if !IsKind(fmt.Errorf("wrapped: %w", &c.e), c.e.Kind) || IsKind(&c.e, c.e.Kind+1) {
			t.Errorf("%v: the kind is not seen", c.e)
		}
	}
}

// Many writers of one object form a queue, not a storm: however many there are, the number
// of judgements for each write that lands stays small.
func TestManyWritersOfOneObjectFormAQueue(t *testing.T) {
	engine, err := local.Open(t.Context(), local.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	table := NewTable(Options{Engine: engine, Resource: "configmaps", Namespaced: true, Codec: configMaps{7}})
	const writers, each = 32, 16
	var judgements atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				_, err := table.Modify(t.Context(), "a", "one", false, func(_ context.Context, current Version, _ *View) (Verdict, error) {
					judgements.Add(1)
					cm := thing("a", "one", "counted")
					if current.Exists() {
						obj, err := current.Object()
						if err != nil {
							return Verdict{}, err
						}
						cm = obj.(*corev1.ConfigMap)
						cm.ResourceVersion = ""
					}
					cm.Data[fmt.Sprintf("%d-%d", w, i)] = ""
					return Verdict{Action: Put, Object: cm}, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	v, err := table.Get(t.Context(), "a", "one", kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	obj, err := v.Object()
	if err != nil {
		t.Fatal(err)
	}
	if got := len(obj.(*corev1.ConfigMap).Data) - 1; got != writers*each {
		t.Errorf("%d writes are there, want %d: some were overwritten unseen", got, writers*each)
	}
	per := float64(judgements.Load()) / (writers * each)
	t.Logf("%.2f judgements for each write", per)
	if per > 1.5 {
		t.Errorf("%.2f judgements for each write", per)
	}
	if len(table.turns.queues) != 0 {
		t.Errorf("%d queues are left behind", len(table.turns.queues))
	}
}

func TestTurnsAreFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
		var order []int
		var wg sync.WaitGroup
		first := turns.take(t.Context(), "k")
		for i := range 5 {
			wg.Go(func() {
				done := turns.take(t.Context(), "k")
				order = append(order, i) // only whose turn it is
				done()
			})
			synctest.Wait()
		}
		turns.take(t.Context(), "another key")()
		if len(order) != 0 {
			t.Fatalf("%v went before the first was done", order)
		}
		began := time.Now()
		first()
		first() // twice is harmless
		wg.Wait()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("they waited %v for turns that were theirs", waited)
		}
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
			t.Errorf("went in the order %v", order)
		}
		if len(turns.queues) != 0 {
			t.Errorf("queues are left behind: %v", turns.queues)
		}
	})
}

// However long a queue is, those in it wait while it moves.
func TestAQueueThatMovesIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
		holding, most := 0, 0
		turn := func(get func(context.Context, string) func()) {
			done := get(t.Context(), "k")
			holding++
			most = max(most, holding)
			time.Sleep(joinPatience / 2)
			holding--
			done()
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { turn(turns.take) })
			synctest.Wait()
			wg.Go(func() { turn(turns.join) })
			synctest.Wait()
		}
		began := time.Now()
		wg.Wait()
		if took := time.Since(began); most != 1 || took != 20*joinPatience/2 {
			t.Errorf("%d went at once, all in %v", most, took)
		}
	})
}

// Who has lost nothing joins a queue, and waits for nobody if there is none, or if it does not move.
func TestWhoComesToAQueueJoinsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
		if turns.join(t.Context(), "k") != nil {
			t.Error("there was no queue, and now there is one")
		}
		first := turns.take(t.Context(), "k")
		if turns.join(t.Context(), "another key") != nil {
			t.Error("the queue is another's")
		}
		var order []string
		var wg sync.WaitGroup
		for _, who := range []struct {
			name string
			get  func(context.Context, string) func()
		}{{"joined", turns.join}, {"took", turns.take}, {"joined later", turns.join}} {
			wg.Go(func() {
				done := who.get(t.Context(), "k")
				order = append(order, who.name)
				time.Sleep(joinPatience / 2)
				done()
			})
			synctest.Wait()
		}
		time.Sleep(joinPatience / 2)
		first()
		synctest.Wait() // it is the turn of the one who joined
		if turns.contended.Load() != 1 {
			t.Errorf("%d queues", turns.contended.Load())
		}
		wg.Wait()
		if fmt.Sprint(order) != "[joined took joined later]" {
			t.Errorf("went in the order %v", order)
		}
		slow := turns.take(t.Context(), "k")
		began := time.Now()
		turns.join(t.Context(), "k")()
		turns.join(t.Context(), "k")()
		if waited := time.Since(began); waited != joinPatience {
			t.Errorf("waited %v for one who is slow, want %v", waited, joinPatience)
		}
		slow()
		if len(turns.queues) != 0 || turns.contended.Load() != 0 {
			t.Errorf("queues are left behind: %v, %d", turns.queues, turns.contended.Load())
		}
	})
}

func TestNobodyWaitsLongForATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
		slow := turns.take(t.Context(), "k")
		began := time.Now()
		passed := turns.take(t.Context(), "k") // passes the slow one over
		if waited := time.Since(began); waited != turnPatience {
			t.Errorf("waited %v, want %v", waited, turnPatience)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began = time.Now()
		gaveUp := turns.take(ctx, "k")
		if waited := time.Since(began); waited != 0 {
			t.Errorf("waited %v for nobody", waited)
		}
		gaveUp()
		slow()
		passed()
		if len(turns.queues) != 0 {
			t.Errorf("queues are left behind: %v", turns.queues)
		}
	})
}
