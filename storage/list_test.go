package storage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pawl-dev/pawl/kv"
)

// A twin is a table as anybody would write it: a list, sorted and gone through.
type twin []*corev1.ConfigMap

func (w twin) sorted() twin {
	w = slices.Clone(w)
	slices.SortFunc(w, func(a, b *corev1.ConfigMap) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return w
}

// A choice is a selector and the loop that does what it means.
type choice struct {
	labels, fields string
	picks          func(*corev1.ConfigMap) bool
}

var choices = []choice{
	{"", "", func(*corev1.ConfigMap) bool { return true }},
	{"color=red", "", func(cm *corev1.ConfigMap) bool { return cm.Labels["color"] == "red" }},
	{"color!=red", "", func(cm *corev1.ConfigMap) bool { return cm.Labels["color"] != "red" }},
	{"color", "data.is=big", func(cm *corev1.ConfigMap) bool { return cm.Labels["color"] != "" && cm.Data["is"] == "big" }},
	{"", "metadata.namespace!=a", func(cm *corev1.ConfigMap) bool { return cm.Namespace != "a" }},
	{"", "metadata.name=n3", func(cm *corev1.ConfigMap) bool { return cm.Name == "n3" }},
	{"", "data.is=nowhere", func(*corev1.ConfigMap) bool { return false }},
}

// Lists of random objects, in pages of random sizes while others write, hold what a naive
// twin of the table held when the first page was read.
func TestListAgreesWithANaiveTwin(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		f := newFixture(t)
		var all twin
		random := func() {
			cm := thing([]string{"a", "a-b", "b"}[rnd.IntN(3)], fmt.Sprintf("n%d", rnd.IntN(12)), []string{"big", "small"}[rnd.IntN(2)],
				[]string{"", "color=red", "color=blue"}[rnd.IntN(3)])
			all = slices.DeleteFunc(all, func(o *corev1.ConfigMap) bool { return o.Namespace == cm.Namespace && o.Name == cm.Name })
			if rnd.IntN(5) == 0 {
				f.remove(cm.Namespace, cm.Name)
				return
			}
			f.put(cm)
			all = append(all, cm)
		}
		for range rnd.IntN(60) {
			random()
		}
		for range 5 {
			ch, ns, limit := choices[rnd.IntN(len(choices))], []string{"", "a", "b", "none"}[rnd.IntN(4)], rnd.Int64N(7)
			was := all.sorted()
			got, err := pages(f, ListOptions{Namespace: ns, Limit: limit, Selector: picking(t, ch.labels, ch.fields)}, random)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{}
			for _, cm := range was {
				if (ns == "" || ns == cm.Namespace) && ch.picks(cm) {
					want = append(want, cm.Namespace+"/"+cm.Name+"="+cm.Data["is"])
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: namespace %q, limit %d, %q, %q:\n got %q\nwant %q", seed, ns, limit, ch.labels, ch.fields, got, want)
			}
		}
	}
}

// pages reads all pages of a list and checks what each says of itself.
func pages(f *fixture, o ListOptions, between func()) ([]string, error) {
	got := []string{}
	remaining := int64(-1)
	var first *Page
	for {
		p, err := f.List(f.Context(), o)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = p
		}
		for _, v := range p.Items {
			got = append(got, v.Namespace()+"/"+v.Name()+"="+is(f.TB, v))
		}
		n := int64(len(p.Items))
		switch {
		case p.Items == nil:
			return nil, errors.New("no items at all, not even none (K57)")
		case p.Revision != first.Revision:
			return nil, fmt.Errorf("a page at %d, the first at %d (K52)", p.Revision, first.Revision)
		case o.Limit > 0 && n > o.Limit:
			return nil, fmt.Errorf("%d items on a page of %d", n, o.Limit)
		case p.Continue != "" && n < o.Limit:
			return nil, fmt.Errorf("%d items on a page of %d that is not the last (K59)", n, o.Limit)
		case (p.Remaining != nil) != (p.Continue != "" && o.Selector.Empty()):
			return nil, errors.New("what remains is told with a token and no selector, and only then (K61)")
		case remaining >= 0 && n+deref(p.Remaining) != remaining:
			return nil, fmt.Errorf("%d remained before a page of %d, now %d (K61)", remaining, n, deref(p.Remaining))
		case p.Remaining != nil && *p.Remaining == 0:
			return nil, errors.New("a token, and nothing left (K60)")
		}
		if p.Continue == "" {
			return got, nil
		}
		if p.Remaining != nil {
			remaining = *p.Remaining
		}
		if o.From, o.Limit, err = (ListQuery{Limit: o.Limit, Continue: p.Continue}).Parse(); err != nil {
			return nil, err
		}
		between()
	}
}

