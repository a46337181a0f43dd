package controllers

import (
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// mills is the group and version of mills.
var mills = schema.GroupVersion{Group: "ratchet.example", Version: "v1"}

// A Mill is the custom resource of these tests; testdata/definitions defines it.
type Mill struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              MillSpec   `json:"spec"`
	Status            MillStatus `json:"status,omitzero"`
}

type MillSpec struct {
	Sails int32  `json:"sails,omitempty"` // 4 unless said otherwise
	Grain string `json:"grain"`
}

type MillStatus struct {
	Turning            int32              `json:"turning,omitempty"`
	Selector           string             `json:"selector,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

type MillList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Mill `json:"items"`
}

func (m *Mill) DeepCopyObject() runtime.Object {
	c := *m
	m.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions = slices.Clone(m.Status.Conditions) // conditions hold no pointers
	return &c
}

func (l *MillList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = make([]Mill, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*Mill)
	}
	return &c
}

// scheme knows the built-in kinds, definitions and mills.
func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	all := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, func(s *runtime.Scheme) error {
		s.AddKnownTypes(mills, &Mill{}, &MillList{})
		metav1.AddToGroupVersion(s, mills)
		return nil
	})
	if err := all.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// mill is a mill of namespace default, as its owner writes it.
func mill(name, grain string) *Mill {
	return &Mill{ObjectMeta: named(name), Spec: MillSpec{Grain: grain}}
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name}
}
