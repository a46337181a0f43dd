package objectjson

import "math"

// Stable says that reading what [Append] writes of value makes the same value again: it holds nothing
// but what [Decode] makes, and no float64 that would be read as an int64, nor one that cannot be written.
func Stable(value any) bool {
	switch v := value.(type) {
	case nil, string, bool, int64:
		return true
	case float64:
		return math.Trunc(v) != v && !math.IsNaN(v)
	case map[string]any:
		if v == nil {
			return false
		}
		for _, below := range v {
			if !Stable(below) {
				return false
			}
		}
		return true
	case []any:
		if v == nil {
			return false
		}
		for _, below := range v {
			if !Stable(below) {
				return false
			}
		}
		return true
	}
	return false
}
