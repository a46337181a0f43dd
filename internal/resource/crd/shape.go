package crd

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/pawl-dev/pawl/registry"
)

// A shape is a node of a schema: items of list maps are named by their keys, those of sets by
// themselves, atomic maps are one field (rules C65 to C69).
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

func (s shape) Set() bool { return s.XListType != nil && *s.XListType == "set" }

func (s shape) Item() registry.Shape { return shapeOf(s.Items) }
