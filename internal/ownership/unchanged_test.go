package ownership

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/pawl-dev/pawl/registry"
)

const gearSchema = `{"type":"object","x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Gear"}],
"properties":{"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"type":"object","properties":{
  "labels":{"type":"object","additionalProperties":{"type":"string"}},"name":{"type":"string"},"managedFields":{"type":"array","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}},
"spec":{"type":"object","properties":{
  "size":{"type":"integer"},"color":{"type":"string"},"on":{"type":"boolean"},
  "tags":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"},
  "plain":{"type":"array","items":{"type":"object","properties":{"x":{"type":"integer"}}},"x-kubernetes-list-type":"atomic"},
  "box":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"x":{"type":"integer"}}},
  "free":{"type":"object","additionalProperties":{"type":"string"}},
  "parts":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","properties":{
    "name":{"type":"string"},"teeth":{"type":"integer"},"deep":{"type":"object","properties":{"y":{"type":"string"}}}}}}}},
"status":{"type":"object","properties":{"phase":{"type":"string"},"count":{"type":"integer"}}}}}`

// schemaShape is a registry.Shape over an OpenAPI schema.
type schemaShape struct{ s spec.Schema }

func (s schemaShape) Member(name string) registry.Shape {
	if p, ok := s.s.Properties[name]; ok {
		return schemaShape{p}
	}
	if s.s.AdditionalProperties != nil && s.s.AdditionalProperties.Schema != nil {
		return schemaShape{*s.s.AdditionalProperties.Schema}
	}
	return nil
}
func (s schemaShape) Atomic() bool { return s.s.Extensions["x-kubernetes-map-type"] == "atomic" }
func (s schemaShape) Set() bool    { return s.s.Extensions["x-kubernetes-list-type"] == "set" }
func (s schemaShape) Keys() []string {
	if s.s.Extensions["x-kubernetes-list-type"] != "map" {
		return nil
	}
	return []string{"name"}
}
func (s schemaShape) Item() registry.Shape { return schemaShape{*s.s.Items.Schema} }

func gears(t *testing.T, subresource string) *Manager {
	t.Helper()
	s := &spec.Schema{}
	if err := json.Unmarshal([]byte(gearSchema), s); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gear"}, Subresource: subresource,
		New:     func() runtime.Object { return &unstructured.Unstructured{Object: map[string]any{}} },
		Schemas: func() (map[string]*spec.Schema, error) { return map[string]*spec.Schema{"com.example.v1.Gear": s}, nil },
		Shape:   func() registry.Shape { return schemaShape{*s} },
		Convert: Unconverted{}, Custom: true, Reset: fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
	if subresource != "" {
		o.Reset = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata"))
	}
	return New(o)
}

// stock is what the field manager alone makes of an update.
func stock(t *testing.T, m *Manager, live, obj runtime.Object, manager string) runtime.Object {
	t.Helper()
	fm, err := m.make()
	if err != nil {
		t.Fatal(err)
	}
	return fm.UpdateNoErrors(m.orEmpty(live), obj, manager)
}

// mutate makes a change such as clients make, of a scalar most of the time.
func mutate(rng *rand.Rand, obj *unstructured.Unstructured) {
	set := func(v any, path ...string) { _ = unstructured.SetNestedField(obj.Object, v, path...) }
	n := int64(rng.IntN(5))
	switch rng.IntN(14) {
	case 0, 1, 2:
		set(n, "spec", "size")
	case 3:
		set(fmt.Sprint("c", n), "spec", "color")
	case 4:
		set(n%2 == 0, "spec", "on")
	case 5:
		set([]any{fmt.Sprint("t", n), "t9"}, "spec", "tags")
	case 6:
		set([]any{map[string]any{"x": n}}, "spec", "plain")
	case 7:
		set(map[string]any{"x": n}, "spec", "box")
	case 8:
		set(fmt.Sprint("v", n), "spec", "free", fmt.Sprint("k", n))
	case 9, 10:
		parts := []any{}
		for i := range 1 + rng.IntN(2) {
			parts = append(parts, map[string]any{"name": fmt.Sprint("p", i), "teeth": n, "deep": map[string]any{"y": fmt.Sprint(n)}})
		}
		set(parts, "spec", "parts")
	case 11:
		set(fmt.Sprint("l", n), "metadata", "labels", "a")
	case 12:
		unstructured.RemoveNestedField(obj.Object, "spec", "color")
	case 13:
		set(n, "status", "count")
	}
}

