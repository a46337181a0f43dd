package conversation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A path leads into a tree: .a.b, ["a.b/c"], [2], [*] and [key=value] in any order.
// The path "." is the tree itself.
type path []segment

type segment struct {
	kind  segmentKind
	name  string   // member
	index int      // element
	key   []string // match: the members that lead to value
	value string   // match
}

type segmentKind uint8

const (
	member  segmentKind = 1 + iota // .name or ["name"]
	element                        // [2]
	each                           // [*]
	match                          // [key=value]
)

func parsePath(text string) (path, error) {
	if text == "." {
		return nil, nil
	}
	var p path
	for rest := text; rest != ""; {
		var s segment
		var ok bool
		switch rest[0] {
		case '.':
			s, rest, ok = parseMember(rest[1:])
		case '[':
			s, rest, ok = parseBracket(rest[1:])
		}
		if !ok {
			return nil, fmt.Errorf("%q is not a path: write it like .a.b, [\"a.b/c\"], [2], [*] or [key=value]", text)
		}
		p = append(p, s)
	}
	return p, nil
}

func parseMember(rest string) (segment, string, bool) {
	end := strings.IndexAny(rest, ".[")
	if end < 0 {
		end = len(rest)
	}
	return segment{kind: member, name: rest[:end]}, rest[end:], end > 0
}

func parseBracket(rest string) (segment, string, bool) {
	if strings.HasPrefix(rest, `"`) {
		name, after, ok := strings.Cut(rest[1:], `"]`)
		return segment{kind: member, name: name}, after, ok
	}
	inside, after, ok := strings.Cut(rest, "]")
	if !ok {
		return segment{}, "", false
	}
	if inside == "*" {
		return segment{kind: each}, after, true
	}
	if key, value, ok := strings.Cut(inside, "="); ok {
		return segment{kind: match, key: strings.Split(key, "."), value: value}, after, true
	}
	index, err := strconv.Atoi(inside)
	return segment{kind: element, index: index}, after, err == nil && index >= 0
}

// get returns what is at p in tree, and whether anything is.
func (p path) get(tree any) (any, bool) {
	if len(p) == 0 {
		return tree, true
	}
	s, rest := p[0], p[1:]
	if s.kind == member {
		m, _ := tree.(map[string]any)
		v, ok := m[s.name]
		if !ok {
			return nil, false
		}
		return rest.get(v)
	}
	list, ok := tree.([]any)
	if !ok {
		return nil, false
	}
	if s.kind == each {
		found := []any{}
		for _, item := range list {
			if v, ok := rest.get(item); ok {
				found = append(found, v)
			}
		}
		return found, true
	}
	if i := s.find(list); i >= 0 {
		return rest.get(list[i])
	}
	return nil, false
}

// without returns tree with what is at p left out. It changes tree.
func (p path) without(tree any) any {
	if len(p) == 0 {
		return nil
	}
	s, rest := p[0], p[1:]
	switch t := tree.(type) {
	case map[string]any:
		if v, ok := t[s.name]; ok && s.kind == member {
			if len(rest) == 0 {
				delete(t, s.name)
			} else {
				t[s.name] = rest.without(v)
			}
		}
	case []any:
		switch i := s.find(t); {
		case s.kind == each && len(rest) == 0:
			return []any{}
		case s.kind == each:
			for i := range t {
				t[i] = rest.without(t[i])
			}
		case i < 0:
		case len(rest) == 0:
			return slices.Delete(t, i, i+1)
		default:
			t[i] = rest.without(t[i])
		}
	}
	return tree
}

// find returns the index of the one element that s names, or -1.
func (s segment) find(list []any) int {
	switch s.kind {
	case element:
		if s.index < len(list) {
			return s.index
		}
	case match:
		var key path
		for _, name := range s.key {
			key = append(key, segment{kind: member, name: name})
		}
		return slices.IndexFunc(list, func(item any) bool {
			v, ok := key.get(item)
			return ok && textOf(v) == s.value
		})
	}
	return -1
}

// memberPath writes the path of a member of what is at base.
func memberPath(base, name string) string {
	if name == "" || strings.ContainsAny(name, ".[]/=\" ") {
		return base + `["` + name + `"]`
	}
	return base + "." + name
}
