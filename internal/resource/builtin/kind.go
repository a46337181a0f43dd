package builtin

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/internal/table"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// A Kind is one built-in resource, in the one version that it has. It does not change.
type Kind struct {
	Group, Version         string
	Kind                   string
	Plural, Singular       string
	ShortNames, Categories []string
	NoDeleteCollection     bool
	// Deprecated is the text of the warning that each request gets; "" for none.
	Deprecated string
	// Revision is raised whenever decoding comes to prune or fill in differently, so that
	// JSON stored before is decoded anew.
	Revision int

	// New returns an empty object that says its kind.
	New func() runtime.Object
	// Strategy says what is particular about the resource.
	Strategy registry.Strategy
	// Subresources are other doors to the same stored objects.
	Subresources []Subresource
	// Scaled says where an object says how many replicas there are and should be; nil for a kind
	// without a scale (rule H176).
	Scaled *resource.Scale
	// FieldLabels are the selectable fields beyond name and namespace, Fields their values
	// in an object (rule B15); Fields is nil if there are none.
	FieldLabels []string
	Fields      storage.FieldsFunc

	normalize func(obj runtime.Object)
	view      *view
}

// A view makes the objects of a kind of those of another, which are what is stored (rules B4, B85).
type view struct {
	of         Kind
	store, see func(obj runtime.Object) (runtime.Object, error)
}

// TableResource names the table that holds the objects: that of another kind if k is a view of
// it.
func (k Kind) TableResource() schema.GroupResource {
	if k.view != nil {
		return k.view.of.GroupResource()
	}
	return k.GroupResource()
}

// A Subresource is a door to the stored objects with rules of its own.
type Subresource struct {
	Name     string
	Verbs    []string
	Strategy registry.Strategy
	// Posted, if not nil, is what the door takes; create is then its verb.
	Posted *posted
}

// A posted is what is sent to the door of an object, and what is done with it, by way of the
// store of that door.
type posted struct {
	kind Kind
	do   func(ctx context.Context, store *registry.Store, at resource.Address, obj runtime.Object) (runtime.Object, error)
}

// resource returns what the catalogue holds for sub.
func (sub Subresource) resource(k Kind, store *registry.Store) *resource.Subresource {
	r := &resource.Subresource{Name: sub.Name, Kind: k.Kind, Verbs: slices.Clone(sub.Verbs), Store: store}
	if p := sub.Posted; p != nil {
		r.Kind = p.kind.Kind
		r.Posted = &resource.Posted{Form: p.kind.Form(), Do: func(ctx context.Context, at resource.Address, obj runtime.Object) (runtime.Object, error) {
			return p.do(ctx, store, at, obj)
		}}
	}
	return r
}

// GroupVersionKind is what the objects say they are.
func (k Kind) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}

// GroupResource is the name of the resource in error texts.
func (k Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Plural}
}

// Form returns how the objects look to clients.
func (k Kind) Form() resource.Form { return form{k} }

// Codec returns how the objects are stored.
func (k Kind) Codec() storage.Codec {
	if k.view != nil {
		return viewCodec{k, k.view.of.Codec()}
	}
	return codec{k, k.fingerprint()}
}

// Resource returns what the catalogue holds for k. It asks newStore for the store of the
// resource, and for one for each subresource, each with its strategy; all of them must
// be over one table.
func (k Kind) Resource(newStore func(k Kind, subresource string, s registry.Strategy) *registry.Store) *resource.Resource {
	v := &resource.Version{
		Name:         k.Version,
		Form:         k.Form(),
		Store:        newStore(k, "", k.Strategy),
		Subresources: make(map[string]*resource.Subresource, len(k.Subresources)),
		FieldLabels:  slices.Clone(k.FieldLabels),
		Deprecated:   k.Deprecated,
		Columns:      func() *table.Columns { return table.Of(k.GroupVersionKind()) },
	}
	for _, sub := range k.Subresources {
		v.Subresources[sub.Name] = sub.resource(k, newStore(k, sub.Name, sub.Strategy))
	}
	if k.Scaled != nil {
		scale := *k.Scaled
		scale.Parent, scale.Versions = k.GroupVersionKind().GroupVersion(), []string{k.GroupVersionKind().GroupVersion().String()}
		v.Subresources["scale"] = &resource.Subresource{
			Name: "scale", Kind: resource.ScaleKind.Kind, Verbs: []string{"get", "patch", "update"}, Store: v.Store, Scale: resource.NewScale(scale),
		}
	}
	return &resource.Resource{
		Group: k.Group, Plural: k.Plural, Singular: k.Singular, Kind: k.Kind, ListKind: k.Kind + "List",
		ShortNames: slices.Clone(k.ShortNames), Categories: slices.Clone(k.Categories),
		Namespaced:         k.Strategy.Policy().Namespaced,
		Versions:           []*resource.Version{v},
		StorageVersion:     k.Version,
		NoDeleteCollection: k.NoDeleteCollection,
	}
}

// A pointer is a pointer to the Go type T of an object.
type pointer[T any] interface {
	*T
	runtime.Object
}

// define completes a row with what follows from the Go type of its objects. The rules of the
// resource give the defaults; those of subresources are in k already.
func define[T any, P pointer[T]](k Kind, r rules[P], selectable map[string]func(P) string) Kind {
	gvk := k.GroupVersionKind()
	k.New = func() runtime.Object {
		obj := P(new(T))
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		return obj
	}
	k.Strategy = strategy[P]{r}
	k.normalize = func(obj runtime.Object) {
		obj.GetObjectKind().SetGroupVersionKind(gvk)
		if r.defaults != nil {
			r.defaults(obj.(P))
		}
	}
	if len(selectable) == 0 {
		return k
	}
	for label := range selectable {
		k.FieldLabels = append(k.FieldLabels, label)
	}
	slices.Sort(k.FieldLabels)
	k.Fields = func(obj runtime.Object) (fields.Set, error) {
		typed, ok := obj.(P)
		if !ok {
			return nil, k.mistaken(obj)
		}
		set := make(fields.Set, len(selectable))
		for label, value := range selectable {
			set[label] = value(typed)
		}
		return set, nil
	}
	return k
}
