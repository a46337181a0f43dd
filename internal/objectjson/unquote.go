package objectjson

import (
	"unicode/utf16"
	"unicode/utf8"
)

// unquoted reads the rest of a string that has escapes, or bytes that are not UTF-8, each of
// which becomes U+FFFD, as half a surrogate pair does.
func (d *decoder) unquoted() ([]byte, bool) {
	out := d.room[:0]
	for d.at < len(d.data) {
		switch c := d.data[d.at]; {
		case c == '"':
			d.at++
			d.room = out
			return out, true
		case c < ' ':
			return nil, false
		case c == '\\':
			r, ok := d.escape()
			if !ok {
				return nil, false
			}
			out = utf8.AppendRune(out, r)
		case c < utf8.RuneSelf:
			out = append(out, c)
			d.at++
		default:
			r, size := utf8.DecodeRune(d.data[d.at:])
			out = utf8.AppendRune(out, r)
			d.at += size
		}
	}
	return nil, false
}

// escape reads one character that is written with a backslash.
func (d *decoder) escape() (rune, bool) {
	if d.at+1 >= len(d.data) {
		return 0, false
	}
	c := d.data[d.at+1]
	if c == 'u' {
		return d.escapedRune()
	}
	d.at += 2
	switch c {
	case '"', '\\', '/':
		return rune(c), true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	}
	return 0, false
}

// escapedRune reads \uXXXX, or two of them that are one character.
func (d *decoder) escapedRune() (rune, bool) {
	r, ok := hex4(d.data[d.at:])
	if !ok {
		return 0, false
	}
	d.at += 6
	if !utf16.IsSurrogate(r) {
		return r, true
	}
	second, ok := hex4(d.data[d.at:])
	if !ok {
		return utf8.RuneError, true // and what follows is read by itself
	}
	pair := utf16.DecodeRune(r, second)
	if pair != utf8.RuneError {
		d.at += 6
	}
	return pair, true
}

// hex4 reads the \uXXXX that s begins with.
func hex4(s []byte) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range s[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
