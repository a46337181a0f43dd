package crd

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// named is a definition that asks for these names, with those of got accepted.
func named(plural, kind string, got bool, short ...string) *apiextensionsv1.CustomResourceDefinition {
	d := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + ".test.example"}}
	d.Spec.Group = "test.example"
	d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
		Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List", ShortNames: short,
	}
	if got {
		d.Status = Accept(d, nil, noon)
		d.Status = Establish(d, noon)
	}
	return d
}

func described(s apiextensionsv1.CustomResourceDefinitionStatus) []string {
	n := s.AcceptedNames
	out := []string{fmt.Sprint(n.Plural, "/", n.Singular, "/", n.Kind, "/", n.ListKind, "/", strings.Join(n.ShortNames, "+"))}
	for _, c := range s.Conditions {
		out = append(out, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return out
}

func TestNamesAreAcceptedOrNot(t *testing.T) {
	const (
		accepted   = "NamesAccepted=True NoConflicts: no conflicts found"
		installing = "Established=False Installing: the initial names have been accepted"
		refused    = "Established=False NotAccepted: not all names are accepted"
		serving    = "Established=True InitialNamesAccepted: the initial names have been accepted"
	)
	renamed := func(d *apiextensionsv1.CustomResourceDefinition, change func(*apiextensionsv1.CustomResourceDefinitionNames)) *apiextensionsv1.CustomResourceDefinition {
		change(&d.Spec.Names)
		return d
	}
	elsewhere := named("widgets", "Widget", true)
	elsewhere.Spec.Group = "other.example"
	waiting := named("gizmos", "Widget", false)
	waiting.Status = Accept(waiting, []*apiextensionsv1.CustomResourceDefinition{named("widgets", "Widget", true)}, noon)
	for _, c := range []struct {
		name   string
		def    *apiextensionsv1.CustomResourceDefinition
		others []*apiextensionsv1.CustomResourceDefinition
		want   []string
	}{
		{"the first of its group gets its names (rules C19, C20)", named("widgets", "Widget", false, "wd"), nil,
			[]string{"widgets/widget/Widget/WidgetList/wd", accepted, installing}},
		{"names of another group do not matter (rule C22)", named("widgets", "Widget", false), []*apiextensionsv1.CustomResourceDefinition{elsewhere},
			[]string{"widgets/widget/Widget/WidgetList/", accepted, installing}},
		{"a kind that is taken: what is free is taken, the last clash is told (rule C22)", named("gizmos", "Widget", false),
			[]*apiextensionsv1.CustomResourceDefinition{named("widgets", "Widget", true)},
			[]string{"gizmos////", `NamesAccepted=False ListKindConflict: "WidgetList" is already in use`, refused}},
		{"a short name that is taken", named("gizmos", "Gizmo", false, "gz", "wd"),
			[]*apiextensionsv1.CustomResourceDefinition{named("widgets", "Widget", true, "wd")},
			[]string{"gizmos/gizmo/Gizmo/GizmoList/", `NamesAccepted=False ShortNamesConflict: "wd" is already in use`, refused}},
		{"a plural that is somebody's short name", named("wd", "Wood", false),
			[]*apiextensionsv1.CustomResourceDefinition{named("widgets", "Widget", true, "wd")},
			[]string{"/wood/Wood/WoodList/", `NamesAccepted=False PluralConflict: "wd" is already in use`, refused}},
		{"names that became free are taken (rule C24)", waiting, nil,
			[]string{"gizmos/widget/Widget/WidgetList/", accepted, installing}},
		{"an established one with a new clash goes on under its old names (rule C23)",
			renamed(named("gizmos", "Gizmo", true), func(n *apiextensionsv1.CustomResourceDefinitionNames) { n.ShortNames = []string{"wd"} }),
			[]*apiextensionsv1.CustomResourceDefinition{named("widgets", "Widget", true, "wd")},
			[]string{"gizmos/gizmo/Gizmo/GizmoList/", `NamesAccepted=False ShortNamesConflict: "wd" is already in use`, serving}},
		{"an established one changes its singular", renamed(named("gizmos", "Gizmo", true), func(n *apiextensionsv1.CustomResourceDefinitionNames) { n.Singular = "thing" }), nil,
			[]string{"gizmos/thing/Gizmo/GizmoList/", accepted, serving}},
	} {
		t.Run(c.name, func(t *testing.T) { same(t, "status", described(Accept(c.def, c.others, noon)), c.want) })
	}
	same(t, "what is in the catalogue becomes established", described(named("widgets", "Widget", true).Status),
		[]string{"widgets/widget/Widget/WidgetList/", accepted, serving})
}

func TestTheTimeOfAConditionMovesWithItsStatus(t *testing.T) {
	later := metav1.NewTime(noon.Add(time.Hour))
	def := named("widgets", "Widget", true)
	if s := Accept(def, nil, later); s.Conditions[0].LastTransitionTime != noon {
		t.Errorf("nothing changed (rule C18): %v", s.Conditions)
	}
	def.Spec.Names.ShortNames = []string{"gz"}
	s := Accept(def, []*apiextensionsv1.CustomResourceDefinition{named("gizmos", "Gizmo", true, "gz")}, later)
	if s.Conditions[0].LastTransitionTime != later || s.Conditions[1].LastTransitionTime != noon {
		t.Errorf("the names clash since later, it is established since noon: %v", s.Conditions)
	}
}

func TestAGroupOfKubernetesSaysWhetherItIsApproved(t *testing.T) {
	for annotation, want := range map[string]string{
		"https://example.com/approval": "True ApprovedAnnotation",
		"unapproved, for a test":       "False UnapprovedAnnotation",
		"":                             "False MissingAnnotation",
		"yes":                          "False InvalidAnnotation",
	} {
		def := named("widgets", "Widget", false)
		def.Spec.Group = "stuff.k8s.io"
		def.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: annotation}
		s := Accept(def, nil, noon)
		c := s.Conditions[len(s.Conditions)-1]
		if got := fmt.Sprint(c.Status, " ", c.Reason); c.Type != apiextensionsv1.KubernetesAPIApprovalPolicyConformant || got != want {
			t.Errorf("%q (rule C13): got %s %s, want %s", annotation, c.Type, got, want)
		}
	}
}
