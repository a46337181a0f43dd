package local_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/local"
)

// goldenDisk returns a disk that holds the store of testdata/v1 in the folder "store".
func goldenDisk(t *testing.T) *disk {
	t.Helper()
	d := newDisk()
	d.dirs["store"] = true
	err := fs.WalkDir(os.DirFS("testdata/v1"), ".", func(path string, e fs.DirEntry, err error) error {
		name := filepath.Join("store", filepath.FromSlash(path))
		if err != nil || e.IsDir() {
			d.dirs[name] = true
			return err
		}
		data, err := os.ReadFile(filepath.Join("testdata/v1", path))
		d.names[name] = &inode{data, bytes.Clone(data)}
		d.durable[name] = d.names[name]
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func mustCheck(t *testing.T, opts local.Options) *local.Report {
	t.Helper()
	r, err := local.Check(t.Context(), opts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// contents returns what the files of d hold.
func (d *disk) contents() map[string]string {
	all := map[string]string{}
	for name, n := range d.names {
		all[name] = string(n.data)
	}
	return all
}

func TestCheckSaysWhatAStoreHolds(t *testing.T) {
	clock := kvtest.NewClock()
	opts := local.Options{Dir: "store", FS: newDisk(), Clock: clock, SegmentSize: 300, SnapshotSize: 500}
	began := clock.Now()
	for range 3 {
		e := mustOpen(t, opts)
		tell(t, e, clock)
		e.Close()
	}
	ended := clock.Now().Add(-time.Second)
	before := opts.FS.(*disk).contents()
	r := mustCheck(t, opts)
	if !maps.Equal(before, opts.FS.(*disk).contents()) {
		t.Error("it changed something")
	}

	e := mustOpen(t, opts)
	oldest, newest := e.Revisions()
	e.Close()
	if r.Oldest != oldest || r.Newest != newest {
		t.Errorf("it tells revisions %d to %d, the engine %d to %d", r.Oldest, r.Newest, oldest, newest)
	}
	if len(r.Problems) > 0 || len(r.Notes) > 0 || !r.Closed {
		t.Errorf("it finds %v, notes %v, closed %v", r.Problems, r.Notes, r.Closed)
	}
	want := map[string]int{"default/core/configmaps": 2, "default/core/events": 2, "other/core/namespaces": 1}
	if r.Objects != 5 || !maps.Equal(r.Tables, want) || r.ObjectBytes == 0 {
		t.Errorf("it counts %d objects, %v, %d bytes", r.Objects, r.Tables, r.ObjectBytes)
	}
	if !r.Since.Equal(began) || !r.LastCommit.Equal(ended) {
		t.Errorf("it tells of %v to %v, want %v to %v", r.Since, r.LastCommit, began, ended)
	}
	if r.Commits != 18 || len(r.Segments) < 3 || len(r.Snapshots) == 0 {
		t.Errorf("it counts %d commits, %d segments, %d snapshots", r.Commits, len(r.Segments), len(r.Snapshots))
	}
	size := int64(0)
	for name, data := range before {
		if ext := filepath.Ext(name); ext == ".seg" || ext == ".snap" {
			size += int64(len(data))
		}
	}
	if r.LogBytes+r.SnapshotBytes != size {
		t.Errorf("it counts %d and %d bytes, want %d together", r.LogBytes, r.SnapshotBytes, size)
	}
}

func TestCheckTellsProgress(t *testing.T) {
	d := goldenDisk(t)
	var done, total int64
	_, err := local.Check(t.Context(), local.Options{Dir: "store", FS: d}, nil, func(now, all int64) {
		if now < done || now > all {
			t.Errorf("%d of %d after %d", now, all, done)
		}
		done, total = now, all
	})
	if err != nil || done != total || total != d.size() {
		t.Errorf("%d of %d bytes were read, and there are %d: %v", done, total, d.size(), err)
	}
}

// One bit of every third byte of a store is flipped in turn (with PAWL_HEAVY=1 each bit). Check
// finds all of them and names the place where opening stops, if it does; but in testdata/v1, which was not
// closed, not those in the frame that was torn anyway.
func TestCheckFindsAFlippedBit(t *testing.T) {
	closed, clock := newDisk(), kvtest.NewClock()
	opts := local.Options{Dir: "store", FS: closed, Clock: clock, SegmentSize: 300, SnapshotSize: 500}
	for range 2 {
		e := mustOpen(t, opts)
		tell(t, e, clock)
		e.Close()
	}
	t.Run("of a store that was closed", func(t *testing.T) { flipBits(t, closed, "") })
	t.Run("of a store that was not", func(t *testing.T) {
		flipBits(t, goldenDisk(t), filepath.FromSlash("store/log/0000000000000020.seg"))
	})
}

// flipBits flips bits of what is written of the store on d, of which one file may be torn.
func flipBits(t *testing.T, d *disk, torn string) {
	const seed = 4
	r := rand.New(rand.NewPCG(seed, seed))
	flips := 0
	for _, name := range slices.Sorted(maps.Keys(d.names)) {
		if base := filepath.Base(name); base == "lock" || base == ".gitignore" {
			continue
		}
		n := d.names[name]
		for at := range n.data {
			var bits []int
			if os.Getenv("PAWL_HEAVY") != "" {
				bits = []int{0, 1, 2, 3, 4, 5, 6, 7}
			} else if at%3 == len(name)%3 {
				bits = []int{r.IntN(8)}
			}
			for _, bit := range bits {
				flips++
				n.data[at] ^= 1 << bit
				report := mustCheck(t, local.Options{Dir: "store", FS: d})
				where := fmt.Sprintf("%s, byte %d, bit %d", name, at, bit)
				if len(report.Problems) == 0 && (name != torn || at < 32) {
					t.Errorf("%s: nothing is found", where)
				}
				if r.IntN(4) == 0 {
					agreesWithOpening(t, where, d, report)
				}
				n.data[at] ^= 1 << bit
			}
		}
	}
	t.Logf("%d bits flipped", flips)
}

// agreesWithOpening sees that what stops an engine is among the problems found.
func agreesWithOpening(t *testing.T, where string, d *disk, report *local.Report) {
	t.Helper()
	copied := newDisk()
	copied.dirs = maps.Clone(d.dirs)
	for name, n := range d.names {
		copied.names[name] = &inode{data: bytes.Clone(n.data)}
	}
	e, err := local.Open(t.Context(), local.Options{Dir: "store", FS: copied})
	if err == nil {
		e.Close()
		return
	}
	var damage *local.DamageError
	if !errors.As(err, &damage) {
		t.Errorf("%s: opening says %v", where, err)
		return
	}
	for _, p := range report.Problems {
		if p.File == damage.File && p.Offset == damage.Offset {
			return
		}
	}
	t.Errorf("%s: opening stops at %v; check finds %+v", where, err, report.Problems)
}

func TestCheckSaysWhatIsWrong(t *testing.T) {
	const log, snap = "store/log/", "store/snap/"
	move := func(from, to string) func(*disk) {
		return func(d *disk) {
			n := d.names[from]
			delete(d.names, from)
			if to != "" {
				d.names[to] = n
			}
		}
	}
	for _, c := range []struct {
		name          string
		do            func(*disk)
		problem, note string
	}{
		{"the end of a write that was never acknowledged does no harm", func(*disk) {},
			"", "0000000000000020.seg at byte 32: a frame is longer than the file: the last 77 bytes were being written when the store stopped, and were not acknowledged; the next start cuts them off"},
		{"a file of the log is gone", move(log+"000000000000001a.seg", ""),
			"000000000000001d.seg at byte 0: revisions 26 to 28 are missing before it", ""},
		{"a file of the log that no history needs is gone", func(d *disk) {
			delete(d.names, snap+"0000000000000010.snap")
			delete(d.names, log+"000000000000000e.seg")
		}, "", ""},
		{"a file of the log that no history needs is damaged", func(d *disk) {
			delete(d.names, snap+"0000000000000010.snap")
			d.names[log+"000000000000000e.seg"].data[100]++
		}, "000000000000000e.seg at byte 32: a frame's checksum is wrong; the next good one begins at byte 154; nothing needs it any more, since a snapshot holds what it led to: remove it", ""},
		{"the end of the log is gone", func(d *disk) {
			for _, n := range []string{"000000000000001a", "000000000000001d", "0000000000000020"} {
				delete(d.names, log+n+".seg")
			}
		}, "000000000000001c.snap at byte 0: the log ends at revision 25, before what this snapshot shows", ""},
		{"a file has the name of another", move(log+"000000000000001d.seg", log+"000000000000001f.seg"),
			"000000000000001f.seg at byte 0: its name does not fit its head", ""},
		{"a snapshot has the name of another", move(snap+"0000000000000016.snap", snap+"0000000000000017.snap"),
			"0000000000000017.snap at byte 0: its name does not fit its head", ""},
		{"the snapshot that history begins with is damaged, and another follows", func(d *disk) {
			delete(d.names, log+"0000000000000002.seg")
			d.names[snap+"0000000000000010.snap"].data[60]++
		}, "at byte 48: a block's checksum is wrong; move it away to open the store from the next snapshot, with less history, or restore", ""},
		{"the only snapshot that history begins with is damaged", func(d *disk) {
			delete(d.names, log+"0000000000000002.seg")
			delete(d.names, snap+"0000000000000010.snap")
			delete(d.names, snap+"0000000000000016.snap")
			d.names[snap+"000000000000001c.snap"].data[60]++
		}, "at byte 48: a block's checksum is wrong; restore the folder from a backup: nothing else holds what it held", ""},
		{"a snapshot ends too early", func(d *disk) { n := d.names[snap+"0000000000000016.snap"]; n.data = n.data[:100] },
			"0000000000000016.snap at byte 48: a block's length is wrong", ""},
		{"what is not ours is told", func(d *disk) { d.names[log+"notes"] = &inode{} },
			"", "notes at byte 0: this is no file of the store's"},
		{"what a crash left half made is told", func(d *disk) { d.names[snap+"0000000000000020.snap.tmp"] = &inode{} },
			"", "0000000000000020.snap.tmp at byte 0: this was being written when the store stopped; the next start removes it"},
		{"a file that was being made is told", func(d *disk) { n := d.names[log+"0000000000000020.seg"]; n.data = n.data[:10] },
			"", "0000000000000020.seg at byte 0: the file was being made when the store stopped, and holds nothing; the next start removes it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := goldenDisk(t)
			c.do(d)
			r := mustCheck(t, local.Options{Dir: "store", FS: d})
			if got := findings(r.Problems); (c.problem == "") != (got == "") || !strings.Contains(got, c.problem) {
				t.Errorf("problems are\n%swant\n%s", got, c.problem)
			}
			if got := findings(r.Notes); !strings.Contains(got, c.note) {
				t.Errorf("notes are\n%swant\n%s", got, c.note)
			}
			agreesWithOpening(t, "then", d, r)
		})
	}
}

func findings(all []local.Finding) string {
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "%s at byte %d: %s; %s\n", filepath.Base(f.File), f.Offset, f.What, f.Advice)
	}
	return b.String()
}

// A snapshot that is whole in itself and belongs to another store passes every checksum.
func TestCheckComparesSnapshotsWithTheLog(t *testing.T) {
	const snapshot = "store/snap/0000000000000003.snap"
	stores := [2]*disk{newDisk(), newDisk()}
	for i, d := range stores {
		synctest.Test(t, func(t *testing.T) {
			e := mustOpen(t, local.Options{Dir: "store", FS: d, SnapshotSize: 300})
			for _, value := range [][]byte{{byte(i)}, make([]byte, 400), {1}} {
				if _, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(fmt.Sprintf("default/core/configmaps/ns/%d", len(value)), value)}}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // for the snapshot
			}
			e.Close()
		})
	}
	if r := mustCheck(t, local.Options{Dir: "store", FS: stores[0]}); len(r.Problems) > 0 || len(r.Snapshots) != 1 {
		t.Fatalf("before it finds %s in %d snapshots", findings(r.Problems), len(r.Snapshots))
	}
	stores[0].names[snapshot].data = stores[1].names[snapshot].data
	r := mustCheck(t, local.Options{Dir: "store", FS: stores[0]})
	if got := findings(r.Problems); len(r.Problems) != 1 || !strings.Contains(got, "default/core/configmaps/ns/1 is not as the log says it was at revision 3") {
		t.Errorf("of another store's snapshot it finds %s", got)
	}
}

