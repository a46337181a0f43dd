package metadata

import (
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Follows says of the metadata of an object that has a Go type what [Born] and [Succeeds] say of others
// together: that neither ValidateObjectMetaAccessor nor ValidateObjectMetaAccessorUpdate finds anything
// wrong with it in place of old. About owners and managedFields it is never sure.
func Follows(obj, old metav1.Object, namespaced bool, valid apivalidation.ValidateNameFunc) bool {
	switch {
	case len(obj.GetOwnerReferences()) > 0, len(obj.GetManagedFields()) > 0,
		obj.GetResourceVersion() == "",
		obj.GetDeletionTimestamp() != nil, obj.GetDeletionGracePeriodSeconds() != nil,
		old.GetDeletionTimestamp() != nil, old.GetDeletionGracePeriodSeconds() != nil,
		obj.GetName() != old.GetName(), obj.GetNamespace() != old.GetNamespace(), obj.GetUID() != old.GetUID(),
		obj.GetCreationTimestamp() != old.GetCreationTimestamp(),
		obj.GetGeneration() < 0, obj.GetGeneration() < old.GetGeneration(),
		namespaced != (obj.GetNamespace() != ""):
		return false
	}
	return named(obj, valid) && (!namespaced || len(apivalidation.ValidateNamespaceName(obj.GetNamespace(), false)) == 0) &&
		finalized(obj.GetFinalizers()) && labelled(obj.GetLabels()) && annotated(obj.GetAnnotations())
}

func named(obj metav1.Object, valid apivalidation.ValidateNameFunc) bool {
	name, prefix := obj.GetName(), obj.GetGenerateName()
	return name != "" && len(valid(name, false)) == 0 && (prefix == "" || len(valid(prefix, true)) == 0)
}

func finalized(finalizers []string) bool {
	for _, f := range finalizers {
		if f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents || !isLabelKey(f) {
			return false
		}
	}
	return true
}

func labelled(labels map[string]string) bool {
	for name, value := range labels {
		if !isLabelKey(name) || !isLabelValue(value) {
			return false
		}
	}
	return true
}

func annotated(annotations map[string]string) bool {
	size := 0
	for name, value := range annotations {
		size += len(name) + len(value)
		if !isLabelKey(name) && !isLabelKey(strings.ToLower(name)) {
			return false
		}
	}
	return size <= apivalidation.TotalAnnotationSizeLimitB
}
