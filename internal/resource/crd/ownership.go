package crd

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/pawl-dev/pawl/internal/ownership"
	"github.com/pawl-dev/pawl/registry"
)

// ownership keeps the managedFields of this version through the object's own endpoint ("") or
// through a subresource. The fields that the endpoint puts back nobody comes to own there
// (rule H151).
func (k *Kind) ownership(subresource string) registry.Ownership {
	o := ownership.Options{
		Kind: k.GroupVersionKind, Subresource: subresource, New: k.Form.New, Schemas: k.allSchemas,
		Convert: ownership.Unconverted{}, Custom: true, Shape: k.shape,
	}
	switch {
	case subresource == "status":
		o.Reset = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
	case k.Status != nil:
		o.Reset = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	}
	return ownership.New(o)
}

// allSchemas are those of the documents of all versions: managedFields may speak of fields in
// any of them, and what cannot be read in its own version would be forgotten (rule C88).
func (d *definition) allSchemas() (map[string]*spec.Schema, error) {
	all := map[string]*spec.Schema{}
	for _, v := range d.Spec.Versions {
		doc, err := d.openAPI(v.Name)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, doc.Components.Schemas)
	}
	return all, nil
}

// DefinitionOwnership keeps the managedFields of definitions through their own endpoint ("") or
// through /status. Schemas gives the OpenAPI schemas of a group version.
func DefinitionOwnership(subresource string, scheme *runtime.Scheme, schemas func(schema.GroupVersion) (map[string]*spec.Schema, error)) registry.Ownership {
	o := ownership.Options{
		Kind: DefinitionKind, Subresource: subresource, New: DefinitionForm{}.New, Convert: scheme,
		Schemas: func() (map[string]*spec.Schema, error) { return schemas(DefinitionKind.GroupVersion()) },
		Reset:   fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
	}
	if subresource == "status" {
		o.Reset = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
	}
	return ownership.New(o)
}

// DefinitionShape returns the shape of definitions. Schemas gives the OpenAPI schemas of a group version.
func DefinitionShape(schemas func(schema.GroupVersion) (map[string]*spec.Schema, error)) func() registry.Shape {
	return ownership.Shape(DefinitionKind, func() (map[string]*spec.Schema, error) { return schemas(DefinitionKind.GroupVersion()) })
}
