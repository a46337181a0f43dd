package histories

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/pawl-dev/pawl/kv/local"
)

// errPower is what a disk without power says.
var errPower = errors.New("the power is off")

// A supply is the power of a disk. Once it is cut nothing reaches the disk any more, from
// whoever had it open: not even what was on its way.
type supply struct {
	disk  local.FS
	after atomic.Int64 // changes that are still to come before the power fails

	mu    sync.RWMutex // held while the disk is at work; guards off
	off   bool
	onOff func() // called when the power goes, while the disk is at rest
}

// never is more changes than a disk ever sees.
const never = 1 << 60

func newSupply(disk local.FS, onOff func()) *supply {
	s := &supply{disk: disk, onOff: onOff}
	s.after.Store(never)
	return s
}

// cut has the power fail after some more changes, at once if that is 0.
func (s *supply) cut(after int) {
	s.after.Store(int64(after))
	if after == 0 {
		s.goOff()
	}
}

func (s *supply) goOff() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.off {
		s.onOff()
	}
	s.off = true
}

// look does what changes nothing.
func (s *supply) look(f func() error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.off {
		return errPower
	}
	return f()
}

// change does what changes something. The change at which the power fails is made by torn,
// if that is possible in part, or not at all.
func (s *supply) change(f, torn func() error) error {
	if s.after.Add(-1) == -1 {
		if torn != nil {
			s.look(torn)
		}
		s.goOff()
	}
	return s.look(f)
}

func (s *supply) MkdirAll(dir string) error {
	return s.change(func() error { return s.disk.MkdirAll(dir) }, nil)
}

func (s *supply) List(dir string) (names []string, err error) {
	err = s.look(func() (err error) { names, err = s.disk.List(dir); return err })
	return names, err
}

func (s *supply) open(how func(string) (local.File, error), name string) (local.File, error) {
	f := &poweredFile{s: s}
	if err := s.look(func() (err error) { f.f, err = how(name); return err }); err != nil {
		return nil, err
	}
	return f, nil
}

func (s *supply) Open(name string) (local.File, error)   { return s.open(s.disk.Open, name) }
func (s *supply) Append(name string) (local.File, error) { return s.open(s.disk.Append, name) }

func (s *supply) Create(name string) (local.File, error) {
	f := &poweredFile{s: s}
	if err := s.change(func() (err error) { f.f, err = s.disk.Create(name); return err }, nil); err != nil {
		return nil, err
	}
	return f, nil
}

func (s *supply) Rename(from, to string) error {
	return s.change(func() error { return s.disk.Rename(from, to) }, nil)
}

func (s *supply) Remove(name string) error {
	return s.change(func() error { return s.disk.Remove(name) }, nil)
}

func (s *supply) SyncDir(dir string) error {
	return s.change(func() error { return s.disk.SyncDir(dir) }, nil)
}

// Lock works without power: it is the process's, not the disk's.
func (s *supply) Lock(name string) (io.Closer, error) { return s.disk.Lock(name) }

// A poweredFile is an open file of a disk that has power, or had.
type poweredFile struct {
	s *supply
	f local.File
}

func (f *poweredFile) Read(b []byte) (n int, err error) {
	err = f.s.look(func() (err error) { n, err = f.f.Read(b); return err })
	return n, err
}

func (f *poweredFile) Write(b []byte) (n int, err error) {
	err = f.s.change(
		func() (err error) { n, err = f.f.Write(b); return err },
		func() (err error) { n, err = f.f.Write(b[:len(b)/2]); return err })
	return n, err
}

func (f *poweredFile) WriteAt(b []byte, at int64) (n int, err error) {
	err = f.s.change(
		func() (err error) { n, err = f.f.WriteAt(b, at); return err },
		func() (err error) { n, err = f.f.WriteAt(b[:len(b)/2], at); return err })
	return n, err
}

func (f *poweredFile) Sync() error { return f.s.change(f.f.Sync, nil) }

func (f *poweredFile) Reserve(size int64) error {
	return f.s.change(func() error { return f.f.Reserve(size) }, nil)
}

func (f *poweredFile) Truncate(size int64) error {
	return f.s.change(func() error { return f.f.Truncate(size) }, nil)
}

func (f *poweredFile) Size() (n int64, err error) {
	err = f.s.look(func() (err error) { n, err = f.f.Size(); return err })
	return n, err
}

// Close closes the file whether there is power or not: it is the process that holds it.
func (f *poweredFile) Close() error { return f.f.Close() }
