//go:build !linux

package local

import "os"

func syncFile(f *os.File) error { return f.Sync() }
