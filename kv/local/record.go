package local

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unique"
	"unsafe"

	"github.com/pawl-dev/pawl/kv"
)

// A commit is what one record holds.
type commit struct {
	revision kv.Revision
	time     time.Time
	author   unique.Handle[kv.Author]
	changes  []change
	forget   kv.Revision // instead of changes: forget what only older revisions need
}

// A change is one key's part in a commit.
type change struct {
	version  *kv.Version
	replaces kv.Revision // the revision of the version that was there; Absent if none
}

// size returns about how many bytes the record of c takes.
func (c *commit) size() int {
	size := 64
	for _, ch := range c.changes {
		size += 64 + len(ch.version.Key) + len(ch.version.Value)
	}
	return size
}

// The kinds of record.
const (
	commitRecord = 1 + iota
	forgetRecord
	endRecord // nothing follows: the store was closed
)

// The flags of an op.
const (
	deleteFlag  = 1 << iota
	expiresFlag // the time at which the key goes follows
	knownFlags  = deleteFlag | expiresFlag
)

// appendCommit appends the record of c to b.
func appendCommit(b []byte, c *commit) []byte {
	if c.forget != 0 {
		return binary.AppendUvarint(append(b, forgetRecord), uint64(c.forget))
	}
	b = append(b, commitRecord)
	b = binary.AppendUvarint(b, uint64(c.revision))
	b = binary.AppendVarint(b, c.time.UnixNano())
	b = appendAuthor(b, (&kv.Version{Author: c.author}).By()) // which may be nobody
	b = binary.AppendUvarint(b, uint64(len(c.changes)))
	for _, ch := range c.changes {
		b = appendChange(b, ch)
	}
	return b
}

func appendChange(b []byte, ch change) []byte {
	v := ch.version
	var flags byte
	if v.Deleted {
		flags |= deleteFlag
	}
	if !v.Expires.IsZero() {
		flags |= expiresFlag
	}
	b = append(b, flags)
	b = appendString(b, v.Key)
	b = binary.AppendUvarint(b, uint64(ch.replaces))
	b = binary.AppendUvarint(b, uint64(v.Created))
	if !v.Expires.IsZero() {
		b = binary.AppendVarint(b, int64(v.Expires))
	}
	if !v.Deleted {
		b = appendString(b, v.Value)
	}
	return b
}

func appendAuthor(b []byte, a kv.Author) []byte {
	b = appendString(b, a.User)
	b = appendString(b, a.Manager)
	b = appendString(b, a.Verb)
	return appendString(b, a.Subresource)
}

func appendString[T string | []byte](b []byte, s T) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// A reader takes fields off the front of a checked payload. After the first thing that
// does not fit it returns zero values, and err says what it was.
type reader struct {
	rest    []byte
	err     error
	shared  bool     // keys and values may be parts of the payload
	authors *authors // that have been met
	scratch commit
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = errors.New(what)
		r.rest = nil
	}
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.fail("ends in the middle of a record")
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) uvarint() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.fail("holds a number that is cut off or too large")
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) revision() kv.Revision { return kv.Revision(r.uvarint()) }

func (r *reader) time() time.Time {
	n, size := binary.Varint(r.rest)
	if size <= 0 {
		r.fail("holds a time that is cut off or too large")
		return time.Time{}
	}
	r.rest = r.rest[size:]
	return time.Unix(0, n).UTC()
}

// bytes returns a part of the payload, which must be copied to be kept.
func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.fail("holds a length that points past its end")
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// count returns a number of things that take at least a byte each.
func (r *reader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.fail("holds a count that is too large")
		return 0
	}
	return int(n)
}

// key returns a key.
func (r *reader) key() string {
	b := r.bytes()
	if r.shared && len(b) > 0 {
		return unsafe.String(&b[0], len(b)) // nobody writes to it
	}
	return string(b)
}

// value returns the bytes that follow, not nil even if there are none.
func (r *reader) value() []byte {
	b := r.bytes()
	if r.shared && b != nil {
		return b
	}
	v := make([]byte, len(b))
	copy(v, b)
	return v
}

// author returns the author that follows.
func (r *reader) author() unique.Handle[kv.Author] {
	if a := r.authors; a != nil && len(a.raw) > 0 && bytes.HasPrefix(r.rest, a.raw) { // where an author ends, its beginning tells
		r.rest = r.rest[len(a.raw):]
		return a.last
	}
	before := r.rest
	for range 4 {
		r.bytes()
	}
	if r.err != nil {
		return unique.Handle[kv.Author]{}
	}
	if r.authors == nil {
		r.authors = &authors{}
	}
	return r.authors.of(before[:len(before)-len(r.rest)])
}

// authors are those that have been met, by how they are written.
type authors struct {
	known map[string]unique.Handle[kv.Author]
	raw   []byte // the last
	last  unique.Handle[kv.Author]
}

// maxAuthors is how many authors are remembered.
const maxAuthors = 4096

// of returns the author who is written like that.
func (a *authors) of(raw []byte) unique.Handle[kv.Author] {
	h, known := a.known[string(raw)]
	if !known {
		r := reader{rest: raw}
		name := func() string { return string(r.bytes()) }
		h = unique.Make(kv.Author{User: name(), Manager: name(), Verb: name(), Subresource: name()})
		if a.known == nil || len(a.known) >= maxAuthors {
			a.known = map[string]unique.Handle[kv.Author]{}
		}
		a.known[string(raw)] = h
	}
	a.raw, a.last = append(a.raw[:0], raw...), h
	return h
}

// record returns the next record, which is good until the one after it. End says that it is an
// end mark and holds no commit.
func (r *reader) record() (c *commit, end bool) {
	switch kind := r.byte(); {
	case r.err != nil:
	case kind == commitRecord:
		return r.commit(), false
	case kind == forgetRecord:
		return &commit{forget: r.revision()}, false
	case kind == endRecord:
		return nil, true
	default:
		r.fail(fmt.Sprintf("holds a record of kind %d, which this version does not know", kind))
	}
	return nil, false
}

func (r *reader) commit() *commit {
	c := &r.scratch
	*c = commit{revision: r.revision(), time: r.time(), author: r.author(), changes: c.changes[:0]}
	n := r.count()
	for range n {
		c.changes = append(c.changes, r.change(c))
		if r.err != nil {
			return nil
		}
	}
	return c
}

func (r *reader) change(c *commit) change {
	flags := r.byte()
	if flags&^knownFlags != 0 {
		r.fail("holds a change with flags that this version does not know")
	}
	v := &kv.Version{Key: r.key(), Revision: c.revision, Time: kv.InstantOf(c.time), Author: c.author}
	ch := change{version: v, replaces: r.revision()}
	v.Created = r.revision()
	if flags&expiresFlag != 0 {
		v.Expires = kv.InstantOf(r.time())
	}
	if flags&deleteFlag != 0 {
		v.Deleted = true
	} else {
		v.Value = r.value()
	}
	if problem := kv.CheckKey(v.Key); r.err == nil && problem != "" {
		r.fail("holds a bad key: " + problem)
	}
	return ch
}
