package certain

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
)

// A maker makes random schemas, and objects that fit them or nearly do.
type maker struct{ *rand.Rand }

func newMaker(seed uint64) *maker { return &maker{rand.New(rand.NewPCG(seed, 1))} }

func (m *maker) one(in int) bool { return m.IntN(in) == 0 }

func pick[T any](m *maker, from ...T) T { return from[m.IntN(len(from))] }

var names = []string{"a", "b", "c", "d", "e"}

// schema makes a schema of values, nested so deep at most.
func (m *maker) schema(depth int) apiextensions.JSONSchemaProps {
	s := apiextensions.JSONSchemaProps{Nullable: m.one(6)}
	kinds := []string{"string", "string", "integer", "number", "boolean", "", "int-or-string"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "object", "array", "array", "map", "map")
	}
	switch kind := pick(m, kinds...); kind {
	case "string":
		s.Type = kind
		m.text(&s)
	case "integer", "number":
		s.Type = kind
		m.number(&s)
	case "object", "map":
		s.Type = "object"
		m.object(&s, kind, depth)
	case "array":
		s.Type = kind
		m.array(&s, depth)
	case "int-or-string":
		s.XIntOrString = true
		if m.one(2) {
			s.AnyOf = []apiextensions.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}
		}
	default:
		s.Type = kind
		if kind == "" && m.one(2) {
			preserve := true
			s.XPreserveUnknownFields = &preserve
		}
	}
	if m.one(8) {
		s.Format = pick(m, "int32", "int64", "float", "double", "date-time", "ipv4", "uuid", "byte", "email", "nonsense", "duration")
	}
	if m.one(8) {
		m.combine(&s)
	}
	return s
}

func (m *maker) text(s *apiextensions.JSONSchemaProps) {
	switch m.IntN(6) {
	case 0:
		s.MinLength, s.MaxLength = pointer(int64(m.IntN(3))), pointer(int64(2+m.IntN(4)))
	case 1:
		s.Pattern = pick(m, "^[a-z]+$", "é", "^.{1,3}$", "[")
	case 2:
		s.Enum = []apiextensions.JSON{"x", "yy", "é"}
	case 3:
		s.Enum = []apiextensions.JSON{"x", int64(1), nil, true}
	}
}

func (m *maker) number(s *apiextensions.JSONSchemaProps) {
	switch m.IntN(6) {
	case 0:
		s.Minimum, s.ExclusiveMinimum = pointer(float64(m.IntN(6)-3)), m.one(2)
	case 1:
		s.Maximum, s.ExclusiveMaximum = pointer(float64(m.IntN(6))+pick(m, 0, 0.5)), m.one(2)
	case 2:
		s.MultipleOf = pointer(pick(m, 1, 2, 0.1, 0.5, 3, 0, -1))
	case 3:
		s.Enum = []apiextensions.JSON{int64(1), int64(2), 3.0}
	}
	if m.one(4) {
		s.Format = pick(m, "int32", "int64", "float", "double")
	}
}

func (m *maker) object(s *apiextensions.JSONSchemaProps, kind string, depth int) {
	if m.one(5) {
		s.MinProperties, s.MaxProperties = pointer(int64(m.IntN(2))), pointer(int64(1+m.IntN(4)))
	}
	if kind == "map" {
		s.AdditionalProperties = &apiextensions.JSONSchemaPropsOrBool{Allows: !m.one(9)}
		if !m.one(9) {
			sub := m.schema(depth - 1)
			s.AdditionalProperties.Schema = &sub
		}
		return
	}
	s.Properties = map[string]apiextensions.JSONSchemaProps{}
	for _, name := range names[:m.IntN(len(names))] {
		p := m.schema(depth - 1)
		if m.one(6) {
			d := apiextensions.JSON(m.valid(p, 1))
			p.Default = &d
		}
		s.Properties[name] = p
		if m.one(4) {
			s.Required = append(s.Required, name)
		}
	}
	if m.one(6) {
		preserve := true
		s.XPreserveUnknownFields = &preserve
	}
}

func (m *maker) array(s *apiextensions.JSONSchemaProps, depth int) {
	items := m.schema(depth - 1)
	list := pick(m, "atomic", "atomic", "set", "map")
	switch list {
	case "set":
		items = apiextensions.JSONSchemaProps{Type: pick(m, "string", "integer", "number")}
	case "map":
		items = apiextensions.JSONSchemaProps{Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{
			"k": {Type: "string"}, "l": {Type: pick(m, "string", "integer", "number")}, "v": m.schema(depth - 1),
		}}
		s.XListMapKeys = []string{"k"}
		if m.one(2) {
			s.XListMapKeys = []string{"k", "l"}
		}
	}
	if m.one(4) {
		d := apiextensions.JSON(m.valid(items, 1))
		items.Default = &d
	}
	s.Items, s.XListType = &apiextensions.JSONSchemaPropsOrArray{Schema: &items}, &list
	if m.one(5) {
		s.MinItems, s.MaxItems = pointer(int64(m.IntN(2))), pointer(int64(1+m.IntN(4)))
	}
}

