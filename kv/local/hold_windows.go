package local

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Hold keeps engines away from a store that is only read. Unlike Lock it writes nothing, and
// any number may hold a store at once.
func (osFS) Hold(name string) (io.Closer, error) {
	path, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(path, syscall.GENERIC_READ, syscall.FILE_SHARE_READ,
		nil, syscall.OPEN_EXISTING, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	switch {
	case err == nil:
		return os.NewFile(uintptr(h), name), nil
	case errors.Is(err, os.ErrNotExist):
		return sink{}, nil // no engine has ever had this folder
	case errors.Is(err, errSharingViolation):
		return nil, &InUseError{Dir: filepath.Dir(name), PID: readPID(name)}
	}
	return nil, err
}
