package resource

import (
	"errors"
	"fmt"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"encoding/json"

	"github.com/pawl-dev/pawl/internal/objectjson"
	"github.com/pawl-dev/pawl/internal/ownership"
	"github.com/pawl-dev/pawl/registry"
)

// A Scale is the subresource through which the replicas of an object are read and set (rules
// H176, C93 to C96). What is stored stays the object; a scale is how a part of it looks.
type Scale struct {
	Replicas []string // where the object says how many are wanted
	Status   []string // and how many there are
	Selector []string // and which they are: a string, a label selector or labels; nil if it does not say
	// Custom objects need not say how many are wanted, and take no strategic merge patches.
	Custom bool
	// Versions are those, as apiVersion says them, whose managedFields may speak of replicas.
	Versions []string
	// Parent is the version that this is a subresource of.
	Parent schema.GroupVersion

	owners *ownership.Manager
}

// ScaleKind is what scales say they are.
var ScaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// NewScale completes s.
func NewScale(s Scale) *Scale {
	s.owners = ownership.New(ownership.Options{
		Kind: ScaleKind, Subresource: "scale", New: s.Form().New, Schemas: scaleSchemas, Convert: ownership.Unconverted{},
	})
	return &s
}

// Ownership keeps the managedFields that a scale shows.
func (s *Scale) Ownership() registry.Ownership { return s.owners }

// Of is the scale of an object, and whether the object says how many replicas are wanted.
func (s *Scale) Of(obj runtime.Object) (*autoscalingv1.Scale, bool, error) {
	acc, err := meta.Accessor(obj)
	if err != nil {
		return nil, false, err
	}
	m, err := objectjson.Of(obj)
	if err != nil {
		return nil, false, err
	}
	wanted, found, err := unstructured.NestedInt64(m, s.Replicas...)
	if err != nil {
		return nil, false, err
	}
	have, _, err := unstructured.NestedInt64(m, s.Status...)
	if err != nil {
		return nil, false, err
	}
	selector, err := s.selector(m)
	if err != nil {
		return nil, false, err
	}
	scale := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: acc.GetName(), Namespace: acc.GetNamespace(), UID: acc.GetUID(),
			ResourceVersion: acc.GetResourceVersion(), CreationTimestamp: acc.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: int32(wanted)},
		Status: autoscalingv1.ScaleStatus{Replicas: int32(have), Selector: selector},
	}
	scale.SetGroupVersionKind(ScaleKind)
	return scale, found, nil
}

func (s *Scale) selector(m map[string]any) (string, error) {
	if s.Selector == nil {
		return "", nil
	}
	v, found, err := unstructured.NestedFieldNoCopy(m, s.Selector...)
	if err != nil || !found {
		return "", err
	}
	switch v := v.(type) {
	case string:
		return v, nil
	case map[string]any:
		if set, _, err := unstructured.NestedStringMap(m, s.Selector...); err == nil { // a label selector has no strings
			return labels.SelectorFromSet(set).String(), nil
		}
		var ls metav1.LabelSelector
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(v, &ls); err != nil {
			return "", err
		}
		sel, err := metav1.LabelSelectorAsSelector(&ls)
		if err != nil {
			return "", err
		}
		return sel.String(), nil
	}
	return "", fmt.Errorf(".%s is no selector", strings.Join(s.Selector, "."))
}

// unsetReplicas stands for replicas that an object does not say, while its scale is changed.
const unsetReplicas = -1 << 31

// Change makes of an object the one whose scale is what change makes of its scale. The scale
// that change gets has the managedFields that concern it; those that it returns are put back.
func (s *Scale) Change(obj runtime.Object, change func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error)) (runtime.Object, error) {
	acc, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	old, found, err := s.Of(obj)
	if err != nil {
		return nil, err
	}
	if !found && s.Custom {
		old.Spec.Replicas = unsetReplicas
	}
	handler := managedfields.NewScaleHandler(acc.GetManagedFields(), s.Parent, s.mappings())
	if old.ManagedFields, err = handler.ToSubresource(); err != nil {
		return nil, err
	}
	scale, err := change(old)
	if err != nil {
		return nil, err
	}
	if scale.Spec.Replicas == unsetReplicas {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the spec replicas field %q cannot be empty", "."+strings.Join(s.Replicas, ".")))
	}
	if obj, err = s.set(obj, scale.Spec.Replicas); err != nil {
		return nil, err
	}
	if acc, err = meta.Accessor(obj); err != nil {
		return nil, err
	}
	if scale.ResourceVersion != "" {
		acc.SetResourceVersion(scale.ResourceVersion)
	}
	entries, err := handler.ToParent(scale.ManagedFields)
	if err != nil {
		return nil, err
	}
	acc.SetManagedFields(entries)
	return obj, nil
}

