package registry

import (
	"context"
	"errors"
	"iter"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// A Collection is a [Store] of the objects of one Go type. It is safe for concurrent use. The
// objects that it is given it leaves as they are, and those that it returns are the caller's.
//
// T is a struct that embeds [metav1.ObjectMeta] with the JSON name "metadata", before all other
// fields but a [metav1.TypeMeta]. Objects are stored as their JSON. If *T has a method
// DeepCopyObject it is asked for copies, otherwise they are made field by field.
//
// Options are given at most once to each call; none are the defaults.
type Collection[T any] struct {
	store     *Store
	of        *goType[T]
	namespace string
}

// ObjectOf is what *T has to be for a [Collection] of T: a struct gets these methods from the
// [metav1.ObjectMeta] that it embeds.
type ObjectOf[T any] interface {
	*T
	metav1.Object
}

// CollectionOptions are what a [Collection] is made of beside its engine and its strategy.
type CollectionOptions[T any] struct {
	// Kind is the kind of the objects; the zero value is the name of T, version v1, and no group.
	Kind schema.GroupVersionKind
	// Plural names the collection; "" is the kind in small letters and the plural.
	Plural string
	// Fields returns what can be selected by beside name and namespace; nil is nothing.
	Fields func(obj *T) fields.Set
	// Space keeps stores apart that share an engine; "" is [kv.DefaultSpace].
	Space string
	// Turns are shared by all that write to the engine; nil is the collection's own.
	Turns *storage.Turns
	// Config is what the store is made of beside Kind, Resource, Table and Strategy, which are made.
	Config Config
}

// Of returns the collection of the objects of type T in an engine, for those who know that T can be
// stored: it panics where [NewCollection] has an error. A nil strategy is [DefaultFor].
func Of[T any, P ObjectOf[T]](engine kv.Engine, strategy StrategyFor[T], o ...CollectionOptions[T]) *Collection[T] {
	c, err := NewCollection[T, P](engine, strategy, only(o))
	if err != nil {
		panic(err)
	}
	return c
}

// NewCollection returns the collection of the objects of type T in an engine. The error says what T
// or the strategy would have to have.
func NewCollection[T any, P ObjectOf[T]](engine kv.Engine, strategy StrategyFor[T], o CollectionOptions[T]) (*Collection[T], error) {
	if engine == nil {
		return nil, errors.New("registry: a collection needs an engine")
	}
	if strategy == nil {
		strategy = DefaultFor[T]{}
	}
	c := o.Config
	c.Kind = o.kind()
	c.Resource = schema.GroupResource{Group: c.Kind.Group, Resource: o.Plural}
	if o.Plural == "" {
		plural, _ := meta.UnsafeGuessKindToResource(c.Kind)
		c.Resource.Resource = plural.Resource
	}
	of, err := goTypeOf[T](c.Kind)
	if err != nil {
		return nil, err
	}
	typed, err := newStrategyOf(strategy)
	if err != nil {
		return nil, err
	}
	c.Strategy = typed
	c.Table = storage.NewTable(storage.Options{
		Engine: engine, Space: o.Space, Group: c.Resource.Group, Resource: c.Resource.Resource,
		Namespaced: typed.Policies.Namespaced, Codec: of, Fields: o.fields(), Turns: o.Turns,
	})
	store, err := New(c)
	if err != nil {
		return nil, err
	}
	return &Collection[T]{store: store, of: of}, nil
}

// Over returns the collection of the objects of a store, all of which are of type T or made by the
// codec that [CodecOf] returns for it.
func Over[T any, P ObjectOf[T]](store *Store) (*Collection[T], error) {
	of, err := goTypeOf[T](store.kind)
	if err != nil {
		return nil, err
	}
	return &Collection[T]{store: store, of: of}, nil
}

func (o CollectionOptions[T]) kind() schema.GroupVersionKind {
	kind := o.Kind
	if kind.Version == "" {
		kind.Version = "v1"
	}
	if kind.Kind == "" {
		kind.Kind = reflect.TypeFor[T]().Name()
	}
	return kind
}

func (o CollectionOptions[T]) fields() storage.FieldsFunc {
	if o.Fields == nil {
		return nil
	}
	return func(obj runtime.Object) (fields.Set, error) {
		object, err := unboxed[T](obj)
		if err != nil {
			return nil, err
		}
		return o.Fields(object), nil
	}
}

// only returns the options that a call was given.
func only[O any](given []O) O {
	var none O
	switch len(given) {
	case 0:
		return none
	case 1:
		return given[0]
	}
	panic("registry: options are given once, and not several times")
}

// Store returns the store beneath.
func (c *Collection[T]) Store() *Store { return c.store }

// In returns the objects in one namespace. Calls that take a name need it, if objects have a namespace;
// those that take an object find it there, too. If objects have none it is all of them.
func (c *Collection[T]) In(namespace string) *Collection[T] {
	in := *c
	in.namespace = namespace
	return &in
}

// at is the namespace of an object: that of the collection, or its own.
func (c *Collection[T]) at(obj *T) string {
	if c.namespace != "" {
		return c.namespace
	}
	return metaOf(obj).GetNamespace()
}

// metaOf is the metadata of an object. ObjectOf has seen to it that there is some.
func metaOf[T any](obj *T) metav1.Object { return any(obj).(metav1.Object) }

// goObject returns the Go object of a version.
func goObject[T any](v storage.Version) (*T, error) {
	obj, err := v.Object()
	if err != nil {
		return nil, err
	}
	return unboxed[T](obj)
}

// one returns the Go object of a version that a call had to do with, unless that failed.
func (c *Collection[T]) one(verb string, v storage.Version, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	obj, err := goObject[T](v)
	if err != nil {
		return nil, c.store.refuse(verb, v.Name(), err)
	}
	return obj, nil
}

// Create stores a new object and returns it as stored. If it has no name but a generateName it gets
// one. The error of a name that is taken is known to apierrors.IsAlreadyExists.
func (c *Collection[T]) Create(ctx context.Context, obj *T, o ...CreateOptions) (*T, error) {
	v, err := c.store.Create(ctx, c.at(obj), c.of.box(obj), only(o))
	return c.one("create", v, err)
}

// Get returns the newest version of an object. The error of one that does not exist is known
// to apierrors.IsNotFound.
func (c *Collection[T]) Get(ctx context.Context, name string) (*T, error) {
	v, err := c.store.Get(ctx, c.namespace, name, "")
	return c.one("get", v, err)
}

// Replace puts obj in the place of the version that its resourceVersion names, and returns it as
// stored. If somebody wrote in between it is refused with a [*ConflictError], which can explain
// what they changed.
func (c *Collection[T]) Replace(ctx context.Context, obj *T, o ...UpdateOptions) (*T, error) {
	res, err := c.store.Update(ctx, c.at(obj), metaOf(obj).GetName(), Exactly(c.of.box(obj)), only(o))
	return c.updated(res, err)
}

// Update changes an object by what change does to the version that exists, and returns it as stored.
// If somebody else writes in between, change is asked again about what they wrote; when the update
// gives up, because ctx ends or after as many attempts as the options allow, the error is a
// [*LostError], which can explain what it lost to. An error of change is returned as it is, and
// nothing is written.
func (c *Collection[T]) Update(ctx context.Context, name string, change func(obj *T) error, o ...UpdateOptions) (*T, error) {
	res, err := c.store.Update(ctx, c.namespace, name, c.changing(name, change), c.options(o))
	return c.updated(res, err)
}

// changing makes a desire of a change. Where nothing exists, and may be created, it changes an
// object that has but its name.
func (c *Collection[T]) changing(name string, change func(obj *T) error) Desire {
	return func(_ context.Context, current runtime.Object) (runtime.Object, error) {
		obj, err := unboxed[T](current)
		if err != nil {
			return nil, err
		}
		if obj == nil {
			obj = new(T)
			metaOf(obj).SetName(name)
			metaOf(obj).SetNamespace(c.namespace)
			current = c.of.box(obj)
		}
		return current, change(obj)
	}
}

func (c *Collection[T]) options(given []UpdateOptions) UpdateOptions {
	o := only(given)
	o.Patch, o.Reads = true, false
	if o.Attempts == 0 {
		o.Attempts = DefaultAttempts
	}
	return o
}

// updated returns the object that an update leaves behind; of one that went with it, as it went.
func (c *Collection[T]) updated(res Updated, err error) (*T, error) {
	if err == nil && res.Removed != nil {
		return unboxed[T](res.Removed)
	}
	return c.one("update", res.Version, err)
}

// Delete removes an object or, if finalizers or the strategy hold it, marks it as being deleted. It
// returns whether it is gone.
func (c *Collection[T]) Delete(ctx context.Context, name string, o ...metav1.DeleteOptions) (gone bool, err error) {
	given := only(o)
	res, err := c.store.Delete(ctx, c.namespace, name, &given)
	return res.Removed, err
}

// A Listing is the objects that a list found, all at one version of the store.
type Listing[T any] struct {
	Items []*T
	// Revision is where a watch goes on that is to tell what changes from then on: [storage.After].
	Revision kv.Revision
	// Continue is where the next page begins, "" if nothing is left; see [storage.ListQuery].
	Continue string
}

// List returns the objects of the collection that the options pick.
func (c *Collection[T]) List(ctx context.Context, o ...ListOptions) (*Listing[T], error) {
	page, err := c.page(ctx, only(o))
	if err != nil {
		return nil, err
	}
	out := &Listing[T]{Items: make([]*T, 0, len(page.Items)), Revision: page.Revision, Continue: page.Continue}
	for _, v := range page.Items {
		obj, err := c.one("list", v, nil)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, obj)
	}
	return out, nil
}

