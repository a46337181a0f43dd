package mvcc

import (
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl/kv"
)

// filled returns an index of n keys, each changed as often as changes says.
func filled(b *testing.B, n, changes int) *Index {
	b.Helper()
	x := New(Options{}, Base{Revision: 1, Floor: 1})
	rev := kv.Revision(1)
	for range changes {
		for i := range n {
			rev++
			x.Publish(start, rev, []*kv.Version{{Key: key("a", i), Value: []byte("x"), Revision: rev, Created: rev, Time: kv.InstantOf(start)}})
		}
	}
	return x
}

func BenchmarkPublish(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("%d keys", n), func(b *testing.B) {
			x := filled(b, n, 1)
			rev := x.state.Load().rev
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				rev++
				x.Publish(start, rev, []*kv.Version{{Key: key("a", i%n), Value: []byte("x"), Revision: rev, Created: rev, Time: kv.InstantOf(start)}})
			}
		})
	}
}

func BenchmarkAscend10000(b *testing.B) {
	x := filled(b, 10_000, 1)
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for range x.Newest().Ascend("default/core/a/", "") {
			n++
		}
		if n != 10_000 {
			b.Fatal(n)
		}
	}
}

func BenchmarkExactly(b *testing.B) {
	x := filled(b, 10_000, 2)
	newest := x.state.Load().rev
	for _, ago := range []kv.Revision{1, 100, 10_000} {
		b.Run(fmt.Sprintf("get, %d revisions ago", ago), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, err := x.exactly(newest - ago)
				if err != nil || s.Get(key("a", 5)) == nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("page of 500, %d revisions ago", ago), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s, err := x.exactly(newest - ago)
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				for range s.Ascend("default/core/a/", "") {
					if n++; n == 500 {
						break
					}
				}
			}
		})
	}
}

// A change wakes who watches what changed; others cost nothing.
func BenchmarkPublishBesideWatchers(b *testing.B) {
	for _, watchers := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("%d watchers of other keys", watchers), func(b *testing.B) {
			x := filled(b, 1000, 1)
			rev := x.state.Load().rev
			for i := range watchers {
				w, err := x.Watch(key("a", i+1000), rev)
				if err != nil {
					b.Fatal(err)
				}
				w.Wait()
			}
			b.ReportAllocs()
			for b.Loop() {
				rev++
				x.Publish(start, rev, []*kv.Version{{Key: key("a", 1), Value: []byte("x"), Revision: rev, Created: rev, Time: kv.InstantOf(start)}})
			}
		})
	}
}
