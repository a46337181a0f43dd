package local_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/local"
)

// mustOpen opens a store in dir by the given clock, and closes it when the test ends.
func mustOpen(t *testing.T, opts local.Options) *local.Engine {
	t.Helper()
	e, err := local.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// tell commits a little of everything: several authors, tables and spaces, deletions,
// a key made anew, expiries kept and changed, an empty value.
func tell(t *testing.T, e kv.Engine, clock *kvtest.Clock) {
	t.Helper()
	ada := kv.Author{User: "ada", Manager: "kubectl", Verb: "apply"}
	bob := kv.Author{User: "bob", Manager: "controller", Verb: "update", Subresource: "status"}
	expiring := func(key string, d time.Duration) kv.Op {
		return kv.Op{Key: key, Value: []byte("short-lived"), Expiry: kv.Expiry{Kind: kv.After, For: d}}
	}
	const maps, events = "default/core/configmaps/ns/", "default/core/events/ns/"
	for _, txn := range []kv.Txn{
		{Author: ada, Ops: []kv.Op{kv.Put(maps+"a", []byte("1")), kv.Put(maps+"b", []byte{})}},
		{Author: bob, Ops: []kv.Op{kv.Put(maps+"a", []byte("2"))}},
		{Author: bob, Ops: []kv.Op{kv.Delete(maps + "b"), kv.Put("other/core/namespaces/x", []byte("3"))}},
		{Author: ada, Ops: []kv.Op{kv.Put(maps+"b", []byte("4")), expiring(events+"e", time.Hour)}},
		{Ops: []kv.Op{kv.Put(events+"e", []byte("kept")), expiring(events+"f", 2*time.Hour)}},
		{Author: bob, Ops: []kv.Op{{Key: events + "f", Value: []byte("stays"), Expiry: kv.Expiry{Kind: kv.Forever}}}},
	} {
		if _, err := e.Commit(t.Context(), txn); err != nil {
			t.Fatal(err)
		}
		clock.Advance(time.Second)
	}
}

func TestAStoreThatIsOpenedAgainIsWhatItWas(t *testing.T) {
	for name, opts := range map[string]local.Options{
		"from one segment":                 {},
		"from many segments":               {SegmentSize: 100},
		"from many segments and snapshots": {SegmentSize: 100, SnapshotSize: 200},
	} {
		t.Run(name, func(t *testing.T) {
			clock := kvtest.NewClock()
			opts.Dir, opts.Clock = t.TempDir(), clock
			want := ""
			for range 4 {
				e := mustOpen(t, opts)
				if got := describe(t, e, 1); want != "" && got != want {
					t.Fatalf("it was\n%s\nnow it is\n%s", want, got)
				}
				tell(t, e, clock)
				want = describe(t, e, 1)
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestWhatWasForgottenStaysForgotten(t *testing.T) {
	clock := kvtest.NewClock()
	opts := local.Options{Dir: t.TempDir(), Clock: clock}
	e := mustOpen(t, opts)
	tell(t, e, clock)
	e.Close()
	e = mustOpen(t, opts) // with nothing but the order to forget in its segment
	if err := e.Compact(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	want := describe(t, e, 5)
	for range 3 {
		e.Close()
		e = mustOpen(t, opts)
		if oldest, _ := e.Revisions(); oldest != 5 {
			t.Fatalf("oldest is %d, want 5", oldest)
		}
		if got := describe(t, e, 5); got != want {
			t.Fatalf("it was\n%s\nnow it is\n%s", want, got)
		}
		tell(t, e, clock)
		want = describe(t, e, 5)
	}
}

func TestAKeyExpiresAfterTheStoreWasOpenedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		set  time.Duration // what the clock is set by while the store is closed
		wait time.Duration // how long the key must live after that
	}{
		"when its time comes":                          {0, 30 * time.Minute},
		"at once if its time came meanwhile":           {2 * time.Hour, 0},
		"no later because the clock has been set back": {-48 * time.Hour, 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			const key = "default/core/events/ns/e"
			clock := kvtest.NewClock()
			opts := local.Options{Dir: t.TempDir(), Clock: clock}
			e := mustOpen(t, opts)
			op := kv.Op{Key: key, Value: []byte{}, Expiry: kv.Expiry{Kind: kv.After, For: time.Hour}}
			if _, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{op}}); err != nil {
				t.Fatal(err)
			}
			clock.Advance(30 * time.Minute)
			if _, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(key+"2", []byte{})}}); err != nil {
				t.Fatal(err)
			}
			e.Close()
			clock.Set(c.set)
			e = mustOpen(t, opts)
			w, err := e.Watch(key, 3)
			if err != nil {
				t.Fatal(err)
			}
			if c.wait > 0 {
				clock.Advance(c.wait - 1)
				if _, _, err := w.Next(); err != nil {
					t.Fatal(err)
				}
				if snap, _ := e.Read(t.Context(), kv.Latest); snap.Get(key) == nil {
					t.Error("gone too early")
				}
			}
			clock.Advance(1 + local.ExpirySlack)
			<-w.Wait()
			if e, ok, err := w.Next(); !ok || err != nil || !e.Version.Deleted {
				t.Errorf("got %+v, %v", e.Version, err)
			}
		})
	}
}

