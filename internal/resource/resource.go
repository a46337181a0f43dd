// Package resource says what a resource is, and keeps the catalogue of those that are served.
//
// # The catalogue
//
// A [Catalogue] is an immutable value: the server takes it once per request, and serves the
// request from what it found there. Whoever changes what is served makes a new one
// and puts it in place with [Registry.Change]; what
// was replaced is closed, which ends its watches (rule C28), while requests in flight finish
// on it.
//
// Package builtin declares the resources that every server has; package crd makes the ones
// that CustomResourceDefinitions ask for.
package resource

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/pawl-dev/pawl/internal/table"
	"github.com/pawl-dev/pawl/registry"
)

// A Resource is one kind of object under one group, in all the versions that are served.
type Resource struct {
	Group      string
	Plural     string
	Singular   string
	Kind       string
	ListKind   string
	ShortNames []string
	Categories []string
	Namespaced bool
	Custom     bool // made by a CustomResourceDefinition: the error texts differ (rules H6, H10, H63)

	// Versions are the served ones, best first (rules H26, C90).
	Versions []*Version

	// StorageVersion is the version that is stored, served or not (rule H21).
	StorageVersion string

	// NoDeleteCollection leaves that verb out (rule H20).
	NoDeleteCollection bool

	// Terminating leaves only reading and deleting in discovery (rule C33).
	Terminating bool

	// Closed is closed when this value no longer is in the catalogue; nil if it always is.
	Closed <-chan struct{}
}

// GroupResource returns the name of r in error texts.
func (r *Resource) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}
}

// Version returns the served version of that name, nil if there is none.
func (r *Resource) Version(name string) *Version {
	for _, v := range r.Versions {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// A Version is one version of a resource: how its objects look to clients, and the store
// that speaks it.
type Version struct {
	Name string
	Form Form
	// Store reads and writes objects of this version, whatever version is stored; nil for reviews.
	Store *registry.Store
	// Review, if it is not nil, is all there is to do with this version: it is created, answered
	// and forgotten (rule B74).
	Review Review
	// Subresources by name: "status", "finalize".
	Subresources map[string]*Subresource
	// FieldLabels are the selectable fields beyond metadata.name and metadata.namespace.
	FieldLabels []string
	// Columns returns what a table shows of the objects; it is asked for each table. Nil for
	// the columns that any kind has (rule H219).
	Columns func() *table.Columns
	// Deprecated is the text of the Warning that each request gets; "" for none (rule C89).
	Deprecated string
	// OpenAPI returns the paths and schemas of this version alone; it is asked when a client
	// first asks, and may be slow. Nil if there is nothing to publish.
	OpenAPI func() (*spec3.OpenAPI, error)
}

// A Subresource is another door to the same stored object.
type Subresource struct {
	Name  string
	Kind  string // of what is read and written; that of the resource for status
	Store *registry.Store
	Verbs []string // get, patch, update; or create, which Posted serves
	// Posted, if not nil, is what is done with what clients post to the door of an object.
	Posted *Posted
	// Scale, if this is a scale, is how it is made of the object that Store holds.
	Scale *Scale
}

// A Form is how the objects of one version look to clients. It is safe for concurrent use.
type Form interface {
	// GroupVersionKind is what kind and apiVersion say.
	GroupVersionKind() schema.GroupVersionKind
	// New returns an empty object.
	New() runtime.Object
	// Decode reads a JSON document that a client sent, or that came of a patch: unknown
	// fields are dropped, defaults filled in. The findings are what strict field validation
	// would refuse, such as `unknown field "spec.foo"` (rules H65, C49). Kind and apiVersion
	// have been checked or filled in by the caller. The error is the bare cause.
	Decode(data []byte) (obj runtime.Object, findings []string, err error)
	// Encode returns the JSON of obj with kind and apiVersion.
	Encode(obj runtime.Object) ([]byte, error)
	// Patches lists the media types that PATCH takes (rules H129, C113).
	Patches() []string
	// Typed returns an empty Go struct whose tags guide a strategic merge patch, and the
	// protobuf serializer; nil if the form has no Go type.
	Typed() runtime.Object
}
