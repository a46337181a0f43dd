package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A summary is what the conditions of a namespace tell. Its zero value is that all is gone.
type summary struct {
	left    []*rest
	failure error // why the last try to delete did not go through
}

// conditions are all that a namespace has, in their order, in the reference's words (rule B31).
func (s summary) conditions() []corev1.NamespaceCondition {
	all := []corev1.NamespaceCondition{
		fine(corev1.NamespaceDeletionDiscoveryFailure, "ResourcesDiscovered", "All resources successfully discovered"),
		fine(corev1.NamespaceDeletionGVParsingFailure, "ParsedGroupVersions", "All legacy kube types successfully parsed"),
		fine(corev1.NamespaceDeletionContentFailure, "ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
		fine(corev1.NamespaceContentRemaining, "ContentRemoved", "All content successfully removed"),
		fine(corev1.NamespaceFinalizersRemaining, "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
	}
	wrong := func(i int, reason, message string) {
		all[i].Status, all[i].Reason, all[i].Message = corev1.ConditionTrue, reason, message
	}
	if s.failure != nil {
		wrong(2, "ContentDeletionFailed", fmt.Sprintf("Failed to delete all resource types, 1 remaining: %v", s.failure))
	}
	if text := s.remaining(); text != "" {
		wrong(3, "SomeResourcesRemain", "Some resources are remaining: "+text)
	}
	if text := s.holding(); text != "" {
		wrong(4, "SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: "+text)
	}
	return all
}

func fine(t corev1.NamespaceConditionType, reason, message string) corev1.NamespaceCondition {
	return corev1.NamespaceCondition{Type: t, Status: corev1.ConditionFalse, Reason: reason, Message: message}
}

// remaining says how many objects of which resource are left. The dot stands there for the core
// group too: so does the reference's.
func (s summary) remaining() string {
	var texts []string
	for _, r := range s.left {
		gr := r.store.Resource()
		texts = append(texts, fmt.Sprintf("%s.%s has %d resource instances", gr.Resource, gr.Group, len(r.items)))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// holding says which finalizers hold how many objects.
func (s summary) holding() string {
	counts := map[string]int{}
	for _, r := range s.left {
		r.finalizers(counts)
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, fmt.Sprintf("%s in %d resource instances", name, counts[name]))
	}
	return strings.Join(texts, ", ")
}

// setConditions puts conditions in place of those of their types, at the end where there is none.
// The time of a condition moves only with its status.
func setConditions(status *corev1.NamespaceStatus, conditions []corev1.NamespaceCondition, now metav1.Time) {
	for _, c := range conditions {
		c.LastTransitionTime = now
		i := slices.IndexFunc(status.Conditions, func(old corev1.NamespaceCondition) bool { return old.Type == c.Type })
		if i < 0 {
			status.Conditions = append(status.Conditions, c)
			continue
		}
		if old := status.Conditions[i]; old.Status == c.Status && !old.LastTransitionTime.IsZero() {
			c.LastTransitionTime = old.LastTransitionTime
		}
		status.Conditions[i] = c
	}
}
