package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/pawl-dev/pawl/kv"
)

// storing is a judge that stores a value of its own.
func storing(value string) Judge {
	return func(_ context.Context, current Version, _ *View) (Verdict, error) {
		if current.Exists() && string(current.Value()) == value {
			return Verdict{}, nil
		}
		return Verdict{Action: Put, Value: []byte(value)}, nil
	}
}

func (f *fixture) store(namespace, name, value string) Result {
	f.Helper()
	res, err := f.Modify(context.Background(), namespace, name, false, storing(value))
	if err != nil {
		f.Fatal(err)
	}
	return res
}

func TestAValueOfTheJudgesOwnIsStoredAsItIs(t *testing.T) {
	f := newFixture(t)
	first := f.store("a", "one", "no JSON at all")
	if got := first.Version; !bytes.Equal(got.Value(), []byte("no JSON at all")) || got.Key() != "default/core/configmaps/a/one" {
		t.Errorf("stored %q under %s", got.Value(), got.Key())
	}
	if again := f.store("a", "one", "no JSON at all"); again.Wrote || again.Version.Revision() != first.Version.Revision() {
		t.Errorf("a judge that left it wrote %+v", again)
	}
	// Storage does not know what a value means, so it does not find two of them the same.
	put := func(context.Context, Version, *View) (Verdict, error) {
		return Verdict{Action: Put, Value: []byte("no JSON at all")}, nil
	}
	res, err := f.Modify(context.Background(), "a", "one", false, put)
	if err != nil || !res.Wrote || res.Version.Revision() <= first.Version.Revision() {
		t.Errorf("a judge that put the same wrote %+v, %v", res, err)
	}
	dry, err := f.Modify(context.Background(), "a", "one", true, storing("another"))
	if err != nil || !dry.Wrote || string(dry.Version.Value()) != "another" {
		t.Errorf("a dry run shows %q, %v", dry.Version.Value(), err)
	}
	if v, err := f.Get(context.Background(), "a", "one", kv.Latest); err != nil || string(v.Value()) != "no JSON at all" {
		t.Errorf("after a dry run there is %q, %v", v.Value(), err)
	}
}

