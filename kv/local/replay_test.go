package local_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/local"
)

// Values are of all sizes about that of the chunks in which the log is read, and far larger, so that
// frames end at, before and after the ends of chunks.
func TestAStoreIsReadInChunks(t *testing.T) {
	const seed, chunk = 9, 32 << 10
	r := rand.New(rand.NewPCG(seed, seed))
	clock := kvtest.NewClock()
	opts := local.Options{Dir: "store", FS: newDisk(), Clock: clock, SegmentSize: 400 << 10, SnapshotSize: 1 << 20}
	e := mustOpen(t, opts)
	sizes := []int{0, 1, chunk - 200, chunk, 3 * chunk, 10 * chunk}
	for i := range 300 {
		size := sizes[i%len(sizes)]
		if i%3 == 0 {
			size = max(0, chunk-300+r.IntN(300))
		}
		value := make([]byte, size)
		for j := range value {
			value[j] = byte(i + j)
		}
		if _, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(fmt.Sprintf("default/core/configmaps/ns/%d", r.IntN(100)), value)}}); err != nil {
			t.Fatal(err)
		}
	}
	want := sums(t, e)
	e.Close()
	var done, total int64
	opts.Progress = func(now, all int64) {
		if now < done || now > all || total != 0 && all != total {
			t.Errorf("%d of %d after %d of %d", now, all, done, total)
		}
		done, total = now, all
	}
	e = mustOpen(t, opts)
	if got := sums(t, e); got != want {
		t.Errorf("seed %d: it was\n%s\nnow it is\n%s", seed, want, got)
	}
	if done == 0 || done < total-64<<10 { // the end of a snapshot is not told
		t.Errorf("%d of %d bytes were read in the end", done, total)
	}
}

// sums tells the versions of all keys, with sums of their values.
func sums(t *testing.T, e kv.Engine) string {
	t.Helper()
	snap, err := e.Read(t.Context(), kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for v := range snap.Ascend("", "") {
		for ; v != nil; v = v.Prev() {
			fmt.Fprintf(&b, "%s %d %d %x\n", v.Key, v.Revision, len(v.Value), crc32.ChecksumIEEE(v.Value))
		}
	}
	return b.String()
}

func TestOpeningCanBeCalledOff(t *testing.T) {
	opts := local.Options{Dir: "store", FS: goldenDisk(t)}
	ctx, cancel := context.WithCancel(t.Context())
	opts.Progress = func(int64, int64) { cancel() }
	if e, err := local.Open(ctx, opts); !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
		if err == nil {
			e.Close()
		}
	}
}

// Versions share the memory that they were read into. What exists must not hold on to the memory of
// what was replaced once that is forgotten.
func TestWhatExistsDoesNotKeepWhatIsForgotten(t *testing.T) {
	opts := local.Options{Dir: t.TempDir(), FS: hasty{local.OS}}
	e := mustOpen(t, opts)
	value := make([]byte, 1000)
	const kept = 100
	for i := range 60 * kept { // one in sixty stays, in every chunk
		key := "default/core/leases/ns/busy"
		if i%60 == 0 {
			key = fmt.Sprintf("default/core/configmaps/ns/%d", i)
		}
		if _, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(key, value)}}); err != nil {
			t.Fatal(err)
		}
	}
	e.Close()
	before := live()
	e = mustOpen(t, local.Options{Dir: opts.Dir})
	with := live() - before
	_, newest := e.Revisions()
	if err := e.Compact(t.Context(), newest); err != nil {
		t.Fatal(err)
	}
	after := live() - before
	t.Logf("%d KiB with history, %d KiB without", with>>10, after>>10)
	if with < 5<<20 || after > 1<<20 {
		t.Errorf("it holds %d KiB with history and %d KiB without it, of %d KiB that exist", with>>10, after>>10, kept)
	}
	runtime.KeepAlive(e)
}

// live returns how many bytes are in use after a collection.
func live() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