func TestTheStoreShrinksByItself(t *testing.T) { synctest.Test(t, shrink) }

func shrink(t *testing.T) {
	clock := kvtest.NewClock()
	d := newDisk()
	opts := local.Options{Dir: "store", FS: d, Clock: clock, SegmentSize: 2000, SnapshotSize: 4000, HistorySize: 10_000, HistoryDuration: time.Hour}
	e := mustOpen(t, opts)
	largest := int64(0)
	for i := range 2000 {
		txn := kv.Txn{Ops: []kv.Op{kv.Put(fmt.Sprintf("default/core/configmaps/ns/k%d", i%5), make([]byte, 100))}}
		if _, err := e.Commit(t.Context(), txn); err != nil {
			t.Fatal(err)
		}
		clock.Advance(10 * time.Second)
		synctest.Wait() // for snapshots
		if i%100 == 99 {
			largest = max(largest, d.size())
		}
	}
	if written := int64(e.Stats().Bytes); largest > written/4 {
		t.Errorf("of %d bytes written up to %d are kept", written, largest)
	}
	want := describe(t, e, 1995)
	e.Close()
	e = mustOpen(t, opts)
	if got := describe(t, e, 1995); got != want {
		t.Errorf("it was\n%s\nnow it is\n%s", want, got)
	}
}

func TestASnapshotThatCannotBeReadBackReplacesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := kvtest.NewClock()
		d := newDisk()
		opts := tiny(d, clock)
		e := mustOpen(t, opts)
		for range 40 {
			tell(t, e, clock)
			synctest.Wait()
			d.spoil(".snap")
			clock.Advance(time.Minute)
		}
		_, newest := e.Revisions()
		want := describe(t, e, newest-2)
		e.Close()
		e = mustOpen(t, opts)
		if got := describe(t, e, newest-2); got != want {
			t.Errorf("it was\n%s\nnow it is\n%s", want, got)
		}
	})
}

// tiny makes a store write segments and snapshots all the time, and drop old ones.
func tiny(d *disk, clock *kvtest.Clock) local.Options {
	return local.Options{Dir: "store", FS: d, Clock: clock, SegmentSize: 600, SnapshotSize: 1500, HistorySize: 2000, HistoryDuration: time.Minute}
}

