package registry

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/internal/metadata"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// address checks the namespace and the name under which an object is sought (rules S16 to S18).
func (s *Store) address(namespace, name string) error {
	switch {
	case s.policy.Namespaced && namespace == "":
		return apierrors.NewBadRequest("Namespace parameter required.")
	case name == "":
		return apierrors.NewBadRequest("Name parameter required.")
	}
	if why := content.IsPathSegmentName(name); len(why) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("Name parameter invalid: %q: %s", name, strings.Join(why, ";")))
	}
	return nil
}

// settleNamespace makes the object's namespace that of the request (rule S43a).
func (s *Store) settleNamespace(obj metav1.Object, namespace string) error {
	if !s.policy.Namespaced {
		obj.SetNamespace("")
		return nil
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(namespace)
	}
	if obj.GetNamespace() != namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// born gives a new object the metadata that only the server gives, in place of whatever the
// client sent (rules S36, S46, H87).
func (s *Store) born(obj metav1.Object) {
	obj.SetCreationTimestamp(metav1.NewTime(s.clock.Now().UTC().Truncate(secondsOnly)))
	obj.SetUID(s.newUID())
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetSelfLink("")
}

// keepImmutable puts back what an update leaves out or must not touch (rule S61).
func keepImmutable(obj, old metav1.Object) {
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	if created := old.GetCreationTimestamp(); !created.IsZero() {
		obj.SetCreationTimestamp(created)
	}
	if old.GetDeletionTimestamp() != nil {
		obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	}
	if obj.GetDeletionGracePeriodSeconds() == nil {
		obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	}
	obj.SetSelfLink("")
}

// keepAll puts back all metadata but managedFields and what says which version was meant
// (rule C91).
func keepAll(obj, old metav1.Object) {
	obj.SetGenerateName(old.GetGenerateName())
	obj.SetLabels(old.GetLabels())
	obj.SetAnnotations(old.GetAnnotations())
	obj.SetFinalizers(old.GetFinalizers())
	obj.SetOwnerReferences(old.GetOwnerReferences())
	obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
}

var metadataPath = field.NewPath("metadata")

// checkNew is what is wrong with the metadata of a new object (rules S43b, S43d, H180, H182).
func (s *Store) checkNew(obj metav1.Object) field.ErrorList {
	if m := untyped(obj); m != nil && metadata.Born(m, s.policy.Namespaced, s.policy.Name) {
		return nil
	}
	return validation.ValidateObjectMetaAccessor(obj, s.policy.Namespaced, s.policy.Name, metadataPath)
}

// checkSuccessor is what is wrong with the metadata of obj as the successor of old (rules
// S62 to S64, H179).
func (s *Store) checkSuccessor(obj, old metav1.Object) field.ErrorList {
	if m, was := untyped(obj), untyped(old); m != nil && was != nil &&
		metadata.Born(m, s.policy.Namespaced, AnyPathSegment) && metadata.Succeeds(m, was) {
		return nil
	} else if m == nil && metadata.Follows(obj, old, s.policy.Namespaced, AnyPathSegment) {
		return nil
	}
	errs := validation.ValidateObjectMetaAccessor(obj, s.policy.Namespaced, AnyPathSegment, metadataPath)
	return append(errs, validation.ValidateObjectMetaAccessorUpdate(obj, old, metadataPath)...)
}

// untyped is the metadata of an object without a Go type, nil of any other.
func untyped(obj metav1.Object) map[string]any {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	m, _ := u.Object["metadata"].(map[string]any)
	return m
}

// revisionNamed reads the resourceVersion that an object carries. The error is the number
// parser's own (rule S51).
func revisionNamed(obj metav1.Object) (kv.Revision, error) {
	return parseUint(obj.GetResourceVersion())
}

func finalizersOf(obj metav1.Object) int { return len(obj.GetFinalizers()) }

func graceOf(obj metav1.Object) int64 {
	if g := obj.GetDeletionGracePeriodSeconds(); g != nil {
		return *g
	}
	return 0
}

// revisionOf returns the revision of a version that may not exist.
func revisionOf(v storage.Version) kv.Revision {
	if !v.Exists() {
		return kv.Absent
	}
	return v.Revision()
}
