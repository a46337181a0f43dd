package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/storage"
)

// A goType is what is known of a Go type whose objects are stored: how they are written, read
// and copied. It is the type's [storage.Codec].
type goType[T any] struct {
	kind  schema.GroupVersionKind
	head  []byte // kind and apiVersion, as they begin the JSON of every object
	print storage.Fingerprint
	typed bool    // T has kind and apiVersion of its own
	whole bool    // *T is a runtime.Object
	copy  *copier // of T, unless whole

	unmarshal func(data []byte, v any) error
}

// CodecOf returns the codec of a Go type: JSON as encoding/json writes it. *T must have the methods
// of an embedded [metav1.ObjectMeta], whose JSON name is "metadata" and before which only a
// [metav1.TypeMeta] may stand; the error says what is not so. If *T is no [runtime.Object], the
// objects are such that hold one; see [Collection].
func CodecOf[T any](kind schema.GroupVersionKind) (storage.Codec, error) { return goTypeOf[T](kind) }

func goTypeOf[T any](kind schema.GroupVersionKind) (*goType[T], error) {
	g := &goType[T]{kind: kind, unmarshal: unmarshalOf(reflect.TypeFor[T]())}
	_, g.typed = any(new(T)).(typed)
	if _, g.whole = any(new(T)).(runtime.Object); !g.whole {
		var err error
		if g.copy, err = copierFor(reflect.TypeFor[T]()); err != nil {
			return nil, fmt.Errorf("registry: %w", err)
		}
	}
	version, name := kind.ToAPIVersionAndKind()
	g.head = fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, name, version)
	sum := fnv.New64a()
	sum.Write(g.head)
	g.print = storage.Fingerprint(sum.Sum64() | 1) // never storage.Unfit
	return g, g.probe()
}

// typed has the methods of an embedded TypeMeta.
type typed interface{ GetObjectKind() schema.ObjectKind }

// probe writes an object and reads it, to find out now what would not work later.
func (g *goType[T]) probe() error {
	const name = "probe"
	layout := fmt.Errorf("registry: the JSON of %s has to begin with its metadata: embed metav1.ObjectMeta `json:\"metadata\"`, before any other field but metav1.TypeMeta `json:\",inline\"`", reflect.TypeFor[T]())
	object, ok := any(new(T)).(metav1.Object)
	if !ok {
		return layout
	}
	object.SetName(name)
	data, err := g.marshal(any(object).(*T))
	if err != nil {
		return fmt.Errorf("registry: objects of %s cannot be written: %w", reflect.TypeFor[T](), err)
	}
	if !bytes.HasPrefix(data, append(bytes.Clone(g.head), `"metadata":{`...)) {
		return layout
	}
	back := new(T)
	if err := g.unmarshal(data, back); err != nil || any(back).(metav1.Object).GetName() != name {
		return fmt.Errorf("registry: objects of %s are not read as they are written: %v", reflect.TypeFor[T](), err)
	}
	return nil
}

// marshal writes an object with kind and apiVersion, whether T has them or not.
func (g *goType[T]) marshal(object *T) ([]byte, error) {
	if g.typed {
		if kind := any(object).(typed).GetObjectKind(); kind.GroupVersionKind() != g.kind {
			named := *object
			any(&named).(typed).GetObjectKind().SetGroupVersionKind(g.kind)
			object = &named
		}
	}
	data, err := json.Marshal(object)
	if err != nil || g.typed {
		return data, err
	}
	return append(bytes.Clone(g.head), data[1:]...), nil
}

// Encode implements [storage.Codec].
func (g *goType[T]) Encode(obj runtime.Object) ([]byte, storage.Fingerprint, error) {
	object, err := unboxed[T](obj)
	if err != nil {
		return nil, storage.Unfit, err
	}
	data, err := g.marshal(object)
	return data, g.print, err
}

// Decode implements [storage.Codec].
func (g *goType[T]) Decode(data []byte) (runtime.Object, error) {
	object := new(T)
	if err := g.unmarshal(data, object); err != nil {
		return nil, err
	}
	return g.box(object), nil
}

// Fingerprint implements [storage.Codec].
func (g *goType[T]) Fingerprint() storage.Fingerprint { return g.print }

// box makes a runtime.Object of one of T.
func (g *goType[T]) box(object *T) runtime.Object {
	if g.whole {
		return any(object).(runtime.Object)
	}
	return &boxed[T]{Object: any(object).(metav1.Object), object: object, of: g}
}

// A boxed holds an object whose type lacks what a runtime.Object needs.
type boxed[T any] struct {
	metav1.Object // the same object
	object        *T
	of            *goType[T]
}

// GetObjectKind implements [runtime.Object]. The kind is that of the type, whatever it is set to.
func (b *boxed[T]) GetObjectKind() schema.ObjectKind {
	return &metav1.TypeMeta{Kind: b.of.kind.Kind, APIVersion: b.of.kind.GroupVersion().String()}
}

// DeepCopyObject implements [runtime.Object].
func (b *boxed[T]) DeepCopyObject() runtime.Object {
	object := new(T)
	b.of.copy.into(reflect.ValueOf(object).Elem(), reflect.ValueOf(b.object).Elem())
	return b.of.box(object)
}

// MarshalJSON writes the object that it holds.
func (b *boxed[T]) MarshalJSON() ([]byte, error) { return b.of.marshal(b.object) }

// UnmarshalJSON reads an object into the box.
func (b *boxed[T]) UnmarshalJSON(data []byte) error { return b.of.unmarshal(data, b.object) }

// empty returns a box with an empty object.
func (b *boxed[T]) empty() runtime.Object { return b.of.box(new(T)) }

// equal reports whether two objects are stored as the same.
func (b *boxed[T]) equal(other runtime.Object) bool {
	o, ok := other.(*boxed[T])
	if !ok {
		return false
	}
	mine, err := b.of.marshal(b.object)
	if err != nil {
		return false
	}
	its, err := b.of.marshal(o.object)
	return err == nil && bytes.Equal(mine, its)
}

// unboxed returns the Go object that obj is or holds.
func unboxed[T any](obj runtime.Object) (*T, error) {
	switch o := obj.(type) {
	case *boxed[T]:
		return o.object, nil
	case nil:
		return nil, nil
	}
	if o, ok := any(obj).(*T); ok {
		return o, nil
	}
	return nil, fmt.Errorf("registry: an object of type %T among those of %s", obj, reflect.TypeFor[T]())
}
