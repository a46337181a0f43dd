package local

import (
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
