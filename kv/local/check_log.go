package local

import (
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/pawl-dev/pawl/kv"
)

const notNeededAdvice = "nothing needs it any more, since a snapshot holds what it led to: remove it"

// A segmentCheck is the check of one file of the log.
type segmentCheck struct {
	*checker
	name   string
	last   bool // no segment follows
	needed bool // to open the store
	made   SegmentReport
	closed bool // an end mark came last
}

// segment checks the i-th segment.
func (c *checker) segment(i int) error {
	first := c.segments[i]
	s := &segmentCheck{checker: c, name: c.journal.segmentName(first), last: i == len(c.segments)-1}
	s.needed = s.last || c.segments[i+1] > c.base+1 || first > c.base
	data, err := c.load(s.name)
	s.made = SegmentReport{File: s.name, Bytes: int64(len(data)), First: first}
	if err != nil {
		s.wrong(0, fmt.Sprintf("it cannot be read: %v", err))
	} else {
		s.head(first, data)
	}
	c.report.Segments = append(c.report.Segments, s.made)
	if s.last {
		c.report.Closed = s.closed
	}
	return c.read(int64(len(data)))
}

// load reads a file into the checker's buffer.
func (c *checker) load(name string) ([]byte, error) {
	err := c.journal.withFile(name, func(f File, size int64) error {
		c.buf = slices.Grow(c.buf[:0], int(size))[:size]
		_, err := io.ReadFull(f, c.buf)
		return err
	})
	return c.buf, err
}

// wrong takes note of damage to the segment.
func (s *segmentCheck) wrong(offset int, what string) {
	advice := restoreAdvice
	s.next = 0 // what follows is anybody's guess
	if s.needed {
		s.now = nil
	} else {
		advice = notNeededAdvice
	}
	s.damage(s.name, int64(offset), what, advice)
}

// head checks the head of a segment and goes on to its frames.
func (s *segmentCheck) head(first kv.Revision, data []byte) {
	seg, problem := parseSegment(data)
	switch {
	case problem != "" && s.last && len(data) <= headerBytes && s.tip.first != first:
		s.note(s.name, 0, "the file was being made when the store stopped, and holds nothing; the next start removes it", "")
		return
	case problem != "":
		s.wrong(0, problem)
		return
	case seg.first != first:
		s.wrong(0, "its name does not fit its head")
		return
	}
	if s.next != 0 && first != s.next && first > s.base+1 {
		what := fmt.Sprintf("it begins at revision %d, where %d should come", first, s.next)
		if first > s.next {
			what = fmt.Sprintf("revisions %d to %d are missing before it", s.next, first-1)
		}
		s.damage(s.name, 0, what, missingAdvice)
		s.now = nil
	}
	s.next = first
	shut := s.tip.segment == seg && s.tip.size != 0
	s.frames(seg, data, s.last && !shut)
	if problem, at := s.tip.fits(seg, int64(len(data))); problem != "" {
		s.wrong(int(at), problem)
	}
	s.closed = s.closed || shut
}

// frames checks the frames of a segment. After damage it goes on with the next good one. A
// crash may have torn the last.
func (s *segmentCheck) frames(seg segment, data []byte, torn bool) {
	for off := headerBytes; off < len(data); {
		f, size, problem := parseFrame(data[off:], seg)
		if problem == "" {
			s.frame(off, f)
			off += size
			continue
		}
		s.closed = false
		good := findFrame(data[off+1:], seg)
		switch {
		case good < 0 && torn:
			s.note(s.name, int64(off), fmt.Sprintf("%s: the last %d bytes were being written when the store stopped, and were not acknowledged; the next start cuts them off",
				problem, len(data)-off), "")
			return
		case good < 0:
			s.wrong(off, fmt.Sprintf("%s, and nothing good follows in this file", problem))
			return
		}
		s.wrong(off, fmt.Sprintf("%s; the next good one begins at byte %d", problem, off+1+good))
		off += 1 + good
	}
}

// frame checks one frame whose checksum is right.
func (s *segmentCheck) frame(off int, f frame) {
	s.closed = false
	if s.next != 0 && f.first != s.next {
		s.wrong(off, fmt.Sprintf("a frame was written when revision %d came next, where %d does", f.first, s.next))
	}
	s.next = f.first
	r := &reader{rest: f.payload, authors: s.authors}
	for len(r.rest) > 0 {
		c, end := r.record()
		s.closed = end
		if c != nil && r.err == nil {
			s.commit(off, c)
		}
	}
	if r.err != nil {
		s.wrong(off, "a frame whose checksum is right "+r.err.Error())
	}
}

// commit checks one commit, and makes its changes.
func (s *segmentCheck) commit(off int, c *commit) {
	if c.forget != 0 {
		s.floor = max(s.floor, c.forget)
		if s.next != 0 && c.forget >= s.next {
			s.wrong(off, fmt.Sprintf("history before revision %d is to be forgotten, where %d is the newest", c.forget, s.next-1))
		}
		return
	}
	if s.next != 0 && c.revision != s.next {
		s.wrong(off, fmt.Sprintf("a frame holds revision %d where %d should come", c.revision, s.next))
	}
	s.next = c.revision + 1
	s.made.Commits++
	if c.time.Before(s.time) {
		s.wrong(off, fmt.Sprintf("revision %d is older than the one before it", c.revision))
	}
	s.time = c.time
	if c.revision <= s.base {
		return
	}
	s.comeTo(c.revision)
	s.report.Newest = c.revision
	s.mark(c.revision, c.time)
	for _, ch := range c.changes {
		s.look(ch.version, s.name, int64(off))
		if what := s.now.change(ch); what != "" {
			s.wrong(off, what)
		}
	}
}

// change makes a change, and returns what does not fit about it.
func (h held) change(ch change) (problem string) {
	if h == nil {
		return ""
	}
	v := ch.version
	was, existed := h[v.Key]
	switch {
	case was.revision != ch.replaces:
		problem = fmt.Sprintf("revision %d replaces revision %d of %s, which was at revision %d", v.Revision, ch.replaces, v.Key, was.revision)
	case existed && v.Created != was.created, !existed && v.Created != v.Revision:
		problem = fmt.Sprintf("revision %d says that %s was made at revision %d, which is not so", v.Revision, v.Key, v.Created)
	}
	if v.Deleted {
		delete(h, v.Key)
	} else {
		h[v.Key] = digestOf(v)
	}
	return problem
}

func digestOf(v *kv.Version) digest {
	sum := crc32.Checksum(v.Value, castagnoli)
	var b []byte
	b = le.AppendUint64(b, uint64(v.Time))
	b = le.AppendUint64(b, uint64(v.Expires))
	b = appendAuthor(b, v.By())
	return digest{v.Revision, v.Created, crc32.Update(sum, castagnoli, b), int32(len(v.Value))}
}
