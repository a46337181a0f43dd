package registry

// A Shape says how the value of one field is made up. Nil means that nothing is known: the
// members of an object are fields of their own, a list is one field.
//
// A Shape never changes and is safe for concurrent use.
type Shape interface {
	// Member returns the shape of a member of an object.
	Member(name string) Shape
	// Atomic reports whether an object is one field, whatever is in it.
	Atomic() bool
	// Keys returns the members whose values name an item of a list, if the list's items are
	// fields of their own; nil if they are not named so.
	Keys() []string
	// Set reports whether the items of a list are fields of their own that their values name.
	Set() bool
	// Item returns the shape of the items of a list.
	Item() Shape
}

// memberOf is the shape of a member of what has a shape that may not be known.
func memberOf(shape Shape, name string) Shape {
	if shape == nil {
		return nil
	}
	return shape.Member(name)
}

func itemOf(shape Shape) Shape {
	if shape == nil {
		return nil
	}
	return shape.Item()
}

func isAtomic(shape Shape) bool { return shape != nil && shape.Atomic() }

// wholeObject is the shape of a whole object: its metadata are like everybody's.
type wholeObject struct{ own Shape }

func (w wholeObject) Member(name string) Shape {
	if name == "metadata" {
		return metadataShape
	}
	return memberOf(w.own, name)
}

func (wholeObject) Atomic() bool   { return false }
func (wholeObject) Keys() []string { return nil }
func (wholeObject) Set() bool      { return false }
func (wholeObject) Item() Shape    { return nil }

// A blunt shape tells no items of lists apart: their names are values.
type blunt struct{ own Shape }

func (b blunt) Member(name string) Shape { return blunt{memberOf(b.own, name)} }
func (b blunt) Atomic() bool             { return isAtomic(b.own) }
func (blunt) Keys() []string             { return nil }
func (blunt) Set() bool                  { return false }
func (blunt) Item() Shape                { return nil }

// A fixed shape is written down here.
type fixed struct {
	members map[string]Shape
	keys    []string
	item    Shape
	set     bool
	atomic  bool
}

func (f fixed) Member(name string) Shape { return f.members[name] }
func (f fixed) Atomic() bool             { return f.atomic }
func (f fixed) Keys() []string           { return f.keys }
func (f fixed) Set() bool                { return f.set }
func (f fixed) Item() Shape              { return f.item }

// metadataShape is that of the metadata of every object.
var metadataShape = fixed{members: map[string]Shape{
	"ownerReferences": fixed{keys: []string{"uid"}, item: fixed{atomic: true}},
	"finalizers":      fixed{set: true},
}}

// shapeOf is the shape of the store's objects. Of sensitive ones no value is told, not even as
// the name of an item.
func (s *Store) shapeOf() Shape {
	var own Shape
	if s.shape != nil {
		own = s.shape()
	}
	if s.policy.Sensitive {
		own = blunt{own}
	}
	return wholeObject{own}
}