func deref(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func TestListsAreServedAtTheRevisionAsked(t *testing.T) {
	f := newFixture(t)
	one := f.put(thing("a", "one", "first"))
	two := f.put(thing("a", "two", "first"))
	three := f.put(thing("a", "three", "first"))
	f.lag()
	four := f.put(thing("a", "one", "second"))
	for _, c := range []struct {
		name       string
		rv, match  string
		limit      int64
		want       string
		rev        kv.Revision
		incomplete bool
	}{
		{"the newest state, though what is at hand is older", "", "", 0, "a/one a/three a/two", four, false},
		{"whatever is at hand", "0", "", 0, "a/one a/three a/two", three, false},
		{"whatever is at hand has no pages", "0", "", 1, "a/one a/three a/two", three, false},
		{"not older", two.String(), "", 0, "a/one a/three a/two", four, false},
		{"not older, in pages", two.String(), "NotOlderThan", 2, "a/one a/three", four, true},
		{"exactly", two.String(), "Exact", 0, "a/one a/two", two, false},
		{"exactly, by a limit without a match", two.String(), "", 1, "a/one", two, true},
		{"exactly, before most were there", one.String(), "Exact", 0, "a/one", one, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			from, limit, err := ListQuery{ResourceVersion: c.rv, ResourceVersionMatch: c.match, Limit: c.limit}.Parse()
			if err != nil {
				t.Fatal(err)
			}
			p, err := f.List(t.Context(), ListOptions{From: from, Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(names(p), " "); got != c.want || p.Revision != c.rev || (p.Continue != "") != c.incomplete {
				t.Errorf("got %s at %d, continue %q", got, p.Revision, p.Continue)
			}
		})
	}
}

func TestAListGoesOnAfterItsRevisionIsGone(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		f.put(thing("ns", name, "first"))
	}
	p, err := f.List(t.Context(), ListOptions{Namespace: "ns", Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	f.remove("ns", "c")
	newest := f.put(thing("ns", "bb", "second"))
	f.compact(newest)
	next := func(token string) (*Page, error) {
		from, limit, err := ListQuery{Limit: 2, Continue: token}.Parse()
		if err != nil {
			t.Fatal(err)
		}
		return f.List(t.Context(), ListOptions{Namespace: "ns", Limit: limit, From: from})
	}
	_, err = next(p.Continue)
	var e *Error
	if !errors.As(err, &e) || e.Kind != Expired || !e.Listing || e.Err.Error() != continueExpired {
		t.Fatalf("got %v, want %q (K69)", err, continueExpired)
	}
	start, _, _ := decodeContinue(p.Continue)
	if again, rev, err := decodeContinue(e.Continue); err != nil || again != start || rev != latestPage {
		t.Fatalf("the token to go on with begins at %q and %d, %v; want %q again, and %d (K69)", again, rev, err, start, latestPage)
	}
	if p, err = next(e.Continue); err != nil || strings.Join(names(p), " ") != "ns/bb ns/d" || p.Revision != newest {
		t.Fatalf("got %v, %v; want what is there now, from the same place on (K70)", p, err)
	}
	f.remove("ns", "e")
	if p, err = next(p.Continue); err != nil || strings.Join(names(p), " ") != "ns/e" || p.Revision != newest {
		t.Fatalf("got %v, %v; pages after that are at one revision again (K70)", p, err)
	}
	if p, err := f.List(t.Context(), ListOptions{From: Exactly{newest}}); err != nil || p.Revision != newest {
		t.Fatalf("got %v, %v; the revision that was compacted to can still be read (K54)", p, err)
	}
	if _, err = f.List(t.Context(), ListOptions{From: Exactly{2}}); !errors.As(err, &e) || e.Kind != Expired || e.Err.Error() != listExpired || e.Continue != "" {
		t.Fatalf("got %v, want %q (K54)", err, listExpired)
	}
}

func TestReadsOfTheFutureWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		now := f.put(thing("a", "one", "first"))
		_, err := f.Get(t.Context(), "a", "one", kv.AtLeast(now+1))
		var e *Error
		if !errors.As(err, &e) || e.Kind != TooNew || e.Want != now+1 || e.Have != now {
			t.Fatalf("got %v, want %v (K53)", err, TooNew)
		}
		if _, err := f.Get(t.Context(), "a", "none", kv.AtLeast(now+1)); kindOf(err) != TooNew {
			t.Fatalf("got %v; a version that is too new matters more than an object that is missing (K21)", err)
		}
		go f.Modify(t.Context(), "a", "one", false, putting(thing("a", "one", "second")))
		v, err := f.Get(t.Context(), "a", "one", kv.AtLeast(now+1))
		if err != nil || is(t, v) != "second" {
			t.Fatalf("got %v, %v; want what was written while we waited", v, err)
		}
		for _, from := range []From{Exactly{99}, PagesAt{99}, NotOlder{99}, ContinueAt{99, "a"}} {
			began := time.Now()
			if _, err := f.List(t.Context(), ListOptions{From: from, Limit: 1}); kindOf(err) != TooNew {
				t.Fatalf("%#v: got %v, want %v (K53)", from, err, TooNew)
			}
			if waited := time.Since(began); waited != futureWait {
				t.Errorf("%#v: waited %v, want %v (K53)", from, waited, futureWait)
			}
		}
		_, newest := f.engine.Revisions()
		go f.Modify(t.Context(), "a", "one", false, putting(thing("a", "one", "third")))
		p, err := f.List(t.Context(), ListOptions{From: Exactly{newest + 1}})
		if err != nil || is(t, p.Items[0]) != "third" {
			t.Fatalf("got %v, %v; want what was written while we waited (K53)", p, err)
		}
	})
}

