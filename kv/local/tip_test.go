package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/local"
)

// A store of one segment is closed, or crashes, and something happens to its folder.
func TestTheEndOfTheLogIsKnown(t *testing.T) {
	const seg, newer = "log/0000000000000002.seg", "log/0000000000000008.seg"
	for _, c := range []struct {
		name   string
		crash  bool
		happen func(f folder)
		file   string // that is said to be damaged; "" if the store opens
		what   string
	}{
		{"nothing happens", false, func(folder) {}, "", ""},
		{"nothing happens after a crash", true, func(folder) {}, "", ""},
		{"the newest segment is lost", false, func(f folder) { f.remove(seg) }, seg, "it is missing, and was the newest"},
		{"the newest segment is lost after a crash", true, func(f folder) { f.remove(seg) }, seg, "it is missing, and was the newest"},
		{"its last frame goes bad", false, func(f folder) { f.flip(seg, -1) }, seg, "checksum is wrong"},
		{"its last frame goes bad after a crash, and looks torn", true, func(f folder) { f.flip(seg, -1) }, "", ""},
		{"its last frame is lost", false, func(f folder) { f.cut(seg, f.lastFrame(seg)) }, seg, "bytes, and had"},
		{"a part of its last frame is lost", false, func(f folder) { f.cut(seg, f.lastFrame(seg)+1) }, seg, "cut off"},
		{"something is written after its end", false, func(f folder) { f.write(seg, f.read(seg)+"x") }, seg, "cut off"},
		{"it is another file", false, func(f folder) { f.write(seg, f.other(seg, 0)) }, seg, "another of that name"},
		{"its head goes bad after a crash", true, func(f folder) { f.cut(seg, 32); f.flip(seg, 20) }, seg, "head's checksum"},
		{"the tip goes bad", false, func(f folder) { f.flip("tip", -1) }, "tip", "checksum is wrong"},
		{"the tip is cut off", false, func(f folder) { f.cut("tip", 20) }, "tip", "checksum is wrong"},
		{"the tip is something else", false, func(f folder) { f.write("tip", "the 1st of May") }, "tip", "does not say"},
		{"the tip is from a newer pawl", false, func(f folder) { f.flip("tip", 8) }, "tip", "newer pawl"},
		{"there is no tip", false, func(f folder) { f.remove("tip") }, "", ""},
		{"a segment was begun, and the tip does not know yet", true, func(f folder) { f.write(newer, f.other(newer, 100)) }, "", ""},
		{"a segment was begun, and its head is torn", true, func(f folder) { f.write(newer, "pawl") }, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := kvtest.NewClock()
			f := folder{t, t.TempDir()}
			e := mustOpen(t, local.Options{Dir: f.dir, Clock: clock})
			tell(t, e, clock)
			open := f.read("tip")
			e.Close()
			if c.crash { // as it is while the store is open
				f.write("tip", open)
			}
			c.happen(f)
			e, err := local.Open(t.Context(), local.Options{Dir: f.dir, Clock: clock})
			if c.file == "" {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put("default/core/configmaps/ns/new", []byte("x"))}}); err != nil {
					t.Error(err)
				}
				e.Close()
				mustOpen(t, local.Options{Dir: f.dir, Clock: clock})
				return
			}
			var damage *local.DamageError
			if !errors.As(err, &damage) || damage.File != filepath.Join(f.dir, c.file) || !strings.Contains(damage.What, c.what) || damage.Advice == "" {
				t.Errorf("opening says %v, want %s: %s", err, c.file, c.what)
			}
		})
	}
}

// A folder is a store's.
type folder struct {
	*testing.T
	dir string
}

func (f folder) read(name string) string {
	f.Helper()
	b, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		f.Fatal(err)
	}
	return string(b)
}

func (f folder) write(name, data string) {
	f.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, name), []byte(data), 0o600); err != nil {
		f.Fatal(err)
	}
}

func (f folder) remove(name string) {
	f.Helper()
	if err := os.Remove(filepath.Join(f.dir, name)); err != nil {
		f.Fatal(err)
	}
}

func (f folder) cut(name string, at int) { f.Helper(); f.write(name, f.read(name)[:at]) }

// flip changes a byte, counted from the end if at is negative.
func (f folder) flip(name string, at int) {
	f.Helper()
	b := []byte(f.read(name))
	b[(at+len(b))%len(b)] ^= 2
	f.write(name, string(b))
}

// lastFrame returns where the last frame begins.
func (f folder) lastFrame(name string) int {
	f.Helper()
	at := frames([]byte(f.read(name)))
	return at[len(at)-1]
}

// other returns a file of another store that tells the same.
func (f folder) other(name string, segmentSize int64) string {
	f.Helper()
	o := folder{f.T, f.TempDir()}
	clock := kvtest.NewClock()
	e := mustOpen(f.T, local.Options{Dir: o.dir, Clock: clock, SegmentSize: segmentSize})
	tell(f.T, e, clock)
	e.Close()
	return o.read(name)
}
