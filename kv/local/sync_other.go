//go:build !linux

package local

import (
	"errors"
	"os"
)

func syncFile(f *os.File) error { return f.Sync() }

// reserve has no means here that every system shares: a disk that is full is met when it
// is written to.
func reserve(*os.File, int64) error { return errors.ErrUnsupported }
