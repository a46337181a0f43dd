package registry

import (
	"encoding/json"
	"reflect"

	jsonv1 "github.com/go-json-experiment/json/v1"
)

// unmarshalOf returns what reads values of type t as [json.Unmarshal] does. It is what that is from Go 1.27 on, and takes
// less than half the time of what it was before; but it has a Number of its own, and does not know encoding/json's.
func unmarshalOf(t reflect.Type) func(data []byte, v any) error {
	if holds(t, reflect.TypeFor[json.Number](), map[reflect.Type]bool{}) {
		return json.Unmarshal
	}
	return jsonv1.Unmarshal
}

// holds says whether there may be a value of type part in one of type t, as far as types tell; keys of maps are not looked
// at. What was looked at is in seen: types may hold themselves.
func holds(t, part reflect.Type, seen map[reflect.Type]bool) bool {
	if t == part {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Array, reflect.Map, reflect.Pointer, reflect.Slice:
		return holds(t.Elem(), part, seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if holds(t.Field(i).Type, part, seen) {
				return true
			}
		}
	}
	return false
}
