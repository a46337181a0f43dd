package mvcc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// A loaded index is compared with one to which the same was published.
func TestALoaderMakesWhatPublishingMakes(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { twins(t, rand.New(rand.NewPCG(seed, 8))) })
	}
}

func twins(t *testing.T, r *rand.Rand) {
	opts := Options{Bytes: int64(1 + r.IntN(100_000))}
	keys := 1 + r.IntN(60)
	name := func() string {
		return fmt.Sprintf("default/core/%s/%s/%d", []string{"maps", "events", "pods"}[r.IntN(3)], strings.Repeat("n", 1+r.IntN(12)), r.IntN(keys))
	}
	newest := kv.Revision(r.IntN(2) * 50)
	base, same := aBase(r, newest, name), kv.Revision(0)
	l, x := NewLoader(opts, base()), New(opts, base())
	newest, same = max(newest, 1), newest
	now := start
	for range r.IntN(400) {
		now = now.Add(time.Duration(r.IntN(20)) * time.Second)
		newest++
		var batch []*kv.Version
		for _, k := range distinct(r, name) {
			exists := x.Newest().Get(k) != nil
			deleted := exists && r.IntN(3) == 0
			batch = append(batch, &kv.Version{Key: k, Revision: newest, Time: kv.InstantOf(now), Deleted: deleted, Value: make([]byte, r.IntN(900))})
		}
		for _, v := range batch {
			l.Origin = int(v.Revision)
			l.Add(&kv.Version{Key: v.Key, Revision: v.Revision, Time: v.Time, Deleted: v.Deleted, Value: v.Value})
		}
		l.Trim(now)
		x.Publish(now, newest, batch)
		if r.IntN(60) == 0 {
			rev := newest - min(newest-1, kv.Revision(r.IntN(20)))
			l.Compact(rev)
			if err := x.Compact(t.Context(), rev); err != nil {
				t.Fatal(err)
			}
		}
	}
	if l.Newest() != max(newest, same) {
		t.Errorf("the newest revision is %d, want %d", l.Newest(), newest)
	}
	for v, origin := range l.Live() {
		if v.Revision > same && origin != int(v.Revision) {
			t.Errorf("%s at revision %d is from %d", v.Key, v.Revision, origin)
		}
		v.Key, v.Value = strings.Clone(v.Key), slices.Clone(v.Value)
	}
	got, want := tellIndex(t, l.Index()), tellIndex(t, x)
	if got != want {
		t.Errorf("loaded it is\n%s\npublished\n%s", got, want)
	}
}

// aBase returns what makes a base of its own each time, of some keys and revisions up to newest.
func aBase(r *rand.Rand, newest kv.Revision, name func() string) func() Base {
	if newest == 0 {
		return func() Base { return Base{Revision: 1, Floor: 1} }
	}
	names := distinct(r, name)
	slices.Sort(names)
	return func() Base {
		b := Base{Revision: newest, Floor: newest / 3, Tables: map[string]kv.Revision{}}
		for _, n := range names {
			b.Tables[kv.TableOf(n)] = newest / 2
		}
		b.Versions = func(yield func(*kv.Version) bool) {
			for _, n := range names {
				if !yield(&kv.Version{Key: n, Revision: newest / 2, Value: []byte("base")}) {
					return
				}
			}
		}
		return b
	}
}

func distinct(r *rand.Rand, name func() string) []string {
	var names []string
	for range 1 + r.IntN(4) {
		if n := name(); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// tellIndex tells all that can be known of an index from outside.
func tellIndex(t *testing.T, x *Index) string {
	var b strings.Builder
	oldest, newest := x.Revisions()
	fmt.Fprintf(&b, "%d to %d, %+v\n", oldest, newest, x.Measure())
	_, tables, floor := x.Checkpoint()
	fmt.Fprintln(&b, tables, floor)
	for rev := oldest; rev <= newest; rev++ {
		s, err := x.Read(t.Context(), kv.Exactly(rev))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "at %d\n", rev)
		for v := range s.Ascend("", "") {
			fmt.Fprintf(&b, " %s", v.Key)
			for ; v != nil; v = v.Prev() {
				fmt.Fprintf(&b, " %d %v %d", v.Revision, v.Deleted, len(v.Value))
			}
			b.WriteString("\n")
		}
	}
	for _, prefix := range []string{"default/", "default/core/maps/", "default/core/events/", "default/core/pods/n/"} {
		w, err := x.Watch(prefix, oldest)
		for after := oldest; errors.Is(err, kv.ErrCompacted); after++ {
			w, err = x.Watch(prefix, after)
		}
		if err != nil {
			t.Fatal(err)
		}
		for e, ok, err := w.Next(); ok; e, ok, err = w.Next() {
			fmt.Fprintf(&b, "%s %d %v %v %v\n", e.Version.Key, e.Version.Revision, e.Version.Deleted, e.Prev != nil, err)
		}
		progress, _ := w.Progress()
		fmt.Fprintln(&b, progress)
		w.Stop()
	}
	return b.String()
}

func TestVersionsAreSortedByTheirKeys(t *testing.T) {
	const seed = 5
	r := rand.New(rand.NewPCG(seed, seed))
	for round := range 200 {
		l := NewLoader(Options{}, Base{Revision: 1, Floor: 1})
		l.place()
		add := func(key string) {
			hash := l.hash(key)
			if at, found := l.find(key, hash); !found {
				l.insert(at, hash, &kv.Version{Key: key})
			}
		}
		letters := 1 + r.IntN(3)
		for range r.IntN(800) {
			b := make([]byte, r.IntN(40))
			for i := range b {
				b[i] = byte('a' + r.IntN(letters))
			}
			add(string(b))
		}
		for i := range round { // what differs in zeros at its end alone
			add("z" + strings.Repeat("\x00", i%40))
		}
		all := l.live(0, l.count)
		var want []string
		for _, k := range all {
			want = append(want, l.key(k))
		}
		slices.Sort(want)
		l.sort(all, l.commonBytes(all))
		for i, k := range all {
			if l.key(k) != want[i] {
				t.Fatalf("seed %d, round %d: at %d is %q, want %q", seed, round, i, l.key(k), want[i])
			}
		}
	}
}