// Who no longer wants to know is not kept waiting, unlike in the reference (rule K108).
func TestAWaitForTheFutureEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		for name, read := range map[string]func(context.Context) error{
			"a get":  func(ctx context.Context) error { _, err := f.Get(ctx, "a", "one", kv.AtLeast(99)); return err },
			"a list": func(ctx context.Context) error { _, err := f.List(ctx, ListOptions{From: NotOlder{99}}); return err },
			"a watch": func(ctx context.Context) error {
				_, err := f.Watch(ctx, WatchOptions{From: State{At: kv.AtLeast(99)}})
				return err
			},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			began := time.Now()
			err := read(ctx)
			cancel()
			if err == nil || time.Since(began) != time.Second {
				t.Errorf("%s: %v after %v, want an error as soon as nobody waits", name, err, time.Since(began))
			}
		}
		began := time.Now()
		if _, err := f.List(t.Context(), ListOptions{From: AtHand{}}); err != nil || time.Since(began) != 0 {
			t.Errorf("%v after %v; what is at hand is never waited for", err, time.Since(began))
		}
	})
}

func TestAListOfOneObject(t *testing.T) {
	f := newFixture(t)
	f.put(thing("a", "one", "first", "color=red"))
	f.put(thing("a", "one-more", "first", "color=red"))
	newest := f.put(thing("b", "one", "first"))
	for _, c := range []struct {
		name, object, labels, want string
	}{
		{"the object alone, not those whose names begin alike (K56)", "one", "", "a/one"},
		{"the selector still applies (K56)", "one", "color=blue", ""},
		{"one that is not there (K56)", "two", "", ""},
	} {
		p, err := f.List(t.Context(), ListOptions{Namespace: "a", Name: c.object, Selector: picking(t, c.labels, "")})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(names(p), " "); got != c.want || p.Revision != newest || p.Items == nil {
			t.Errorf("%s: got %q at %d", c.name, got, p.Revision)
		}
	}
}