// All yields the objects of the collection that the options pick, all as they were when it began.
// Each is read when it is reached. After an error it ends.
func (c *Collection[T]) All(ctx context.Context, o ...ListOptions) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		page, err := c.page(ctx, only(o))
		if err != nil {
			yield(nil, err)
			return
		}
		for _, v := range page.Items {
			obj, err := c.one("list", v, nil)
			if !yield(obj, err) || err != nil {
				return
			}
		}
	}
}

func (c *Collection[T]) page(ctx context.Context, o ListOptions) (*storage.Page, error) {
	if o.Namespace == "" {
		o.Namespace = c.namespace
	}
	return c.store.List(ctx, o)
}

// An Event is a change of an object of a [Collection].
type Event[T any] struct {
	Type storage.EventType
	// Object is what the object became; with [storage.Deleted] what it last was. Its resourceVersion
	// is that of the change: a watch that goes on [storage.After] it tells what comes next.
	Object *T
}

// Watch yields what is there, each object as added, and then each change, in order and with none
// left out; with options, what these ask for. It begins when it is ranged over, and ends when ctx
// does, or after an error: apierrors.IsResourceExpired knows that of a watch that fell behind
// what is kept, and has to begin anew.
func (c *Collection[T]) Watch(ctx context.Context, o ...WatchOptions) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		given := only(o)
		if given.Namespace == "" {
			given.Namespace = c.namespace
		}
		w, err := c.store.Watch(ctx, given)
		if err != nil {
			yield(Event[T]{}, err)
			return
		}
		defer w.Stop()
		for ctx.Err() == nil {
			e, ok, err := w.Next()
			if err != nil {
				yield(Event[T]{}, c.store.WatchError(err))
				return
			}
			if !ok {
				select {
				case <-w.Wait():
				case <-ctx.Done():
				}
				continue
			}
			obj, err := c.one("watch", e.Version, nil)
			if !yield(Event[T]{e.Type, obj}, err) || err != nil {
				return
			}
		}
	}
}
