package crd

import (
	"fmt"
	"reflect"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Accept says what the status of def becomes next to the other definitions of its group: which
// names it gets (rules C19, C22, C23), whether they are what it asked for, and that it is
// about to be established if they are (rule C20). Names that clash are left as they were; the
// others are taken. A status that need not change is returned as it is. def itself may be
// among others; now is the time of conditions that change.
func Accept(def *apiextensionsv1.CustomResourceDefinition, others []*apiextensionsv1.CustomResourceDefinition, now metav1.Time) apiextensionsv1.CustomResourceDefinitionStatus {
	inUse := namesInUse(def.Spec.Group, others)
	inUse.add(def)
	return accept(def, inUse, now)
}

// accept is [Accept] for those who know which names are in use, by def itself too.
func accept(def *apiextensionsv1.CustomResourceDefinition, inUse nameSet, now metav1.Time) apiextensionsv1.CustomResourceDefinitionStatus {
	status := *def.Status.DeepCopy()
	names, naming := settleNames(def, inUse)
	status.AcceptedNames = names
	SetCondition(&status, naming, now)
	accepted := naming.Status == apiextensionsv1.ConditionTrue
	switch {
	case isTrue(def, apiextensionsv1.Established):
		// Once true it stays true.
	case accepted:
		SetCondition(&status, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse,
			Reason: "Installing", Message: "the initial names have been accepted",
		}, now)
	case apihelpers.FindCRDCondition(def, apiextensionsv1.Established) == nil:
		SetCondition(&status, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse,
			Reason: "NotAccepted", Message: "not all names are accepted",
		}, now)
	}
	if c := approval(def); c != nil {
		SetCondition(&status, *c, now)
	}
	return status
}

// Establish says what the status of a definition becomes once its resource is in the
// catalogue: established, if its names are accepted (rule C20).
func Establish(def *apiextensionsv1.CustomResourceDefinition, now metav1.Time) apiextensionsv1.CustomResourceDefinitionStatus {
	status := *def.Status.DeepCopy()
	if isTrue(def, apiextensionsv1.NamesAccepted) && !isTrue(def, apiextensionsv1.Established) {
		SetCondition(&status, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue,
			Reason: "InitialNamesAccepted", Message: "the initial names have been accepted",
		}, now)
	}
	return status
}

// SetCondition puts c in place of the condition of its type, at the end if there is none. Its
// time moves only with its status (rule C18).
func SetCondition(status *apiextensionsv1.CustomResourceDefinitionStatus, c apiextensionsv1.CustomResourceDefinitionCondition, now metav1.Time) {
	for i := range status.Conditions {
		old := &status.Conditions[i]
		if old.Type != c.Type {
			continue
		}
		c.LastTransitionTime, c.ObservedGeneration = old.LastTransitionTime, old.ObservedGeneration
		if old.Status != c.Status || old.LastTransitionTime.IsZero() {
			c.LastTransitionTime = now
		}
		*old = c
		return
	}
	c.LastTransitionTime = now
	status.Conditions = append(status.Conditions, c)
}

func isTrue(def *apiextensionsv1.CustomResourceDefinition, t apiextensionsv1.CustomResourceDefinitionConditionType) bool {
	return apihelpers.IsCRDConditionTrue(def, t)
}

// A nameSet is the accepted names of a group: what may stand in a path or on a command line,
// and kinds.
type nameSet struct{ resources, kinds map[string]bool }

func namesInUse(group string, defs []*apiextensionsv1.CustomResourceDefinition) nameSet {
	in := nameSet{map[string]bool{}, map[string]bool{}}
	for _, d := range defs {
		if d.Spec.Group == group {
			in.add(d)
		}
	}
	return in
}

// add adds the accepted names of a definition.
func (in nameSet) add(d *apiextensionsv1.CustomResourceDefinition) {
	n := &d.Status.AcceptedNames
	in.resources[n.Plural], in.resources[n.Singular] = true, true
	for _, name := range n.ShortNames {
		in.resources[name] = true
	}
	in.kinds[n.Kind], in.kinds[n.ListKind] = true, true
}

// settleNames decides about each name by itself. The condition tells of the last one that clashes.
func settleNames(def *apiextensionsv1.CustomResourceDefinition, inUse nameSet) (apiextensionsv1.CustomResourceDefinitionNames, apiextensionsv1.CustomResourceDefinitionCondition) {
	want := *def.Spec.Names.DeepCopy()
	got := *def.Status.AcceptedNames.DeepCopy()
	verdict := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue,
		Reason: "NoConflicts", Message: "no conflicts found",
	}
	settle := func(err error, reason string) bool {
		if err != nil {
			verdict.Status, verdict.Reason, verdict.Message = apiextensionsv1.ConditionFalse, reason, err.Error()
		}
		return err == nil
	}
	if settle(clash(want.Plural, got.Plural, inUse.resources), "PluralConflict") {
		got.Plural = want.Plural
	}
	if settle(clash(want.Singular, got.Singular, inUse.resources), "SingularConflict") {
		got.Singular = want.Singular
	}
	if settle(shortNameClashes(want.ShortNames, got.ShortNames, inUse.resources), "ShortNamesConflict") {
		got.ShortNames = want.ShortNames
	}
	if settle(clash(want.Kind, got.Kind, inUse.kinds), "KindConflict") {
		got.Kind = want.Kind
	}
	if settle(clash(want.ListKind, got.ListKind, inUse.kinds), "ListKindConflict") {
		got.ListKind = want.ListKind
	}
	got.Categories = want.Categories
	return got, verdict
}

// clash says that a name is not to be had, nil if it is: it is the definition's own, or free.
func clash(want, own string, inUse map[string]bool) error {
	if want == own || !inUse[want] {
		return nil
	}
	return fmt.Errorf("%q is already in use", want)
}

func shortNameClashes(want, own []string, inUse map[string]bool) error {
	if reflect.DeepEqual(want, own) {
		return nil
	}
	mine := map[string]bool{}
	for _, name := range own {
		mine[name] = true
	}
	var errs []error
	for _, name := range want {
		if !mine[name] {
			errs = append(errs, clash(name, "", inUse))
		}
	}
	return utilerrors.NewAggregate(errs) // leaves nils out
}

// approval is the condition of definitions in groups that belong to Kubernetes (rule C13).
func approval(def *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionCondition {
	if !apihelpers.IsProtectedCommunityGroup(def.Spec.Group) {
		return nil
	}
	state, message := apihelpers.GetAPIApprovalState(def.Annotations)
	c := &apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.KubernetesAPIApprovalPolicyConformant, Status: apiextensionsv1.ConditionFalse, Message: message,
	}
	switch state {
	case apihelpers.APIApproved:
		c.Status, c.Reason = apiextensionsv1.ConditionTrue, "ApprovedAnnotation"
	case apihelpers.APIApprovalBypassed:
		c.Reason = "UnapprovedAnnotation"
	case apihelpers.APIApprovalMissing:
		c.Reason = "MissingAnnotation"
	case apihelpers.APIApprovalInvalid:
		c.Reason = "InvalidAnnotation"
	default:
		c.Status, c.Reason = apiextensionsv1.ConditionUnknown, "UnknownAnnotation"
	}
	return c
}