// mutateValue changes a value where a controller's configuration has one.
func mutateValue(rng *rand.Rand, obj *unstructured.Unstructured) {
	n := int64(rng.IntN(5))
	set := func(v any, path ...string) { _ = unstructured.SetNestedField(obj.Object, v, path...) }
	set(n, "spec", "size")
	switch rng.IntN(4) {
	case 3:
		parts, _, _ := unstructured.NestedSlice(obj.Object, "spec", "parts")
		if slices.Reverse(parts); parts != nil {
			set(parts, "spec", "parts")
		}
	case 0:
		set(fmt.Sprint("v", n), "spec", "free", "k")
	case 1:
		set([]any{map[string]any{"name": "p0", "teeth": n}, map[string]any{"name": "p1", "deep": map[string]any{"y": fmt.Sprint(n)}}}, "spec", "parts")
	case 2:
		set(fmt.Sprint("l", n), "metadata", "labels", "a")
	}
}

func managedFields(obj runtime.Object) []metav1.ManagedFieldsEntry {
	return obj.(*unstructured.Unstructured).GetManagedFields()
}

// Whatever keep keeps, the field manager would have kept. (In a bubble, in which no time passes between
// the two.)
func TestKeepAgreesWithTheFieldManager(t *testing.T) { synctest.Test(t, keepAgreesWithTheFieldManager) }

func keepAgreesWithTheFieldManager(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	main, status := gears(t, ""), gears(t, "status")
	kept, all := 0, 0
	for range 60 {
		var live runtime.Object
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Gear", "metadata": map[string]any{"name": "a"},
			"spec": map[string]any{"size": int64(1), "color": "red"}, "status": map[string]any{"phase": "new"}}}
		live = stock(t, main, nil, obj, "ann")
		for range 40 {
			m := main
			if rng.IntN(4) == 0 {
				m = status
			}
			time.Sleep(time.Second)
			manager := []string{"ann", "ann", "ann", "bob"}[rng.IntN(4)]
			next := live.DeepCopyObject().(*unstructured.Unstructured)
			for range rng.IntN(3) {
				mutate(rng, next)
			}
			if rng.IntN(3) == 0 {
				next.SetManagedFields(nil) // as clients do that do not know of them
			}
			want := stock(t, m, live.DeepCopyObject(), next.DeepCopyObject(), manager)
			all++
			fast := next.DeepCopyObject().(*unstructured.Unstructured)
			if m.keep(live.(*unstructured.Unstructured), fast, manager) {
				kept++
				if got := managedFields(fast); !reflect.DeepEqual(got, managedFields(want)) {
					t.Fatalf("keep and the field manager differ:\nlive %v\nnext %v\nkeep %v\nwant %v", live, next, got, managedFields(want))
				}
			} else if !reflect.DeepEqual(fast, next) {
				t.Fatal("keep refused an update, and changed it")
			}
			live = want
			if rng.IntN(10) == 0 {
				applied := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Gear", "metadata": map[string]any{"name": "a"}}}
				mutate(rng, applied)
				if out, err := main.Apply(live, applied, "cat", true); err == nil {
					live = out
				}
			}
		}
	}
	t.Logf("%d of %d updates were kept", kept, all)
	if kept < all/10 {
		t.Errorf("only %d of %d updates were kept: the test says nothing", kept, all)
	}
}

// Whatever reapply makes of an apply, the field manager would have made of it.
func TestReapplyAgreesWithTheFieldManager(t *testing.T) {
	synctest.Test(t, reapplyAgreesWithTheFieldManager)
}

