package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
)

// The benchmarks in this file say what the engine costs as ratios within one run; docs/measured.md has
// their figures, and what they are to stay under.

const (
	costWriters = 64
	costKeys    = 10_000
)

// kibibyte is a value of the size that costs are told for.
var kibibyte = make([]byte, 1<<10)

func costKey(i int) string {
	return fmt.Sprintf("default/core/configmaps/namespace-%02d/name-%08d", i%20, i)
}

// A countingFS counts what is handed to write(2), snapshots included.
type countingFS struct {
	local.FS
	bytes *atomic.Int64
}

type countingFile struct {
	local.File
	bytes *atomic.Int64
}

func (f countingFS) Create(name string) (local.File, error) {
	file, err := f.FS.Create(name)
	return countingFile{file, f.bytes}, err
}

func (f countingFS) Append(name string) (local.File, error) {
	file, err := f.FS.Append(name)
	return countingFile{file, f.bytes}, err
}

func (f countingFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.bytes.Add(int64(n))
	return n, err
}

// share runs n operations by the writers at once.
func share(n int, op func(writer, i int)) {
	var wg sync.WaitGroup
	for w := range costWriters {
		wg.Go(func() {
			for i := w; i < n; i += costWriters {
				op(w, i)
			}
		})
	}
	wg.Wait()
}

// bare appends n records of the size that the engine's have to a file: a goroutine takes what is
// waiting, writes it, syncs, and answers.
func bare(b *testing.B, dir string, n int) {
	f, err := os.Create(filepath.Join(dir, "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	type ask struct {
		record []byte
		done   chan struct{}
	}
	queue := make(chan ask, costWriters)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var group []ask
		var buf []byte
		for a := range queue {
			group, buf = append(group[:0], a), append(buf[:0], a.record...)
			for more := len(queue); more > 0; more-- {
				a := <-queue
				group, buf = append(group, a), append(buf, a.record...)
			}
			if _, err := f.Write(buf); err != nil {
				b.Error(err)
			}
			if err := local.SyncFile(f); err != nil {
				b.Error(err)
			}
			for _, a := range group {
				close(a.done)
			}
		}
	}()
	record := make([]byte, len(kibibyte)+len(costKey(0))+32)
	share(n, func(int, int) {
		a := ask{record, make(chan struct{})}
		queue <- a
		<-a.done
	})
	close(queue)
	<-ended
}

// BenchmarkDurable compares durable commits of 64 writers, each on the condition that its key is as it
// left it, with what appending the same bytes costs.
func BenchmarkDurable(b *testing.B) {
	dir := b.TempDir()
	var bytes atomic.Int64
	e, err := local.Open(b.Context(), local.Options{Dir: filepath.Join(dir, "store"), FS: countingFS{local.OS, &bytes}})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	at, keys := make([]kv.Revision, costKeys), make([]string, costKeys)
	for i := range keys {
		keys[i] = costKey(i)
	}
	var bareCPU, engineCPU, bareTime, engineTime time.Duration
	var device int64
	// In turns, so that neither has the quieter machine.
	for turn := 0; b.Loop(); turn++ {
		const n = 8000
		cpu, began := cpuTime(), time.Now()
		bare(b, dir, n)
		bareCPU, bareTime = bareCPU+cpuTime()-cpu, bareTime+time.Since(began)
		cpu, began = cpuTime(), time.Now()
		device -= deviceBytes()
		share(n, func(w, i int) {
			k := (turn*n+i)/costWriters%(costKeys/costWriters)*costWriters + w // each writer has its own
			done, err := e.Commit(b.Context(), kv.Txn{
				Conditions: []kv.Condition{{Key: keys[k], At: at[k]}},
				Ops:        []kv.Op{kv.Put(keys[k], kibibyte)},
			})
			if err != nil {
				b.Error(err)
				return
			}
			at[k] = done.Revision
		})
		device += deviceBytes()
		engineCPU, engineTime = engineCPU+cpuTime()-cpu, engineTime+time.Since(began)
	}
	s := e.Stats()
	b.ReportMetric(float64(engineCPU)/float64(bareCPU), "CPU/bare")
	b.ReportMetric(float64(bareTime)/float64(engineTime), "rate/bare")
	b.ReportMetric(float64(engineCPU.Microseconds())/float64(s.Commits), "us-CPU/commit")
	b.ReportMetric(float64(bytes.Load())/float64(s.Commits)/1024, "KiB-written/KiB")
	b.ReportMetric(float64(device)/float64(s.Commits)/1024, "device-KiB/KiB")
	b.ReportMetric(float64(s.Commits)/float64(s.Syncs), "commits/fsync")
}

