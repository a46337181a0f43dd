package certain

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// A Structure is a structural schema, compiled. It never changes.
type Structure struct {
	properties map[string]*Structure
	mapped     bool       // additionalProperties are declared
	extra      *Structure // their schema; nil knows no fields
	items      *Structure // nil knows no fields
	nullable   bool
	defaulted  bool     // the value itself has a default
	defaults   []string // the properties that have one
	preserve   bool     // unknown fields stay
	embedded   bool
	list       listType
	keys       []string

	// Here or anywhere below:
	anyEmbedded, anyDefault, anyList bool
}

type listType uint8

const (
	atomic listType = iota
	set
	mapList
)

// NewStructure compiles s. Nil is the schema that knows no fields.
func NewStructure(s *structuralschema.Structural) *Structure {
	if s == nil {
		return nil
	}
	c := &Structure{
		nullable: s.Nullable, defaulted: s.Default.Object != nil, preserve: s.XPreserveUnknownFields,
		embedded: s.XEmbeddedResource, keys: s.XListMapKeys, items: NewStructure(s.Items),
	}
	if s.XListType != nil {
		switch *s.XListType {
		case "set":
			c.list = set
		case "map":
			c.list = mapList
		}
	}
	if s.AdditionalProperties != nil {
		c.mapped, c.extra = true, NewStructure(s.AdditionalProperties.Structural)
	}
	if len(s.Properties) > 0 {
		c.properties = make(map[string]*Structure, len(s.Properties))
	}
	for name := range s.Properties {
		p := s.Properties[name]
		c.properties[name] = NewStructure(&p)
		if p.Default.Object != nil {
			c.defaults = append(c.defaults, name)
		}
	}
	c.anyEmbedded, c.anyDefault, c.anyList = c.embedded, c.defaulted, c.list != atomic
	c.note(c.items)
	c.note(c.extra)
	for _, p := range c.properties {
		c.note(p)
	}
	return c
}

// note takes in what is below.
func (s *Structure) note(below *Structure) {
	if below != nil {
		s.anyEmbedded = s.anyEmbedded || below.anyEmbedded
		s.anyDefault = s.anyDefault || below.anyDefault
		s.anyList = s.anyList || below.anyList
	}
}

// Embeds says whether objects may hold embedded resources, which the library has to check.
func (s *Structure) Embeds() bool { return s != nil && s.anyEmbedded }

// An Order is how far an object is from what reading makes of it.
type Order uint8

const (
	Full     Order = iota // nothing would change
	Lacking               // defaults would be filled in, and nothing else would change
	Spare                 // nulls would be dropped too, or replaced by defaults
	Disorder              // more than that would change, or it is not known
)

// Order says how far obj, a whole object, is from the form that it is read in: nothing unknown in
// it, no null that is dropped, all defaults filled in (rules C46 to C53). Its metadata is
// not looked at.
func (s *Structure) Order(obj map[string]any) Order {
	if s == nil {
		s = &Structure{}
	}
	if s.anyEmbedded {
		return Disorder
	}
	order := Full
	for name, value := range obj {
		p := s.properties[name]
		switch {
		case name == "metadata":
			if p != nil && p.anyDefault {
				return Disorder
			}
		case name == "apiVersion" || name == "kind":
			if _, ok := value.(string); !ok {
				return Disorder
			}
		default:
			order = max(order, s.member(p, value))
		}
		if order == Disorder {
			return order
		}
	}
	return max(order, s.filled(obj))
}

// filled says whether no property that has a default is missing.
func (s *Structure) filled(obj map[string]any) Order {
	for _, name := range s.defaults {
		if _, ok := obj[name]; !ok {
			return Lacking
		}
	}
	return Full
}

// member is about one field of an object, and its schema if the field is among the properties.
func (s *Structure) member(p *Structure, value any) Order {
	switch {
	case p != nil:
	case s.mapped:
		if p = s.extra; p == nil {
			return unknown(value)
		}
	case s.preserve:
		return Full
	default:
		return Disorder
	}
	switch {
	case value != nil:
		return p.order(value)
	case p.nullable:
		return Full
	}
	return Spare
}

// unknown is about a value of which nothing is known: objects in it lose all fields.
func unknown(value any) Order {
	empty := true
	switch v := value.(type) {
	case map[string]any:
		empty = len(v) == 0
	case []any:
		empty = len(v) == 0
	}
	if empty {
		return Full
	}
	return Disorder
}

// order is about a value that is not null and has schema s.
func (s *Structure) order(value any) Order {
	order := Full
	switch v := value.(type) {
	case map[string]any:
		for name, value := range v {
			if order = max(order, s.member(s.properties[name], value)); order == Disorder {
				return order
			}
		}
		return max(order, s.filled(v))
	case []any:
		switch {
		case s.preserve && s.items == nil:
			return Full
		case s.preserve || s.items == nil:
			return unknown(value)
		}
		for _, item := range v {
			switch {
			case item != nil:
				order = max(order, s.items.order(item))
			case s.items.defaulted && !s.items.nullable:
				order = max(order, Spare)
			}
			if order == Disorder {
				return order
			}
		}
	}
	return order
}
