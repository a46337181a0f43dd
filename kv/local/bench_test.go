package local_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
)

// value is about as large as a small Kubernetes object.
var value = make([]byte, 800)

func BenchmarkCommit(b *testing.B) {
	for _, where := range []string{"memory", "disk"} {
		for _, writers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s, %d writers", where, writers), func(b *testing.B) {
				opts := local.Options{Memory: true}
				if where == "disk" {
					opts = local.Options{Dir: b.TempDir()}
				}
				e, err := local.Open(b.Context(), opts)
				if err != nil {
					b.Fatal(err)
				}
				defer e.Close()
				b.ReportAllocs()
				b.ResetTimer()
				var wg sync.WaitGroup
				for w := range writers {
					wg.Go(func() {
						key := fmt.Sprintf("default/core/configmaps/ns/k%d", w)
						at := kv.Absent
						for i := w; i < b.N; i += writers {
							done, err := e.Commit(b.Context(), kv.Txn{
								Conditions: []kv.Condition{{Key: key, At: at}},
								Ops:        []kv.Op{kv.Put(key, value)},
							})
							if err != nil {
								b.Error(err)
								return
							}
							at = done.Revision
						}
					})
				}
				wg.Wait()
				if s := e.Stats(); s.Syncs > 0 {
					b.ReportMetric(float64(s.Commits)/float64(s.Syncs), "commits/fsync")
				}
			})
		}
	}
}

// The records are spread over a tenth as many keys.
func BenchmarkOpen(b *testing.B) {
	for _, records := range []int{0, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%d records", records), func(b *testing.B) {
			opts := local.Options{Dir: b.TempDir()}
			e, err := local.Open(b.Context(), opts)
			if err != nil {
				b.Fatal(err)
			}
			var wg sync.WaitGroup
			for w := range 100 {
				wg.Go(func() {
					for i := w; i < records; i += 100 {
						key := fmt.Sprintf("default/core/configmaps/ns/k%d", i%(records/10))
						if _, err := e.Commit(b.Context(), kv.Txn{Ops: []kv.Op{kv.Put(key, value)}}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			e.Close()
			b.ReportAllocs()
			for b.Loop() {
				e, err := local.Open(b.Context(), opts)
				if err != nil {
					b.Fatal(err)
				}
				e.Close()
			}
		})
	}
}

func BenchmarkOpenEmpty(b *testing.B) {
	dir := b.TempDir()
	for i := 0; b.Loop(); i++ {
		e, err := local.Open(b.Context(), local.Options{Dir: fmt.Sprintf("%s/%d", dir, i)})
		if err != nil {
			b.Fatal(err)
		}
		e.Close()
	}
}
