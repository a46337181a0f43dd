package cutdisk

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Survival says how much of what was not synced is there after the power went.
type Survival struct {
	Percent int        // the chance of each name and each write; 0 is nothing, 100 everything
	Rand    *rand.Rand // needed unless Percent is 0 or 100
}

// Nothing and Everything are the ends of what may survive.
var (
	Nothing    = Survival{Percent: 0}
	Everything = Survival{Percent: 100}
)

// happens decides whether one thing survives.
func (s Survival) happens() bool {
	switch s.Percent {
	case 0:
		return false
	case 100:
		return true
	}
	return s.Rand.IntN(100) < s.Percent
}

// tail returns what is left of a file's bytes of which synced are safe.
func (s Survival) tail(b []byte, synced int64) []byte {
	switch {
	case int64(len(b)) <= synced || s.Percent == 100:
		return b
	case s.Percent == 0:
		return b[:synced]
	}
	fresh := len(b) - int(synced)
	b = slices.Clone(b)
	zero := func(from, to int) { clear(b[int(synced)+from : int(synced)+to]) }
	cut := s.Rand.IntN(fresh + 1)
	switch s.Rand.IntN(4) {
	case 0: // the length was kept, and not all of the bytes
		zero(cut, fresh)
		return b
	case 1: // what came first was lost
		zero(0, cut)
		return b
	case 2: // a hole, in front of a torn end
		from := s.Rand.IntN(cut + 1)
		zero(from, min(from+1+s.Rand.IntN(512), cut))
	}
	return b[:int(synced)+cut]
}

// Cut returns the disk as it may be found after the power went at this moment. This one
// goes on as if nothing had happened.
func (d *Disk) Cut(s Survival) *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := New()
	after.limit, after.coarse = d.limit, d.coarse
	c := cut{s: s, now: d, safe: d.mem.CrashClone(vfs.CrashCloneCfg{}), after: after}
	if err := errors.Join(c.dir(""), after.syncDir("")); err != nil {
		panic("cutdisk: memory failed: " + err.Error()) // it cannot
	}
	return after
}

// A cut is the making of one disk from what another shows and what it has synced.
type cut struct {
	s     Survival
	now   *Disk
	safe  *vfs.MemFS // holds exactly what was synced
	after *Disk
}

// dir carries a folder over, which is there on at least one side.
func (c *cut) dir(dir string) error {
	shown, _ := c.now.mem.List(dir)
	synced, _ := c.safe.List(dir)
	names := slices.Concat(shown, synced)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		full := path.Join(dir, name)
		fresh := slices.Contains(shown, name)
		// A folder that may itself be lost is not in safe, whatever is safe in it.
		safe := slices.Contains(synced, name) || fresh && c.now.named[full]
		if fresh != safe && c.s.happens() != fresh {
			continue // it was being made and is not there, or being removed and is gone
		}
		if err := c.entry(full, fresh); err != nil {
			return err
		}
	}
	return nil
}

// entry carries over what has a name; fresh says that the name is shown.
func (c *cut) entry(name string, fresh bool) error {
	from := c.now.mem
	if !fresh {
		from = c.safe
	}
	info, err := from.Stat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return errors.Join(c.after.mem.MkdirAll(name, 0o700), c.dir(name), c.after.syncDir(name))
	}
	b, err := c.bytes(name, fresh)
	if err != nil {
		return err
	}
	f, err := spill(c.after.mem, name, b)
	if err != nil {
		return err
	}
	size := int64(len(b))
	c.after.nodes[name] = &node{size: size, synced: size}
	return errors.Join(f.Sync(), f.Close())
}

// bytes returns what the file of that name holds afterwards. If both sides have one of that
// name they may be two, of which one has replaced the other.
func (c *cut) bytes(name string, fresh bool) ([]byte, error) {
	old, err := slurp(c.safe, name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) || !fresh {
		return old, err
	}
	missing := err != nil
	shown, err := slurp(c.now.mem, name)
	if err != nil {
		return nil, err
	}
	n := c.now.nodes[name]
	if n.cut != nil && !c.s.happens() {
		return c.s.tail(n.cut.bytes, n.cut.synced), nil
	}
	replaced := !missing && n.cut == nil && (n.over || !bytes.Equal(old, shown[:n.synced]))
	if replaced && !c.s.happens() {
		return old, nil
	}
	return c.s.tail(n.without(shown), n.synced), nil
}

// without returns b as it is without what a failed sync lost.
func (n *node) without(b []byte) []byte {
	if n.lost.from >= n.lost.to {
		return b
	}
	b = slices.Clone(b)
	clear(b[n.lost.from:n.lost.to])
	return b
}

// slurp returns what a file holds.
func slurp(mem *vfs.MemFS, name string) ([]byte, error) {
	f, err := mem.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// spill makes a file that holds b, and returns it open at its end.
func spill(mem *vfs.MemFS, name string, b []byte) (vfs.File, error) {
	f, err := mem.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(slices.Clone(b))
	return f, err
}

// atEnd opens a file that exists for writing after its end.
func atEnd(mem *vfs.MemFS, name string) (vfs.File, error) {
	if _, err := mem.Stat(name); err != nil {
		return nil, err
	}
	f, err := mem.OpenReadWrite(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(io.Discard, f)
	return f, err
}
