package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

const (
	tipName  = "tip"
	tipMagic = "pawl tip"
	tipBytes = 40
)

// A tip says which segment is the newest, so that it is noticed if that one is missing, and
// where it ends once the store was closed, so that damage to its end is not taken for a crash.
type tip struct {
	segment
	size int64 // of the whole file; 0 while it is written to
}

func (t tip) append(b []byte) []byte {
	head := len(b)
	b = append(b, tipMagic...)
	b = le.AppendUint32(b, formatVersion)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, t.id)
	b = le.AppendUint64(b, uint64(t.first))
	b = le.AppendUint64(b, uint64(t.size))
	le.PutUint32(b[head+12:], headerSum(b[head:]))
	return b
}

// parseTip returns the tip that b holds, or what is wrong with it.
func parseTip(b []byte) (t tip, problem string) {
	switch {
	case len(b) < 16 || string(b[:8]) != tipMagic:
		return t, "this does not say where the log ends"
	case le.Uint32(b[8:]) > formatVersion:
		return t, fmt.Sprintf("format %d was written by a newer pawl, which can open it; this one knows up to %d", le.Uint32(b[8:]), formatVersion)
	case len(b) != tipBytes || headerSum(b) != le.Uint32(b[12:]):
		return t, "its checksum is wrong"
	}
	return tip{segment{le.Uint64(b[16:]), revisionAt(b[24:])}, int64(le.Uint64(b[32:]))}, ""
}

func (j *journal) tipFile() string { return filepath.Join(j.opts.Dir, tipName) }

// readTip returns what the folder says of the end of its log; nothing if the log has not been
// begun, or was written before there was such a file.
func (j *journal) readTip() (t tip, err error) {
	b, err := readWhole(j.opts.FS, j.tipFile())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return tip{}, nil
	case err != nil:
		return tip{}, err
	}
	t, problem := parseTip(b)
	if problem != "" {
		return tip{}, &DamageError{j.tipFile(), 0, problem,
			"if no file of the log was taken away remove this one, and the store opens without knowing whether its log is whole; otherwise restore the folder from a backup"}
	}
	return t, nil
}

// point makes t durable as the tip.
func (j *journal) point(t tip) error {
	if j.tip == t {
		return nil
	}
	err := writeWhole(j.opts.FS, j.tipFile(), func(w io.Writer) error {
		_, err := w.Write(t.append(nil))
		return err
	})
	if err == nil {
		j.tip = t
	}
	return err
}

// fits returns what is wrong with the segment s, which fills a file of size bytes, by what the
// tip says, and where. A file that is newer than the tip was begun by an append that came no
// further.
func (t tip) fits(s segment, size int64) (problem string, at int64) {
	switch {
	case t == tip{} || s.first < t.first:
		return "", 0
	case s.first > t.first && size > headerBytes:
		return "it holds commits, and " + tipName + " says that the log ended before it", headerBytes
	case s.first > t.first:
		return "", 0
	case s.id != t.id:
		return "it is not the file that " + tipName + " names, but another of that name", 0
	case t.size != 0 && size != t.size:
		return fmt.Sprintf("it has %d bytes, and had %d when the store was closed", size, t.size), min(size, t.size)
	}
	return "", 0
}
