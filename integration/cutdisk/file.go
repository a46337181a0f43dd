package cutdisk

import (
	"bytes"
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
		f.d.overs = append(f.d.overs, Overrun{f.name, f.n.size})
	}
	n, err := f.v.Write(append([]byte(nil), part...))
	f.n.size += int64(n)
	return n, errors.Join(why, err)
}

// WriteAt implements [local.File].
func (f *file) WriteAt(b []byte, at int64) (int, error) {
	why := f.d.begin(WriteAt, f.name, len(b))
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if why != nil {
		b = b[:len(b)/2]
	}
	if at+int64(len(b)) > f.n.size {
		return 0, fmt.Errorf("cutdisk: write %d bytes over %s at %d, but it has %d", len(b), f.name, at, f.n.size)
	}
	was := make([]byte, len(b))
	var err error
	if len(b) > 0 {
		_, err = f.v.ReadAt(was, at)
	}
	f.n.over = f.n.over || !bytes.Equal(was, b)
	f.n.again = span{at, at + int64(len(b))}
	n, werr := f.v.WriteAt(append([]byte(nil), b...), at)
	return n, errors.Join(why, err, werr)
}

// Sync implements [local.File]. What a sync that fails should have made safe is never on the
// disk, whatever later ones say, unless it is written again: so do systems that take
// what they could not write for written.
func (f *file) Sync() error {
	why := f.d.begin(Sync, f.name, 0)
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if why != nil {
		if f.n.lost.from >= f.n.lost.to {
			f.n.lost.from = f.n.synced
		}
		f.n.lost.to = f.n.size
		return why
	}
	cut := f.n.cut != nil
	f.n.synced, f.n.cut, f.n.over = f.n.size, nil, false
	if f.n.again.from <= f.n.lost.from && f.n.again.to >= f.n.lost.to {
		f.n.lost = span{}
	}
	f.n.again = span{}
	if err := f.v.Sync(); err != nil || !cut {
		return err
	}
	return f.d.syncDir(path.Dir(f.name))
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
	if f.n.cut == nil {
		f.n.cut = &uncut{b, f.n.synced}
	}
	f.v, f.n.size, f.n.synced = v, size, min(f.n.synced, size)
	f.n.lost.to = min(f.n.lost.to, size)
	return old.Close()
}

// Close implements [local.File].
func (f *file) Close() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return f.v.Close()
}
