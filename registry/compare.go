package registry

import (
	"reflect"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// A slot is what is at one place of an object: a value, or nothing. Null is a value.
type slot struct {
	value any
	there bool
}

func member(m map[string]any, name string) slot {
	v, ok := m[name]
	return slot{v, ok}
}

// blank reports whether there is no value, or null.
func (s slot) blank() bool { return s.value == nil }

// same reports whether two places hold the same.
func same(a, b slot) bool { return a.there == b.there && equal(a.value, b.value) }

// equal compares two trees of decoded JSON by what their JSON means: a number is the same number
// whether it was read as a whole one or not.
func equal(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		b, ok := b.(string)
		return ok && a == b
	case bool:
		b, ok := b.(bool)
		return ok && a == b
	case int64, float64:
		return sameNumber(a, b)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && equalMembers(a, b)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	}
	return reflect.DeepEqual(a, b)
}

func equalMembers(a, b map[string]any) bool {
	if len(a) != len(b) {
		return false
	}
	for name, v := range a {
		if w, ok := b[name]; !ok || !equal(v, w) {
			return false
		}
	}
	return true
}

func sameNumber(a, b any) bool {
	if a == b {
		return true
	}
	switch a := a.(type) {
	case int64:
		f, ok := b.(float64)
		return ok && whole64(f, a)
	case float64:
		n, ok := b.(int64)
		return ok && whole64(a, n)
	}
	return false
}

// whole64 reports whether f is n. The first comparison alone would round n.
func whole64(f float64, n int64) bool {
	const beyond = 1 << 63 // the first float64 that fits into no int64
	return f == float64(n) && f < beyond && int64(f) == n
}

// compare returns the paths of the fields that differ between two objects: as deep as the shape
// tells fields apart, none above or below another. What comes into being is told by its parts,
// unless it is an item of a list; what goes is told as a whole. So is a list whose items stand in
// another order.
func compare(shape Shape, a, b map[string]any) []fieldpath.Path {
	var c comparison
	c.objects(nil, shape, a, b)
	return c.found
}

type comparison struct{ found []fieldpath.Path }

func (c *comparison) add(at fieldpath.Path) { c.found = append(c.found, at.Copy()) }

// values compares what two objects have in one place. Where it can look deeper it does so before
// it compares, so that the cost is that of one walk, however deep.
func (c *comparison) values(at fieldpath.Path, shape Shape, a, b slot) {
	if am, bm, ok := bothObjects(shape, a, b); ok {
		c.objects(at, shape, am, bm)
		return
	}
	if same(a, b) {
		return
	}
	if al, bl, ok := bothLists(shape, a, b); ok && !reordered(al, bl) {
		c.items(at, itemOf(shape), al, bl)
		return
	}
	c.add(at)
}

// bothObjects returns two objects that are to be compared by their members. One that was not
// there counts as empty if the other is not.
func bothObjects(shape Shape, a, b slot) (am, bm map[string]any, ok bool) {
	bm, ok = b.value.(map[string]any)
	if !ok || isAtomic(shape) {
		return nil, nil, false
	}
	am, ok = a.value.(map[string]any)
	return am, bm, ok || a.blank() && len(bm) > 0
}

func bothLists(shape Shape, a, b slot) (al, bl itemList, ok bool) {
	bl, ok = named(shape, b)
	if !ok {
		return itemList{}, itemList{}, false
	}
	if a.blank() {
		return itemList{}, bl, len(bl.order) > 0
	}
	al, ok = named(shape, a)
	return al, bl, ok
}

func (c *comparison) objects(at fieldpath.Path, shape Shape, a, b map[string]any) {
	for _, name := range namesIn(a, b) {
		c.values(append(at, fieldpath.PathElement{FieldName: &name}), memberOf(shape, name), member(a, name), member(b, name))
	}
}

