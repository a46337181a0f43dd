package local_test

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/local"
)

var update = flag.Bool("update", false, "write testdata/v1 anew; only when its format has never been released")

// zeros makes segment ids that are the same each time.
type zeros struct{ r *rand.Rand }

func (z zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(z.r.Uint32())
	}
	return len(b), nil
}

var _ io.Reader = zeros{}

// testdata/v1 was written by format 1: a snapshot that history begins with, segments
// after it, an order to forget and an end that was torn. Whatever the format becomes,
// later code must open it and find in it what testdata/v1.txt says.
func TestTheFolderThatFormat1Wrote(t *testing.T) {
	if *update {
		writeGolden(t)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/v1")); err != nil {
		t.Fatal(err)
	}
	clock := kvtest.NewClock()
	clock.Advance(goldenAge)
	e := mustOpen(t, local.Options{Dir: dir, Clock: clock})
	oldest, _ := e.Revisions()
	got := "oldest " + oldest.String() + "\n" + describe(t, e, oldest)
	if *update {
		if err := os.WriteFile("testdata/v1.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/v1.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("it holds\n%s\nwant\n%s", got, want)
	}
}

// goldenAge is about how much later than it began the golden folder is opened.
const goldenAge = 5 * time.Minute

func writeGolden(t *testing.T) {
	dir := t.TempDir()
	clock := kvtest.NewClock()
	opts := local.Options{
		Dir: dir, Clock: clock, SegmentSize: 400, SnapshotSize: 600, HistorySize: 1000,
	}.WithEntropy(zeros{rand.New(rand.NewPCG(1, 1))})
	for range 4 {
		e := mustOpen(t, opts)
		tell(t, e, clock)
		clock.Advance(time.Minute)
		e.Close()
	}
	e := mustOpen(t, opts)
	_, newest := e.Revisions()
	if err := e.Compact(t.Context(), newest-8); err != nil {
		t.Fatal(err)
	}
	tell(t, e, clock)
	if _, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put("default/core/configmaps/ns/torn", []byte("torn"))}}); err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "log", "*.seg"))
	last := names[len(names)-1]
	data, _ := os.ReadFile(last)
	e.Close()
	os.WriteFile(last, data[:len(data)-3], 0o600)
	os.RemoveAll("testdata/v1")
	for _, sub := range []string{"log", "snap"} {
		if err := os.CopyFS(filepath.Join("testdata/v1", sub), os.DirFS(filepath.Join(dir, sub))); err != nil {
			t.Fatal(err)
		}
	}
}

// testdata/v1.bak was written by format 1, of a store that was told a little of everything.
func TestTheBackupThatFormat1Wrote(t *testing.T) {
	const file = "testdata/v1.bak"
	clock := kvtest.NewClock()
	if *update {
		e := mustOpen(t, local.Options{Memory: true, Clock: clock})
		tell(t, e, clock)
		if err := os.WriteFile(file, mustBackup(t, e, local.EnclosedFile{Name: "key", Content: []byte("secret")}), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	backup, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	opts := local.Options{Dir: "store", FS: newDisk(), Clock: clock}
	made := mustRestore(t, opts, backup)
	got := fmt.Sprintf("%d objects of revision %d, %s, taken %s, with %s\n", made.About.Objects, made.About.Revision,
		made.About.Time.Format(time.RFC3339Nano), made.About.Taken.Format(time.RFC3339Nano), made.About.Files)
	got += objects(t, mustOpen(t, opts))
	if *update {
		if err := os.WriteFile(file+".txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("it holds\n%s\nwant\n%s", got, want)
	}
}
