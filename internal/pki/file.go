package pki

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// writeFile puts data in place of file, wholly or not at all, readable by its owner alone.
func writeFile(file string, data []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*") // made 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(tmp.Name())
		}
	}()
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Sync() // or a crash may leave the new name on an empty file
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}

// exists tells whether there is something of that name, whatever it is.
func exists(file string) bool {
	_, err := os.Lstat(file)
	return !errors.Is(err, fs.ErrNotExist)
}

// warnIfOpen tells the log that others may read a secret. It is not mended: what was
// read already is not unread by it, and the owner should know.
func (p *PKI) warnIfOpen(file string) {
	if runtime.GOOS == "windows" {
		return // its modes do not say who may read
	}
	if fi, err := os.Stat(file); err == nil && fi.Mode().Perm()&0o077 != 0 {
		p.log.Warn("a file with a secret can be read by others: chmod 600 it, or remove it for a new one",
			"file", file, "mode", fi.Mode().Perm().String())
	}
}
