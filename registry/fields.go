package registry

import (
	"maps"
	"reflect"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Fields knows the shape of a resource's objects. Objects are given as decoded JSON.
type Fields interface {
	// Compare returns the paths of the fields that differ between two objects: as deep as
	// the shape tells fields apart, none above or below another.
	Compare(a, b map[string]any) []fieldpath.Path
}

// A Shape says how the value of one field is made up. Nil means that nothing is known: the
// members of an object are fields of their own, a list is one field.
type Shape interface {
	// Member returns the shape of a member of an object.
	Member(name string) Shape
	// Atomic reports whether the value is one field, whatever is in it.
	Atomic() bool
	// Keys returns the members whose values name an item of a list, if the list's items are
	// fields of their own; nil if the list is one field.
	Keys() []string
	// Item returns the shape of the items of such a list.
	Item() Shape
}

// Deduced is [Fields] for objects about whose shape nothing is known.
type Deduced struct{}

// Compare tells members of objects apart, and takes lists as one field.
func (Deduced) Compare(a, b map[string]any) []fieldpath.Path { return CompareShaped(nil, a, b) }

// CompareShaped is Compare for objects of that shape.
func CompareShaped(shape Shape, a, b map[string]any) []fieldpath.Path {
	var c comparison
	c.objects(nil, shape, a, b)
	return c.found
}

type comparison struct{ found []fieldpath.Path }

func (c *comparison) add(at fieldpath.Path) { c.found = append(c.found, at.Copy()) }

// values compares what two objects have in one place. Where it can look deeper it does so
// before it compares, so that the cost is that of one walk, however deep.
func (c *comparison) values(at fieldpath.Path, shape Shape, a, b any) {
	if shape == nil || !shape.Atomic() {
		if am, bm, ok := bothObjects(a, b); ok && len(am)+len(bm) > 0 {
			c.objects(at, shape, am, bm)
			return
		}
		had := len(c.found)
		if al, bl, ok := bothLists(shape, a, b); ok && c.items(at, shape, al, bl) && len(c.found) > had {
			return
		}
		// Nothing was found in the items: still their order may differ, or one list is not there.
	}
	if !reflect.DeepEqual(a, b) {
		c.add(at)
	}
}

// bothObjects treats an absent object as an empty one, so that its fields have paths of
// their own.
func bothObjects(a, b any) (am, bm map[string]any, ok bool) {
	am, aok := a.(map[string]any)
	bm, bok := b.(map[string]any)
	return am, bm, aok && bok || aok && b == nil || a == nil && bok
}

func bothLists(shape Shape, a, b any) (al, bl []any, ok bool) {
	if shape == nil || len(shape.Keys()) == 0 {
		return nil, nil, false
	}
	al, aok := a.([]any)
	bl, bok := b.([]any)
	return al, bl, aok && bok || aok && b == nil || a == nil && bok
}

func (c *comparison) objects(at fieldpath.Path, shape Shape, a, b map[string]any) {
	names := slices.Sorted(maps.Keys(a))
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		av, aok := a[name]
		bv, bok := b[name]
		member := append(at, fieldpath.PathElement{FieldName: &name})
		if aok != bok && (av == nil && bv == nil) {
			c.add(member) // null is not absent
			continue
		}
		var below Shape
		if shape != nil {
			below = shape.Member(name)
		}
		c.values(member, below, av, bv)
	}
}

// items compares lists whose items are named by their keys. It says false, and has found
// nothing, if the items do not have those keys or share them.
func (c *comparison) items(at fieldpath.Path, shape Shape, a, b []any) bool {
	am, order, ok := byKeys(shape.Keys(), a, nil)
	if !ok {
		return false
	}
	bm, order, ok := byKeys(shape.Keys(), b, order)
	if !ok {
		return false
	}
	for _, k := range order {
		c.values(append(at, fieldpath.PathElement{Key: k.fields}), shape.Item(), am[k.text], bm[k.text])
	}
	return true
}

type itemKey struct {
	text   string
	fields *value.FieldList
}

func byKeys(keys []string, list []any, order []itemKey) (map[string]any, []itemKey, bool) {
	found := make(map[string]any, len(list))
	for _, item := range list {
		obj, ok := item.(map[string]any)
		if !ok {
			return nil, nil, false
		}
		var fl value.FieldList
		for _, k := range keys {
			v, ok := obj[k]
			if !ok {
				return nil, nil, false
			}
			fl = append(fl, value.Field{Name: k, Value: value.NewValueInterface(v)})
		}
		fl.Sort()
		k := itemKey{fieldpath.PathElement{Key: &fl}.String(), &fl}
		if _, twice := found[k.text]; twice {
			return nil, nil, false
		}
		found[k.text] = item
		if !slices.ContainsFunc(order, func(o itemKey) bool { return o.text == k.text }) {
			order = append(order, k)
		}
	}
	return found, order, true
}

// related reports whether one path is the other, or lies below it.
func related(a, b fieldpath.Path) bool {
	n := min(len(a), len(b))
	return a[:n].Equals(b[:n])
}
