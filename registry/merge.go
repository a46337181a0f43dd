package registry

import "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

// merge puts two changes of base together: what each side changed is as that side has it, and
// the rest is as it was. It does not matter which side is which. Fields that both sides changed, even
// in the same way, are returned as the overlap; then the object means nothing.
//
// Fields are those of [compare]. Two sides may add items to one list; but once a side has put the items
// of a list in another order, the list is one field. The result shares its parts with the three objects.
func merge(shape Shape, base, one, other map[string]any) (merged map[string]any, overlap []fieldpath.Path) {
	var m merging
	merged = m.objects(nil, shape, base, one, other)
	return merged, m.overlap
}

type merging struct{ overlap []fieldpath.Path }

func (m *merging) values(at fieldpath.Path, shape Shape, base, one, other slot) slot {
	switch {
	case same(base, one):
		return other
	case same(base, other):
		return one
	}
	if b, x, y, ok := threeObjects(shape, base, one, other); ok {
		return slot{m.objects(at, shape, b, x, y), true}
	}
	if b, x, y, ok := threeLists(shape, base, one, other); ok {
		return slot{m.items(at, itemOf(shape), b, x, y), true}
	}
	m.add(at)
	return one
}

func (m *merging) add(at fieldpath.Path) { m.overlap = append(m.overlap, at.Copy()) }

// threeObjects returns the objects in three places, if both changes can be told by their members.
func threeObjects(shape Shape, base, one, other slot) (b, x, y map[string]any, ok bool) {
	if b, x, ok = bothObjects(shape, base, one); ok {
		_, y, ok = bothObjects(shape, base, other)
	}
	return b, x, y, ok
}

// threeLists does so of lists.
func threeLists(shape Shape, base, one, other slot) (b, x, y itemList, ok bool) {
	if b, x, ok = bothLists(shape, base, one); ok {
		_, y, ok = bothLists(shape, base, other)
	}
	return b, x, y, ok && !reordered(b, x) && !reordered(b, y)
}

func (m *merging) objects(at fieldpath.Path, shape Shape, base, one, other map[string]any) map[string]any {
	merged := make(map[string]any, len(base))
	for _, name := range namesIn(base, one, other) {
		below := append(at, fieldpath.PathElement{FieldName: &name})
		s := m.values(below, memberOf(shape, name), member(base, name), member(one, name), member(other, name))
		if s.there {
			merged[name] = s.value
		}
	}
	return merged
}

func (m *merging) items(at fieldpath.Path, shape Shape, base, one, other itemList) []any {
	merged := []any{}
	for _, name := range mergedOrder(base, one, other) {
		below, was, x, y := append(at, name.step), base.slot(name), one.slot(name), other.slot(name)
		if !was.there && x.there && y.there {
			m.add(below) // and not its members, which would be those that name it
			continue
		}
		if s := m.values(below, shape, was, x, y); s.there {
			merged = append(merged, s.value)
		}
	}
	return merged
}

// mergedOrder is the order of the items of three lists, none of which has those of base in another
// order. What a side adds comes after the same item as there; where both sides add something it
// goes by name, whichever side is which.
func mergedOrder(base, one, other itemList) []itemName {
	a, b := additions(base, one, itemList{}), additions(base, other, one)
	order := byName(a[atFront], b[atFront])
	for i, name := range base.order {
		order = append(order, name)
		order = append(order, byName(a[i], b[i])...)
	}
	return order
}

// atFront stands for the place before the first item of a list.
const atFront = -1

// additions are the items that a list has beyond those of base, by the place in base of the one
// that they come after; those that known has are left out.
func additions(base, l, known itemList) map[int][]itemName {
	added := map[int][]itemName{}
	after := atFront
	for _, name := range l.order {
		if i, ok := base.at[name.text]; ok {
			after = i
		} else if !known.has(name) {
			added[after] = append(added[after], name)
		}
	}
	return added
}

// byName puts two lists of names together, of which each keeps its order.
func byName(a, b []itemName) []itemName {
	merged := make([]itemName, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].text < b[0].text {
			merged, a = append(merged, a[0]), a[1:]
		} else {
			merged, b = append(merged, b[0]), b[1:]
		}
	}
	return append(append(merged, a...), b...)
}