func TestObjectsWithoutANamespaceLieBesideNamespaces(t *testing.T) {
	f := newFixture(t)
	f.store("a", "one", "in a")
	f.store("", "b", "in none")
	f.store("c", "one", "in c")
	var got []string
	page, err := f.List(context.Background(), ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range page.Items {
		got = append(got, fmt.Sprintf("%s/%s=%s", v.Namespace(), v.Name(), v.Value()))
	}
	if want := "[a/one=in a /b=in none c/one=in c]"; fmt.Sprint(got) != want {
		t.Errorf("listed %v, want %s", got, want)
	}
	if page, err := f.List(context.Background(), ListOptions{Name: "b"}); err != nil || len(page.Items) != 1 {
		t.Errorf("b alone: %+v, %v", page, err)
	}
}

// chooser picks the values that are among those named, and remembers what it was asked.
type chooser struct {
	these []string
	asked []string
	fail  error // of the value "broken"
}

func (p *chooser) pick(v Version) (bool, error) {
	value := string(v.Value())
	p.asked = append(p.asked, value)
	if value == "broken" {
		return false, p.fail
	}
	for _, this := range p.these {
		if value == this {
			return true, nil
		}
	}
	return false, nil
}

func TestAFunctionPicksFromAList(t *testing.T) {
	f := newFixture(t)
	for i, value := range []string{"red", "green", "broken", "red", "red"} {
		f.store("a", fmt.Sprint(i), value)
	}
	ctx := context.Background()
	p := &chooser{these: []string{"red"}}
	page, err := f.List(ctx, ListOptions{Limit: 2, Selector: Selector{Func: p.pick}})
	if err != nil || len(page.Items) != 2 || page.Continue == "" || page.Remaining != nil {
		t.Errorf("the first page is %+v, %v", page, err)
	}
	if fmt.Sprint(p.asked) != "[red green broken red]" {
		t.Errorf("asked of %v", p.asked)
	}
	p = &chooser{fail: errors.New("unreadable")}
	if _, err := f.List(ctx, ListOptions{Selector: Selector{Func: p.pick}}); err != p.fail {
		t.Errorf("a function that fails: %v", err)
	}
}

func TestAFunctionPicksFromAWatch(t *testing.T) {
	corrupt := &Error{Kind: Corrupt, Err: errors.New("unreadable")}
	for _, c := range []struct {
		name   string
		fail   error
		change func(f *fixture)
		want   string
	}{
		{"what comes to be picked is added", nil, func(f *fixture) { f.store("a", "x", "green"); f.store("a", "x", "red") }, "ADDED red"},
		{"what stays picked is modified", nil, func(f *fixture) { f.store("a", "one", "rose") }, "MODIFIED rose"},
		{"what is picked no more is deleted", nil, func(f *fixture) { f.store("a", "one", "green") }, "DELETED red"},
		{"a failure to decide is a no", errors.New("odd"), func(f *fixture) { f.store("a", "one", "broken") }, "DELETED red"},
		{"what cannot be read ends the watch", corrupt, func(f *fixture) { f.store("a", "x", "broken") }, "error "},
		{"what could not be read and is removed says so", corrupt, func(f *fixture) { f.remove("a", "bad") }, "error DELETED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.store("a", "one", "red")
			bad := f.store("a", "bad", "broken").Version.Revision()
			p := &chooser{these: []string{"red", "rose"}, fail: c.fail}
			w, err := f.Watch(context.Background(), WatchOptions{From: After{bad}, Selector: Selector{Func: p.pick}})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			c.change(f)
			e, ok, err := w.Next()
			got := fmt.Sprintf("error %s", e.Type)
			if err == nil && ok {
				got = fmt.Sprintf("%s %s", e.Type, e.Version.Value())
			}
			if got != c.want {
				t.Errorf("got %s (%v), want %s", got, err, c.want)
			}
		})
	}
}

// Changes that happen while the state is told come after its end, and its end can be seen.
func TestTheEndOfTheStateComesBeforeAnyChange(t *testing.T) {
	f := newFixture(t)
	state := f.store("a", "one", "red").Version.Revision()
	w, err := f.Watch(context.Background(), WatchOptions{From: State{At: kv.Latest, Mark: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	f.store("a", "two", "green")
	if e, ok, err := w.Next(); !ok || err != nil || e.Version.Name() != "one" {
		t.Fatalf("the state is %+v, %v", e, err)
	}
	if _, done := w.StateRevision(); done {
		t.Error("the state is over before it was seen to be")
	}
	if e, ok, err := w.Next(); ok || err != nil {
		t.Fatalf("at the end of the state: %+v, %v", e, err)
	}
	if rev, done := w.StateRevision(); !done || rev != state {
		t.Errorf("the state is of %d, over %t; want %d", rev, done, state)
	}
	select {
	case <-w.Wait():
	default:
		t.Error("there is a change, and nothing says so")
	}
	if e, ok, err := w.Next(); !ok || err != nil || e.Version.Name() != "two" {
		t.Errorf("then %+v, %v", e, err)
	}
}

// A function picks among what labels and fields pick, and is asked of nothing else's.
func TestAFunctionPicksAmongWhatIsPicked(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"one", "two", "three"} {
		f.put(thing("a", name, "red"))
	}
	odd := fields.OneTermNotEqualSelector("metadata.name", "two")
	var asked []string
	page, err := f.List(context.Background(), ListOptions{Selector: Selector{Fields: odd, Func: func(v Version) (bool, error) {
		asked = append(asked, v.Name())
		return v.Name() != "three", nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Items) != 1 || page.Items[0].Name() != "one" || fmt.Sprint(asked) != "[one three]" {
		t.Errorf("picked %d, asked of %v", len(page.Items), asked)
	}
}
