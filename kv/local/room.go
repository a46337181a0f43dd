package local

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
)

// roomStep is how much room on the disk is taken at a time, before it is written to.
const roomStep = 1 << 20

// step returns roomStep, or less where segments are small.
func (j *journal) step() int64 { return min(roomStep, j.opts.SegmentSize) }

// makeRoom sees that there is a segment to write to and that a good part of a step of room lies
// ahead in it, so that a disk that is full is met here, where nothing is being
// written. It is called between groups. The error is [ErrFull] if that is what is wrong;
// then it may be called again.
func (j *journal) makeRoom() error {
	if err := j.ready(); err != nil {
		return err
	}
	if j.room-j.size >= j.step()/2 {
		return nil
	}
	return j.reserve(j.step())
}

// fit sees that there is room for size bytes more, and takes a step besides if it can.
func (j *journal) fit(size int64) error {
	if size <= j.room-j.size {
		return nil
	}
	err := j.reserve(size + j.step())
	if errors.Is(err, ErrFull) {
		err = j.reserve(size)
	}
	return err
}

// reserve takes room for size bytes more in the segment that is being written.
func (j *journal) reserve(size int64) error {
	err := j.file.Reserve(j.size + size)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		j.room = math.MaxInt64 // it is found out by writing
	case err != nil:
		return fmt.Errorf("make room for %s: %w", j.segmentName(j.segment.first), err)
	default:
		j.room = j.size + size
	}
	return nil
}

// probe says whether there is room again, after there was none.
func (j *journal) probe() error {
	if j.room != math.MaxInt64 {
		return j.makeRoom()
	}
	// Room cannot be reserved here. What can be written can be had.
	name := filepath.Join(j.logDir(), "room.seg.tmp")
	f, err := j.opts.FS.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, j.step()))
	if err := errors.Join(err, f.Close(), j.opts.FS.Remove(name)); err != nil {
		return err
	}
	return j.makeRoom()
}
