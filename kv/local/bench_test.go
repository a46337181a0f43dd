package local_test

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

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

// hasty is a file system that does not wait for the disk, to fill a store for a benchmark.
type hasty struct{ local.FS }

type hastyFile struct{ local.File }

func (h hasty) Create(name string) (local.File, error) {
	f, err := h.FS.Create(name)
	return hastyFile{f}, err
}
func (hasty) SyncDir(string) error { return nil }
func (hastyFile) Sync() error      { return nil }

// BenchmarkOpen tells the CPU that each record costs of 1 KiB that opening reads, at two sizes, so that it
// can be seen to grow linearly; docs/measured.md has the figures. The last case reads a snapshot. Beside
// it is what it costs to read the same files in the same pieces, sum them and keep them.
func BenchmarkOpen(b *testing.B) {
	for _, c := range []struct {
		name          string
		records, keys int
		opts          local.Options
	}{
		{"50,000 records of as many keys", 50_000, 50_000, local.Options{}},
		{"400,000 records of as many keys", 400_000, 400_000, local.Options{}},
		{"50,000 records of 5,000 keys", 50_000, 5_000, local.Options{}},
		{"400,000 records of 5,000 keys", 400_000, 5_000, local.Options{}},
		{"a snapshot of 400,000 keys", 400_000, 400_000, local.Options{SegmentSize: 1 << 20}},
	} {
		b.Run(c.name, func(b *testing.B) {
			opts := c.opts
			opts.Dir, opts.FS, opts.HistorySize = b.TempDir(), hasty{local.OS}, 1<<40
			opts.SnapshotSize = 1 << 40
			stock(b, opts, c.records, c.keys)
			opts.FS = nil
			b.ResetTimer()
			var engine, bare time.Duration
			for b.Loop() {
				began := cpuTime()
				readAndKeep(b, opts.Dir)
				bare += cpuTime() - began
				began = cpuTime()
				e, err := local.Open(b.Context(), opts)
				if err != nil {
					b.Fatal(err)
				}
				if n := e.Sizes().Index.Keys; n != c.keys {
					b.Fatalf("it holds %d keys", n)
				}
				engine += cpuTime() - began
				e.Close()
			}
			b.ReportMetric(float64(engine)/float64(b.N*c.records), "cpu-ns/record")
			b.ReportMetric(float64(bare)/float64(b.N*c.records), "bare-ns/record")
			b.ReportMetric(float64(engine)/float64(bare), "x-bare")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// readAndKeep reads the files of a store in pieces, each into memory of its own, and sums them.
func readAndKeep(b *testing.B, dir string) {
	b.Helper()
	var kept [][]byte
	for _, pattern := range []string{"log/*.seg", "snap/*.snap"} {
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			b.Fatal(err)
		}
		for _, name := range names {
			f, err := os.Open(name)
			if err != nil {
				b.Fatal(err)
			}
			for err == nil {
				piece := make([]byte, 32<<10)
				var n int
				n, err = f.Read(piece)
				crc32.Checksum(piece[:n], castagnoli)
				kept = append(kept, piece)
			}
			f.Close()
		}
	}
	runtime.KeepAlive(kept)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// stock commits so many records of a kibibyte, of keys in no order; with small segments it leaves
// a snapshot and nothing else.
func stock(b *testing.B, opts local.Options, records, keys int) {
	b.Helper()
	e, err := local.Open(b.Context(), opts)
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	order := r.Perm(keys)
	share(records, func(_, i int) {
		if _, err := e.Commit(b.Context(), kv.Txn{Ops: []kv.Op{kv.Put(costKey(order[i%keys]), kibibyte[:900])}}); err != nil {
			b.Error(err)
		}
	})
	if opts.SegmentSize > 0 {
		_, newest := e.Revisions()
		if err := e.Shrink(b.Context(), newest); err != nil {
			b.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		b.Fatal(err)
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
