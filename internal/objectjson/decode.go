package objectjson

import (
	"slices"
	"strconv"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"
)

// depthMax is how deep objects and arrays nest before the library takes over. It follows
// 10,000 levels; real objects have twenty.
const depthMax = 200

// Most objects have no more fields than namesMost, and while one is read there are no more fields and
// items about that wait for the end of what they are in. Those that have more cost garbage.
const (
	namesMost   = 16
	membersMost = 64
	itemsMost   = 32
)

// Decode reads a JSON object. Numbers are int64 if they are written as such and fit, float64 if
// not. Duplicates are the library's findings about fields that come more than once, the
// last of which counts; none is no error. Null is a nil map, and anything else than an object an error.
func Decode(data []byte) (object map[string]any, duplicates []error, err error) {
	return decode(data, nil)
}

func decode(data []byte, trees *Trees) (object map[string]any, duplicates []error, err error) {
	if object, duplicate, ok := read(data, trees); ok && !duplicate {
		return object, nil, nil
	}
	object = map[string]any{}
	duplicates, err = kjson.UnmarshalStrict(data, &object)
	return object, duplicates, err
}

// DecodeLast is [Decode] for who does not want to know of duplicates.
func DecodeLast(data []byte) (map[string]any, error) { return decodeLast(data, nil) }

func decodeLast(data []byte, trees *Trees) (map[string]any, error) {
	if object, _, ok := read(data, trees); ok {
		return object, nil
	}
	object := map[string]any{}
	err := kjson.UnmarshalCaseSensitivePreserveInts(data, &object)
	return object, err
}

// A decoder goes through data once. Its methods say false if they met something that they
// leave to the library; at is then anywhere.
type decoder struct {
	data      []byte
	at        int
	depth     int
	duplicate bool   // some field came more than once
	room      []byte // of strings that had to be unquoted

	// What has been read of the objects and arrays that are not at their end yet: those further out
	// lie below. (On the stack of each call they would cost more than the reading.)
	openMembers []member
	openItems   []any

	trees *Trees
	in    place
}

// A place is one where something is to be remembered.
type place uint8

const (
	elsewhere place = iota
	inMetadata
	inManagedFields
)

// step says where the value of a member is, from where the member is.
func (d *decoder) step(name string) place {
	switch {
	case d.trees == nil:
	case d.in == inManagedFields:
		return inManagedFields
	case d.depth == 1 && name == "metadata":
		return inMetadata
	case d.depth == 2 && d.in == inMetadata && name == "managedFields":
		return inManagedFields
	}
	return elsewhere
}

// read reads an object with nothing after it, and says whether a field came twice.
func read(data []byte, trees *Trees) (object map[string]any, duplicate, ok bool) {
	var members [membersMost]member
	var items [itemsMost]any
	d := decoder{data: data, trees: trees, openMembers: members[:0], openItems: items[:0]}
	if d.skip() != '{' {
		return nil, false, false
	}
	object, ok = d.object()
	return object, d.duplicate, ok && d.skip() == end
}

// end is what follows the last byte. As a byte of the text it would be an error everywhere
// outside of strings, where nobody looks for the end.
const end = 0

// skip goes on to the next byte that is not white space and returns it.
func (d *decoder) skip() byte {
	for ; d.at < len(d.data); d.at++ {
		switch c := d.data[d.at]; c {
		case ' ', '\t', '\n', '\r':
		case end:
			return 1 // a byte that begins nothing
		default:
			return c
		}
	}
	return end
}

func (d *decoder) value() (any, bool) {
	switch c := d.skip(); c {
	case '{':
		return d.object()
	case '[':
		return d.array()
	case '"':
		return d.text()
	case 't':
		return true, d.word("true")
	case 'f':
		return false, d.word("false")
	case 'n':
		return nil, d.word("null")
	default:
		return d.number()
	}
}

func (d *decoder) word(w string) bool {
	next := d.at + len(w)
	if next > len(d.data) || string(d.data[d.at:next]) != w {
		return false
	}
	d.at = next
	return true
}

// enter steps over an opening bracket.
func (d *decoder) enter() bool {
	d.at++
	d.depth++
	return d.depth <= depthMax
}

// leave steps over a closing bracket.
func (d *decoder) leave() {
	d.at++
	d.depth--
}

