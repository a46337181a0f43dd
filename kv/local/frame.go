package local

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/pawl-dev/pawl/kv"
)

const (
	formatVersion = 1
	segmentMagic  = "pawl log"
	headerBytes   = 32 // of a segment
	frameBytes    = 24 // of a frame, before its payload
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var le = binary.LittleEndian

// A DamageError says that a file of the store does not hold what was written to it.
// Nothing has been changed.
type DamageError struct {
	File   string
	Offset int64
	What   string // what is wrong there
	Advice string // what can be done
}

// Error names file and place, and what can be done.
func (e *DamageError) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d: %s; nothing was changed; %s", e.File, e.Offset, e.What, e.Advice)
}

// A segment is the head of a segment file.
type segment struct {
	id    uint64      // random: tells this file's frames from left-over bytes of another
	first kv.Revision // of the first commit in it
}

func (s segment) append(b []byte) []byte {
	head := len(b)
	b = append(b, segmentMagic...)
	b = le.AppendUint32(b, formatVersion)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, s.id)
	b = le.AppendUint64(b, uint64(s.first))
	le.PutUint32(b[head+12:], headerSum(b[head:]))
	return b
}

// headerSum is the checksum of a file head, which leaves out the place it is kept at.
func headerSum(head []byte) uint32 {
	return crc32.Update(crc32.Checksum(head[:12], castagnoli), castagnoli, head[16:])
}

// parseSegment returns the head of a segment file, or what is wrong with it.
func parseSegment(b []byte) (s segment, problem string) {
	switch {
	case len(b) < headerBytes || string(b[:8]) != segmentMagic:
		return s, "this is not the head of a log segment"
	case le.Uint32(b[8:]) > formatVersion:
		return s, fmt.Sprintf("format %d was written by a newer pawl, which can open it; this one knows up to %d", le.Uint32(b[8:]), formatVersion)
	case headerSum(b[:headerBytes]) != le.Uint32(b[12:]):
		return s, "the head's checksum is wrong"
	}
	return segment{le.Uint64(b[16:]), revisionAt(b[24:])}, ""
}

func revisionAt(b []byte) kv.Revision { return kv.Revision(le.Uint64(b)) }

// A frame is a group of commits as it lies in a segment.
type frame struct {
	first   kv.Revision // the revision that comes next when it was written
	payload []byte
}

// beginFrame appends the head of a frame of segment s to an empty buffer; the payload is
// appended to what it returns, and endFrame completes it.
func beginFrame(b []byte, s segment, first kv.Revision) []byte {
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	b = le.AppendUint64(b, s.id)
	return le.AppendUint64(b, uint64(first))
}

func endFrame(b []byte) {
	le.PutUint32(b, uint32(len(b)-frameBytes))
	le.PutUint32(b[4:], frameSum(b))
}

func frameSum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:4], castagnoli), castagnoli, b[8:])
}

// parseFrame returns the frame of segment s at the start of b and how long it is, or what
// is wrong with it. The payload is a part of b.
func parseFrame(b []byte, s segment) (f frame, size int, problem string) {
	if len(b) < frameBytes {
		return f, 0, "a frame's head is cut off"
	}
	n := uint64(le.Uint32(b))
	switch {
	case n == 0:
		return f, 0, "a frame is empty"
	case n > uint64(len(b)-frameBytes):
		return f, 0, "a frame is longer than the file"
	case le.Uint64(b[8:]) != s.id:
		return f, 0, "a frame belongs to another file"
	}
	b = b[:frameBytes+n]
	if frameSum(b) != le.Uint32(b[4:]) {
		return f, 0, "a frame's checksum is wrong"
	}
	return frame{kv.Revision(le.Uint64(b[16:])), b[frameBytes:]}, len(b), ""
}

// findFrame reports where in b a good frame of segment s begins, -1 if there is none. It
// looks for the segment's id and checks what stands around it, so a length that was
// damaged does not lead it astray.
func findFrame(b []byte, s segment) int {
	id := le.AppendUint64(nil, s.id)
	for at := 0; ; at++ {
		i := bytes.Index(b[at:], id)
		if i < 0 {
			return -1
		}
		at += i
		if at < 8 {
			continue
		}
		if _, _, problem := parseFrame(b[at-8:], s); problem == "" {
			return at - 8
		}
	}
}
