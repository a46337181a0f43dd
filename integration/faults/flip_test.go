package faults

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/integration/cutdisk"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/local"
)

// A flip changes one bit of a store at rest.
type flip struct {
	file string
	bit  int64
}

// A bit flips anywhere in the files of a store that was closed, or of one that crashed after it
// had written everything. Either opening stops, names the file and a place in it that is not
// behind the bit, and changes nothing; or the store is what it was, because nothing that it
// needs was hit. The last frame after a crash is exempt: the commit in it may be given up.
func TestABitFlipsAnywhere(t *testing.T) {
	for i, seed := range seeds() {
		every := int64(23) // bytes
		if heavy {
			every = 1 + 6*int64(min(i, 1)) // all of one store, and some of the others
		}
		for _, crashed := range []bool{false, true} {
			rest := atRest(t, seed, crashed)
			r := rand.New(rand.NewPCG(seed, 1))
			var flips []flip
			total := int64(0)
			for _, name := range rest.disk.Files() {
				b, err := rest.disk.Bytes(name)
				if err != nil {
					t.Fatal(err)
				}
				total += int64(len(b))
				for at := range int64(len(b)) {
					if at%every == 0 || at < 48 {
						flips = append(flips, flip{name, at*8 + r.Int64N(8)})
					}
				}
			}
			var noticed, harmless, torn, failures atomic.Int64
			each(flips, func(f flip) {
				became, err := rest.flipped(f, seed)
				switch became {
				case damaged:
					noticed.Add(1)
				case unharmed:
					harmless.Add(1)
				case givenUp:
					torn.Add(1)
				}
				if err != nil && failures.Add(1) <= 5 {
					t.Errorf("seed %d, crashed %v, bit %d of %s (byte %d): %v", seed, crashed, f.bit, f.file, f.bit/8, err)
				}
			})
			t.Logf("seed %d, crashed %v: %d bits in %d bytes: %d stopped opening, %d hit nothing that was needed, %d looked like a torn write",
				seed, crashed, len(flips), total, noticed.Load(), harmless.Load(), torn.Load())
			if int64(len(flips)) < total/every || noticed.Load() < harmless.Load() || (torn.Load() > 0) != crashed {
				t.Error("these are not the flips that were meant")
			}
		}
	}
}

// A store at rest, and what its clients know.
type store struct {
	disk      *cutdisk.Disk
	m         *memory
	now       time.Duration
	last      string // the newest segment
	lastFrame int64  // where its last frame begins, if that is exempt
}

// atRest runs the workload and returns what it leaves.
func atRest(t *testing.T, seed uint64, crashed bool) (s store) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed, cutdisk.New())
		began := w.clock.Now()
		w.mustOpen()
		for i := range steps() {
			w.live1(i)
		}
		w.asked++
		w.commit(kv.Txn{Ops: []kv.Op{kv.Put(tables[0]+"ns/last", []byte("last"))}}, nil)
		w.see()
		s.last = newest(w.disk)
		s.lastFrame = 1 << 62
		if crashed {
			s.disk, s.m = w.disk.Cut(cutdisk.Everything), w.m.frozen(0)
			s.lastFrame = lastFrame(w.disk, s.last)
		}
		if err := w.close(); err != nil {
			w.fatal(err)
		}
		if !crashed {
			s.disk, s.m = w.disk.Cut(cutdisk.Everything), w.m.frozen(0)
		}
		s.now = w.clock.Now().Sub(began)
	})
	return s
}

// newest returns the name of the newest segment.
func newest(d *cutdisk.Disk) string {
	segments := slices.DeleteFunc(d.Files(), func(name string) bool { return path.Ext(name) != ".seg" })
	return slices.Max(segments)
}

// lastFrame returns where the last frame of a segment begins.
func lastFrame(d *cutdisk.Disk, name string) (at int64) {
	b, err := d.Bytes(name)
	if err != nil {
		panic(err)
	}
	for off := 32; off < len(b); off += 24 + (int(b[off]) | int(b[off+1])<<8 | int(b[off+2])<<16) {
		at = int64(off)
	}
	return at
}

// An outcome is what came of a flipped bit.
type outcome uint8

const (
	damaged  outcome = 1 + iota // opening stopped
	unharmed                    // the store is what it was
	givenUp                     // the last commit is not there
)

// flipped opens the store with a bit flipped.
func (s store) flipped(f flip, seed uint64) (outcome, error) {
	d := s.disk.Cut(cutdisk.Everything)
	if err := d.Flip(f.file, f.bit); err != nil {
		return 0, err
	}
	before := contents(d)
	clock := kvtest.NewClock()
	clock.Advance(s.now)
	e, err := local.Open(noContext, tiny(d, clock))
	if err != nil {
		var damage *local.DamageError
		switch {
		case !errors.As(err, &damage):
			return damaged, err
		case damage.File != f.file || damage.Offset > f.bit/8 || damage.Advice == "":
			return damaged, fmt.Errorf("it is found elsewhere: %w", err)
		case !bytes.Equal(before, contents(d)):
			return damaged, fmt.Errorf("something was changed: %w", err)
		}
		return damaged, nil
	}
	defer e.Close()
	m := s.m.frozen(0)
	became := unharmed
	if _, newest := e.Revisions(); newest < m.shown && f.file == s.last && f.bit/8 >= s.lastFrame {
		m, became = m.without(), givenUp
	}
	return became, m.audit(e, clock.Now(), rand.New(rand.NewPCG(seed, uint64(f.bit))))
}

// contents returns all files of a store but the one that is its lock.
func contents(d *cutdisk.Disk) []byte {
	var b bytes.Buffer
	for _, name := range d.Files() {
		text, err := d.Bytes(name)
		if err == nil && path.Base(name) != "lock" {
			fmt.Fprintf(&b, "%s %d\n%s\n", name, len(text), text)
		}
	}
	return b.Bytes()
}
