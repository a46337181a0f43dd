// Package ownership keeps metadata.managedFields: who set which fields of an object, and
// what server-side apply makes of that.
//
// It is a door to the field manager of apimachinery, which does the work: merging by the
// schema, conflicts, the limit of ten updaters, the timestamps, kubectl's last-applied
// annotation (rules H138 to H158). What is here is how that field manager gets its schema, late,
// and what it needs to know of a kind.
package ownership

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/pawl-dev/pawl/registry"
)

// Options say what a [Manager] manages.
type Options struct {
	Kind        schema.GroupVersionKind
	Subresource string // "" for the object's own endpoint
	// New returns an empty object of the kind.
	New func() runtime.Object
	// Schemas returns the OpenAPI schemas of the kind and of what they refer to, by name. It
	// is asked when ownership first matters. Nil, or an error, means that nothing is known: then
	// lists are one field each.
	Schemas func() (map[string]*spec.Schema, error)
	// Convert brings objects to the other versions that managedFields speak of.
	Convert runtime.ObjectConvertor
	// Reset are the fields that this endpoint puts back whatever is sent: nobody comes to own
	// them through it (rule H151).
	Reset *fieldpath.Set
	// Shape says how the fields of objects are made up. Nil, or what returns nil, means that
	// nothing is known.
	Shape func() registry.Shape
	// Custom kinds may have fields that their schema does not know.
	Custom bool
}

// A Manager notes who sets which fields through one endpoint of one kind. It is safe for
// concurrent use.
type Manager struct {
	o    Options
	make func() (*managedfields.FieldManager, error)
}

// New returns a manager. Nothing is made before it is first used.
func New(o Options) *Manager {
	m := &Manager{o: o}
	m.make = sync.OnceValues(m.fieldManager)
	return m
}

func (m *Manager) fieldManager() (*managedfields.FieldManager, error) {
	gv := m.o.Kind.GroupVersion()
	var reset map[fieldpath.APIVersion]fieldpath.Filter
	if m.o.Reset != nil {
		reset = map[fieldpath.APIVersion]fieldpath.Filter{fieldpath.APIVersion(gv.String()): fieldpath.NewExcludeSetFilter(m.o.Reset)}
	}
	construct := managedfields.NewDefaultFieldManager
	if m.o.Custom {
		construct = managedfields.NewDefaultCRDFieldManager
	}
	fm, err := construct(m.types(), m.o.Convert, undefaulted{}, creater(m.o.New), m.o.Kind, gv, m.o.Subresource, reset)
	if err != nil {
		return nil, fmt.Errorf("ownership of %s: %w", m.o.Kind, err)
	}
	return fm, nil
}

func (m *Manager) types() managedfields.TypeConverter {
	if m.o.Schemas != nil {
		if schemas, err := m.o.Schemas(); err == nil {
			if types, err := managedfields.NewTypeConverter(schemas, false); err == nil {
				return types
			}
		}
	}
	return managedfields.NewDeducedTypeConverter()
}

// Update notes that manager made obj of live, and returns obj with managedFields that say
// so. Live is the stored object; nil if obj comes into being.
func (m *Manager) Update(live, obj runtime.Object, manager string) (runtime.Object, error) {
	if was, ok := live.(*unstructured.Unstructured); ok {
		if is, ok := obj.(*unstructured.Unstructured); ok && m.keep(was, is, manager) {
			return obj, nil
		}
	}
	fm, err := m.make()
	if err != nil {
		return nil, err
	}
	return fm.UpdateNoErrors(m.orEmpty(live), obj, manager), nil
}

// Apply merges what manager wants into live, and returns the result. Neither is changed; nil
// means that nothing is stored. The error is an API status: a conflict with other managers,
// unless force is set, or what is wrong with config.
func (m *Manager) Apply(live, config runtime.Object, manager string, force bool) (runtime.Object, error) {
	if was, ok := live.(*unstructured.Unstructured); ok {
		if wanted, ok := config.(*unstructured.Unstructured); ok {
			if out, ok := m.reapply(was, wanted, manager); ok {
				return out, nil
			}
		}
	}
	fm, err := m.make()
	if err != nil {
		return nil, err
	}
	return fm.Apply(m.orEmpty(live), config.DeepCopyObject(), manager, force)
}

// isReset reports whether the endpoint puts a member of the object back whatever is sent.
func (m *Manager) isReset(member string) bool {
	return m.o.Reset != nil && m.o.Reset.Members.Has(fieldpath.PathElement{FieldName: &member})
}

func (m *Manager) orEmpty(live runtime.Object) runtime.Object {
	if live == nil {
		live = m.o.New()
		live.GetObjectKind().SetGroupVersionKind(m.o.Kind)
	}
	return live
}

// undefaulted leaves objects as they are: whoever applies decodes the result anew, which
// fills in defaults.
type undefaulted struct{}

func (undefaulted) Default(runtime.Object) {}

type creater func() runtime.Object

func (c creater) New(schema.GroupVersionKind) (runtime.Object, error) { return c(), nil }

// Unconverted brings custom resources to another version by saying that they are of it, which
// is all that conversion strategy None does (rule C82).
type Unconverted struct{}

// ConvertToVersion returns obj as one of the version asked for.
func (Unconverted) ConvertToVersion(obj runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	have := obj.GetObjectKind().GroupVersionKind()
	want, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{have})
	if !ok {
		return nil, runtime.NewNotRegisteredErrForTarget("pawl", reflect.TypeOf(obj), target)
	}
	if want == have {
		return obj, nil
	}
	other := obj.DeepCopyObject()
	other.GetObjectKind().SetGroupVersionKind(want)
	return other, nil
}

// Convert is not needed for ownership.
func (Unconverted) Convert(_, _, _ any) error {
	return errors.New("ownership: objects are not converted in place")
}

// ConvertFieldLabel is not needed for ownership.
func (Unconverted) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
