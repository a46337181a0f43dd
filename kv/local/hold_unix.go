//go:build unix

package local

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Hold keeps engines away from a store that is only read. Unlike Lock it writes nothing, and
// any number may hold a store at once.
func (osFS) Hold(name string) (io.Closer, error) {
	folder, err := lockFolder(filepath.Dir(name), syscall.LOCK_SH)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, &InUseError{Dir: filepath.Dir(name), PID: readPID(name)}
	}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return folder, nil // no engine has ever had this folder, or somebody removed the file
	}
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		return closers{f, folder}, nil
	}
	f.Close()
	folder.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, &InUseError{Dir: filepath.Dir(name), PID: readPID(name)}
	}
	return nil, err
}