func TestCheckNeedsAStoreThatNobodyHasOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	var none *local.NoStoreError
	if _, err := local.Check(t.Context(), local.Options{Dir: dir}, nil, nil); !errors.As(err, &none) {
		t.Errorf("where there is nothing it says %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it made the folder")
	}
	e := mustOpen(t, local.Options{Dir: dir})
	var inUse *local.InUseError
	if _, err := local.Check(t.Context(), local.Options{Dir: dir}, nil, nil); !errors.As(err, &inUse) || inUse.PID != os.Getpid() {
		t.Errorf("of a store in use it says %v", err)
	}
	e.Close()
	r := mustCheck(t, local.Options{Dir: dir})
	if len(r.Problems) > 0 || r.Newest != 1 || r.Oldest != 1 || r.Objects != 0 {
		t.Errorf("of an empty store it says %+v", r)
	}
	if text, err := json.Marshal(r); err != nil || strings.Contains(string(text), "null") {
		t.Errorf("as JSON it is %s, %v", text, err)
	}
}

func TestCheckTellsOfTheNewestValuesThatAreUnsound(t *testing.T) {
	for _, c := range []struct {
		name string
		opts local.Options // where the values lie in the end
	}{
		{"in the log", local.Options{}},
		{"in a snapshot", local.Options{SegmentSize: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.opts.Dir, c.opts.FS = "store", newDisk()
			e := mustOpen(t, c.opts)
			for _, op := range []kv.Op{
				kv.Put("a/b/c/sound", []byte("good")),
				kv.Put("a/b/c/mended", []byte("bad")), kv.Put("a/b/c/mended", []byte("good")),
				kv.Put("a/b/c/removed", []byte("bad")), {Key: "a/b/c/removed", Delete: true},
				kv.Put("a/b/c/spoiled", []byte("good")), kv.Put("a/b/c/spoiled", []byte("bad")),
				kv.Put("a/b/c/again", []byte("bad")), {Key: "a/b/c/again", Delete: true}, kv.Put("a/b/c/again", []byte("bad")),
			} {
				if _, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{op}}); err != nil {
					t.Fatal(err)
				}
			}
			if c.opts.SegmentSize > 0 {
				_, newest := e.Revisions()
				if err := e.Shrink(t.Context(), newest); err != nil {
					t.Fatal(err)
				}
			}
			e.Close()
			r, err := local.Check(t.Context(), c.opts, func(v *kv.Version) (string, string) {
				if string(v.Value) == "bad" {
					return "it is bad", "make it good"
				}
				return "", ""
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var found []string
			for _, p := range r.Problems {
				if p.File == "" || p.Offset == 0 || p.Advice != "make it good" {
					t.Errorf("it finds %+v", p)
				}
				found = append(found, p.What)
			}
			want := []string{"a/b/c/again, at revision 11: it is bad", "a/b/c/spoiled, at revision 8: it is bad"}
			if !slices.Equal(found, want) {
				t.Errorf("it finds %q, want %q", found, want)
			}
		})
	}
}

