//go:build unix

package local

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// lockFile opens name and locks it, and its folder, since the file may be removed; the file is nil if
// another holds a lock.
func lockFile(name string) (f *os.File, folder io.Closer, err error) {
	f, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		if folder, err = lockFolder(filepath.Dir(name), syscall.LOCK_EX); err == nil {
			return f, folder, nil
		}
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil, nil
	}
	return nil, nil, err
}

// lockFolder locks a folder, in that way; the error is EWOULDBLOCK if another holds a lock. Not every file system
// can do it; then there is only the lock of the file in it.
func lockFolder(dir string, how int) (io.Closer, error) {
	f, err := os.Open(dir)
	if err != nil {
		return sink{}, nil
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, errors.Join(err, f.Close())
	}
	return sink{}, f.Close()
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// isFull reports whether the system refused for want of room.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
