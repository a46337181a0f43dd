package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A copier copies values of one Go type so that original and copy share nothing that either
// could change. What it does for a type is worked out once.
type copier struct {
	// copy makes dst, which can be set, a copy of src, which is addressable; nil if assigning does.
	copy func(dst, src reflect.Value)
}

func (c *copier) assigns() bool { return c.copy == nil }

// into copies src to dst, whatever the type.
func (c *copier) into(dst, src reflect.Value) {
	if c.assigns() {
		dst.Set(src)
		return
	}
	c.copy(dst, src)
}

// copierFor returns the copier of a type, or says what in it cannot be copied.
func copierFor(t reflect.Type) (*copier, error) {
	return copiers{}.of(t, t.String())
}

// copiers are those that are known, or in the making: types may hold themselves.
type copiers map[reflect.Type]*copier

// shared are types whose values may be shared although they hold pointers: nobody can change what
// these point to.
var shared = map[reflect.Type]bool{reflect.TypeFor[time.Time](): true, reflect.TypeFor[metav1.Time](): true, reflect.TypeFor[metav1.MicroTime](): true}

// of returns the copier of t, which is found at a place that errors name.
func (known copiers) of(t reflect.Type, at string) (*copier, error) {
	if c := known[t]; c != nil {
		return c, nil
	}
	c := &copier{}
	if shared[t] {
		return c, nil
	}
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		// Only through one of these can a type hold itself. Who holds one need not know how it is
		// copied, only that assigning does not do.
		known[t], c.copy = c, func(reflect.Value, reflect.Value) {}
	}
	err := known.compose(c, t, at)
	if err == nil && c.assigns() {
		return c, nil
	}
	if own := ownCopy(t); own != nil {
		c.copy, err = own, nil
	}
	return c, err
}

// ownCopy is the way of types that know how they are copied; nil of all others.
func ownCopy(t reflect.Type) func(dst, src reflect.Value) {
	if t == reflect.TypeFor[metav1.ObjectMeta]() {
		return func(dst, src reflect.Value) {
			src.Addr().Interface().(*metav1.ObjectMeta).DeepCopyInto(dst.Addr().Interface().(*metav1.ObjectMeta))
		}
	}
	p := reflect.PointerTo(t)
	m, ok := p.MethodByName("DeepCopyInto")
	if !ok || m.Type.NumIn() != 2 || m.Type.In(1) != p || m.Type.NumOut() != 0 {
		return nil
	}
	return func(dst, src reflect.Value) { m.Func.Call([]reflect.Value{src.Addr(), dst.Addr()}) }
}

// compose works out how values of t are copied, from how their parts are.
func (known copiers) compose(c *copier, t reflect.Type, at string) error {
	switch t.Kind() {
	case reflect.Struct:
		return known.structs(c, t, at)
	case reflect.Map:
		return known.maps(c, t, at)
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return uncopied(at, "an interface, of which nobody knows what it holds")
		}
		c.copy = func(dst, src reflect.Value) { dst.Set(anyCopy(src)) }
		return nil
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return uncopied(at, "a "+t.Kind().String())
	case reflect.Pointer, reflect.Slice, reflect.Array:
	default:
		return nil
	}
	elem, err := known.of(t.Elem(), at)
	switch {
	case err != nil:
		return err
	case t.Kind() == reflect.Pointer:
		c.copy = func(dst, src reflect.Value) {
			if src.IsNil() {
				dst.SetZero()
				return
			}
			dst.Set(reflect.New(t.Elem()))
			elem.into(dst.Elem(), src.Elem())
		}
	case t.Kind() == reflect.Slice:
		c.copy = func(dst, src reflect.Value) {
			if src.IsNil() {
				dst.SetZero()
				return
			}
			dst.Set(reflect.MakeSlice(t, src.Len(), src.Len()))
			elem.each(dst, src)
		}
	case !elem.assigns():
		c.copy = elem.each
	}
	return nil
}

// each copies the items of a list into one of the same length.
func (c *copier) each(dst, src reflect.Value) {
	if c.assigns() {
		reflect.Copy(dst, src)
		return
	}
	for i := range src.Len() {
		c.copy(dst.Index(i), src.Index(i))
	}
}

func uncopied(at, why string) error {
	return fmt.Errorf("%s is %s, and cannot be copied: give the type that is stored a method DeepCopyObject() runtime.Object", at, why)
}

func (known copiers) structs(c *copier, t reflect.Type, at string) error {
	type part struct {
		index int
		*copier
	}
	var parts []part
	for i := range t.NumField() {
		f := t.Field(i)
		of, err := known.of(f.Type, at+"."+f.Name)
		switch {
		case err != nil:
			return err
		case of.assigns():
		case !f.IsExported():
			return uncopied(at+"."+f.Name, "not exported, and holds references")
		default:
			parts = append(parts, part{i, of})
		}
	}
	if len(parts) == 0 {
		return nil
	}
	c.copy = func(dst, src reflect.Value) {
		dst.Set(src)
		for _, p := range parts {
			p.copy(dst.Field(p.index), src.Field(p.index))
		}
	}
	return nil
}

func (known copiers) maps(c *copier, t reflect.Type, at string) error {
	key, err := known.of(t.Key(), at)
	if err != nil {
		return err
	}
	if !key.assigns() {
		return uncopied(at, "a map whose keys hold references")
	}
	elem, err := known.of(t.Elem(), at)
	if err != nil {
		return err
	}
	c.copy = func(dst, src reflect.Value) {
		if src.IsNil() {
			dst.SetZero()
			return
		}
		dst.Set(reflect.MakeMapWithSize(t, src.Len()))
		name, from, to := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem(), reflect.New(t.Elem()).Elem()
		for i := src.MapRange(); i.Next(); {
			name.SetIterKey(i)
			from.SetIterValue(i)
			elem.into(to, from)
			dst.SetMapIndex(name, to)
		}
	}
	if t == reflect.TypeFor[map[string]string]() {
		c.copy = func(dst, src reflect.Value) {
			*dst.Addr().Interface().(*map[string]string) = maps.Clone(*src.Addr().Interface().(*map[string]string))
		}
	}
	return nil
}

// anyCopy copies what an any holds by what is stored of it: its JSON. What has none stays as it
// is; storing it fails, and says so.
func anyCopy(src reflect.Value) reflect.Value {
	switch src.Interface().(type) {
	case nil, string, bool, float64, int64:
		return src
	}
	data, err := json.Marshal(src.Interface())
	if err != nil {
		return src
	}
	dst := reflect.New(src.Type())
	if json.Unmarshal(data, dst.Interface()) != nil {
		return src
	}
	return dst.Elem()
}
