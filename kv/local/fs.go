package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// An FS is the part of a file system that a store needs. Names are paths as
// [filepath.Join] makes them. Errors for what does not exist are [fs.ErrNotExist], and
// errors for want of room are [ErrFull].
type FS interface {
	// MkdirAll makes dir and what it lies in, for the owner alone.
	MkdirAll(dir string) error
	// List returns the names in dir, without their path.
	List(dir string) ([]string, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// Create makes a file, or empties the one that is there, for writing.
	Create(name string) (File, error)
	// Append opens a file that exists, for writing after its end.
	Append(name string) (File, error)
	// Rename gives a closed file another name, replacing what had it.
	Rename(from, to string) error
	Remove(name string) error
	// SyncDir returns once the names in dir are on disk as they are.
	SyncDir(dir string) error
	// Lock takes the lock that name stands for, until closed or the process ends. If
	// another holds it the error is an [*InUseError].
	Lock(name string) (io.Closer, error)
}

// A File is an open file of an [FS].
type File interface {
	io.Reader
	io.Writer
	io.Closer
	// WriteAt writes over what is there; the next Write goes after the end all the same.
	io.WriterAt
	// Sync returns once what was written is on disk. After an error it is not, and what
	// a later Sync says does not make it so.
	Sync() error
	Size() (int64, error)
	// Reserve sees to it that the file can grow to size bytes without a disk that is full
	// getting in the way. It changes nothing that can be read, and is forgotten when the
	// file is truncated. The error is [errors.ErrUnsupported] where there is no such thing.
	Reserve(size int64) error
	// Truncate cuts the file to size bytes, no more than it has; what is written next follows
	// them. What was reserved beyond them is given back.
	Truncate(size int64) error
}

// ErrFull says that there is no room on the disk, or none that this user may take.
var ErrFull = errors.New("no room on the disk")

// fullError is an error of the operating system that is [ErrFull] besides.
type fullError struct{ error }

func (fullError) Is(target error) bool { return target == ErrFull }
func (e fullError) Unwrap() error      { return e.error }

// full makes err [ErrFull] if that is what it is.
func full(err error) error {
	if err != nil && isFull(err) {
		return fullError{err}
	}
	return err
}

// An InUseError says that another process, or another engine of this one, has the store open.
type InUseError struct {
	Dir string
	PID int // who holds it; 0 if that cannot be told
}

// Error says who holds the folder, and what to do.
func (e *InUseError) Error() string {
	who := "another pawl"
	if e.PID != 0 {
		who = fmt.Sprintf("another pawl (pid %d)", e.PID)
	}
	return fmt.Sprintf("%s is in use by %s; %s", e.Dir, who, e.Hint())
}

// Hint says what to do; the error's text ends with it.
func (e *InUseError) Hint() string { return "stop that one, or give this one a folder of its own" }

// OS is the file system of the machine.
var OS FS = osFS{}

type osFS struct{}

type osFile struct{ *os.File }

func (f osFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	return n, full(err)
}

func (f osFile) WriteAt(b []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(b, at)
	return n, full(err)
}

func (f osFile) Sync() error              { return syncFile(f.File) }
func (f osFile) Reserve(size int64) error { return full(reserve(f.File, size)) }

func (f osFile) Truncate(size int64) error {
	if err := f.File.Truncate(size); err != nil {
		return full(err)
	}
	_, err := f.Seek(size, io.SeekStart)
	return err
}

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (osFS) MkdirAll(dir string) error { return full(os.MkdirAll(dir, 0o700)) }

func (osFS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (osFS) Open(name string) (File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) Create(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, full(err)
	}
	return osFile{f}, nil
}

func (osFS) Append(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return osFile{f}, nil
}

func (osFS) Rename(from, to string) error { return full(os.Rename(from, to)) }
func (osFS) Remove(name string) error     { return os.Remove(name) }
func (osFS) SyncDir(dir string) error     { return syncDir(dir) }

func (osFS) Lock(name string) (io.Closer, error) {
	f, folder, err := lockFile(name)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	if f == nil {
		return nil, &InUseError{Dir: filepath.Dir(name), PID: readPID(name)}
	}
	// The number is for people; it is the lock that counts.
	if err := f.Truncate(0); err == nil {
		fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return closers{f, folder}, nil
}

// Closers are closed together.
type closers []io.Closer

// Close closes all of them, the first one first.
func (all closers) Close() error {
	var errs []error
	for _, c := range all {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

func readPID(name string) int {
	text, _ := os.ReadFile(name)
	var pid int
	fmt.Sscan(string(text), &pid)
	return pid
}
