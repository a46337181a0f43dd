package builtin

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/pawl-dev/pawl/internal/ownership"
	"github.com/pawl-dev/pawl/registry"
)

// Ownership returns what keeps the managedFields of k through the object's own endpoint ("")
// or through a subresource. Schemas gives the OpenAPI schemas of a group version.
//
// The fields that an endpoint puts back nobody comes to own there (rule H151): status, where
// that is a subresource; and on /status everything else.
func (k Kind) Ownership(subresource string, scheme *runtime.Scheme, schemas func(schema.GroupVersion) (map[string]*spec.Schema, error)) registry.Ownership {
	gvk := k.GroupVersionKind()
	o := ownership.Options{
		Kind: gvk, Subresource: subresource, New: k.New, Convert: scheme,
		Schemas: func() (map[string]*spec.Schema, error) { return schemas(gvk.GroupVersion()) },
	}
	switch {
	case subresource == "status" && k.Group == appsv1.GroupName: // labels stay too (rule B10)
		o.Reset = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata", "labels"))
	case subresource == "status":
		o.Reset = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
	case k.has("status"):
		o.Reset = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	}
	return ownership.New(o)
}

// Shape returns the shape of the objects of k. Schemas gives the OpenAPI schemas of a group version.
func (k Kind) Shape(schemas func(schema.GroupVersion) (map[string]*spec.Schema, error)) func() registry.Shape {
	gvk := k.GroupVersionKind()
	return ownership.Shape(gvk, func() (map[string]*spec.Schema, error) { return schemas(gvk.GroupVersion()) })
}

func (k Kind) has(subresource string) bool {
	for _, sub := range k.Subresources {
		if sub.Name == subresource {
			return true
		}
	}
	return false
}
