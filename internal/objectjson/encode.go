package objectjson

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Append appends the JSON of value to dst: names in order, no white space, and what HTML
// would read as markup escaped. Its errors are those of encoding/json; dst then ends anywhere.
func Append(dst []byte, value any) ([]byte, error) {
	e := encoder{out: dst}
	err := e.value(value)
	return e.out, err
}

// AppendMembers appends the fields of object but for those named, each with a comma before it,
// for who writes those himself.
func AppendMembers(dst []byte, object map[string]any, except ...string) ([]byte, error) {
	e := encoder{out: dst}
	var room [namesMost]string
	names := room[:0]
	for name := range object {
		if !slices.Contains(except, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		e.out = append(e.out, ',')
		e.out = AppendString(e.out, name)
		e.out = append(e.out, ':')
		if err := e.value(object[name]); err != nil {
			return e.out, err
		}
	}
	return e.out, nil
}

// An encoder appends to out.
type encoder struct {
	out   []byte
	depth int
	trees *Trees
}

func (e *encoder) value(value any) error {
	switch v := value.(type) {
	case nil:
		e.out = append(e.out, "null"...)
	case string:
		e.out = AppendString(e.out, v)
	case bool:
		e.out = strconv.AppendBool(e.out, v)
	case int64:
		e.out = strconv.AppendInt(e.out, v, 10)
	case float64:
		return e.float(v)
	case map[string]any:
		return e.object(v)
	case []any:
		return e.array(v)
	default:
		return e.other(v)
	}
	return nil
}

// other leaves value to the library.
func (e *encoder) other(value any) error {
	data, err := json.Marshal(value)
	e.out = append(e.out, data...)
	return err
}

func (e *encoder) object(object map[string]any) error {
	if object == nil || e.depth == depthMax {
		return e.other(object)
	}
	e.depth++
	var room [namesMost]string
	names := room[:0]
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	separator := byte('{')
	for _, name := range names {
		e.out = append(e.out, separator)
		e.out = AppendString(e.out, name)
		e.out = append(e.out, ':')
		if err := e.valueOf(name, object[name]); err != nil {
			return err
		}
		separator = ','
	}
	if len(object) == 0 {
		e.out = append(e.out, '{')
	}
	e.out = append(e.out, '}')
	e.depth--
	return nil
}

// valueOf appends the value of the member called name.
func (e *encoder) valueOf(name string, value any) error {
	if e.trees != nil && name == "fieldsV1" {
		if tree, ok := value.(map[string]any); ok {
			if text, ok := e.trees.text(tree); ok {
				e.out = append(e.out, text...)
				return nil
			}
		}
	}
	return e.value(value)
}

func (e *encoder) array(array []any) error {
	if array == nil || e.depth == depthMax {
		return e.other(array)
	}
	e.depth++
	e.out = append(e.out, '[')
	for i, value := range array {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		if err := e.value(value); err != nil {
			return err
		}
	}
	e.out = append(e.out, ']')
	e.depth--
	return nil
}

// float writes numbers as JavaScript does: with an exponent only if they are very
// small or very large. Integers, the most of them, are written here.
func (e *encoder) float(f float64) error {
	if math.Trunc(f) == f && math.Abs(f) < 1<<53 && f != 0 {
		e.out = strconv.AppendInt(e.out, int64(f), 10)
		return nil
	}
	return e.other(f)
}

const hex = "0123456789abcdef"

// AppendString appends s in quotes.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0 // of what can be copied
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = appendEscaped(append(dst, s[from:i]...), c)
			i++
			from = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(append(dst, s[from:i]...), `\ufffd`...)
			from = i + size
		case r == '\u2028' || r == '\u2029': // ends of lines in JavaScript
			dst = append(append(dst, s[from:i]...), `\u202`...)
			dst = append(dst, hex[r&0xf])
			from = i + size
		}
		i += size
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// plain are the ASCII characters that stand for themselves.
var plain = func() (p [256]bool) {
	for c := byte(' '); c < utf8.RuneSelf; c++ {
		p[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return p
}()

func appendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
}