// deviceBytes is what Linux counts as written to the disk for the process, in whole pages, the file system's
// own journal left out; 0 elsewhere.
func deviceBytes() (n int64) {
	data, _ := os.ReadFile("/proc/self/io")
	for line := range strings.Lines(string(data)) {
		fmt.Sscanf(line, "write_bytes: %d", &n)
	}
	return n
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // what was freed by finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkSize says what an object, and a retained revision, takes in memory besides its key and its
// value, and what a commit costs when there are many.
func BenchmarkSize(b *testing.B) {
	for b.Loop() {
		e, err := local.Open(b.Context(), local.Options{Memory: true})
		if err != nil {
			b.Fatal(err)
		}
		put := func(key string) {
			if _, err := e.Commit(b.Context(), kv.Txn{Ops: []kv.Op{kv.Put(key, make([]byte, 256))}}); err != nil {
				b.Fatal(err)
			}
		}
		// fill makes the keys up to n, and returns what a change of one of them costs then.
		made := 0
		fill := func(n int) time.Duration {
			share(n-made, func(_, i int) { put(costKey(made + i)) })
			made = n
			const changes = 400_000 // over several collections, of which each costs what the keys do
			runtime.GC()
			began := cpuTime()
			share(changes, func(_, i int) { put(costKey(i * 7919 % n)) })
			return (cpuTime() - began) / changes
		}
		before := liveHeap()
		small := fill(10_000)
		large := fill(1_000_000)
		if err := e.Compact(b.Context(), newest(e)); err != nil {
			b.Fatal(err)
		}
		object := float64(liveHeap()-before)/1_000_000 - float64(256+len(costKey(0)))
		b.ReportMetric(object, "B/object")
		b.ReportMetric(float64(large)/float64(small), "CPU/commit-at-1M:10k")
		e.Close()

		if e, err = local.Open(b.Context(), local.Options{Memory: true}); err != nil {
			b.Fatal(err)
		}
		before = liveHeap()
		for range 150_000 {
			put(costKey(0))
		}
		b.ReportMetric(float64(liveHeap()-before)/150_000-256, "B/revision")
		runtime.KeepAlive(e)
		e.Close()
	}
}

func newest(e *local.Engine) kv.Revision {
	_, rev := e.Revisions()
	return rev
}

// BenchmarkWatchers says what one event costs the engine for each of the watchers that it
// concerns, and for those that it does not.
func BenchmarkWatchers(b *testing.B) {
	for _, tt := range []struct {
		name     string
		watchers int
		told     bool // of each event
		prefix   func(i int) string
	}{
		{"none", 0, false, nil},
		{"1000 of the prefix", 1000, true, func(int) string { return "default/core/configmaps/namespace-00/" }},
		{"10000 of other prefixes", 10_000, false, func(i int) string { return fmt.Sprintf("default/core/configmaps/other-%d/", i) }},
		{"10000 of other tables", 10_000, false, func(i int) string { return fmt.Sprintf("default/core/table-%d/", i) }},
	} {
		b.Run(tt.name, func(b *testing.B) {
			e, err := local.Open(b.Context(), local.Options{Memory: true})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			watches := make([]kv.Watch, tt.watchers)
			for i := range watches {
				if watches[i], err = e.Watch(tt.prefix(i), newest(e)); err != nil {
					b.Fatal(err)
				}
				defer watches[i].Stop()
				watches[i].Wait()
			}
			if !tt.told {
				watches = nil
			}
			for b.Loop() {
				for _, w := range watches {
					w.Wait()
				}
				if _, err := e.Commit(b.Context(), kv.Txn{Ops: []kv.Op{kv.Put(costKey(0), kibibyte)}}); err != nil {
					b.Fatal(err)
				}
				for _, w := range watches {
					if _, _, err := w.Next(); err != nil {
						b.Fatal(err)
					}
				}
			}
			if tt.told {
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(tt.watchers), "ns/watcher")
			}
		})
	}
}