// Pages end where the keys end, whether or not a selector picks what is left (rule K60).
func TestATokenMeansThatKeysAreLeft(t *testing.T) {
	f := newFixture(t)
	for name, color := range map[string]string{"a": "red", "b": "red", "c": "blue"} {
		f.put(thing("ns", name, "first", "color="+color))
	}
	red := picking(t, "color=red", "")
	for _, c := range []struct {
		name  string
		sel   Selector
		limit int64
		want  string // pages, with + where a token follows
	}{
		{"the limit is the number of keys", Selector{}, 3, "ns/a ns/b ns/c"},
		{"a key is left", Selector{}, 2, "ns/a ns/b+, ns/c"},
		{"a key is left that the selector does not pick: an empty page", red, 2, "ns/a ns/b+, "},
		{"a selector fills its pages from where it finds something", red, 1, "ns/a+, ns/b+, "},
		{"no limit", red, 0, "ns/a ns/b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			o := ListOptions{Namespace: "ns", Selector: c.sel, Limit: c.limit}
			for {
				p, err := f.List(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				text := strings.Join(names(p), " ")
				if p.Continue == "" {
					got = append(got, text)
					break
				}
				got = append(got, text+"+")
				if o.From, _, err = (ListQuery{Continue: p.Continue}).Parse(); err != nil {
					t.Fatal(err)
				}
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("pages are %q, want %q", strings.Join(got, ", "), c.want)
			}
		})
	}
}

// A token is a place and a revision, and nothing more: one that a client made up is as good as
// one it was given, and leads nowhere else (rule K68).
func TestATokenIsNotSigned(t *testing.T) {
	f := newFixture(t)
	f.put(thing("ns", "a", "first"))
	f.put(thing("ns", "b", "first"))
	then := f.put(thing("ns", "c", "first"))
	f.put(thing("ns", "d", "second"))
	f.put(thing("other", "e", "first"))
	from, _, err := ListQuery{Continue: token(fmt.Sprintf(`{"v":"meta.k8s.io/v1","rv":%d,"start":"b"}`, then))}.Parse()
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.List(t.Context(), ListOptions{Namespace: "ns", From: from})
	if err != nil || strings.Join(names(p), " ") != "ns/b ns/c" || p.Revision != then {
		t.Errorf("got %v, %v", p, err)
	}
}

// rot stores what cannot be read under n names in a namespace.
func (f *fixture) rot(namespace string, n int) {
	f.Helper()
	var ops []kv.Op
	for i := range n {
		ops = append(ops, kv.Put(f.Key(namespace, fmt.Sprintf("rotten-%03d", i)), []byte("rotten")))
	}
	f.raw(ops...)
}

func TestObjectsThatCannotBeReadFailAList(t *testing.T) {
	f := newFixture(t)
	f.put(thing("two", "one", "first"))
	f.rot("two", 2)
	f.rot("many", unreadableMax+1)
	f.put(thing("odd", "z", "odd"))
	f.rot("odd", 1)
	for _, c := range []struct {
		name, namespace, labels, fields string
		first                           string
		found                           int
		cut                             bool
		aborted                         error
	}{
		{"all of them are named", "two", "color=red", "", "two/rotten-000", 2, false, nil},
		{"a hundred are enough", "many", "color=red", "", "many/rotten-000", unreadableMax, true, nil},
		{"another error ends it", "odd", "", "data.is=x", "odd/rotten-000", 1, false, errOdd},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := f.List(t.Context(), ListOptions{Namespace: c.namespace, Selector: picking(t, c.labels, c.fields)})
			var e *Error
			if !errors.As(err, &e) || e.Kind != Corrupt || len(e.Unreadable) != c.found || e.Cut() != c.cut || !errors.Is(e.Aborted, c.aborted) {
				t.Fatalf("got %+v (K62, K63)", err)
			}
			if !strings.Contains(e.Error(), c.first) {
				t.Errorf("got %v, want it to name %s", e, c.first)
			}
		})
	}
	t.Run("a page that nobody looked at says so when asked", func(t *testing.T) {
		p, err := f.List(t.Context(), ListOptions{Namespace: "two"})
		if err != nil || len(p.Items) != 3 {
			t.Fatalf("got %v, %v", p, err)
		}
		var e *Error
		if err := p.Unreadable(); !errors.As(err, &e) || e.Kind != Corrupt || len(e.Unreadable) != 2 {
			t.Errorf("got %v", err)
		}
		if _, err := p.Items[1].Object(); kindOf(err) != Corrupt || !strings.Contains(err.Error(), "two/rotten-000") {
			t.Errorf("got %v, want it to name two/rotten-000", err)
		}
		if _, ok := p.Items[1].AppendJSON(nil, true); ok {
			t.Error("sent what cannot be read")
		}
		p.Items = p.Items[:1]
		if err := p.Unreadable(); err != nil {
			t.Errorf("got %v for what can be read", err)
		}
	})
	t.Run("an error of the fields fails a list (K58, K72)", func(t *testing.T) {
		f.put(thing("fields", "odd", "odd"))
		if _, err := f.List(t.Context(), ListOptions{Namespace: "fields", Selector: picking(t, "", "data.is=x")}); !errors.Is(err, errOdd) {
			t.Errorf("got %v, want the error of the fields", err)
		}
	})
}