// What follows after a lost file of the log rests on what was in it, and so says nothing about damage.
func TestCheckTellsOfALostFileOnce(t *testing.T) {
	d := newDisk()
	opts := local.Options{Dir: "store", FS: d, SegmentSize: 1}
	e := mustOpen(t, opts)
	for i := range 6 {
		if _, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put("a/b/c/d", fmt.Append(nil, i))}}); err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			if err := e.Shrink(t.Context(), 4); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.Close()
	delete(d.names, "store/log/0000000000000006.seg")
	r := mustCheck(t, opts)
	if got, want := findings(r.Problems), "0000000000000007.seg at byte 0: revisions 6 to 6 are missing before it"; len(r.Problems) != 1 || !strings.HasPrefix(got, want) {
		t.Errorf("it finds\n%swant\n%s", got, want)
	}
	delete(d.names, "store/log/0000000000000005.seg")
	r = mustCheck(t, opts)
	if got, want := findings(r.Problems), "0000000000000007.seg at byte 0: revisions 5 to 6 are missing before it"; len(r.Problems) != 1 || !strings.HasPrefix(got, want) {
		t.Errorf("without the one before too it finds\n%swant\n%s", got, want)
	}
	if r.Objects != 0 {
		t.Errorf("it counts %d objects of a state that nobody knows", r.Objects)
	}
}

