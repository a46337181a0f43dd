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

// Most objects have no more fields, and most arrays no more items. Those that have more cost garbage.
const (
	namesMost = 16
	itemsMost = 8
)

// Decode reads a JSON object. Numbers are int64 if they are written as such and fit, float64 if
// not. Duplicates are the library's findings about fields that come more than once, the
// last of which counts; none is no error. Null is a nil map, and anything else than an object an error.
func Decode(data []byte) (object map[string]any, duplicates []error, err error) {
	d := decoder{data: data}
	if object, ok := d.document(); ok && !d.duplicate {
		return object, nil, nil
	}
	object = map[string]any{}
	duplicates, err = kjson.UnmarshalStrict(data, &object)
	return object, duplicates, err
}

// DecodeLast is [Decode] for who does not want to know of duplicates.
func DecodeLast(data []byte) (map[string]any, error) {
	d := decoder{data: data}
	if object, ok := d.document(); ok {
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
}

// document reads an object with nothing after it.
func (d *decoder) document() (map[string]any, bool) {
	if d.skip() != '{' {
		return nil, false
	}
	object, ok := d.object()
	return object, ok && d.skip() == end
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
	var room [namesMost]member
	members := room[:0]
	for {
		if d.skip() != '"' {
			return nil, false
		}
		name, ok := d.name()
		if !ok || !d.colon() {
			return nil, false
		}
		value, ok := d.value()
		if !ok {
			return nil, false
		}
		members = append(members, member{name, value})
		switch d.skip() {
		case ',':
			d.at++
		case '}':
			d.leave()
			return d.objectOf(members), true
		default:
			return nil, false
		}
	}
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
	var room [itemsMost]any
	array := room[:0]
	for {
		value, ok := d.value()
		if !ok {
			return nil, false
		}
		array = append(array, value)
		switch d.skip() {
		case ',':
			d.at++
		case ']':
			d.leave()
			return slices.Clone(array), true
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
