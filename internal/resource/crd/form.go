package crd

import (
	"bytes"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
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
	content := map[string]any{}
	duplicates, err := kjson.UnmarshalStrict(data, &content)
	if err != nil {
		return nil, nil, err
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

func (f *form) Encode(obj runtime.Object) ([]byte, error) {
	u, err := asUnstructured(obj)
	if err != nil {
		return nil, err
	}
	return encode(f.gvk, u.Object)
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
func encode(gvk schema.GroupVersionKind, content map[string]any) ([]byte, error) {
	rest := make(map[string]any, len(content))
	for k, v := range content {
		if k != "apiVersion" && k != "kind" && k != "metadata" {
			rest[k] = v
		}
	}
	metadata := content["metadata"]
	if metadata == nil {
		metadata = map[string]any{}
	}
	head, err := json.Marshal(struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   any    `json:"metadata"`
	}{gvk.GroupVersion().String(), gvk.Kind, metadata})
	if err != nil || len(rest) == 0 {
		return head, err
	}
	tail, err := json.Marshal(rest)
	if err != nil {
		return nil, err
	}
	return bytes.Join([][]byte{head[:len(head)-1], tail[1:]}, []byte{','}), nil
}
