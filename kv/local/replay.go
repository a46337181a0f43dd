package local

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

// chunkBytes is how much of a segment is read at a time.
const chunkBytes = 32 << 10

// A frameReader reads the frames of a segment one by one. It reads into chunks that it never writes to again,
// so that a frame may be kept, and holds on to the others of its chunk then.
type frameReader struct {
	file  io.Reader
	chunk []byte
	at    int // where in chunk the next frame begins
	off   int // and in the file
	left  int // how much of the file is not read yet

	begun func(size int)    // is told of each chunk before a frame of it is returned
	read  func(n int) error // is told how much was read, and may call it off
}

// want sees that the chunk has the next n bytes, or what there is. A chunk that is begun for that
// holds at least so many.
func (r *frameReader) want(n int) error {
	have := len(r.chunk) - r.at
	n = min(n, have+r.left)
	if have >= n {
		return nil
	}
	if cap(r.chunk)-r.at < n {
		next := make([]byte, have, max(chunkBytes, n))
		copy(next, r.chunk[r.at:])
		r.chunk, r.at = next, 0
		r.begun(cap(next))
	}
	from := len(r.chunk)
	return r.fill(r.chunk[from:min(cap(r.chunk), from+r.left)])
}

// fill reads what follows in the file to the end of the chunk, which b is in.
func (r *frameReader) fill(b []byte) error {
	if _, err := io.ReadFull(r.file, b); err != nil {
		return err
	}
	r.chunk = r.chunk[:len(r.chunk)+len(b)]
	r.left -= len(b)
	return r.read(len(b))
}

// peek returns how long the next frame is, as far as its head tells. If its head is not in the chunk, the
// head alone is read, so that the chunk that is begun then is as large as the frame.
func (r *frameReader) peek() (size int, err error) {
	have := len(r.chunk) - r.at
	if n := min(frameBytes, have+r.left); have < n {
		head := make([]byte, have, frameBytes)
		copy(head, r.chunk[r.at:])
		r.chunk, r.at = head, 0
		if err := r.fill(head[have:n]); err != nil {
			return 0, err
		}
	}
	if head := r.chunk[r.at:]; len(head) >= frameBytes {
		return frameBytes + int(le.Uint32(head)), nil
	}
	return 0, nil
}

// take passes over the next n bytes, which the chunk has, and returns them.
func (r *frameReader) take(n int) []byte {
	b := r.chunk[r.at : r.at+n : r.at+n]
	r.at += n
	r.off += n
	return b
}

// head reads the head of the segment, or what is wrong with it.
func (r *frameReader) head() (s segment, problem string, err error) {
	if err := r.want(headerBytes); err != nil {
		return s, "", err
	}
	if s, problem = parseSegment(r.chunk[r.at:]); problem == "" {
		r.take(headerBytes)
	}
	return s, problem, nil
}

// next reads the next frame, or what is wrong with what follows. Whole is all of the frame,
// nil at the end of the file.
func (r *frameReader) next(s segment) (f frame, whole []byte, problem string, err error) {
	size, err := r.peek()
	if err == nil && size <= len(r.chunk)-r.at+r.left { // otherwise it is longer than the file
		err = r.want(size)
	}
	if err != nil || len(r.chunk) == r.at {
		return f, nil, "", err
	}
	f, size, problem = parseFrame(r.chunk[r.at:], s)
	if problem != "" {
		return f, nil, problem, nil
	}
	return f, r.take(size), "", nil
}

// rest reads what is left of the file.
func (r *frameReader) rest() ([]byte, error) {
	err := r.want(len(r.chunk) - r.at + r.left)
	return r.chunk[r.at:], err
}

// An opening is told how much of a store has been read.
type opening struct {
	ctx   context.Context
	told  Progress // nil if nobody wants to know
	done  int64
	total int64
}

// isWhole says that a log has everything since the store was made.
func isWhole(segments []kv.Revision) bool { return len(segments) > 0 && segments[0] == emptyRevision+1 }

// opening returns what is told how much is read, of all that there is to read.
func (j *journal) opening(ctx context.Context, snapshots, segments []kv.Revision) (*opening, error) {
	o := &opening{ctx: ctx, told: j.opts.Progress}
	if o.told == nil {
		return o, nil
	}
	var names []string
	for _, first := range segments {
		names = append(names, j.segmentName(first))
	}
	if len(snapshots) > 0 && !isWhole(segments) {
		names = append(names, j.snapshotName(snapshots[0]))
	}
	for _, name := range names {
		size, err := fileSize(j.opts.FS, name)
		if err != nil {
			return nil, err
		}
		o.total += size
	}
	return o, nil
}

