package objectjson

import (
	"k8s.io/apimachinery/pkg/api/equality"
)

// Equal says whether two trees are the same. An empty object or array equals one that is nil,
// but not null; a whole float64 does not equal an int64.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		b, ok := b.(string)
		return ok && a == b
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case int64:
		b, ok := b.(int64)
		return ok && a == b
	case float64:
		b, ok := b.(float64)
		return ok && a == b
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && EqualObjects(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && equalArrays(a, b)
	}
	return equality.Semantic.DeepEqual(a, b)
}

// EqualObjects is [Equal] of two objects.
func EqualObjects(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	if Same(a, b) {
		return true // versions of an object share what did not change
	}
	for name, value := range a {
		other, ok := b[name]
		if !ok || !Equal(value, other) {
			return false
		}
	}
	return true
}

// Same says whether two objects are one: what is put into one is in the other.
func Same(a, b map[string]any) bool { return address(a) == address(b) }

func equalArrays(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}
