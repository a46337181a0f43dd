package certain

import (
	"regexp"
	"slices"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// A Schema is a schema, compiled. It never changes.
type Schema struct {
	unsure   bool // the schema says something that is not judged here
	types    kind // 0 for any
	nullable bool
	format   string
	enum     *enum
	text     text
	number   number
	array    array
	object   object

	all, any, one []*Schema
	not           *Schema
}

// A kind is a set of types of JSON.
type kind uint8

const (
	aString kind = 1 << iota
	anInteger
	aNumber
	aBoolean
	anObject
	anArray
	aNull
)

var kinds = map[string]kind{
	"string": aString, "integer": anInteger, "number": aNumber, "boolean": aBoolean, "object": anObject, "array": anArray, "null": aNull,
}

type text struct {
	least, most *int64 // in characters
	pattern     *regexp.Regexp
	broken      bool // the pattern is not one
	valid       func(string) bool
}

type number struct {
	unsure         bool // the bounds do not fit the type
	typed          string
	format         string
	least, most    *float64
	over, under    bool // least and most are excluded
	multipleOf     *float64
	nothingToCheck bool
}

type array struct {
	items       *Schema // nil for any
	least, most *int64
}

type object struct {
	properties  map[string]*Schema
	required    []string
	extra       *Schema // of what is not among properties; nil for any
	closed      bool    // nothing else is allowed
	least, most *int64
}

// NewSchema compiles what the library's validator was made of. Nil allows everything.
func NewSchema(s *spec.Schema) *Schema {
	if s == nil {
		return &Schema{}
	}
	c := &Schema{nullable: s.Nullable, format: s.Format, enum: newEnum(s.Enum), unsure: isOdd(s)}
	for _, t := range s.Type {
		c.types |= kinds[t]
		c.unsure = c.unsure || kinds[t] == 0
	}
	c.text = newText(s)
	c.number = newNumber(s)
	c.array = array{least: s.MinItems, most: s.MaxItems}
	if s.Items != nil && s.Items.Schema != nil {
		c.array.items = NewSchema(s.Items.Schema)
	}
	c.object = newObject(s)
	c.all, c.any, c.one = newSchemas(s.AllOf), newSchemas(s.AnyOf), newSchemas(s.OneOf)
	if s.Not != nil {
		c.not = NewSchema(s.Not)
	}
	return c
}

func newSchemas(in []spec.Schema) []*Schema {
	out := make([]*Schema, 0, len(in))
	for i := range in {
		out = append(out, NewSchema(&in[i]))
	}
	return out
}

// isOdd says whether a schema has what structural schemas do not.
func isOdd(s *spec.Schema) bool {
	return s.Ref.String() != "" || len(s.Dependencies) > 0 || len(s.PatternProperties) > 0 || s.UniqueItems ||
		s.AdditionalItems != nil || s.Items != nil && len(s.Items.Schemas) > 0
}

func newText(s *spec.Schema) text {
	t := text{least: s.MinLength, most: s.MaxLength}
	if s.Pattern != "" {
		var err error
		t.pattern, err = regexp.Compile(s.Pattern)
		t.broken = err != nil
	}
	switch name := strfmt.DefaultNameNormalizer(s.Format); {
	case s.Format == "" || !strfmt.Default.ContainsName(s.Format):
	case name == "datetime":
		t.valid = strfmt.IsDateTime // the registry's own, without its lock
	default:
		format := s.Format
		t.valid = func(v string) bool { return strfmt.Default.Validates(format, v) }
	}
	return t
}

// newNumber takes the format only if it fits the type, as the library does.
func newNumber(s *spec.Schema) number {
	n := number{least: s.Minimum, most: s.Maximum, over: s.ExclusiveMinimum, under: s.ExclusiveMaximum, multipleOf: s.MultipleOf}
	if len(s.Type) == 1 {
		switch f := s.Format; s.Type[0] {
		case "integer":
			n.typed = "integer"
			if f == "int32" || f == "int64" {
				n.format = f
			}
		case "number":
			n.typed = "number"
			if f == "float" || f == "double" {
				n.format = f
			}
		}
	}
	for _, bound := range []*float64{n.least, n.most, n.multipleOf} {
		if bound != nil && validate.IsValueValidAgainstRange(*bound, n.typed, n.format, "", "") != nil {
			n.unsure = true
		}
	}
	n.nothingToCheck = n.least == nil && n.most == nil && n.multipleOf == nil
	return n
}

func newObject(s *spec.Schema) object {
	o := object{required: s.Required, least: s.MinProperties, most: s.MaxProperties}
	if len(s.Properties) > 0 {
		o.properties = make(map[string]*Schema, len(s.Properties))
	}
	for name := range s.Properties {
		p := s.Properties[name]
		o.properties[name] = NewSchema(&p)
	}
	if more := s.AdditionalProperties; more != nil {
		o.closed = !more.Allows
		if more.Allows && more.Schema != nil {
			o.extra = NewSchema(more.Schema)
		}
	}
	return o
}

// An enum is the values that a value may have.
type enum struct {
	texts   map[string]bool
	scalars []any // that are no texts
}

func newEnum(values []any) *enum {
	if len(values) == 0 {
		return nil
	}
	e := &enum{texts: map[string]bool{}}
	for _, v := range values {
		switch v := v.(type) {
		case string:
			e.texts[v] = true
		case int64, float64, bool:
			e.scalars = append(e.scalars, v)
		}
	}
	return e
}

// judge does not know whether a number equals one of another type: the library converts
// before it compares. No text becomes anything else, though.
func (e *enum) judge(x any) Verdict {
	switch x := x.(type) {
	case string:
		return verdictOf(e.texts[x])
	case int64, float64, bool:
		if slices.Contains(e.scalars, x) {
			return Valid
		}
	}
	return Unsure
}
