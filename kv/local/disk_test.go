package local_test

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"sync"

	"github.com/pawl-dev/pawl/kv/local"
)

// A disk is a file system in memory that remembers what was synced, can be told to
// fail, and can lose its power.
type disk struct {
	mu      sync.Mutex
	dirs    map[string]bool
	names   map[string]*inode // as programs see them
	durable map[string]*inode // as they are after the power went
	ops     int               // changes so far
	failAt  int               // the change that fails; 0 means none
	failure error             // what it fails with; nil means errDisk
	dies    bool              // every later change fails, too
	onSync  func()            // called while a file is synced
	locked  map[string]bool
}

type inode struct {
	data   []byte
	synced []byte
}

var errDisk = errors.New("the disk failed")

func newDisk() *disk {
	return &disk{dirs: map[string]bool{}, names: map[string]*inode{}, durable: map[string]*inode{}, locked: map[string]bool{}}
}

// change counts one change and says whether it fails. The caller holds d.mu.
func (d *disk) change() error {
	d.ops++
	if d.failAt > 0 && (d.ops == d.failAt || d.dies && d.ops > d.failAt) {
		return cmp.Or(d.failure, errDisk)
	}
	return nil
}

// powerCut returns the disk as it may be after the power went: what was synced is there,
// and of the rest as much as r says.
func (d *disk) powerCut(r *rand.Rand) *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := newDisk()
	after.dirs = maps.Clone(d.dirs)
	names := d.durable
	if r.IntN(2) == 0 {
		names = d.names
	}
	for name, n := range names {
		data := n.synced
		if rest := len(n.data) - len(n.synced); rest > 0 && bytes.HasPrefix(n.data, n.synced) {
			data = n.data[:len(n.synced)+r.IntN(rest+1)]
		}
		kept := &inode{bytes.Clone(data), bytes.Clone(data)}
		after.names[name], after.durable[name] = kept, kept
	}
	return after
}

// size returns how many bytes the files hold.
func (d *disk) size() (n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.names {
		n += int64(len(f.data))
	}
	return n
}

// spoil changes the last byte of the files with that extension.
func (d *disk) spoil(ext string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, n := range d.names {
		if filepath.Ext(name) == ext {
			n.data[len(n.data)-1] = 0xff
		}
	}
}

func (d *disk) MkdirAll(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.change(); err != nil {
		return err
	}
	d.dirs[dir] = true
	return nil
}

func (d *disk) List(dir string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.dirs[dir] {
		return nil, fs.ErrNotExist
	}
	var names []string
	for name := range d.names {
		if filepath.Dir(name) == dir {
			names = append(names, filepath.Base(name))
		}
	}
	return names, nil
}

func (d *disk) Open(name string) (local.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.names[name]
	if n == nil {
		return nil, fs.ErrNotExist
	}
	return &handle{d: d, n: n, r: bytes.NewReader(bytes.Clone(n.data))}, nil
}

func (d *disk) Create(name string) (local.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.change(); err != nil {
		return nil, err
	}
	n := d.names[name]
	if n == nil {
		n = &inode{}
		d.names[name] = n
	}
	n.data = nil
	return &handle{d: d, n: n}, nil
}

func (d *disk) Append(name string) (local.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.names[name]
	if n == nil {
		return nil, fs.ErrNotExist
	}
	return &handle{d: d, n: n}, nil
}

func (d *disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.change(); err != nil {
		return err
	}
	d.names[to] = d.names[from]
	delete(d.names, from)
	return nil
}

func (d *disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.change(); err != nil {
		return err
	}
	delete(d.names, name)
	return nil
}

func (d *disk) SyncDir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.change(); err != nil {
		return err
	}
	in := func(name string, _ *inode) bool { return filepath.Dir(name) == dir }
	maps.DeleteFunc(d.durable, in)
	for name, n := range d.names {
		if in(name, n) {
			d.durable[name] = n
		}
	}
	return nil
}

func (d *disk) Lock(name string) (io.Closer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked[name] {
		return nil, &local.InUseError{Dir: filepath.Dir(name)}
	}
	d.locked[name] = true
	return unlock(func() { d.mu.Lock(); defer d.mu.Unlock(); delete(d.locked, name) }), nil
}

type unlock func()

func (u unlock) Close() error { u(); return nil }

// A handle is an open file of a disk.
type handle struct {
	d *disk
	n *inode
	r io.Reader
}

func (h *handle) Read(b []byte) (int, error) { return h.r.Read(b) }
func (h *handle) Close() error               { return nil }
func (h *handle) Reserve(int64) error        { return errors.ErrUnsupported }

func (h *handle) WriteAt(b []byte, at int64) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.change(); err != nil {
		return 0, err
	}
	return copy(h.n.data[at:], b), nil
}

func (h *handle) Truncate(size int64) error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.change(); err != nil {
		return err
	}
	h.n.data = bytes.Clone(h.n.data[:size])
	return nil
}

func (h *handle) Size() (int64, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	return int64(len(h.n.data)), nil
}

// Write writes half of b when it fails, as a disk that is full does.
func (h *handle) Write(b []byte) (int, error) {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	err := h.d.change()
	if err != nil {
		b = b[:len(b)/2]
	}
	h.n.data = append(h.n.data, b...)
	return len(b), err
}

func (h *handle) Sync() error {
	h.d.mu.Lock()
	slow := h.d.onSync
	h.d.mu.Unlock()
	if slow != nil {
		slow()
	}
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	if err := h.d.change(); err != nil {
		return err
	}
	h.n.synced = bytes.Clone(h.n.data)
	return nil
}
