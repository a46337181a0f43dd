package crd

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/pawl-dev/pawl/registry"
)

// shaped tells the fields of two objects apart as their schema does: items of list maps by
// their keys, atomic maps as one field (rules C65 to C69).
type shaped struct{ schema *versionSchema }

// Compare falls back to what can be deduced if the schema cannot be read.
func (s shaped) Compare(a, b map[string]any) []fieldpath.Path {
	st, err := s.schema.structural()
	if err != nil || st.Structural == nil {
		return registry.Deduced{}.Compare(a, b)
	}
	return registry.CompareShaped(shape{st.Structural}, a, b)
}

// A shape is a node of a schema.
type shape struct{ *structuralschema.Structural }

func shapeOf(s *structuralschema.Structural) registry.Shape {
	if s == nil {
		return nil
	}
	return shape{s}
}

func (s shape) Member(name string) registry.Shape {
	if p, ok := s.Properties[name]; ok {
		return shape{&p}
	}
	if s.AdditionalProperties != nil {
		return shapeOf(s.AdditionalProperties.Structural)
	}
	return nil
}

func (s shape) Atomic() bool { return s.XMapType != nil && *s.XMapType == "atomic" }

func (s shape) Keys() []string {
	if s.XListType == nil || *s.XListType != "map" {
		return nil
	}
	return s.XListMapKeys
}

func (s shape) Item() registry.Shape { return shapeOf(s.Items) }