func (m *maker) combine(s *apiextensions.JSONSchemaProps) {
	var some []apiextensions.JSONSchemaProps
	for range 1 + m.IntN(3) {
		alternative := apiextensions.JSONSchemaProps{}
		switch m.IntN(4) {
		case 0:
			alternative.Required = []string{pick(m, names...)}
		case 1:
			m.text(&alternative)
		case 2:
			m.number(&alternative)
		case 3:
			alternative = m.schema(0)
		}
		some = append(some, alternative)
	}
	switch m.IntN(4) {
	case 0:
		s.AllOf = some
	case 1:
		s.AnyOf = some
	case 2:
		s.OneOf = some
	case 3:
		s.Not = &some[0]
	}
}

// valid makes a value that often fits s.
func (m *maker) valid(s apiextensions.JSONSchemaProps, depth int) any {
	if s.Nullable && m.one(4) {
		return nil
	}
	if len(s.Enum) > 0 {
		return pick(m, s.Enum...)
	}
	switch {
	case s.XIntOrString:
		return pick[any](m, int64(5), "5")
	case s.Type == "string":
		return m.fittingText(s)
	case s.Type == "integer":
		return pick[any](m, int64(m.IntN(5)), int64(m.IntN(5)), int64(2), 2.0, int64(math.MaxInt32+m.IntN(3)))
	case s.Type == "number":
		return pick[any](m, int64(m.IntN(5)), float64(m.IntN(9))/2, 0.3)
	case s.Type == "boolean":
		return m.one(2)
	case s.Type == "object":
		return m.fittingObject(s, depth)
	case s.Type == "array":
		list := []any{}
		for range m.IntN(4) {
			list = append(list, m.valid(*s.Items.Schema, depth))
		}
		return list
	}
	return m.anything(1)
}

func (m *maker) fittingText(s apiextensions.JSONSchemaProps) string {
	switch s.Format {
	case "date-time":
		return pick(m, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5+01:00", "yesterday")
	case "ipv4":
		return pick(m, "10.0.0.1", "10.0.0.256")
	case "uuid":
		return "0b8ae2a6-58f5-4c9f-9f6b-5f3b8a1f0a11"
	case "byte":
		return "YQ=="
	case "email":
		return pick(m, "a@example.com", "a")
	case "duration":
		return pick(m, "1s", "one")
	}
	return pick(m, "x", "yy", "é", "ééé", "abc", "A1", "")
}

func (m *maker) fittingObject(s apiextensions.JSONSchemaProps, depth int) map[string]any {
	o := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) { // in one order, so that a seed tells everything
		if !m.one(4) {
			o[name] = m.valid(s.Properties[name], depth)
		}
	}
	for _, name := range s.Required {
		if _, ok := o[name]; !ok && !m.one(9) {
			o[name] = m.valid(s.Properties[name], depth)
		}
	}
	if more := s.AdditionalProperties; more != nil && more.Schema != nil {
		for _, name := range names[:m.IntN(len(names))] {
			o[name] = m.valid(*more.Schema, depth)
		}
	}
	return o
}

func (m *maker) anything(depth int) any {
	if depth > 0 && m.one(3) {
		return pick[any](m, map[string]any{pick(m, names...): m.anything(depth - 1)}, []any{m.anything(depth - 1)}, map[string]any{}, []any{})
	}
	return pick[any](m, nil, "x", strings.Repeat("z", 7), "2026-01-01T00:00:00Z", int64(m.IntN(9)-4), int64(math.MaxInt32+1), int64(math.MaxInt64), 2.5, 3.0, 1e300, float64(1<<53-1), float64(1<<53+2), true, "\xff")
}

// mutate changes something somewhere in a value and returns it.
func (m *maker) mutate(x any) any {
	switch x := x.(type) {
	case int64:
		if m.one(2) {
			return float64(x)
		}
	case map[string]any:
		if len(x) > 0 && !m.one(3) {
			for _, name := range append(names, "k", "l", "v") {
				if v, ok := x[name]; ok && m.one(2) {
					if m.one(5) {
						delete(x, name)
					} else {
						x[name] = m.mutate(v)
					}
					return x
				}
			}
		}
		if m.one(2) {
			x[pick(m, append(names, "unknown")...)] = m.anything(1)
			return x
		}
	case []any:
		if len(x) > 0 && !m.one(3) {
			if i := m.IntN(len(x)); m.one(2) {
				x[i] = m.mutate(x[i])
			} else {
				x = append(x, m.nearly(x[i]))
			}
			return x
		}
	}
	return m.anything(1)
}

// nearly makes a copy of x in which numbers may be of the other type.
func (m *maker) nearly(x any) any {
	switch x := x.(type) {
	case map[string]any:
		o := map[string]any{}
		for name, v := range x {
			o[name] = v
			if n, ok := v.(int64); ok && name == "l" {
				o[name] = pick[any](m, n, float64(n))
			}
		}
		return o
	case int64:
		return pick[any](m, x, float64(x))
	}
	return copied(x)
}

func pointer[T any](v T) *T { return &v }
