package certain

import "unicode/utf8"

// Distinct says that no set holds an item twice and no list that is a map a key (rule C67): Valid,
// or Unsure.
func (s *Structure) Distinct(obj map[string]any) Verdict {
	return s.distinct(obj)
}

func (s *Structure) distinct(x any) Verdict {
	if s == nil || !s.anyList {
		return Valid
	}
	v := Valid
	switch x := x.(type) {
	case map[string]any:
		for name, value := range x {
			p := s.properties[name]
			if s.mapped {
				if p != nil {
					return Unsure
				}
				p = s.extra
			}
			if v = v.and(p.distinct(value)); v != Valid {
				return v
			}
		}
	case []any:
		if v = s.distinctItems(x); v != Valid {
			return v
		}
		for _, item := range x {
			if v = v.and(s.items.distinct(item)); v != Valid {
				return v
			}
		}
	}
	return v
}

// fewItems is how many items are compared each with each. The library's way costs less for more.
const fewItems = 64

func (s *Structure) distinctItems(list []any) Verdict {
	if s.list == atomic {
		return Valid
	}
	if len(list) > fewItems {
		return Unsure
	}
	for i, item := range list {
		if s.list == set && !isKey(item) || s.list == mapList && !s.isKeyed(item) {
			return Unsure
		}
		for _, before := range list[:i] {
			if s.same(item, before) {
				return Unsure
			}
		}
	}
	return Valid
}

// isKey says whether equality of v is plain: of numbers that are not whole, and of texts
// that are not UTF-8, the library thinks twice.
func isKey(v any) bool {
	switch v := v.(type) {
	case string:
		return utf8.ValidString(v)
	case int64, bool:
		return true
	}
	return false
}

// isKeyed says whether an item has all its keys.
func (s *Structure) isKeyed(item any) bool {
	m, ok := item.(map[string]any)
	if !ok {
		return false
	}
	for _, key := range s.keys {
		if !isKey(m[key]) {
			return false
		}
	}
	return true
}

func (s *Structure) same(a, b any) bool {
	if s.list == set {
		return a == b
	}
	x, y := a.(map[string]any), b.(map[string]any)
	for _, key := range s.keys {
		if x[key] != y[key] {
			return false
		}
	}
	return true
}
