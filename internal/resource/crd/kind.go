package crd

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/pawl-dev/pawl/internal/objectjson"
	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// A Kind is one version of a custom resource: all that is needed to serve it, but for the
// store. It never changes and is safe for concurrent use.
type Kind struct {
	GroupVersionKind schema.GroupVersionKind
	Form             resource.Form
	Codec            storage.Codec
	Strategy         registry.Strategy
	Status           registry.Strategy  // of /status; nil if the version does not declare it
	Fields           storage.FieldsFunc // nil if no field beyond metadata is selectable
	FieldLabels      []string           // their names (rule C98)
	Deprecated       string             // the text of the warning; "" for none (rule C89)
	OpenAPI          func() (*spec3.OpenAPI, error)

	shape      func() registry.Shape // nil if the schema cannot be read
	allSchemas func() (map[string]*spec.Schema, error)
}

// Compile makes the kind that def describes in that version, under the accepted names, or
// under the names asked for as long as none are accepted. It costs little: what is
// expensive is done when it is first needed. The error says that there is no such version.
// def must not change afterwards.
func Compile(def *apiextensionsv1.CustomResourceDefinition, version string) (*Kind, error) {
	return newDefinition(def).kind(version)
}

// A definition is a stored CustomResourceDefinition, with what its versions share.
type definition struct {
	*apiextensionsv1.CustomResourceDefinition
	names   apiextensionsv1.CustomResourceDefinitionNames
	storage string // the storage version
	schemas map[string]*versionSchema
	trees   *objectjson.Trees // of the managedFields of its objects
}

func newDefinition(def *apiextensionsv1.CustomResourceDefinition) *definition {
	d := &definition{CustomResourceDefinition: def, names: def.Status.AcceptedNames, schemas: map[string]*versionSchema{}, trees: &objectjson.Trees{}}
	if d.names.Kind == "" {
		d.names = def.Spec.Names
	}
	for i := range def.Spec.Versions {
		v := &def.Spec.Versions[i]
		if v.Storage {
			d.storage = v.Name
		}
		var props *apiextensionsv1.JSONSchemaProps
		if v.Schema != nil {
			props = v.Schema.OpenAPIV3Schema
		}
		d.schemas[v.Name] = newVersionSchema(d.gvk(v.Name).String(), props, d.trees)
	}
	return d
}

func (d *definition) gvk(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: d.Spec.Group, Version: version, Kind: d.names.Kind}
}

func (d *definition) kind(name string) (*Kind, error) {
	i := slices.IndexFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("crd: %s has no version %q", d.Name, name)
	}
	v := &d.Spec.Versions[i]
	gvk := d.gvk(name)
	main := newCustomStrategy(d, v)
	k := &Kind{
		GroupVersionKind: gvk,
		Form:             &form{gvk: gvk, schema: d.schemas[name]},
		Codec:            &codec{definition: d, version: name},
		Strategy:         main,
		Deprecated:       d.deprecation(v),
		OpenAPI:          sync.OnceValues(func() (*spec3.OpenAPI, error) { return d.openAPI(name) }),
		allSchemas:       d.allSchemas,
	}
	k.shape = sync.OnceValue(func() registry.Shape {
		st, err := d.schemas[name].structural()
		if err != nil {
			return nil
		}
		return shapeOf(st.Structural)
	})
	if main.hasStatus {
		k.Status = newStatusStrategy(main)
	}
	k.Fields, k.FieldLabels = selectable(v.SelectableFields)
	return k, nil
}

// openAPI makes the document of a version.
func (d *definition) openAPI(version string) (*spec3.OpenAPI, error) {
	return builder.BuildOpenAPIV3(d.CustomResourceDefinition, version, builder.Options{IncludeSelectableFields: true})
}

// deprecation is the text of the warning that rule C89 asks for.
func (d *definition) deprecation(v *apiextensionsv1.CustomResourceDefinitionVersion) string {
	if !v.Deprecated {
		return ""
	}
	if v.DeprecationWarning != nil {
		return *v.DeprecationWarning
	}
	newer := ""
	for _, w := range d.Spec.Versions {
		better := version.CompareKubeAwareVersionStrings(w.Name, v.Name) > 0
		best := newer == "" || version.CompareKubeAwareVersionStrings(w.Name, newer) > 0
		if w.Served && !w.Deprecated && better && best {
			newer = w.Name
		}
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", d.Spec.Group, v.Name, d.Spec.Names.Kind)
	if newer != "" {
		text += fmt.Sprintf("; use %s/%s %s", d.Spec.Group, newer, d.Spec.Names.Kind)
	}
	return text
}

// fieldPath splits a JSON path that validation let pass: names with a dot before each.
func fieldPath(jsonPath string) []string {
	return strings.Split(strings.TrimPrefix(jsonPath, "."), ".")
}
