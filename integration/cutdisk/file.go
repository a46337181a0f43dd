package cutdisk

import (
	"errors"
	"fmt"
	"path"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A file is an open file of a disk.
type file struct {
	d    *Disk
	name string // that it was opened under
	v    vfs.File
	n    *node
}

// Read implements [local.File].
func (f *file) Read(b []byte) (int, error) {
	if err := f.d.begin(Read, f.name, len(b)); err != nil {
		return 0, err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.v.Read(b)
}

// Write implements [local.File]. What fails, or does not fit, is written in part.
func (f *file) Write(b []byte) (int, error) {
	why := f.d.begin(Write, f.name, len(b))
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	part := b
	if why != nil {
		part = b[:len(b)/2]
	}
	fits := max(f.n.reserved-f.n.size, 0) + f.d.room()
	if int64(len(part)) > fits {
		part, why = b[:fits], full("write", f.name)
	}
	n, err := f.v.Write(append([]byte(nil), part...))
	f.n.size += int64(n)
	return n, errors.Join(why, err)
}

// Sync implements [local.File].
func (f *file) Sync() error {
	if err := f.d.begin(Sync, f.name, 0); err != nil {
		return err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	cut := f.n.cut
	f.n.synced, f.n.cut = f.n.size, false
	if err := f.v.Sync(); err != nil || !cut {
		return err
	}
	return syncDir(f.d.mem, path.Dir(f.name))
}

// Size implements [local.File].
func (f *file) Size() (int64, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	info, err := f.v.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Reserve implements [local.File].
func (f *file) Reserve(size int64) error {
	if err := f.d.begin(Reserve, f.name, 0); err != nil {
		return err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	has := max(f.n.size, f.n.reserved)
	switch {
	case f.d.coarse:
		return errors.ErrUnsupported
	case size-has > f.d.room():
		return full("reserve", f.name)
	}
	f.n.reserved = max(has, size)
	return nil
}

// Truncate implements [local.File].
func (f *file) Truncate(size int64) error {
	if err := f.d.begin(Truncate, f.name, 0); err != nil {
		return err
	}
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if size > f.n.size {
		return fmt.Errorf("cutdisk: truncate %s to %d bytes, but it has %d", f.name, size, f.n.size)
	}
	f.n.reserved = 0
	if size == f.n.size {
		return nil
	}
	b, err := slurp(f.d.mem, f.name)
	if err != nil {
		return err
	}
	v, err := spill(f.d.mem, f.name, b[:size])
	if err != nil {
		return err
	}
	old := f.v
	f.v, f.n.size, f.n.synced, f.n.cut = v, size, min(f.n.synced, size), true
	return old.Close()
}

// Close implements [local.File].
func (f *file) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.v.Close()
}
