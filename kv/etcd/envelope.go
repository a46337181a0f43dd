package etcd

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pawl-dev/pawl/kv"
)

// envelopeFormat is the format of the envelopes that are written, the only one there is.
const envelopeFormat = 1

// The flags of an envelope.
const (
	hasExpiry = 1 << iota // there is a time of expiry
	hasBehind             // it says how many commits are behind this one
	hasBorn               // and how many were behind the one that made the key

	knownFlags = hasExpiry | hasBehind | hasBorn
)

// behindAt is where in an envelope it says how many commits are behind, if it does.
const behindAt = 2

// An id names a commit: the replica that made it, and its number there. No two are the same.
type id struct {
	replica uint64
	number  uint64
}

// An envelope is what the engine keeps with a value, since etcd does not.
type envelope struct {
	grouped bool  // it is written how many commits are behind this one
	behind  uint8 // of those that are one transaction of etcd's
	born    uint8 // the same of the commit that made the key; 0 if it is this one
	id      id
	time    kv.Instant
	expires kv.Instant // zero if it does not
	author  []byte     // four texts; see encodeAuthor
	value   []byte
}

// encode returns e as it is stored.
func (e envelope) encode() []byte {
	b := make([]byte, 0, 4+8+binary.MaxVarintLen64+8+8+len(e.author)+len(e.value))
	var flags byte
	if !e.expires.IsZero() {
		flags |= hasExpiry
	}
	if e.grouped {
		flags |= hasBehind
	}
	if e.born != 0 {
		flags |= hasBorn
	}
	b = append(b, envelopeFormat, flags)
	if e.grouped {
		b = append(b, e.behind)
	}
	if e.born != 0 {
		b = append(b, e.born)
	}
	b = binary.BigEndian.AppendUint64(b, e.id.replica)
	b = binary.AppendUvarint(b, e.id.number)
	b = binary.BigEndian.AppendUint64(b, uint64(e.time))
	if flags&hasExpiry != 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(e.expires))
	}
	b = append(b, e.author...)
	return append(b, e.value...)
}

// encodeAuthor returns the four texts of an author.
func encodeAuthor(a kv.Author) []byte {
	b := make([]byte, 0, 4*2+len(a.User)+len(a.Manager)+len(a.Verb)+len(a.Subresource))
	for _, text := range []string{a.User, a.Manager, a.Verb, a.Subresource} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return b
}

// decodeAuthor returns the author of what encodeAuthor made.
func decodeAuthor(b []byte) kv.Author {
	r := cursor{rest: b}
	return kv.Author{User: string(r.text()), Manager: string(r.text()), Verb: string(r.text()), Subresource: string(r.text())}
}

var errShort = errors.New("it ends too early")

// decode returns the envelope that b is. It shares b's memory.
func decode(b []byte) (envelope, error) {
	r := cursor{rest: b}
	format, flags := r.byte(), r.byte()
	switch {
	case r.short:
		return envelope{}, errShort
	case format != envelopeFormat:
		return envelope{}, fmt.Errorf("its format is %d, and this pawl knows only format %d", format, envelopeFormat)
	case flags&^knownFlags != 0:
		return envelope{}, fmt.Errorf("its flags are %#x, and this pawl does not know them all", flags)
	}
	var e envelope
	if e.grouped = flags&hasBehind != 0; e.grouped {
		e.behind = r.byte()
	}
	if flags&hasBorn != 0 {
		e.born = r.byte()
	}
	e.id = id{replica: r.fixed(), number: r.uvarint()}
	e.time = kv.Instant(r.fixed())
	if flags&hasExpiry != 0 {
		e.expires = kv.Instant(r.fixed())
	}
	author := r.rest
	for range 4 {
		r.text()
	}
	if r.short {
		return envelope{}, errShort
	}
	e.author = author[: len(author)-len(r.rest) : len(author)-len(r.rest)]
	e.value = r.rest[:len(r.rest):len(r.rest)]
	return e, nil
}

// A cursor reads from the front of bytes; once they were short, only zeros.
type cursor struct {
	rest  []byte
	short bool
}

func (c *cursor) take(n uint64) []byte {
	if n > uint64(len(c.rest)) {
		c.short, c.rest = true, nil
		return nil
	}
	b := c.rest[:n]
	c.rest = c.rest[n:]
	return b
}

func (c *cursor) byte() byte {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) fixed() uint64 {
	if b := c.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.rest)
	if n <= 0 {
		c.short, c.rest = true, nil
		return 0
	}
	c.rest = c.rest[n:]
	return v
}

func (c *cursor) text() []byte { return c.take(c.uvarint()) }
