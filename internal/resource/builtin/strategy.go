package builtin

import (
	"context"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// rules are what is particular about the objects of one Go type, through one door. What
// is nil is ordinary.
type rules[P runtime.Object] struct {
	policy registry.Policy

	// defaults fills in what was left out, and brings input that is only written into the
	// fields that are read. Doing it twice is doing it once.
	defaults func(obj P)
	// spec and status take over that part of another object. A kind that gives them has a door
	// for status, see [statusDoor]: a new object begins with the status of an empty one, and the
	// main door keeps the status that is stored (rules B7, B10).
	spec, status func(obj, from P)
	// tracked returns what raises the generation when it changes; a kind without it has none
	// (rules B8, B9).
	tracked func(obj P) any
	// born clears what a client may not set on a new object, and fills in what only a new one gets.
	born func(obj P)
	// keep puts back what an update may not change.
	keep func(obj, old P)
	// dying changes an object whose deletion was just asked for.
	dying func(obj P)
	// wrong says what is wrong with an object, new or not.
	wrong func(obj P) field.ErrorList
	// wrongNew says what is wrong with an object only because it is new.
	wrongNew func(obj P) field.ErrorList
	// wrongAfter says what is wrong with an object only because it follows old.
	wrongAfter func(obj, old P) field.ErrorList
	// warn says what the client should be told, and warnNew what only of an object that is new.
	warn, warnNew func(obj P) []string
	// holds says that an object that is being deleted has to stay.
	holds func(obj P) bool
	// lasts is how long an object is kept after its last write; forever if it is 0.
	lasts time.Duration
	// grace returns how long an object whose deletion is asked for has left, in seconds; asked is
	// what the client wants, nil if it does not say. A kind without it goes at once.
	grace func(obj P, asked *int64) int64
	// claim takes what only one object may have, such as an address, and gives back what the old
	// object had; old is nil for a new object, and obj for one that goes.
	claim func(view *storage.View, obj, old P) field.ErrorList
}

// statusDoor returns the door for the status of a kind: what it writes is status alone. Labels
// and annotations may change with it, as in the reference.
func statusDoor[P runtime.Object](r rules[P], also ...func(obj, old P)) Subresource {
	door := rules[P]{
		policy: r.policy, defaults: r.defaults, holds: r.holds, lasts: r.lasts, grace: r.grace, claim: r.claim,
		keep: func(obj, old P) {
			r.spec(obj, old.DeepCopyObject().(P))
			for _, f := range also {
				f(obj, old)
			}
		},
	}
	return Subresource{Name: "status", Verbs: []string{"get", "patch", "update"}, Strategy: strategy[P]{door}}
}

// A strategy is the [registry.Strategy] that follows from rules.
type strategy[P runtime.Object] struct{ rules rules[P] }

var (
	_ registry.Strategy       = strategy[runtime.Object]{}
	_ registry.Holder         = strategy[runtime.Object]{}
	_ registry.DeletePreparer = strategy[runtime.Object]{}
	_ registry.Expirer        = strategy[runtime.Object]{}
	_ registry.Claimer        = strategy[runtime.Object]{}
	_ registry.Graceful       = strategy[runtime.Object]{}
)

func (s strategy[P]) Policy() registry.Policy { return s.rules.policy }

func (s strategy[P]) PrepareForCreate(_ context.Context, obj runtime.Object) {
	s.fillIn(obj)
	if s.rules.status != nil {
		s.rules.status(obj.(P), empty[P]())
	}
	if s.rules.born != nil {
		s.rules.born(obj.(P))
	}
	if s.rules.tracked != nil {
		generation(obj, 1)
	}
}

// empty returns a new object of the Go type that P points to.
func empty[P runtime.Object]() P { return reflect.New(reflect.TypeFor[P]().Elem()).Interface().(P) }

func generation(obj runtime.Object, n int64) {
	if acc, err := meta.Accessor(obj); err == nil {
		acc.SetGeneration(n)
	}
}

func (s strategy[P]) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	s.fillIn(obj)
	if s.rules.status != nil {
		s.rules.status(obj.(P), old.DeepCopyObject().(P))
	}
	if s.rules.keep != nil {
		s.rules.keep(obj.(P), old.(P))
	}
	if t := s.rules.tracked; t != nil && !equality.Semantic.DeepEqual(t(obj.(P)), t(old.(P))) {
		if acc, err := meta.Accessor(old); err == nil {
			generation(obj, acc.GetGeneration()+1)
		}
	}
}

// PrepareForDelete makes the change that a deletion begins with.
func (s strategy[P]) PrepareForDelete(_ context.Context, obj runtime.Object) {
	if s.rules.dying != nil {
		s.rules.dying(obj.(P))
	}
}

func (s strategy[P]) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	errs := s.wrong(obj)
	if s.rules.wrongNew != nil {
		errs = append(errs, s.rules.wrongNew(obj.(P))...)
	}
	return errs
}

func (s strategy[P]) wrong(obj runtime.Object) field.ErrorList {
	if s.rules.wrong == nil {
		return nil
	}
	return s.rules.wrong(obj.(P))
}

func (s strategy[P]) ValidateUpdate(_ context.Context, obj, old runtime.Object) (errs field.ErrorList) {
	if s.rules.wrongAfter != nil {
		errs = s.rules.wrongAfter(obj.(P), old.(P))
	}
	return append(errs, s.wrong(obj)...)
}

func (s strategy[P]) Warnings(_ context.Context, obj, old runtime.Object) (told []string) {
	if s.rules.warn != nil {
		told = s.rules.warn(obj.(P))
	}
	if s.rules.warnNew != nil && old == nil {
		told = append(told, s.rules.warnNew(obj.(P))...)
	}
	return told
}

// Canonicalize fills defaults in once more: what the strategy put back, or a name that was
// generated, may call for them.
func (s strategy[P]) Canonicalize(obj runtime.Object) { s.fillIn(obj) }

// Holds reports whether obj has to stay although its deletion was asked for.
func (s strategy[P]) Holds(obj runtime.Object) bool {
	return s.rules.holds != nil && s.rules.holds(obj.(P))
}

// TTL returns how long an object is kept after a write.
func (s strategy[P]) TTL(runtime.Object) time.Duration { return s.rules.lasts }

// Grace returns how long obj has left once its deletion is asked for.
func (s strategy[P]) Grace(obj runtime.Object, asked *int64) (seconds int64, graceful bool) {
	if s.rules.grace == nil {
		return 0, false
	}
	return s.rules.grace(obj.(P), asked), true
}

// Claim takes and gives back what only one object may have.
func (s strategy[P]) Claim(_ context.Context, view *storage.View, obj, old runtime.Object) field.ErrorList {
	if s.rules.claim == nil {
		return nil
	}
	p, _ := obj.(P)
	q, _ := old.(P)
	return s.rules.claim(view, p, q)
}

func (s strategy[P]) fillIn(obj runtime.Object) {
	if s.rules.defaults != nil {
		s.rules.defaults(obj.(P))
	}
}
