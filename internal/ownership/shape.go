package ownership

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/pawl-dev/pawl/registry"
)

// Shape returns the shape of the objects of a kind as its OpenAPI schema has it. Schemas returns that
// schema and those that it refers to, by name; it is asked when the shape first is, and once. If it cannot
// say, nothing is known of the shape.
func Shape(kind schema.GroupVersionKind, schemas func() (map[string]*spec.Schema, error)) func() registry.Shape {
	return sync.OnceValue(func() registry.Shape {
		all, err := schemas()
		if err != nil {
			return nil
		}
		for _, s := range all {
			if isOf(s, kind) {
				return published{all, s}
			}
		}
		return nil
	})
}

// isOf reports whether a schema is that of a kind.
func isOf(s *spec.Schema, kind schema.GroupVersionKind) bool {
	kinds, _ := s.Extensions["x-kubernetes-group-version-kind"].([]any)
	for _, k := range kinds {
		m, _ := k.(map[string]any)
		if m["group"] == kind.Group && m["version"] == kind.Version && m["kind"] == kind.Kind {
			return true
		}
	}
	return false
}

// A published shape is a schema in a document. It may say of a schema that it refers to what that
// does not say of itself.
type published struct {
	all map[string]*spec.Schema
	at  *spec.Schema
}

// refersMax is how many references in a row are followed: more would be a circle.
const refersMax = 16

// each calls f with the schema and with what it refers to, until f is satisfied.
func (p published) each(f func(*spec.Schema) bool) {
	s := p.at
	for range refersMax {
		if s == nil || f(s) {
			return
		}
		ref := s.Ref.String()
		if ref == "" && len(s.AllOf) == 1 {
			ref = s.AllOf[0].Ref.String()
		}
		s = p.all[ref[strings.LastIndexByte(ref, '/')+1:]]
	}
}

// says returns what the schema says under a name of Kubernetes' own.
func (p published) says(name string) (word string) {
	p.each(func(s *spec.Schema) bool {
		word, _ = s.Extensions["x-kubernetes-"+name].(string)
		return word != ""
	})
	return word
}

func (p published) shape(s *spec.Schema) registry.Shape {
	if s == nil {
		return nil
	}
	return published{p.all, s}
}

// Member implements [registry.Shape].
func (p published) Member(name string) registry.Shape {
	var found *spec.Schema
	p.each(func(s *spec.Schema) bool {
		if member, ok := s.Properties[name]; ok {
			found = &member
		} else if s.AdditionalProperties != nil {
			found = s.AdditionalProperties.Schema
		}
		return found != nil
	})
	return p.shape(found)
}

// Atomic implements [registry.Shape].
func (p published) Atomic() bool { return p.says("map-type") == "atomic" }

// Set implements [registry.Shape].
func (p published) Set() bool { return p.says("list-type") == "set" }

// Keys implements [registry.Shape].
func (p published) Keys() (keys []string) {
	if p.says("list-type") != "map" {
		return nil
	}
	p.each(func(s *spec.Schema) bool {
		names, _ := s.Extensions["x-kubernetes-list-map-keys"].([]any)
		for _, n := range names {
			if name, ok := n.(string); ok {
				keys = append(keys, name)
			}
		}
		return keys != nil
	})
	return keys
}

// Item implements [registry.Shape].
func (p published) Item() registry.Shape {
	var found *spec.Schema
	p.each(func(s *spec.Schema) bool {
		if s.Items != nil {
			found = s.Items.Schema
		}
		return found != nil
	})
	return p.shape(found)
}
