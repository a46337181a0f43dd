package server

import (
	"bytes"

	"github.com/pawl-dev/pawl/internal/objectjson"
)

// asJSON reads a document as JSON if reading it as YAML would certainly make the same of it, as of what
// most clients send: YAML takes fifty times as long. It is the same if the document is JSON in which no
// member stands twice, with texts of printable ASCII and the usual escapes, short whole numbers, and
// nothing between them but spaces and line ends.
func asJSON(doc []byte) (map[string]any, bool) {
	if !plainInYAML(doc) {
		return nil, false
	}
	object, duplicates, err := objectjson.Decode(doc)
	return object, err == nil && len(duplicates) == 0 && object != nil
}

const (
	digitsMost = 15   // of a number
	nameMost   = 1000 // bytes of a name: YAML allows 1024 up to the colon, on the same line
)

// plainInYAML is about the characters of a document that is JSON.
func plainInYAML(doc []byte) bool {
	digits := 0
	for i := 0; i < len(doc); i++ {
		c := doc[i]
		switch {
		case '0' <= c && c <= '9':
			if digits++; digits > digitsMost {
				return false
			}
			continue
		case c == '"':
			n := plainText(doc[i+1:])
			if n < 0 {
				return false
			}
			i += n + 1
			if isName(doc[i+1:]) && (n > nameMost || doc[i+1] != ':') {
				return false // YAML wants the colon near
			}
		case c == 'e' && digits > 0, c == '-' && i+1 < len(doc) && doc[i+1] == '0':
			return false // 1e3, and -0
		case c == ' ', c == '\n', c == '{', c == '}', c == '[', c == ']', c == ':', c == ',', c == '-', 'a' <= c && c <= 'z':
		default:
			return false
		}
		digits = 0
	}
	return true
}

// plainText returns the length of a text that its closing quote follows, and -1 if there is more to it.
func plainText(doc []byte) int {
	for n := 0; n < len(doc); n++ {
		switch c := doc[n]; {
		case c == '"':
			if string(doc[:n]) == "<<" { // with which YAML merges
				return -1
			}
			return n
		case c == '\\':
			if n++; n == len(doc) || !isUsualEscape(doc[n]) {
				return -1
			}
		case c < ' ' || c > '~':
			return -1
		}
	}
	return -1
}

func isUsualEscape(c byte) bool { return c == '"' || c == '\\' || c == 'n' || c == 't' }

// isName says whether a text is the name of a member, from what follows it.
func isName(after []byte) bool {
	after = bytes.TrimLeft(after, " \n")
	return len(after) > 0 && after[0] == ':'
}