func TestACancelledListEnds(t *testing.T) {
	f := newFixture(t)
	var ops []kv.Op
	for i := range cancelEvery + 1 {
		ops = append(ops, kv.Put(f.Key("a", fmt.Sprint(i)), []byte("x")))
	}
	f.raw(ops[:kv.MaxTxnOps]...)
	f.raw(ops[kv.MaxTxnOps:]...)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gone home"))
	_, err := f.List(ctx, ListOptions{})
	if kindOf(err) != Timeout || !strings.Contains(err.Error(), "gone home") {
		t.Errorf("got %v, want %v (K64)", err, Timeout)
	}
	if n, err := f.Count(t.Context()); err != nil || n != len(ops) {
		t.Errorf("counted %d, %v", n, err)
	}
}

func TestSelectors(t *testing.T) {
	f := newFixture(t)
	f.put(thing("a", "one", "big", "color=red,size=l"))
	v, err := f.Get(t.Context(), "a", "one", kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, labels, fields string
		empty, want          bool
	}{
		{"nothing is asked for (K72)", "", "", true, true},
		{"labels fit", "color=red", "", false, true},
		{"labels do not fit", "color=red,size=s", "", false, false},
		{"the name fits", "", "metadata.name=one", false, true},
		{"the name does not fit", "", "metadata.name!=one", false, false},
		{"the namespace fits", "", "metadata.namespace=a", false, true},
		{"a field of its own fits", "", "data.is=big", false, true},
		{"both have to fit", "color=red", "data.is=small", false, false},
		{"both fit", "color=red", "data.is=big,metadata.name=one", false, true},
		{"a field that it does not have", "", "spec.x=1", false, false},
	} {
		s := picking(t, c.labels, c.fields)
		if got, err := s.Matches(v); err != nil || got != c.want || s.Empty() != c.empty {
			t.Errorf("%s: picked %v, %v, empty %v", c.name, got, err, s.Empty())
		}
	}
}

// What is remembered with a version is what looking at it says, whichever look came first.
func TestAttributesAreTheSameFromTheWriteAndFromTheBytes(t *testing.T) {
	f := newFixture(t)
	if _, err := f.Modify(t.Context(), "a", "one", false, putting(thing("a", "one", "big", "color=red"))); err != nil {
		t.Fatal(err)
	}
	f.put(thing("a", "two", "big", "color=red"))
	other := NewTable(Options{Engine: f.engine, Resource: "configmaps", Namespaced: true, Codec: configMaps{7}})
	for _, name := range []string{"one", "two"} {
		v, err := f.Get(t.Context(), "a", name, kv.Latest)
		if err != nil {
			t.Fatal(err)
		}
		w, err := other.Get(t.Context(), "a", name, kv.Latest)
		if err != nil {
			t.Fatal(err)
		}
		byLabel, byField := picking(t, "color=red", ""), picking(t, "", "data.is=big")
		for i, look := range []func() (bool, error){
			func() (bool, error) { return byLabel.Matches(v) },
			func() (bool, error) { return byField.Matches(v) },
			func() (bool, error) { ok, err := byField.Matches(w); return !ok, err }, // this table knows no such field
			func() (bool, error) { return byLabel.Matches(w) },
			func() (bool, error) { return byField.Matches(v) },
			func() (bool, error) { d, err := v.Deleting(); return !d, err },
		} {
			if ok, err := look(); !ok || err != nil {
				t.Errorf("%s: look %d: %v, %v", name, i, ok, err)
			}
		}
	}
}