func reapplyAgreesWithTheFieldManager(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	m := gears(t, "")
	fm, err := m.make()
	if err != nil {
		t.Fatal(err)
	}
	quick, all, changed := 0, 0, 0
	for range 80 {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Gear", "metadata": map[string]any{"name": "a"},
			"spec": map[string]any{"on": true}}}
		live := stock(t, m, nil, obj, "ann").(*unstructured.Unstructured)
		configs := map[string]*unstructured.Unstructured{}
		for range 40 {
			time.Sleep(time.Second)
			manager := []string{"cat", "cat", "dan", "kubectl"}[rng.IntN(4)]
			config := configs[manager]
			if config == nil {
				config = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Gear", "metadata": map[string]any{"name": "a"}}}
				configs[manager] = config
			}
			for range 1 + rng.IntN(2) {
				mutateValue(rng, config)
			}
			if rng.IntN(8) == 0 {
				mutate(rng, config)
			}
			unstructured.RemoveNestedField(config.Object, "status")
			force := rng.IntN(2) == 0
			want, err := fm.Apply(live.DeepCopy(), config.DeepCopy(), manager, force)
			all++
			before := live.DeepCopy()
			got, ok := m.reapply(live, config, manager)
			if !reflect.DeepEqual(live, before) {
				t.Fatal("reapply changed the stored object")
			}
			if ok {
				quick++
				if err != nil {
					t.Fatalf("reapply took what the field manager refuses: %v\nlive %v\nconfig %v", err, live, config)
				}
				if !reflect.DeepEqual(managedFields(got), managedFields(want)) {
					t.Fatalf("managedFields differ:\nlive %v\nconfig %v\ngot %v\nwant %v", live, config, managedFields(got), managedFields(want))
				}
				a, b := got.DeepCopy(), want.DeepCopyObject().(*unstructured.Unstructured)
				a.SetManagedFields(nil)
				b.SetManagedFields(nil)
				if !reflect.DeepEqual(a, b) {
					t.Fatalf("objects differ:\nlive %v\nconfig %v\ngot %v\nwant %v", live, config, a, b)
				}
				if !reflect.DeepEqual(got, before) {
					changed++
				}
			}
			if err == nil {
				live = want.(*unstructured.Unstructured)
			}
		}
	}
	t.Logf("%d of %d applies were quick, %d of them changed something", quick, all, changed)
	if changed < all/50 {
		t.Errorf("only %d of %d applies were quick and changed something: the test says nothing", changed, all)
	}
}

func BenchmarkUpdate(b *testing.B) {
	t := &testing.T{}
	m := gears(t, "")
	first := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Gear", "metadata": map[string]any{"name": "a"},
		"spec": map[string]any{"size": int64(1), "color": "red", "parts": []any{map[string]any{"name": "p", "teeth": int64(3)}}}}}
	live := stock(t, m, nil, first, "ann")
	next := live.DeepCopyObject().(*unstructured.Unstructured)
	_ = unstructured.SetNestedField(next.Object, int64(2), "spec", "size")
	b.Run("kept", func(b *testing.B) {
		for b.Loop() {
			if _, err := m.Update(live, next.DeepCopyObject(), "ann"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("stock", func(b *testing.B) {
		for b.Loop() {
			stock(t, m, live, next.DeepCopyObject(), "ann")
		}
	})
}

func TestWhatOnlyTheFieldManagerCanSortOutIsLeftToIt(t *testing.T) {
	entry := func(manager, version string) any {
		return map[string]any{"manager": manager, "operation": "Update", "apiVersion": version, "fieldsType": "FieldsV1", "time": "2030-01-01T00:00:00Z",
			"fieldsV1": map[string]any{"f:metadata": map[string]any{"f:labels": map[string]any{"f:a": map[string]any{}}}, "f:status": map[string]any{"f:phase": map[string]any{}}}}
	}
	const v1, v2 = "example.com/v1", "example.com/v2"
	object := func(label, phase string, entries ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": v1, "kind": "Gear",
			"metadata": map[string]any{"name": "a", "labels": map[string]any{"a": label}, "managedFields": entries},
			"spec":     map[string]any{"color": "red"}, "status": map[string]any{"phase": phase}}}
	}
	for _, tt := range []struct {
		name         string
		subresource  string
		entries      []any
		label, phase string // that are sent; stored are x and new
		keeps        bool
	}{
		{"an entry for each manager", "", []any{entry("ann", v1), entry("bob", v1)}, "x", "new", true},
		{"two entries for one manager", "", []any{entry("ann", v1), entry("bob", v1), entry("ann", v1)}, "x", "new", false},
		{"an entry of another version", "", []any{entry("ann", v1), entry("ann", v2)}, "x", "new", true},
		{"a field that is reset, in this version", "", []any{entry("ann", v1)}, "x", "old", true},
		{"a field that is reset, and an entry of another version", "", []any{entry("ann", v2)}, "x", "old", false},
		{"a label sent to the status, in this version", "status", []any{entry("ann", v1)}, "y", "new", true},
		{"a label sent to the status, and an entry of another version", "status", []any{entry("ann", v2)}, "y", "new", false},
		{"the same label sent to the status, and an entry of another version", "status", []any{entry("ann", v2)}, "x", "new", true},
	} {
		live := object("x", "new", tt.entries...)
		sent := object(tt.label, tt.phase, tt.entries...)
		if got := gears(t, tt.subresource).keep(live, sent, "ann"); got != tt.keeps {
			t.Errorf("%s: keeps it: %v", tt.name, got)
		}
	}
}