func (d *decoder) object() (map[string]any, bool) {
	if !d.enter() {
		return nil, false
	}
	if d.skip() == '}' {
		d.leave()
		return map[string]any{}, true
	}
	from := len(d.openMembers)
	for {
		if d.skip() != '"' {
			return nil, false
		}
		name, ok := d.name()
		if !ok || !d.colon() {
			return nil, false
		}
		value, ok := d.valueOf(name)
		if !ok {
			return nil, false
		}
		d.openMembers = append(d.openMembers, member{name, value})
		switch d.skip() {
		case ',':
			d.at++
		case '}':
			d.leave()
			object := d.objectOf(d.openMembers[from:])
			d.openMembers = d.openMembers[:from]
			return object, true
		default:
			return nil, false
		}
	}
}

// valueOf reads the value of the member called name.
func (d *decoder) valueOf(name string) (value any, ok bool) {
	was := d.in
	d.in = d.step(name)
	if d.in == inManagedFields && d.depth == entryDepth && name == "fieldsV1" && d.skip() == '{' {
		value, ok = d.fields()
	} else {
		value, ok = d.value()
	}
	d.in = was
	return value, ok
}

// entryDepth is how deep the entries of managedFields are.
const entryDepth = 4

// fields reads the fieldsV1 of an entry of managedFields: those of a text that is remembered are
// not made again.
func (d *decoder) fields() (any, bool) {
	n, ok := extent(d.data[d.at:])
	if !ok {
		return nil, false
	}
	text := d.data[d.at : d.at+n]
	if tree, ok := d.trees.tree(text); ok {
		d.at += n
		return tree, true
	}
	end := d.at + n
	tree, ok := d.object()
	if ok && d.at == end && !d.duplicate {
		tree = d.trees.add(text, tree)
	}
	return tree, ok
}

// A member is a field of an object. Fields are gathered before a map is made for them, of
// the right size.
type member struct {
	name  string
	value any
}

func (d *decoder) objectOf(members []member) map[string]any {
	object := make(map[string]any, len(members))
	for i := range members {
		object[members[i].name] = members[i].value
	}
	d.duplicate = d.duplicate || len(object) < len(members)
	return object
}

func (d *decoder) array() ([]any, bool) {
	if !d.enter() {
		return nil, false
	}
	if d.skip() == ']' {
		d.leave()
		return []any{}, true
	}
	from := len(d.openItems)
	for {
		value, ok := d.value()
		if !ok {
			return nil, false
		}
		d.openItems = append(d.openItems, value)
		switch d.skip() {
		case ',':
			d.at++
		case ']':
			d.leave()
			array := slices.Clone(d.openItems[from:])
			d.openItems = d.openItems[:from]
			return array, true
		default:
			return nil, false
		}
	}
}

// number reads a number. As in the library, only a point makes a float64 of what would fit into
// an int64.
func (d *decoder) number() (any, bool) {
	from := d.at
	point, ok := d.numeral()
	if !ok {
		return nil, false
	}
	text := d.data[from:d.at]
	if !point {
		if i, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return i, true
		}
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil
}

// numeral steps over digits with or without a sign, a fraction and an exponent, and says
// whether there is a point among them.
func (d *decoder) numeral() (point, ok bool) {
	if d.peek() == '-' {
		d.at++
	}
	if d.peek() == '0' {
		d.at++
	} else if !d.digits() {
		return false, false
	}
	if d.peek() == '.' {
		d.at, point = d.at+1, true
		if !d.digits() {
			return false, false
		}
	}
	if c := d.peek(); c == 'e' || c == 'E' {
		d.at++
		if c := d.peek(); c == '+' || c == '-' {
			d.at++
		}
		if !d.digits() {
			return false, false
		}
	}
	return point, true
}

func (d *decoder) peek() byte {
	if d.at < len(d.data) {
		return d.data[d.at]
	}
	return end
}

// digits steps over digits, of which there must be one.
func (d *decoder) digits() bool {
	from := d.at
	for d.at < len(d.data) && '0' <= d.data[d.at] && d.data[d.at] <= '9' {
		d.at++
	}
	return d.at > from
}

func (d *decoder) text() (string, bool) {
	s, ok := d.quoted()
	return string(s), ok
}

// name reads the name of a field. Those that every object has are not made anew each time.
func (d *decoder) name() (string, bool) {
	s, ok := d.quoted()
	if !ok {
		return "", false
	}
	return name(s), true
}

// quoted returns what stands between quotes, in place if it has no escapes and is UTF-8. It is
// good until the next call.
func (d *decoder) quoted() ([]byte, bool) {
	d.at++
	from, ascii := d.at, true
	for ; d.at < len(d.data); d.at++ {
		switch c := d.data[d.at]; {
		case c == '"':
			s := d.data[from:d.at]
			if !ascii && !utf8.Valid(s) {
				d.at = from
				return d.unquoted()
			}
			d.at++
			return s, true
		case c == '\\':
			d.at = from
			return d.unquoted()
		case c < ' ':
			return nil, false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, false
}
