package builtin

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/registry"
)

// volumeClaims is what holds for persistent volume claims (rule B67). Nothing binds them; whoever does
// names the volume, once.
var volumeClaims = rules[*corev1.PersistentVolumeClaim]{
	policy: registry.Policy{Namespaced: true, UnconditionalUpdate: true, ReturnDeleted: true},
	spec:   func(c, from *corev1.PersistentVolumeClaim) { c.Spec = from.Spec },
	status: func(c, from *corev1.PersistentVolumeClaim) { c.Status = from.Status },
	defaults: func(c *corev1.PersistentVolumeClaim) {
		fillInClaimSpec(&c.Spec)
		or(&c.Status.Phase, corev1.ClaimPending)
		roundUp(c.Status.Capacity)
		roundUp(c.Status.AllocatedResources)
	},
	born: func(c *corev1.PersistentVolumeClaim) { fillInContents(&c.Spec, &corev1.PersistentVolumeClaimSpec{}) },
	keep: func(c, old *corev1.PersistentVolumeClaim) { fillInContents(&c.Spec, &old.Spec) },
	wrong: func(c *corev1.PersistentVolumeClaim) field.ErrorList {
		return append(wrongFinalizers(c), wrongClaim(&c.Spec)...)
	},
	wrongAfter: wrongClaimAfter,
	warn: func(c *corev1.PersistentVolumeClaim) []string {
		if _, said := c.Annotations[corev1.BetaStorageClassAnnotation]; !said {
			return nil
		}
		return []string{fmt.Sprintf(`metadata.annotations[%s]: deprecated since v1.8; use "storageClassName" attribute instead`, corev1.BetaStorageClassAnnotation)}
	},
}

// fillInContents brings the two fields in step that say what is in the volume to begin with: the older one is only
// for claims and snapshots, and anything else in it never counted. Contents in another namespace cannot be had.
func fillInContents(s, old *corev1.PersistentVolumeClaimSpec) {
	const snapshots = "snapshot.storage.k8s.io"
	if r := s.DataSourceRef; r != nil && r.Namespace != nil && *r.Namespace != "" && old.DataSourceRef == nil {
		s.DataSourceRef = nil
	}
	if d := s.DataSource; d != nil && s.DataSourceRef == nil && old.DataSource == nil && old.DataSourceRef == nil {
		group := ""
		if d.APIGroup != nil {
			group = *d.APIGroup
		}
		if (group != "" || d.Kind != "PersistentVolumeClaim") && (group != snapshots || d.Kind != "VolumeSnapshot") {
			s.DataSource = nil
		}
	}
	switch d, r := s.DataSource, s.DataSourceRef; {
	case d != nil && r == nil:
		s.DataSourceRef = &corev1.TypedObjectReference{APIGroup: d.APIGroup, Kind: d.Kind, Name: d.Name}
	case d == nil && r != nil && (r.Namespace == nil || *r.Namespace == ""):
		s.DataSource = &corev1.TypedLocalObjectReference{APIGroup: r.APIGroup, Kind: r.Kind, Name: r.Name}
	}
}

func wrongClaim(s *corev1.PersistentVolumeClaimSpec) field.ErrorList {
	errs := wrongModes(s.AccessModes, specPath.Child("accessModes"), "at least 1 access mode is required")
	if s.Selector != nil {
		errs = append(errs, metav1validation.ValidateLabelSelector(s.Selector, metav1validation.LabelSelectorValidationOptions{}, specPath.Child("selector"))...)
	}
	storage := specPath.Child("resources").Key(string(corev1.ResourceStorage))
	if size, said := s.Resources.Requests[corev1.ResourceStorage]; said {
		errs = append(errs, notPositive(size, storage)...)
	} else {
		errs = append(errs, field.Required(storage, ""))
	}
	for _, class := range []struct {
		field string
		name  *string
	}{{"storageClassName", s.StorageClassName}, {"volumeAttributesClassName", s.VolumeAttributesClassName}} {
		if class.name != nil && *class.name != "" {
			errs = append(errs, wrongSubdomain(*class.name, specPath.Child(class.field))...)
		}
	}
	errs = append(errs, oneOf(*s.VolumeMode, specPath.Child("volumeMode"), volumeModes...)...)
	return append(errs, wrongContentsOfClaim(s)...)
}

func wrongContentsOfClaim(s *corev1.PersistentVolumeClaimSpec) (errs field.ErrorList) {
	path := specPath.Child("dataSource")
	if d := s.DataSource; d != nil {
		errs = append(errs, wrongReference(d.APIGroup, d.Kind, d.Name, path)...)
	}
	r := s.DataSourceRef
	if r == nil {
		return errs
	}
	errs = append(errs, wrongReference(r.APIGroup, r.Kind, r.Name, specPath.Child("dataSourceRef"))...)
	if d := s.DataSource; d != nil && (d.Kind != r.Kind || d.Name != r.Name || !equality.Semantic.DeepEqual(d.APIGroup, r.APIGroup)) {
		errs = append(errs, field.Invalid(specPath, path, "must match dataSourceRef"))
	}
	return errs
}

// wrongReference says what is wrong with the name of what a new volume holds.
func wrongReference(group *string, kind, name string, path *field.Path) field.ErrorList {
	errs := append(missing(name, path.Child("name")), missing(kind, path.Child("kind"))...)
	switch {
	case group != nil && *group != "":
		errs = append(errs, wrongSubdomain(*group, path.Child("apiGroup"))...)
	case kind != "PersistentVolumeClaim":
		errs = append(errs, field.Invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
	}
	return errs
}

// wrongClaimAfter says what an update must not change: all but what binding fills in, and what may grow once bound.
func wrongClaimAfter(c, old *corev1.PersistentVolumeClaim) (errs field.ErrorList) {
	is, was := c.Spec.DeepCopy(), old.Spec.DeepCopy()
	size, before, have := is.Resources.Requests[corev1.ResourceStorage], was.Resources.Requests[corev1.ResourceStorage], old.Status.Capacity[corev1.ResourceStorage]
	or(&was.VolumeName, is.VolumeName)
	if was.StorageClassName == nil {
		was.StorageClassName = is.StorageClassName
	}
	if c.Status.Phase == corev1.ClaimBound {
		was.VolumeAttributesClassName = is.VolumeAttributesClassName
		if is.Resources.Requests != nil {
			is.Resources.Requests[corev1.ResourceStorage] = before
		}
	}
	if !equality.Semantic.DeepEqual(is, was) {
		errs = append(errs, field.Forbidden(specPath, fmt.Sprintf(
			"spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n%v", diff.Diff(was, is))))
	}
	if size.Cmp(before) < 0 && size.Cmp(have) <= 0 {
		errs = append(errs, field.Forbidden(specPath.Child("resources", "requests", "storage"), "field can not be less than status.capacity"))
	}
	errs = append(errs, validation.ValidateImmutableField(c.Spec.VolumeMode, old.Spec.VolumeMode, field.NewPath("volumeMode"))...)
	class, path := c.Spec.VolumeAttributesClassName, specPath.Child("volumeAttributesClassName")
	if old.Status.CurrentVolumeAttributesClassName != nil && !equality.Semantic.DeepEqual(class, old.Spec.VolumeAttributesClassName) {
		switch {
		case class == nil:
			errs = append(errs, field.Forbidden(path, "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil"))
		case *class == "":
			errs = append(errs, field.Forbidden(path, "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil"))
		}
	}
	return errs
}
