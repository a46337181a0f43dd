package mvcc

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pawl-dev/pawl/kv"
)

// What is counted is compared with what is yielded, now and in the past, published and loaded.
func TestACountIsOfWhatIsYielded(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 11))
		x, l := New(Options{}, Base{Revision: 1, Floor: 1}), NewLoader(Options{}, Base{Revision: 1, Floor: 1})
		name := func() string {
			return fmt.Sprintf("%s/core/%s/n%d/k%d", []string{"default", "other"}[r.IntN(2)], []string{"maps", "maps2", "pods"}[r.IntN(3)], r.IntN(3), r.IntN(40))
		}
		newest := kv.Revision(1)
		for range 300 {
			newest++
			var batch []*kv.Version
			for _, k := range distinct(r, name) {
				v := &kv.Version{Key: k, Revision: newest, Time: kv.InstantOf(start), Deleted: x.Newest().Get(k) != nil && r.IntN(2) == 0}
				batch = append(batch, v)
				l.Add(&kv.Version{Key: v.Key, Revision: v.Revision, Time: v.Time, Deleted: v.Deleted})
			}
			x.Publish(start, newest, batch)
		}
		for _, index := range []*Index{x, l.Index()} {
			for _, at := range []kv.Revision{1, 2, 30, 150, newest - 1, newest} {
				s, err := index.Read(t.Context(), kv.Exactly(at))
				if err != nil {
					t.Fatal(err)
				}
				for _, prefix := range []string{"", "default/", "default/core/", "default/core/maps/", "default/core/maps2/n1/", "other/core/pods/n2/", "default/core/none/", "a/", "z/"} {
					for _, from := range []string{"", prefix + "n1/k2", prefix + "k5", prefix + "z", "default/core/maps/n1/k7", "zz"} {
						compareCount(t, seed, s, prefix, from)
					}
				}
			}
		}
	}
}

func compareCount(t *testing.T, seed uint64, s kv.Snapshot, prefix, from string) {
	t.Helper()
	if _, ok := s.(kv.Counter); !ok {
		t.Fatalf("a %T does not count", s)
	}
	want := kv.Count(struct{ kv.Snapshot }{s}, prefix, from) // which is no Counter
	if got := kv.Count(s, prefix, from); got != want {
		t.Errorf("seed %d: at %d there are %d under %q from %q, want %d", seed, s.Revision(), got, prefix, from, want)
	}
}

// Counting costs hardly more where there is more.
func BenchmarkCount(b *testing.B) {
	for _, keys := range []int{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(keys), func(b *testing.B) {
			x := New(Options{}, Base{Revision: 1, Floor: 1, Versions: func(yield func(*kv.Version) bool) {
				for i := range keys {
					if !yield(&kv.Version{Key: fmt.Sprintf("default/core/maps/ns/k%08d", i), Revision: 1}) {
						return
					}
				}
			}})
			for b.Loop() {
				if n := kv.Count(x.Newest(), "default/core/maps/", "default/core/maps/ns/k"); n != keys {
					b.Fatal(n)
				}
			}
		})
	}
}
