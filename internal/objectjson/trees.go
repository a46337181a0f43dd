package objectjson

import (
	"bytes"
	"reflect"
	"sync"
	"unsafe"
)

// Trees remembers the fieldsV1 of managedFields, which are half of many an object and the same in
// thousands of them: [Trees.Decode] makes an object hold the one tree that was made of such a text
// before, and [Trees.Append] writes it without going through it. Nobody may change what they are:
// whoever wants other managedFields puts other entries in their place.
//
// The zero value remembers nothing yet. It may be used by many at once; nil remembers nothing ever.
type Trees struct {
	mu     sync.RWMutex
	byText map[string]map[string]any
	texts  map[unsafe.Pointer]string // by the tree, which byText keeps from being collected
	size   int                       // bytes of texts
}

// What is remembered is forgotten as a whole when it has come to treesMost bytes of text. (In memory
// a tree is some ten times its text.) Longer texts than treeMost are not remembered, nor are shorter
// ones than treeLeast.
const (
	treesMost = 256 << 10
	treeMost  = 8 << 10
	treeLeast = 16
)

// Decode is [Decode] with the trees that are remembered.
func (t *Trees) Decode(data []byte) (object map[string]any, duplicates []error, err error) {
	return decode(data, t)
}

// DecodeLast is [DecodeLast] with the trees that are remembered.
func (t *Trees) DecodeLast(data []byte) (map[string]any, error) { return decodeLast(data, t) }

// Append is [Append] with the trees that are remembered.
func (t *Trees) Append(dst []byte, value any) ([]byte, error) {
	e := encoder{out: dst, trees: t}
	err := e.value(value)
	return e.out, err
}

// Knows says that tree is one that is remembered, so that it holds objects and nothing else.
func (t *Trees) Knows(tree map[string]any) bool {
	_, ok := t.text(tree)
	return ok
}

func address(tree map[string]any) unsafe.Pointer { return reflect.ValueOf(tree).UnsafePointer() }

// text returns what tree was made of.
func (t *Trees) text(tree map[string]any) (string, bool) {
	if t == nil || len(tree) == 0 {
		return "", false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	s, ok := t.texts[address(tree)]
	return s, ok
}

func (t *Trees) tree(text []byte) (map[string]any, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	tree, ok := t.byText[string(text)]
	return tree, ok
}

// add remembers the tree of a text that is as [Append] would write it, and returns the one that is
// remembered for it. Others are left alone: they could not be written as they came.
func (t *Trees) add(text []byte, tree map[string]any) map[string]any {
	if len(text) > treeMost || len(text) < treeLeast || !onlyObjects(tree) {
		return tree
	}
	if again, err := Append(make([]byte, 0, len(text)), tree); err != nil || !bytes.Equal(again, text) {
		return tree
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.byText[string(text)]; ok {
		return known
	}
	if t.byText == nil || t.size+len(text) > treesMost {
		t.byText, t.texts, t.size = map[string]map[string]any{}, map[unsafe.Pointer]string{}, 0
	}
	s := string(text)
	t.byText[s], t.texts[address(tree)] = tree, s
	t.size += len(s)
	return tree
}

func onlyObjects(tree map[string]any) bool {
	for _, value := range tree {
		below, ok := value.(map[string]any)
		if !ok || below == nil || !onlyObjects(below) {
			return false
		}
	}
	return true
}

// extent returns the end of the object that data begins with, if its brackets and quotes match.
// Whether it is JSON is for whoever reads it.
func extent(data []byte) (end int, ok bool) {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			n, ok := quotedExtent(data[i+1:])
			if !ok {
				return 0, false
			}
			i += n
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
	}
	return 0, false
}

// quotedExtent returns the length of a text and its closing quote.
func quotedExtent(data []byte) (int, bool) {
	for i := 0; ; {
		n := bytes.IndexByte(data[i:], '"')
		if n < 0 {
			return 0, false
		}
		escape := bytes.IndexByte(data[i:i+n], '\\')
		if escape < 0 {
			return i + n + 1, true
		}
		if i += escape + 2; i > len(data) { // over what is escaped
			return 0, false
		}
	}
}