func TestAFolderThatIsGoneIsDamage(t *testing.T) {
	for _, gone := range []string{"log", "snap"} {
		t.Run(gone, func(t *testing.T) {
			d := newDisk()
			opts := local.Options{Dir: "store", FS: d}
			e := mustOpen(t, opts)
			for i := range 3 {
				if _, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put("a/b/c/d", fmt.Append(nil, i))}}); err != nil {
					t.Fatal(err)
				}
				if i == 1 {
					if err := e.Shrink(t.Context(), 3); err != nil {
						t.Fatal(err)
					}
				}
			}
			e.Close()
			delete(d.dirs, "store/"+gone)
			maps.DeleteFunc(d.names, func(name string, _ *inode) bool { return strings.HasPrefix(name, "store/"+gone) })
			d.names["store/half.seg.tmp"] = &inode{}
			before, dirs := d.contents(), maps.Clone(d.dirs)
			if r := mustCheck(t, opts); len(r.Problems) == 0 {
				t.Error("check finds nothing")
			}
			var damage *local.DamageError
			if _, err := local.Open(t.Context(), opts); !errors.As(err, &damage) {
				t.Errorf("opening says %v", err)
			}
			if !maps.Equal(before, d.contents()) || !maps.Equal(dirs, d.dirs) {
				t.Error("something was changed")
			}
		})
	}
}

func TestARefusedOpeningLeavesWhatACrashLeft(t *testing.T) {
	d := goldenDisk(t)
	d.names["store/log/0000000000000030.seg.tmp"], d.names["store/snap/0000000000000020.snap.tmp"] = &inode{}, &inode{}
	d.names["store/log/000000000000001a.seg"].data[40]++
	before := d.contents()
	var damage *local.DamageError
	if _, err := local.Open(t.Context(), local.Options{Dir: "store", FS: d}); !errors.As(err, &damage) || !maps.Equal(before, d.contents()) {
		t.Errorf("it says %v, and has changed something: %v", err, !maps.Equal(before, d.contents()))
	}
	d.names["store/log/000000000000001a.seg"].data[40]--
	mustOpen(t, local.Options{Dir: "store", FS: d}).Close()
	for name := range d.names {
		if strings.HasSuffix(name, ".tmp") {
			t.Errorf("%s is still there after an opening", name)
		}
	}
}
