package crd

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/internal/objectjson"
)

// A form is how the objects of one version of a custom resource look to clients.
type form struct {
	gvk    schema.GroupVersionKind
	schema *versionSchema
}

func (f *form) GroupVersionKind() schema.GroupVersionKind { return f.gvk }

func (f *form) New() runtime.Object {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(f.gvk)
	return u
}

func (f *form) Typed() runtime.Object { return nil }

func (f *form) Patches() []string {
	return []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)}
}

// Decode finds duplicate fields first, then unknown ones: in metadata, in the
// schema, in the metadata of embedded objects.
func (f *form) Decode(data []byte) (runtime.Object, []string, error) {
	content, duplicates, err := f.schema.trees.Decode(data)
	if err != nil {
		return nil, nil, err
	}
	if content == nil { // of null
		content = map[string]any{}
	}
	unknown, err := f.schema.shape(content, client)
	if err != nil {
		return nil, nil, err
	}
	var findings []string
	for _, d := range duplicates {
		findings = append(findings, d.Error())
	}
	for _, path := range unknown {
		findings = append(findings, fmt.Sprintf("unknown field %q", path))
	}
	return &unstructured.Unstructured{Object: content}, findings, nil
}

// Fits says that encoding obj and decoding that would leave it as it is, with no findings. It is
// certain if it says so, and not if it does not.
func (f *form) Fits(obj runtime.Object) bool {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || u.GroupVersionKind() != f.gvk {
		return false
	}
	st, err := f.schema.structural()
	return err == nil && st.fits(u.Object, f.schema.trees)
}

func (f *form) Encode(obj runtime.Object) ([]byte, error) {
	u, err := asUnstructured(obj)
	if err != nil {
		return nil, err
	}
	return encode(f.gvk, u.Object, f.schema.trees)
}

func asUnstructured(obj runtime.Object) (*unstructured.Unstructured, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("crd: a custom resource is not a %T", obj)
	}
	return u, nil
}

// encode writes content as JSON that begins with apiVersion, kind and metadata, the
// first two as gvk says.
func encode(gvk schema.GroupVersionKind, content map[string]any, trees *objectjson.Trees) ([]byte, error) {
	metadata := content["metadata"]
	if metadata == nil {
		metadata = map[string]any{}
	}
	out := make([]byte, 0, usualSizeBytes)
	out = append(out, `{"apiVersion":`...)
	out = objectjson.AppendString(out, gvk.GroupVersion().String())
	out = append(out, `,"kind":`...)
	out = objectjson.AppendString(out, gvk.Kind)
	out = append(out, `,"metadata":`...)
	out, err := trees.Append(out, metadata)
	if err != nil {
		return nil, err
	}
	out, err = objectjson.AppendMembers(out, content, "apiVersion", "kind", "metadata")
	if err != nil {
		return nil, err
	}
	return append(out, '}'), nil
}

// usualSizeBytes is room for most objects.
const usualSizeBytes = 2 << 10
