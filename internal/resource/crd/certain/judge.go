package certain

import (
	"math"
	"unicode/utf8"

	"k8s.io/kube-openapi/pkg/validation/validate"
)

// Judge says what the library's validator would find in x.
func (s *Schema) Judge(x any) Verdict {
	switch {
	case s.unsure:
		return Unsure
	case x == nil:
		return s.null()
	}
	v := s.value(x)
	if s.enum != nil && v != Invalid {
		v = v.and(s.enum.judge(x))
	}
	if v != Invalid {
		v = v.and(s.combined(x))
	}
	return v
}

// null is judged by type and enum alone, which no null is in.
func (s *Schema) null() Verdict {
	allowed := s.types == 0 || s.nullable || s.types&aNull != 0
	return verdictOf(allowed && s.enum == nil)
}

// value judges x by what the schema says about values of its type.
func (s *Schema) value(x any) Verdict {
	switch x := x.(type) {
	case string:
		return s.ofKind(aString).and(s.text.judge(x))
	case bool:
		return s.ofKind(aBoolean)
	case int64:
		return s.ofKind(anInteger | aNumber).and(s.number.judgeInt(x))
	case float64:
		return s.float(x).and(s.number.judgeFloat(x))
	case map[string]any:
		return s.ofKind(anObject).and(s.object.judge(x))
	case []any:
		return s.ofKind(anArray).and(s.array.judge(x))
	}
	return Unsure
}

// float judges the type of a float64, which may be an integer.
func (s *Schema) float(x float64) Verdict {
	switch {
	case s.types&(anInteger|aNumber) != anInteger:
		return s.ofKind(aNumber)
	case isWhole(x):
		return Valid
	}
	return Unsure // the library allows for some inaccuracy
}

// ofKind judges a value that is of any of those types. What formats do to values of other types
// only the library knows.
func (s *Schema) ofKind(is kind) Verdict {
	switch {
	case s.types&is != 0:
		return Valid
	case s.format != "" && !(s.types == 0 && is == aString):
		return Unsure
	}
	return verdictOf(s.types == 0)
}

// combined judges x by allOf, anyOf, oneOf and not.
func (s *Schema) combined(x any) Verdict {
	v := Valid
	for _, a := range s.all {
		v = v.and(a.Judge(x))
	}
	if len(s.any) > 0 {
		best := Invalid
		for _, a := range s.any {
			if best = min(best, a.Judge(x)); best == Valid {
				break
			}
		}
		v = v.and(best)
	}
	if len(s.one) > 0 {
		v = v.and(s.exactlyOne(x))
	}
	if s.not != nil {
		v = v.and(s.not.Judge(x).not())
	}
	return v
}

func (s *Schema) exactlyOne(x any) Verdict {
	valid := 0
	for _, a := range s.one {
		switch a.Judge(x) {
		case Valid:
			valid++
		case Unsure:
			return Unsure
		}
	}
	return verdictOf(valid == 1)
}

func (t *text) judge(x string) Verdict {
	if t.most != nil && int64(len(x)) > *t.most && int64(utf8.RuneCountInString(x)) > *t.most {
		return Invalid
	}
	if t.least != nil && int64(utf8.RuneCountInString(x)) < *t.least {
		return Invalid
	}
	if t.broken || t.pattern != nil && !t.pattern.MatchString(x) {
		return Invalid
	}
	return unless(t.valid != nil && !t.valid(x))
}

// wholeMax is the largest number up to which the library takes whole floats for integers.
const wholeMax = 1<<53 - 1

func isWhole(x float64) bool { return x == math.Trunc(x) && math.Abs(x) <= wholeMax }

func (n *number) judgeInt(x int64) Verdict {
	switch {
	case n.unsure:
		return Unsure
	case n.format == "int32" && (x < math.MinInt32 || x > math.MaxInt32):
		return Invalid
	case n.nothingToCheck:
		return Valid
	}
	if n.most != nil && validate.MaximumInt("", "", x, int64(*n.most), n.under) != nil ||
		n.least != nil && validate.MinimumInt("", "", x, int64(*n.least), n.over) != nil ||
		n.multipleOf != nil && validate.MultipleOfInt("", "", x, int64(*n.multipleOf)) != nil {
		return Invalid
	}
	return Valid
}

func (n *number) judgeFloat(x float64) Verdict {
	switch {
	case n.unsure,
		n.typed == "integer" && !isWhole(x),
		n.format == "int32" && (x < math.MinInt32 || x > math.MaxInt32),
		n.format == "float" && !(math.Abs(x) <= math.MaxFloat32):
		return Unsure
	case n.nothingToCheck:
		return Valid
	}
	if n.most != nil && validate.Maximum("", "", x, *n.most, n.under) != nil ||
		n.least != nil && validate.Minimum("", "", x, *n.least, n.over) != nil ||
		n.multipleOf != nil && validate.MultipleOf("", "", x, *n.multipleOf) != nil {
		return Invalid
	}
	return Valid
}

func (a *array) judge(x []any) Verdict {
	if !within(len(x), a.least, a.most) {
		return Invalid
	}
	v := Valid
	if a.items == nil {
		return v
	}
	for _, item := range x {
		if v = v.and(a.items.Judge(item)); v == Invalid {
			break
		}
	}
	return v
}

func within(n int, least, most *int64) bool {
	return (least == nil || int64(n) >= *least) && (most == nil || int64(n) <= *most)
}

func (o *object) judge(x map[string]any) Verdict {
	if !within(len(x), o.least, o.most) {
		return Invalid
	}
	for _, name := range o.required {
		if _, ok := x[name]; !ok {
			return Invalid
		}
	}
	v := Valid
	if o.properties == nil && o.extra == nil && !o.closed {
		return v
	}
	for name, value := range x {
		switch p := o.properties[name]; {
		case p != nil:
			v = v.and(p.Judge(value))
		case o.closed:
			return Invalid
		case o.extra != nil:
			v = v.and(o.extra.Judge(value))
		}
		if v == Invalid {
			break
		}
	}
	return v
}
