package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/registry"
)

// rules are what is particular about the objects of one Go type, through one door. What
// is nil is ordinary.
type rules[P runtime.Object] struct {
	policy registry.Policy

	// defaults fills in what was left out, and brings input that is only written into the
	// fields that are read. Doing it twice is doing it once.
	defaults func(obj P)
	// born clears what a client may not set on a new object.
	born func(obj P)
	// keep puts back what an update may not change.
	keep func(obj, old P)
	// dying changes an object whose deletion was just asked for.
	dying func(obj P)
	// wrong says what is wrong with an object, new or not.
	wrong func(obj P) field.ErrorList
	// wrongAfter says what is wrong with an object only because it follows old.
	wrongAfter func(obj, old P) field.ErrorList
	// warn says what the client should be told.
	warn func(obj P) []string
	// holds says that an object that is being deleted has to stay.
	holds func(obj P) bool
}

// A strategy is the [registry.Strategy] that follows from rules.
type strategy[P runtime.Object] struct{ rules rules[P] }

var (
	_ registry.Strategy       = strategy[runtime.Object]{}
	_ registry.Holder         = strategy[runtime.Object]{}
	_ registry.DeletePreparer = strategy[runtime.Object]{}
)

func (s strategy[P]) Policy() registry.Policy { return s.rules.policy }

func (s strategy[P]) PrepareForCreate(_ context.Context, obj runtime.Object) {
	s.fillIn(obj)
	if s.rules.born != nil {
		s.rules.born(obj.(P))
	}
}

func (s strategy[P]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	s.fillIn(obj)
	if s.rules.keep != nil {
		s.rules.keep(obj.(P), old.(P))
	}
}

// PrepareForDelete makes the change that a deletion begins with.
func (s strategy[P]) PrepareForDelete(_ context.Context, obj runtime.Object) {
	if s.rules.dying != nil {
		s.rules.dying(obj.(P))
	}
}

func (s strategy[P]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	if s.rules.wrong == nil {
		return nil
	}
	return s.rules.wrong(obj.(P))
}

func (s strategy[P]) ValidateUpdate(ctx context.Context, obj, old runtime.Object) (errs field.ErrorList) {
	if s.rules.wrongAfter != nil {
		errs = s.rules.wrongAfter(obj.(P), old.(P))
	}
	return append(errs, s.Validate(ctx, obj)...)
}

func (s strategy[P]) Warnings(_ context.Context, obj, _ runtime.Object) []string {
	if s.rules.warn == nil {
		return nil
	}
	return s.rules.warn(obj.(P))
}

// Canonicalize fills defaults in once more: what the strategy put back, or a name that was
// generated, may call for them.
func (s strategy[P]) Canonicalize(obj runtime.Object) { s.fillIn(obj) }

// Holds reports whether obj has to stay although its deletion was asked for.
func (s strategy[P]) Holds(obj runtime.Object) bool {
	return s.rules.holds != nil && s.rules.holds(obj.(P))
}

func (s strategy[P]) fillIn(obj runtime.Object) {
	if s.rules.defaults != nil {
		s.rules.defaults(obj.(P))
	}
}
