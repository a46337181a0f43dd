package local

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// errSharingViolation is what Windows answers when another has the file open.
const errSharingViolation = syscall.Errno(32)

// What Windows answers for want of room.
const (
	errHandleDiskFull    = syscall.Errno(39)
	errDiskFull          = syscall.Errno(112)
	errDiskQuotaExceeded = syscall.Errno(1295)
)

// lockFile opens name so that others may read but not write or remove it, which is the lock; the
// file is nil if another holds it.
func lockFile(name string) (f *os.File, folder io.Closer, err error) {
	path, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, nil, err
	}
	h, err := syscall.CreateFile(path, syscall.GENERIC_READ|syscall.GENERIC_WRITE, syscall.FILE_SHARE_READ,
		nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	switch {
	case err == nil:
		return os.NewFile(uintptr(h), name), sink{}, nil
	case errors.Is(err, errSharingViolation):
		return nil, nil, nil
	}
	return nil, nil, err
}

// syncDir does nothing: Windows keeps names by itself, and cannot be asked to.
func syncDir(string) error { return nil }

// isFull reports whether the system refused for want of room.
func isFull(err error) bool {
	return errors.Is(err, errHandleDiskFull) || errors.Is(err, errDiskFull) || errors.Is(err, errDiskQuotaExceeded)
}