func (s *Scale) mappings() managedfields.ResourcePathMappings {
	parts := make([]any, len(s.Replicas))
	for i, p := range s.Replicas {
		parts[i] = p
	}
	m := managedfields.ResourcePathMappings{}
	for _, v := range s.Versions {
		m[v] = fieldpath.MakePathOrDie(parts...)
	}
	return m
}

func (s *Scale) set(obj runtime.Object, replicas int32) (runtime.Object, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return obj, unstructured.SetNestedField(u.Object, int64(replicas), s.Replicas...)
	}
	m, err := objectjson.Of(obj)
	if err != nil {
		return nil, err
	}
	if err := unstructured.SetNestedField(m, int64(replicas), s.Replicas...); err != nil {
		return nil, err
	}
	next, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	typed, ok := next.(runtime.Object)
	if !ok {
		return nil, errors.New("scale: not an object")
	}
	return typed, runtime.DefaultUnstructuredConverter.FromUnstructured(m, typed)
}

// Missing is the answer to a reader of the scale of an object that does not say how many
// replicas are wanted (rule C94).
func (s *Scale) Missing() error {
	return apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", "."+strings.Join(s.Replicas, ".")))
}

// Form is how scales look to clients.
func (s *Scale) Form() Form { return scaleForm{s.Custom} }

type scaleForm struct{ custom bool }

func (scaleForm) GroupVersionKind() schema.GroupVersionKind { return ScaleKind }

func (scaleForm) New() runtime.Object {
	s := &autoscalingv1.Scale{}
	s.SetGroupVersionKind(ScaleKind)
	return s
}

func (f scaleForm) Decode(data []byte) (runtime.Object, []string, error) {
	s := f.New()
	strict, err := kjson.UnmarshalStrict(data, s)
	if err != nil {
		return nil, nil, err
	}
	s.GetObjectKind().SetGroupVersionKind(ScaleKind)
	findings := make([]string, len(strict))
	for i, e := range strict {
		findings[i] = e.Error()
	}
	return s, findings, nil
}

func (scaleForm) Encode(obj runtime.Object) ([]byte, error) {
	obj = obj.DeepCopyObject()
	obj.GetObjectKind().SetGroupVersionKind(ScaleKind)
	return json.Marshal(obj)
}

func (f scaleForm) Patches() []string {
	types := []string{"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"}
	if !f.custom {
		types = append(types, "application/strategic-merge-patch+json")
	}
	return types
}

func (f scaleForm) Typed() runtime.Object { return &autoscalingv1.Scale{} }

// scaleSchemas are what server-side apply knows of scales.
func scaleSchemas() (map[string]*spec.Schema, error) {
	const text = `{"type":"object","x-kubernetes-group-version-kind":[{"group":"autoscaling","version":"v1","kind":"Scale"}],"properties":{
		"apiVersion":{"type":"string"},"kind":{"type":"string"},
		"metadata":{"type":"object","properties":{"name":{"type":"string"},"namespace":{"type":"string"},"uid":{"type":"string"},"resourceVersion":{"type":"string"},
			"creationTimestamp":{"type":"string"},"managedFields":{"type":"array","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}},
		"spec":{"type":"object","properties":{"replicas":{"type":"integer","format":"int32"}}},
		"status":{"type":"object","properties":{"replicas":{"type":"integer","format":"int32"},"selector":{"type":"string"}}}}}`
	s := &spec.Schema{}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, err
	}
	return map[string]*spec.Schema{"io.k8s.api.autoscaling.v1.Scale": s}, nil
}
