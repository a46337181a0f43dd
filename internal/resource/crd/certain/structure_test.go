package certain

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
)

// shaped is what the library's steps of reading make of obj, before defaults are filled in.
func shaped(obj map[string]any, s *structuralschema.Structural) map[string]any {
	out := copied(obj).(map[string]any)
	pruning.Prune(out, s, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(out, s)
	objectmeta.Coerce(nil, out, s, false, true)
	return out
}

// compareOrder holds what is said of obj against what the library does to it.
func compareOrder(t *testing.T, s *Structure, st *structuralschema.Structural, obj map[string]any) Order {
	t.Helper()
	before := shaped(obj, st)
	after := copied(before)
	defaulting.Default(after, st)
	order := s.Order(obj)
	kept := copied(obj).(map[string]any)
	if order == Spare {
		defaulting.PruneNonNullableNullsWithoutDefaults(kept, st)
	}
	if order != Disorder && !reflect.DeepEqual(before, kept) || order == Full && !reflect.DeepEqual(after, any(obj)) {
		data, _ := json.Marshal(obj)
		t.Fatalf("%s is said to be in order (%d), and becomes %v", data, order, after)
	}
	errs := listtype.ValidateListSetsAndMaps(nil, st, obj)
	if s.Distinct(obj) == Valid && len(errs) > 0 {
		t.Fatalf("%v is said to repeat nothing: %v", obj, errs)
	}
	return order
}

func TestOrderIsWhatTheLibraryWouldLeaveAsItIs(t *testing.T) {
	full, all, distinct := 0, 0, 0
	for seed := range uint64(500) {
		m := newMaker(seed)
		props := apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{"a": m.schema(3), "b": m.schema(2)}}
		st, err := structuralschema.NewStructural(&props)
		if err != nil {
			continue
		}
		s := NewStructure(st)
		for range 8 {
			obj := m.valid(props, 3).(map[string]any)
			obj["kind"], obj["metadata"] = "K", map[string]any{"name": "a"}
			compareOrder(t, s, st, obj)
			obj = shaped(obj, st)
			compareOrder(t, s, st, obj)
			defaulting.Default(obj, st)
			obj = shaped(obj, st) // of what the defaults brought
			defaulting.Default(obj, st)
			if all++; compareOrder(t, s, st, obj) == Full {
				full++
			}
			if s.Distinct(obj) == Valid {
				distinct++
			}
			if obj, ok := m.mutate(obj).(map[string]any); ok {
				compareOrder(t, s, st, obj)
			}
		}
	}
	if full*100 < all*90 || distinct*100 < all*70 {
		t.Errorf("of %d objects in order %d are known to be, and %d to repeat nothing", all, full, distinct)
	}
}

func TestWithoutASchemaNothingIsKnown(t *testing.T) {
	var s *Structure
	for _, c := range []struct {
		name string
		obj  map[string]any
		want Order
	}{
		{"what every object has stays", map[string]any{"kind": "K", "apiVersion": "v1", "metadata": map[string]any{}}, Full},
		{"the rest does not", map[string]any{"kind": "K", "spec": nil}, Disorder},
	} {
		if got := s.Order(c.obj); got != c.want || s.Distinct(c.obj) != Valid || s.Embeds() {
			t.Errorf("%s: got %d", c.name, got)
		}
	}
}
