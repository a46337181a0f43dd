package registry

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/storage"
)

// A StrategyFor says what is particular about the objects of one Go type in a [Collection]. Embed
// [DefaultFor] and override what differs. Old is the object as it is stored, nil if there is none
// yet, and must not be changed; all may run more than once for one request.
//
// It may also have methods of [Holder], [Expirer], [Graceful], [DeletePreparer] and [Claimer], each
// with *T in place of runtime.Object.
type StrategyFor[T any] interface {
	// Policy says what may be done, and how. It is asked once.
	Policy() Policy
	// Prepare puts back what may not be set or changed, and fills in defaults.
	Prepare(ctx context.Context, obj, old *T)
	// Validate says what is wrong with obj, beyond what is wrong with its metadata.
	Validate(ctx context.Context, obj, old *T) field.ErrorList
}

// DefaultFor is a [StrategyFor] objects about which nothing is particular. Its zero value is
// that of objects without a namespace; set Policies for anything else.
type DefaultFor[T any] struct{ Policies Policy }

// Policy returns d.Policies.
func (d DefaultFor[T]) Policy() Policy { return d.Policies }

// Prepare does nothing.
func (DefaultFor[T]) Prepare(context.Context, *T, *T) {}

// Validate finds nothing.
func (DefaultFor[T]) Validate(context.Context, *T, *T) field.ErrorList { return nil }

// What a StrategyFor may have beside its own methods.
type (
	holderFor[T any]   interface{ Holds(obj *T) bool }
	expirerFor[T any]  interface{ TTL(obj *T) time.Duration }
	gracefulFor[T any] interface {
		Grace(obj *T, asked *int64) (int64, bool)
	}
	deletePreparerFor[T any] interface {
		PrepareForDelete(ctx context.Context, obj *T)
	}
	claimerFor[T any] interface {
		Claim(ctx context.Context, view *storage.View, obj, old *T) field.ErrorList
	}
)

// A strategyOf makes a Strategy of a StrategyFor. What that one lacks it answers as if it lacked
// it, too.
type strategyOf[T any] struct {
	Default
	of       StrategyFor[T]
	holder   holderFor[T]
	expirer  expirerFor[T]
	graceful gracefulFor[T]
	preparer deletePreparerFor[T]
	claimer  claimerFor[T]
}

// newStrategyOf looks at what s has. A method that only has the name of one that it may have
// would never be called: that is an error.
func newStrategyOf[T any](s StrategyFor[T]) (*strategyOf[T], error) {
	out := &strategyOf[T]{Default: Default{Policies: s.Policy()}, of: s}
	var has [5]bool
	out.holder, has[0] = s.(holderFor[T])
	out.expirer, has[1] = s.(expirerFor[T])
	out.graceful, has[2] = s.(gracefulFor[T])
	out.preparer, has[3] = s.(deletePreparerFor[T])
	out.claimer, has[4] = s.(claimerFor[T])
	t := reflect.TypeOf(s)
	for i, want := range []reflect.Type{
		reflect.TypeFor[holderFor[T]](), reflect.TypeFor[expirerFor[T]](), reflect.TypeFor[gracefulFor[T]](),
		reflect.TypeFor[deletePreparerFor[T]](), reflect.TypeFor[claimerFor[T]](),
	} {
		m := want.Method(0)
		for j := range t.NumMethod() {
			if t.Method(j).Name == m.Name && !has[i] {
				return nil, fmt.Errorf("registry: the method %s of the strategy %s has to be a %s", m.Name, t, m.Type)
			}
		}
	}
	return out, nil
}

// goes returns the Go object of obj. That all are of one type, the codec sees to.
func (*strategyOf[T]) goes(obj runtime.Object) *T {
	object, err := unboxed[T](obj)
	if err != nil {
		panic(err)
	}
	return object
}

func (s *strategyOf[T]) PrepareForCreate(ctx context.Context, obj runtime.Object) {
	s.of.Prepare(ctx, s.goes(obj), nil)
}

func (s *strategyOf[T]) PrepareForUpdate(ctx context.Context, obj, old runtime.Object) {
	s.of.Prepare(ctx, s.goes(obj), s.goes(old))
}

func (s *strategyOf[T]) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return s.of.Validate(ctx, s.goes(obj), nil)
}

func (s *strategyOf[T]) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return s.of.Validate(ctx, s.goes(obj), s.goes(old))
}

// Holds implements [Holder].
func (s *strategyOf[T]) Holds(obj runtime.Object) bool {
	return s.holder != nil && s.holder.Holds(s.goes(obj))
}

// TTL implements [Expirer].
func (s *strategyOf[T]) TTL(obj runtime.Object) time.Duration {
	if s.expirer == nil {
		return -1
	}
	return s.expirer.TTL(s.goes(obj))
}

// Grace implements [Graceful].
func (s *strategyOf[T]) Grace(obj runtime.Object, asked *int64) (int64, bool) {
	if s.graceful == nil {
		return 0, false
	}
	return s.graceful.Grace(s.goes(obj), asked)
}

// PrepareForDelete implements [DeletePreparer].
func (s *strategyOf[T]) PrepareForDelete(ctx context.Context, obj runtime.Object) {
	if s.preparer != nil {
		s.preparer.PrepareForDelete(ctx, s.goes(obj))
	}
}

// Claim implements [Claimer].
func (s *strategyOf[T]) Claim(ctx context.Context, view *storage.View, obj, old runtime.Object) field.ErrorList {
	if s.claimer == nil {
		return nil
	}
	return s.claimer.Claim(ctx, view, s.goes(obj), s.goes(old))
}