// fill makes a store of a few groups in one segment and returns the segment's name.
func fill(t *testing.T, opts local.Options, clean bool) string {
	t.Helper()
	e := mustOpen(t, opts)
	tell(t, e, opts.Clock.(*kvtest.Clock))
	name := filepath.Join(opts.Dir, "log", "0000000000000002.seg")
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	e.Close()
	if !clean { // as it is while the store is open
		if err := os.WriteFile(name, before, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return name
}

// frames returns where each frame of a segment begins, by the lengths in their heads.
func frames(data []byte) (at []int) {
	for off := 32; off < len(data); {
		at = append(at, off)
		off += 24 + int(uint32(data[off])|uint32(data[off+1])<<8|uint32(data[off+2])<<16|uint32(data[off+3])<<24)
	}
	return at
}

func TestATornTailIsCutOffAndReported(t *testing.T) {
	clock := kvtest.NewClock()
	name := fill(t, local.Options{Dir: t.TempDir(), Clock: clock}, false)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := frames(data)
	for length := at[len(at)-2]; length <= len(data); length++ {
		dir := t.TempDir()
		put(t, dir, data[:length])
		var log bytes.Buffer
		opts := local.Options{Dir: dir, Clock: clock, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		whole := 0
		for whole < len(at) && (whole+1 < len(at) && at[whole+1] <= length || length == len(data)) {
			whole++
		}
		for round := range 2 {
			e := mustOpen(t, opts)
			if _, newest := e.Revisions(); int(newest) != 1+whole {
				t.Fatalf("cut to %d bytes: newest is %d, want %d", length, newest, 1+whole)
			}
			torn := !slices.Contains(at, length) && length < len(data)
			if reported := strings.Contains(log.String(), "cut off"); reported != (torn && round == 0) {
				t.Fatalf("cut to %d bytes, round %d: reported %v: %s", length, round, reported, &log)
			}
			log.Reset()
			e.Close()
		}
	}
}

// put makes dir a store whose log is data.
func put(t *testing.T, dir string, data []byte) {
	t.Helper()
	for _, sub := range []string{"log", "snap"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "log", "0000000000000002.seg"), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDamageStopsOpening(t *testing.T) {
	clock := kvtest.NewClock()
	name := fill(t, local.Options{Dir: t.TempDir(), Clock: clock}, true)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	at := frames(data)
	dir := t.TempDir()
	// With an end mark at the end, a bit that flips anywhere before it is damage.
	for bit := 0; bit < at[len(at)-1]*8; bit += 13 {
		bad := bytes.Clone(data)
		bad[bit/8] ^= 1 << (bit % 8)
		put(t, dir, bad)
		_, err := local.Open(t.Context(), local.Options{Dir: dir, Clock: clock})
		var damage *local.DamageError
		if !errors.As(err, &damage) {
			t.Fatalf("bit %d: %v", bit, err)
		}
		want := 0 // the frame that the bit lies in
		for _, off := range at {
			if off <= bit/8 {
				want = off
			}
		}
		if damage.Offset != int64(want) || !strings.HasPrefix(damage.File, dir) || damage.Advice == "" {
			t.Fatalf("bit %d, in the frame at %d: %v", bit, want, err)
		}
		if after, _ := os.ReadFile(filepath.Join(dir, "log", filepath.Base(name))); !bytes.Equal(after, bad) {
			t.Fatalf("bit %d: the file was changed", bit)
		}
	}
}

func TestAMissingSegmentStopsOpening(t *testing.T) {
	clock := kvtest.NewClock()
	opts := local.Options{Dir: t.TempDir(), Clock: clock, SegmentSize: 100}
	e := mustOpen(t, opts)
	tell(t, e, clock)
	e.Close()
	names, _ := filepath.Glob(filepath.Join(opts.Dir, "log", "*.seg"))
	for i, name := range names[:len(names)-1] {
		data, _ := os.ReadFile(name)
		os.Remove(name)
		_, err := local.Open(t.Context(), opts)
		var damage *local.DamageError
		if !errors.As(err, &damage) || damage.File != names[i+1] {
			t.Errorf("without %s: %v", name, err)
		}
		os.WriteFile(name, data, 0o600)
	}
	mustOpen(t, opts)
}

func TestALogThatEndsBeforeASnapshotStopsOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := kvtest.NewClock()
		d := newDisk()
		opts := local.Options{Dir: "store", FS: d, Clock: clock, SegmentSize: 300, SnapshotSize: 500}
		e := mustOpen(t, opts)
		for range 8 {
			tell(t, e, clock)
			synctest.Wait()
		}
		e.Close()
		d.Remove("store/tip") // that would be noticed first
		segments, _ := d.List("store/log")
		snapshots, _ := d.List("store/snap")
		last := slices.Max(snapshots)
		for _, name := range segments {
			if name[:16] >= "000000000000000a" {
				d.Remove("store/log/" + name)
			}
		}
		_, err := local.Open(t.Context(), opts)
		var damage *local.DamageError
		if !errors.As(err, &damage) || damage.File != "store/snap/"+last {
			t.Errorf("got %v", err)
		}
	})
}

func TestAFormatFromTheFutureIsRefused(t *testing.T) {
	clock := kvtest.NewClock()
	opts := local.Options{Dir: t.TempDir(), Clock: clock}
	name := fill(t, opts, true)
	data, _ := os.ReadFile(name)
	data[8]++
	os.WriteFile(name, data, 0o600)
	if _, err := local.Open(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "newer pawl") {
		t.Errorf("got %v", err)
	}
}

func TestAFolderInUseIsRefusedAndSaysByWhom(t *testing.T) {
	opts := local.Options{Dir: filepath.Join(t.TempDir(), "deep", "store")}
	e := mustOpen(t, opts)
	_, err := local.Open(t.Context(), opts)
	var inUse *local.InUseError
	if !errors.As(err, &inUse) || inUse.PID != os.Getpid() || inUse.Dir != opts.Dir {
		t.Fatalf("got %v", err)
	}
	if runtime.GOOS != "windows" { // where it cannot be removed
		if err := os.Remove(filepath.Join(opts.Dir, "lock")); err != nil {
			t.Fatal(err)
		}
		if _, err := local.Check(t.Context(), opts, nil, nil); !errors.As(err, &inUse) {
			t.Errorf("without its lock file check says %v", err)
		}
		if _, err := local.Open(t.Context(), opts); !errors.As(err, &inUse) {
			t.Errorf("without its lock file opening says %v", err)
		}
	}
	e.Close()
	mustOpen(t, opts)
	if text, err := os.ReadFile(filepath.Join(opts.Dir, ".gitignore")); err != nil || string(text) != "*\n" {
		t.Errorf("its .gitignore holds %q, %v", text, err)
	}
	if info, err := os.Stat(opts.Dir); runtime.GOOS != "windows" && (err != nil || info.Mode().Perm() != 0o700) {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
}
