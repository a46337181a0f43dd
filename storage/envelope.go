package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/pawl-dev/pawl/kv"
)

const envelopeFormat = 1

// A document is stored JSON with its marks.
type document struct {
	fingerprint Fingerprint
	typeEnd     int // json[1:typeEnd] is the members kind and apiVersion, with a comma at the end
	metaStart   int // json[metaStart] is the brace that opens metadata
	metaEnd     int // json[metaEnd-1] is the one that closes it
	json        []byte
}

// seal marks an object's JSON and puts it into its envelope.
func seal(data []byte, fp Fingerprint) ([]byte, document, error) {
	d, err := mark(data)
	if err != nil {
		return nil, document{}, err
	}
	d.fingerprint = fp
	buf := make([]byte, 0, 9+3*binary.MaxVarintLen32+len(data))
	buf = append(buf, envelopeFormat)
	buf = binary.BigEndian.AppendUint64(buf, uint64(fp))
	buf = binary.AppendUvarint(buf, uint64(d.typeEnd))
	buf = binary.AppendUvarint(buf, uint64(d.metaStart))
	buf = binary.AppendUvarint(buf, uint64(d.metaEnd))
	return append(buf, data...), d, nil
}

var errEnvelope = errors.New("not an object in an envelope of format 1")

// unseal is the inverse of seal. It never fails on what seal made, and never gives out
// marks that lie outside the JSON.
func unseal(value []byte) (document, error) {
	if len(value) < 12 || value[0] != envelopeFormat {
		return document{}, errEnvelope
	}
	d := document{fingerprint: Fingerprint(binary.BigEndian.Uint64(value[1:9]))}
	rest := value[9:]
	for _, m := range []*int{&d.typeEnd, &d.metaStart, &d.metaEnd} {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > uint64(len(value)) {
			return document{}, errEnvelope
		}
		*m, rest = int(n), rest[size:]
	}
	d.json = rest
	if !d.sound() {
		return document{}, errEnvelope
	}
	return d, nil
}

func (d document) sound() bool {
	return 1 <= d.typeEnd && d.typeEnd <= d.metaStart && d.metaStart+2 <= d.metaEnd && d.metaEnd < len(d.json) &&
		d.json[0] == '{' && d.json[d.metaStart] == '{' && d.json[d.metaEnd-1] == '}'
}

// appendTo appends the JSON of the object at revision rev, without kind and apiVersion if
// it is an item of a list that leaves them out.
func (d document) appendTo(dst []byte, rev kv.Revision, item bool) []byte {
	from := 0
	if item {
		dst = append(dst, '{')
		from = d.typeEnd
	}
	dst = append(dst, d.json[from:d.metaStart+1]...)
	dst = d.appendRevision(dst, rev)
	return append(dst, d.json[d.metaStart+1:]...)
}

// appendMetadata appends the value of metadata alone.
func (d document) appendMetadata(dst []byte, rev kv.Revision) []byte {
	dst = append(dst, '{')
	dst = d.appendRevision(dst, rev)
	return append(dst, d.json[d.metaStart+1:d.metaEnd]...)
}

func (d document) appendRevision(dst []byte, rev kv.Revision) []byte {
	if rev == kv.Absent {
		return dst
	}
	dst = append(dst, `"resourceVersion":"`...)
	dst = strconv.AppendUint(dst, uint64(rev), 10)
	dst = append(dst, '"')
	if d.metaEnd-d.metaStart > 2 {
		dst = append(dst, ',')
	}
	return dst
}

// mark finds kind, apiVersion and metadata at the start of an object's JSON.
func mark(data []byte) (document, error) {
	d := document{json: data}
	s := scanner{data: data}
	if !s.take('{') {
		return d, errors.New("an object begins with {")
	}
	for range 3 {
		name, ok := s.member()
		if !ok {
			return d, fmt.Errorf("at offset %d: want kind, apiVersion and metadata first", s.at)
		}
		start := s.at
		if !s.skip() {
			return d, fmt.Errorf("at offset %d: not a JSON value", start)
		}
		if string(name) == "metadata" {
			d.metaStart, d.metaEnd = start, s.at
			break
		}
		if string(name) != "kind" && string(name) != "apiVersion" {
			return d, fmt.Errorf("member %q stands before metadata", name)
		}
		if !s.take(',') {
			return d, errors.New("an object has metadata")
		}
		d.typeEnd = s.at
	}
	d.typeEnd = max(d.typeEnd, 1)
	if !d.sound() {
		return d, errors.New("an object begins with kind, apiVersion and metadata")
	}
	return d, nil
}

// A scanner walks over compact JSON that an encoder just made.
type scanner struct {
	data []byte
	at   int
}

func (s *scanner) take(c byte) bool {
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

// member reads the name of a member and its colon.
func (s *scanner) member() (name []byte, ok bool) {
	start := s.at
	if !s.skipString() {
		return nil, false
	}
	return s.data[start+1 : s.at-1], s.take(':')
}

func (s *scanner) skipString() bool {
	if !s.take('"') {
		return false
	}
	for {
		n := bytes.IndexByte(s.data[s.at:], '"')
		if n < 0 {
			return false
		}
		slashes := 0 // before the quote: an even number of them are characters of the string
		for slashes < n && s.data[s.at+n-1-slashes] == '\\' {
			slashes++
		}
		if s.at += n + 1; slashes%2 == 0 {
			return true
		}
	}
}

// skip steps over one value, with brackets matched by depth alone.
func (s *scanner) skip() bool {
	depth := 0
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case '"':
			if !s.skipString() {
				return false
			}
			if depth == 0 {
				return true
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				s.at += 1 + min(depth, 0) // a scalar ends before the bracket that closes its parent
				return true
			}
		case ',':
			if depth == 0 {
				return true
			}
		}
		s.at++
	}
	return false
}
