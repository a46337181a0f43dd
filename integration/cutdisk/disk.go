package cutdisk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/pawl-dev/pawl/kv/local"
)

// A Disk is a [local.FS] in memory. It is safe for concurrent use. Names have '/' between
// their parts and begin at the disk's root.
type Disk struct {
	mu     sync.Mutex // guards what follows
	mem    *vfs.MemFS
	nodes  map[string]*node // of the files, by name
	named  map[string]bool  // names of files and folders that were there when their folder was synced last
	ops    int
	counts [kinds]int
	before func(Op) error
	limit  int64 // 0 means none
	coarse bool  // nothing can be reserved
	overs  []Overrun
}

var _ local.FS = (*Disk)(nil)

// A node is what the disk knows of a file besides its bytes.
type node struct {
	size     int64
	synced   int64  // of size, from the start
	reserved int64  // for it to grow to; less than size counts for nothing
	cut      *uncut // what it was before it was cut shorter, until that is synced
	over     bool   // other than what is synced, because that was written over
	lost     span   // bytes that a sync should have made safe, and failed
	again    span   // bytes that were written over since the last sync
}

// A span is some bytes of a file, none if to is not after from.
type span struct{ from, to int64 }

// An uncut is what a file held before it was cut.
type uncut struct {
	bytes  []byte
	synced int64
}

// New returns an empty disk.
func New() *Disk {
	return &Disk{mem: vfs.NewCrashableMem(), nodes: map[string]*node{}, named: map[string]bool{}}
}

// Ops returns how many operations of those kinds there were, of all kinds if none is given.
func (d *Disk) Ops(of ...Kind) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(of) == 0 {
		return d.ops
	}
	for _, k := range of {
		n += d.counts[k]
	}
	return n
}

// Before has f called before each operation, by whoever wants it done. If f returns an error
// the operation fails with it. Nil means nobody.
func (d *Disk) Before(f func(Op) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = f
}

// Limit gives the disk room for that many bytes in files, written or reserved; 0 for no limit.
// What is there already stays.
func (d *Disk) Limit(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.limit = bytes
}

// Unreserving makes a disk on which no room can be reserved: that it is full is met when it
// is written to.
func (d *Disk) Unreserving() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.coarse = true
}

// An Overrun is a write that did not fit.
type Overrun struct {
	Name string
	At   int64 // where in the file it began
}

// Overruns returns the writes that did not fit.
func (d *Disk) Overruns() []Overrun {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.overs)
}

// Used returns how many bytes the files take, written or reserved.
func (d *Disk) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used()
}

func (d *Disk) used() (n int64) {
	for _, f := range d.nodes {
		n += max(f.size, f.reserved)
	}
	return n
}

// room reports how many more bytes fit. The caller holds d.mu.
func (d *Disk) room() int64 {
	if d.limit == 0 {
		return 1 << 62
	}
	return max(d.limit-d.used(), 0)
}

// Files returns the names of all files, in order.
func (d *Disk) Files() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name := range d.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Bytes returns what a file holds.
func (d *Disk) Bytes(name string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slurp(d.mem, name)
}

// Flip changes one bit of a file, counted from its start, for whoever opens it from now on.
// It makes what the disk shows of the file, and the names beside it, what is synced.
func (d *Disk) Flip(name string, bit int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, err := slurp(d.mem, name)
	if err != nil {
		return err
	}
	if bit/8 >= int64(len(b)) {
		return fmt.Errorf("cutdisk: %s has %d bytes, and no bit %d", name, len(b), bit)
	}
	b[bit/8] ^= 1 << (bit % 8)
	f, err := spill(d.mem, name, b)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), d.syncDir(path.Dir(name)))
}

// begin counts an operation and says whether it fails.
func (d *Disk) begin(k Kind, name string, bytes int) error {
	d.mu.Lock()
	d.ops++
	d.counts[k]++
	op := Op{Number: d.ops, Kind: k, Nth: d.counts[k], Name: name, Bytes: bytes}
	before := d.before
	d.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(op)
}

// do carries out an operation on the disk.
func (d *Disk) do(k Kind, name string, f func() error) error {
	if err := d.begin(k, name, 0); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return f()
}

// MkdirAll implements [local.FS].
func (d *Disk) MkdirAll(dir string) error {
	return d.do(MkdirAll, dir, func() error { return d.mem.MkdirAll(dir, 0o700) })
}

// List implements [local.FS]. The names come in order.
func (d *Disk) List(dir string) (names []string, err error) {
	err = d.do(List, dir, func() error {
		names, err = d.mem.List(dir)
		slices.Sort(names)
		return err
	})
	return names, err
}

// Open implements [local.FS].
func (d *Disk) Open(name string) (local.File, error) {
	return d.open(Open, name, func() (vfs.File, error) { return d.mem.Open(name) })
}

// Create implements [local.FS].
func (d *Disk) Create(name string) (local.File, error) {
	return d.open(Create, name, func() (vfs.File, error) {
		if d.room() == 0 {
			return nil, full("create", name)
		}
		f, err := d.mem.Create(name, vfs.WriteCategoryUnspecified)
		if err == nil {
			d.nodes[name] = &node{}
		}
		return f, err
	})
}

// Append implements [local.FS].
func (d *Disk) Append(name string) (local.File, error) {
	return d.open(Append, name, func() (vfs.File, error) { return atEnd(d.mem, name) })
}

func (d *Disk) open(k Kind, name string, open func() (vfs.File, error)) (local.File, error) {
	var f *file
	err := d.do(k, name, func() error {
		v, err := open()
		if err == nil {
			f = &file{d: d, name: name, v: v, n: d.nodes[name]}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Rename implements [local.FS].
func (d *Disk) Rename(from, to string) error {
	return d.do(Rename, from, func() error {
		if d.nodes[from] == nil {
			return &fs.PathError{Op: "rename", Path: from, Err: fs.ErrNotExist}
		}
		d.nodes[to] = d.nodes[from]
		delete(d.nodes, from)
		return d.mem.Rename(from, to)
	})
}

// Remove implements [local.FS].
func (d *Disk) Remove(name string) error {
	return d.do(Remove, name, func() error {
		delete(d.nodes, name)
		return d.mem.Remove(name)
	})
}

// SyncDir implements [local.FS].
func (d *Disk) SyncDir(dir string) error {
	return d.do(SyncDir, dir, func() error { return d.syncDir(dir) })
}

// syncDir makes the names in a folder safe. The caller holds d.mu.
func (d *Disk) syncDir(dir string) error {
	if dir == "." {
		dir = ""
	}
	names, err := d.mem.List(dir)
	if err != nil {
		return err
	}
	maps.DeleteFunc(d.named, func(name string, _ bool) bool { return path.Dir(name) == path.Clean(dir) })
	for _, name := range names {
		d.named[path.Join(dir, name)] = true
	}
	f, err := d.mem.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Lock implements [local.FS]. A lock ends with the power.
func (d *Disk) Lock(name string) (io.Closer, error) {
	var lock io.Closer
	err := d.do(Lock, name, func() (err error) {
		lock, err = d.mem.Lock(name)
		if errors.Is(err, syscall.EAGAIN) {
			return &local.InUseError{Dir: path.Dir(name)}
		}
		if err == nil {
			d.nodes[name] = &node{}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// full is the error of an operation that the disk has no room for.
func full(op, name string) error {
	return &fs.PathError{Op: op, Path: name, Err: local.ErrFull}
}
