package builtin

import (
	"encoding/json"
	"fmt"
	"hash/fnv"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/pawl-dev/pawl/storage"
)

// A form is the resource.Form of a kind.
type form struct{ Kind }

func (f form) New() runtime.Object   { return f.Kind.New() }
func (f form) Typed() runtime.Object { return f.Kind.New() }

// Decode reads what a client sent (rules H65, H72, B6).
func (f form) Decode(data []byte) (obj runtime.Object, findings []string, err error) {
	obj = f.Kind.New()
	strict, err := kjson.UnmarshalStrict(data, obj)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range strict {
		findings = append(findings, e.Error())
	}
	f.normalize(obj)
	return obj, findings, nil
}

func (f form) Encode(obj runtime.Object) ([]byte, error) { return f.encode(obj) }

// Patches is in the order of the reference's own list (rule H129).
func (f form) Patches() []string {
	return []string{
		string(types.JSONPatchType), string(types.MergePatchType),
		string(types.StrategicMergePatchType), string(types.ApplyYAMLPatchType),
	}
}

// A codec is the storage.Codec of a kind.
type codec struct {
	Kind
	print storage.Fingerprint
}

// Encode returns the form that clients see, which is also the one that is stored.
func (c codec) Encode(obj runtime.Object) ([]byte, storage.Fingerprint, error) {
	data, err := c.encode(obj)
	return data, c.print, err
}

func (c codec) Decode(data []byte) (runtime.Object, error) {
	obj := c.New()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, obj); err != nil {
		return nil, err
	}
	c.normalize(obj)
	return obj, nil
}

func (c codec) Fingerprint() storage.Fingerprint { return c.print }

// A viewCodec is the codec of a kind whose objects are stored as those of another.
type viewCodec struct {
	Kind
	stored storage.Codec
}

// Encode returns what the other kind would store, under its fingerprint.
func (c viewCodec) Encode(obj runtime.Object) ([]byte, storage.Fingerprint, error) {
	stored, err := c.view.store(obj)
	if err != nil {
		return nil, storage.Unfit, err
	}
	return c.stored.Encode(stored)
}

func (c viewCodec) Decode(data []byte) (runtime.Object, error) {
	stored, err := c.stored.Decode(data)
	if err != nil {
		return nil, err
	}
	obj, err := c.view.see(stored)
	if err != nil {
		return nil, err
	}
	c.normalize(obj)
	return obj, nil
}

// Fingerprint is that of no stored JSON: none is this kind's form.
func (c viewCodec) Fingerprint() storage.Fingerprint { return storage.Unfit }

// encode returns the JSON of an object, which says its kind though obj may not.
func (k Kind) encode(obj runtime.Object) ([]byte, error) {
	gvk := k.GroupVersionKind()
	if obj.GetObjectKind().GroupVersionKind() != gvk {
		obj = obj.DeepCopyObject()
		obj.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return json.Marshal(obj)
}

// fingerprint stands for the kind and for what decoding does to it.
func (k Kind) fingerprint() storage.Fingerprint {
	h := fnv.New64a()
	fmt.Fprintf(h, "builtin %s %s %s %d", k.Group, k.Version, k.Kind, k.Revision)
	return max(storage.Fingerprint(h.Sum64()), storage.Unfit+1)
}

// mistaken is the error for an object of another Go type: a fault of the program.
func (k Kind) mistaken(obj runtime.Object) error {
	return fmt.Errorf("builtin: a %T is no %s", obj, k.Kind)
}
