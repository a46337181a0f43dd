package local

import (
	"errors"
	"os"
	"syscall"
)

// syncFile leaves out what fsync would write besides: times of access and change, which
// nobody reads here. The length of the file is kept.
func syncFile(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// reserve takes room for f to grow to size bytes and leaves its length as it is.
func reserve(f *os.File, size int64) error {
	const keepSize = 1 // FALLOC_FL_KEEP_SIZE
	for {
		switch err := syscall.Fallocate(int(f.Fd()), keepSize, 0, size); err {
		case syscall.EINTR:
		case syscall.EOPNOTSUPP, syscall.ENOSYS:
			return errors.ErrUnsupported
		default:
			return os.NewSyscallError("fallocate", err)
		}
	}
}