func (o *opening) read(n int) error {
	o.done += int64(n)
	if o.told != nil {
		o.told(o.done, max(o.done, o.total))
	}
	return o.ctx.Err()
}

// telling yields the versions of a snapshot while it is told how much has been read.
func (o *opening) telling(r *snapshotReader) func(func(*kv.Version) bool) {
	return func(yield func(*kv.Version) bool) {
		before := r.offset
		for v := range r.versions() {
			if r.offset > before {
				if r.err = o.read(int(r.offset - before)); r.err != nil {
					return
				}
				before = r.offset
			}
			if !yield(v) {
				return
			}
		}
	}
}

// A loader fills an index from a snapshot and the log.
//
// It copies little: versions are parts of the chunks that were read. At the end what exists is
// copied out of those chunks of which most has been replaced; and history holds
// on to a chunk only until it is forgotten, which is oldest first.
type loader struct {
	to       *mvcc.Loader
	index    *mvcc.Index         // in the end
	next     kv.Revision         // that the next commit must have
	last     time.Time           // of the last commit
	loaded   int                 // versions since history was trimmed
	expiring map[string]struct{} // keys that had an expiry at some time
	chunks   []chunk
	reader   reader
	mend     func() error // makes the end of the log whole, once all else is found to be
}

// A chunk is memory that versions share.
type chunk struct{ size, live int }

// loadBatch is after how many versions it is looked what history is to be forgotten.
const loadBatch = 1024

func newLoader(next kv.Revision, last time.Time) *loader {
	return &loader{
		next: next, last: last, expiring: map[string]struct{}{},
		chunks: make([]chunk, 1), // the first stands for memory that is not shared
		reader: reader{shared: true, authors: &authors{}},
		mend:   func() error { return nil },
	}
}

// begun notes that what is loaded next is part of a chunk of that size.
func (l *loader) begun(size int) {
	l.chunks = append(l.chunks, chunk{size: size})
	l.to.Origin = len(l.chunks) - 1
}

// note passes versions on and remembers which expire.
func (l *loader) note(versions func(func(*kv.Version) bool)) func(func(*kv.Version) bool) {
	return func(yield func(*kv.Version) bool) {
		for v := range versions {
			if !v.Expires.IsZero() {
				l.expiring[v.Key] = struct{}{}
			}
			if !yield(v) {
				return
			}
		}
	}
}

// frame loads the commits of f.
func (l *loader) frame(f frame) error {
	r := &l.reader
	r.rest, r.err = f.payload, nil
	for len(r.rest) > 0 {
		if c, _ := r.record(); c != nil {
			l.commit(r, c)
		}
	}
	if r.err != nil {
		return fmt.Errorf("a frame whose checksum is right %w", r.err)
	}
	return nil
}

// commit loads one commit, unless the snapshot held it already.
func (l *loader) commit(r *reader, c *commit) {
	switch {
	case c.forget != 0:
		if c.forget <= l.to.Newest() {
			l.to.Compact(c.forget)
		}
		return
	case c.revision < l.next:
		return
	case c.revision > l.next:
		r.fail(fmt.Sprintf("holds revision %d where %d should come", c.revision, l.next))
		return
	}
	for _, ch := range c.changes {
		if !ch.version.Expires.IsZero() {
			l.expiring[ch.version.Key] = struct{}{}
		}
		l.to.Add(ch.version)
	}
	l.next, l.last = c.revision+1, c.time
	if l.loaded += len(c.changes); l.loaded >= loadBatch {
		l.to.Trim(l.last)
		l.loaded = 0
	}
}

// finish makes the index of what has been loaded.
func (l *loader) finish() {
	for v, origin := range l.to.Live() {
		l.chunks[origin].live += len(v.Key) + len(v.Value)
	}
	l.chunks[0] = chunk{}
	for v, origin := range l.to.Live() {
		if c := l.chunks[origin]; c.live < c.size/4*3 {
			v.Key, v.Value = strings.Clone(v.Key), bytes.Clone(v.Value)
		}
	}
	l.index = l.to.Index()
}
