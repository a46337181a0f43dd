package builtin

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/registry"
)

var namespacePolicy = registry.Policy{UnconditionalUpdate: true, ReturnDeleted: true, NoGrace: true, Name: validation.NameIsDNSLabel}

// namespaces is what holds for namespaces through their main door (rules B27, B29, B30).
var namespaces = rules[*corev1.Namespace]{
	policy:   namespacePolicy,
	defaults: fillInNamespace,
	born: func(ns *corev1.Namespace) {
		ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
		if !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
			ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
		}
	},
	keep: func(ns, old *corev1.Namespace) {
		ns.Spec.Finalizers = slices.Clone(old.Spec.Finalizers)
		old.Status.DeepCopyInto(&ns.Status)
	},
	dying: func(ns *corev1.Namespace) { ns.Status.Phase = corev1.NamespaceTerminating },
	wrong: func(ns *corev1.Namespace) field.ErrorList {
		path := field.NewPath("spec", "finalizers")
		errs := wrongFinalizers(ns)
		for _, name := range ns.Spec.Finalizers {
			errs = append(errs, wrongFinalizer(string(name), path)...)
		}
		return errs
	},
	holds: heldNamespace,
}

// namespaceStatus is what holds through status: everything but status stays (rule H173).
var namespaceStatus = rules[*corev1.Namespace]{
	policy:   keepingMetadata(namespacePolicy),
	defaults: fillInNamespace,
	keep:     func(ns, old *corev1.Namespace) { old.Spec.DeepCopyInto(&ns.Spec) },
	wrongAfter: func(ns, _ *corev1.Namespace) field.ErrorList {
		path, phase := field.NewPath("status", "Phase"), ns.Status.Phase
		switch {
		case ns.DeletionTimestamp.IsZero() && phase != corev1.NamespaceActive:
			return field.ErrorList{field.Invalid(path, phase, "may only be 'Active' if `deletionTimestamp` is empty")}
		case !ns.DeletionTimestamp.IsZero() && phase != corev1.NamespaceTerminating:
			return field.ErrorList{field.Invalid(path, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")}
		}
		return nil
	},
	holds: heldNamespace,
}

// namespaceFinalize is what holds through finalize, the only door through which
// spec.finalizers change (rule B30).
var namespaceFinalize = rules[*corev1.Namespace]{
	policy:   namespacePolicy,
	defaults: fillInNamespace,
	keep:     func(ns, old *corev1.Namespace) { old.Status.DeepCopyInto(&ns.Status) },
	wrong: func(ns *corev1.Namespace) field.ErrorList {
		path := field.NewPath("spec", "finalizers")
		errs := wrongFinalizers(ns)
		for i, name := range ns.Spec.Finalizers {
			errs = append(errs, wrongFinalizer(string(name), path.Index(i))...)
		}
		return errs
	},
	holds: heldNamespace,
}

// fillInNamespace gives a namespace its phase, and the label by which selectors find it:
// whoever takes that label away or changes it finds it back (rule B27).
func fillInNamespace(ns *corev1.Namespace) {
	if ns.Status.Phase == "" {
		ns.Status.Phase = corev1.NamespaceActive
	}
	if ns.Name == "" {
		return
	}
	if ns.Labels == nil {
		ns.Labels = map[string]string{}
	}
	ns.Labels[corev1.LabelMetadataName] = ns.Name
}

func heldNamespace(ns *corev1.Namespace) bool { return len(ns.Spec.Finalizers) > 0 }

func keepingMetadata(p registry.Policy) registry.Policy {
	p.KeepMetadata = true
	return p
}

// standardFinalizers need no domain in front.
var standardFinalizers = []string{
	string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents,
}

// wrongFinalizer says what is wrong with a name in spec.finalizers.
func wrongFinalizer(name string, path *field.Path) field.ErrorList {
	return append(validation.ValidateFinalizerName(name, path), unqualified(name, path)...)
}

// wrongFinalizers says which of metadata.finalizers lack a domain. Kinds of the core group do
// not allow that; others do, and their syntax is checked with the other metadata.
func wrongFinalizers(obj metav1.Object) (errs field.ErrorList) {
	path := field.NewPath("metadata", "finalizers")
	for i, name := range obj.GetFinalizers() {
		errs = append(errs, unqualified(name, path.Index(i))...)
	}
	return errs
}

// wrongFinalizersOf is wrongFinalizers as a rule of a kind.
func wrongFinalizersOf[P metav1.Object](obj P) field.ErrorList { return wrongFinalizers(obj) }

func unqualified(name string, path *field.Path) field.ErrorList {
	if strings.Contains(name, "/") || slices.Contains(standardFinalizers, name) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")}
}