// namesIn are the names of the members of any of the objects, in order.
func namesIn(objects ...map[string]any) []string {
	names := make([]string, 0, len(objects[0]))
	for i, m := range objects {
		for name := range m {
			if !slices.ContainsFunc(objects[:i], func(before map[string]any) bool { _, ok := before[name]; return ok }) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func (c *comparison) items(at fieldpath.Path, shape Shape, a, b itemList) {
	for _, name := range a.with(b) {
		was, is := a.slot(name), b.slot(name)
		below := append(at, name.step)
		if was.there && is.there {
			c.values(below, shape, was, is)
		} else {
			c.add(below)
		}
	}
}

// An itemList is a list whose items have names.
type itemList struct {
	order  []itemName
	values []any          // in that order
	at     map[string]int // where in it an item is, by the text of its name
}

// An itemName is what an item of a list is called.
type itemName struct {
	text string
	step fieldpath.PathElement
}

// slot is where the item of that name is.
func (l itemList) slot(name itemName) slot {
	if i, ok := l.at[name.text]; ok {
		return slot{l.values[i], true}
	}
	return slot{}
}

func (l itemList) has(name itemName) bool { _, ok := l.at[name.text]; return ok }

// with are the names of the items in any of the lists: in the order of l, then in theirs.
func (l itemList) with(others ...itemList) []itemName {
	all := slices.Clone(l.order)
	seen := []itemList{l}
	for _, other := range others {
		for _, name := range other.order {
			if !slices.ContainsFunc(seen, func(l itemList) bool { return l.has(name) }) {
				all = append(all, name)
			}
		}
		seen = append(seen, other)
	}
	return all
}

// named reads a list whose items have names, by its shape. It says false if this is none, or one in
// which an item lacks a name or two have the same.
func named(shape Shape, s slot) (itemList, bool) {
	values, ok := s.value.([]any)
	if !ok || shape == nil || !shape.Set() && len(shape.Keys()) == 0 {
		return itemList{}, false
	}
	l := itemList{order: make([]itemName, 0, len(values)), values: values, at: make(map[string]int, len(values))}
	for _, v := range values {
		step, ok := stepTo(shape, v)
		if !ok {
			return itemList{}, false
		}
		name := itemName{step.String(), step}
		if l.has(name) {
			return itemList{}, false
		}
		l.at[name.text] = len(l.order)
		l.order = append(l.order, name)
	}
	return l, true
}

// stepTo is the step of a path that leads to an item.
func stepTo(shape Shape, item any) (fieldpath.PathElement, bool) {
	if shape.Set() {
		v := value.NewValueInterface(item)
		return fieldpath.PathElement{Value: &v}, true
	}
	obj, ok := item.(map[string]any)
	if !ok {
		return fieldpath.PathElement{}, false
	}
	fields := make(value.FieldList, 0, len(shape.Keys()))
	for _, k := range shape.Keys() {
		v, ok := obj[k]
		if !ok {
			return fieldpath.PathElement{}, false
		}
		fields = append(fields, value.Field{Name: k, Value: value.NewValueInterface(v)})
	}
	fields.Sort()
	return fieldpath.PathElement{Key: &fields}, true
}

// reordered reports whether the items that two lists share stand in another order.
func reordered(a, b itemList) bool {
	return !slices.EqualFunc(a.shared(b), b.shared(a), func(x, y itemName) bool { return x.text == y.text })
}

// shared are the names in l that other has too.
func (l itemList) shared(other itemList) []itemName {
	return slices.DeleteFunc(slices.Clone(l.order), func(n itemName) bool { return !other.has(n) })
}

// Paths are fields to which others are compared, as a tree of the steps that lead to them.
type paths struct {
	end   bool // one of them ends here
	below map[string]*paths
}

func indexed(all []fieldpath.Path) *paths {
	root := &paths{}
	for _, path := range all {
		at := root
		for _, step := range path {
			text := step.String()
			next := at.below[text]
			if next == nil {
				next = &paths{}
				if at.below == nil {
					at.below = map[string]*paths{}
				}
				at.below[text] = next
			}
			at = next
		}
		at.end = true
	}
	return root
}

// touch reports whether one of them is path, or lies above or below it.
func (p *paths) touch(path fieldpath.Path) bool {
	for _, step := range path {
		if p = p.below[step.String()]; p == nil {
			return false
		}
		if p.end {
			return true
		}
	}
	return len(path) > 0
}
