package local

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unique"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

// allocates fails the test if f allocates much more than an input of n bytes may make it.
func allocates(t *testing.T, n int, f func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	// A change takes 5 bytes at least, and a Version some 200 of memory.
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(256*n+1<<20); got > most {
		t.Errorf("%d bytes of input made it allocate %d bytes, at most %d are allowed", n, got, most)
	}
}

func golden(f *testing.F, pattern string) (all [][]byte) {
	names, _ := filepath.Glob(filepath.Join("testdata", "v1", pattern))
	if len(names) == 0 {
		f.Fatal("there is no golden folder to begin with")
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, data)
	}
	return all
}

// A segment of any bytes is read or refused, and what is read has the right checksum.
func FuzzSegment(f *testing.F) {
	for _, data := range golden(f, "log/*.seg") {
		f.Add(data, uint32(0))
		f.Add(data, uint32(777))
	}
	f.Fuzz(func(t *testing.T, data []byte, bit uint32) {
		allocates(t, len(data), func() {
			s, problem := parseSegment(data)
			if problem != "" {
				return
			}
			for off := headerBytes; off < len(data); {
				fr, size, problem := parseFrame(data[off:], s)
				if problem != "" {
					findFrame(data[off+1:], s)
					return
				}
				l := newLoader(fr.first, time.Time{})
				l.to = mvcc.NewLoader(mvcc.Options{}, mvcc.Base{Revision: emptyRevision, Floor: emptyRevision})
				l.frame(fr)
				flipped := bytes.Clone(data[off : off+size])
				flipped[int(bit/8)%size] ^= 1 << (bit % 8)
				if _, _, problem := parseFrame(flipped, s); problem == "" {
					t.Fatalf("a frame with bit %d flipped is taken for good", bit)
				}
				off += size
			}
		})
	})
}

// Records of any bytes are refused, or say the same again after they were written again.
func FuzzRecord(f *testing.F) {
	for _, data := range golden(f, "log/*.seg") {
		s, _ := parseSegment(data)
		for off := headerBytes; off < len(data); {
			fr, size, problem := parseFrame(data[off:], s)
			if problem != "" {
				break
			}
			f.Add(fr.payload)
			off += size
		}
	}
	f.Add([]byte{commitRecord, 2, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, data []byte) {
		var commits []*commit
		r := &reader{rest: data}
		allocates(t, len(data), func() {
			for len(r.rest) > 0 {
				if c, _ := r.record(); c != nil {
					commits = append(commits, c)
				}
			}
		})
		if r.err != nil {
			return
		}
		var once, twice []byte
		for _, c := range commits {
			once = appendCommit(once, c)
		}
		r = &reader{rest: once}
		for len(r.rest) > 0 {
			c, _ := r.record()
			if r.err != nil {
				t.Fatalf("what was read and written cannot be read again: %v", r.err)
			}
			twice = appendCommit(twice, c)
		}
		if !bytes.Equal(once, twice) {
			t.Fatalf("%x became %x", once, twice)
		}
	})
}

// A snapshot of any bytes is read or refused. With mend its checksums are made right
// first, so that what lies behind them is reached, too.
func FuzzSnapshot(f *testing.F) {
	for _, data := range golden(f, "snap/*.snap") {
		f.Add(data, true)
		f.Add(data, false)
		f.Add(data[:len(data)-1], true)
	}
	f.Fuzz(func(t *testing.T, data []byte, mend bool) {
		if mend {
			data = bytes.Clone(data)
			mendSnapshot(data)
		}
		allocates(t, len(data), func() { readAll(data) })
		if len(data) == 0 || readAll(data) != nil || mend {
			return
		}
		for _, i := range []int{0, len(data) / 3, len(data) - 1} {
			flipped := bytes.Clone(data)
			flipped[i] ^= 4
			if readAll(flipped) == nil {
				t.Fatalf("a snapshot with byte %d changed is taken for good", i)
			}
		}
	})
}

func readAll(data []byte) error {
	r, err := newSnapshotReader("x", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	for range r.versions() {
	}
	return r.err
}

func mendSnapshot(data []byte) {
	if len(data) < snapshotHeadBytes {
		return
	}
	le.PutUint32(data[12:], headerSum(data[:snapshotHeadBytes]))
	for off := snapshotHeadBytes; off+blockBytes < len(data); {
		n := int(le.Uint32(data[off:]))
		if n < 0 || n > len(data)-off-blockBytes {
			return
		}
		block := data[off : off+blockBytes+n]
		le.PutUint32(block[4:], frameSum(block))
		off += len(block)
	}
}

func TestASnapshotIsReadAsItWasWritten(t *testing.T) {
	at := time.Unix(0, 12345).UTC()
	e := start(Options{Clock: realClock{}}.complete(), emptyStore(Options{}), nil)
	defer e.Close()
	want := map[string]*kv.Version{}
	for i := range 3000 {
		author := kv.Author{User: string(rune('a' + i%26)), Verb: "update"}
		op := kv.Op{Key: "default/core/configmaps/ns/" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)), Value: make([]byte, i%300)}
		if i%3 == 0 {
			op.Expiry = kv.Expiry{Kind: kv.After, For: time.Hour}
		}
		done, err := e.Commit(t.Context(), kv.Txn{Author: author, Ops: []kv.Op{op}})
		if err != nil {
			t.Fatal(err)
		}
		want[op.Key] = done.Versions[0]
	}
	state, tables, floor := e.index.Checkpoint()
	var b bytes.Buffer
	m := image{head: snapshotHead{state.Revision(), at, floor}, tables: tables, versions: state.Ascend("", "")}
	err := m.write(&b, func(int) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	r, err := newSnapshotReader("x", &b, int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if r.head != (snapshotHead{state.Revision(), at, floor}) || r.tables["default/core/configmaps/"] != state.Revision() {
		t.Errorf("got %+v, %v", r.head, r.tables)
	}
	n := 0
	for v := range r.versions() {
		w := want[v.Key]
		if !bytes.Equal(v.Value, w.Value) || v.Revision != w.Revision || v.Created != w.Created || v.Time != w.Time ||
			v.Author != w.Author || v.Expires != w.Expires {
			t.Fatalf("%s is %+v, want %+v", v.Key, v, w)
		}
		n++
	}
	if r.err != nil || n != len(want) {
		t.Errorf("%d versions, %v, want %d", n, r.err, len(want))
	}
}

func TestARevisionThatIsMissingWithinASegmentIsDamage(t *testing.T) {
	l := newLoader(2, time.Time{})
	l.to = mvcc.NewLoader(mvcc.Options{}, mvcc.Base{Revision: emptyRevision, Floor: emptyRevision})
	b := appendCommit(nil, &commit{revision: 2, author: unique.Make(kv.Author{})})
	if err := l.frame(frame{2, b}); err != nil {
		t.Fatal(err)
	}
	b = appendCommit(nil, &commit{revision: 4, author: unique.Make(kv.Author{})})
	if err := l.frame(frame{3, b}); err == nil || !strings.Contains(err.Error(), "revision 4 where 3 should come") {
		t.Errorf("got %v", err)
	}
}
