package builtin

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/registry"
)

func rbacPolicy(namespaced bool) registry.Policy {
	return registry.Policy{Namespaced: namespaced, CreateOnUpdate: true, UnconditionalUpdate: true, Name: registry.AnyPathSegment}
}

// Roles and bindings are data; who enforces them reads them (rules B46, B47).
var (
	roles = rules[*rbacv1.Role]{
		policy: rbacPolicy(true),
		wrong:  func(r *rbacv1.Role) field.ErrorList { return wrongRules(r.Rules, true) },
	}
	clusterRoles = rules[*rbacv1.ClusterRole]{
		policy: rbacPolicy(false),
		wrong: func(r *rbacv1.ClusterRole) field.ErrorList {
			return append(wrongRules(r.Rules, false), wrongAggregation(r.AggregationRule)...)
		},
	}
	roleBindings = rules[*rbacv1.RoleBinding]{
		policy:   rbacPolicy(true),
		defaults: func(b *rbacv1.RoleBinding) { fillInBinding(&b.RoleRef, b.Subjects) },
		wrong: func(b *rbacv1.RoleBinding) field.ErrorList {
			return wrongBinding(b.RoleRef, b.Subjects, true, "Role", "ClusterRole")
		},
		wrongAfter: func(b, old *rbacv1.RoleBinding) field.ErrorList {
			return validation.ValidateImmutableField(b.RoleRef, old.RoleRef, field.NewPath("roleRef"))
		},
	}
	clusterRoleBindings = rules[*rbacv1.ClusterRoleBinding]{
		policy:   rbacPolicy(false),
		defaults: func(b *rbacv1.ClusterRoleBinding) { fillInBinding(&b.RoleRef, b.Subjects) },
		wrong: func(b *rbacv1.ClusterRoleBinding) field.ErrorList {
			return wrongBinding(b.RoleRef, b.Subjects, false, "ClusterRole")
		},
		wrongAfter: func(b, old *rbacv1.ClusterRoleBinding) field.ErrorList {
			return validation.ValidateImmutableField(b.RoleRef, old.RoleRef, field.NewPath("roleRef"))
		},
	}
)

func rbacKinds() []Kind {
	row := func(kind, plural, singular string) Kind {
		return Kind{Group: rbacv1.GroupName, Version: "v1", Kind: kind, Plural: plural, Singular: singular, Revision: 1}
	}
	return []Kind{
		define(row("Role", "roles", "role"), roles, nil),
		define(row("RoleBinding", "rolebindings", "rolebinding"), roleBindings, nil),
		define(row("ClusterRole", "clusterroles", "clusterrole"), clusterRoles, nil),
		define(row("ClusterRoleBinding", "clusterrolebindings", "clusterrolebinding"), clusterRoleBindings, nil),
	}
}

// fillInBinding names the API group where there is only one that can be meant.
func fillInBinding(ref *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	or(&ref.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		if s := &subjects[i]; s.Kind == rbacv1.UserKind || s.Kind == rbacv1.GroupKind {
			or(&s.APIGroup, rbacv1.GroupName)
		}
	}
}

func wrongRules(rules []rbacv1.PolicyRule, namespaced bool) (errs field.ErrorList) {
	for i, r := range rules {
		path := field.NewPath("rules").Index(i)
		if len(r.Verbs) == 0 {
			errs = append(errs, field.Required(path.Child("verbs"), ""))
		}
		if urls := path.Child("nonResourceURLs"); len(r.NonResourceURLs) > 0 {
			if namespaced {
				errs = append(errs, field.Invalid(urls, r.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))
			}
			if len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames) > 0 {
				errs = append(errs, field.Invalid(urls, r.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))
			}
			continue
		}
		if len(r.APIGroups) == 0 {
			errs = append(errs, field.Required(path.Child("apiGroups"), "resource rules must supply at least one api group"))
		}
		if len(r.Resources) == 0 {
			errs = append(errs, field.Required(path.Child("resources"), "resource rules must supply at least one resource"))
		}
	}
	return errs
}

func wrongAggregation(a *rbacv1.AggregationRule) (errs field.ErrorList) {
	if a == nil {
		return nil
	}
	path := field.NewPath("aggregationRule", "clusterRoleSelectors")
	if len(a.ClusterRoleSelectors) == 0 {
		errs = append(errs, field.Required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
	}
	for i := range a.ClusterRoleSelectors {
		sel := &a.ClusterRoleSelectors[i]
		errs = append(errs, metav1validation.ValidateLabelSelector(sel, metav1validation.LabelSelectorValidationOptions{}, path.Index(i))...)
	}
	return errs
}

// wrongBinding lists what the reference checks last, that the role has a name, last.
func wrongBinding(ref rbacv1.RoleRef, subjects []rbacv1.Subject, namespaced bool, kinds ...string) (errs field.ErrorList) {
	path := field.NewPath("roleRef")
	if ref.APIGroup != rbacv1.GroupName {
		errs = append(errs, field.NotSupported(path.Child("apiGroup"), ref.APIGroup, []string{rbacv1.GroupName}))
	}
	if !slices.Contains(kinds, ref.Kind) {
		errs = append(errs, field.NotSupported(path.Child("kind"), ref.Kind, kinds))
	}
	for _, why := range registry.AnyPathSegment(ref.Name, false) {
		errs = append(errs, field.Invalid(path.Child("name"), ref.Name, why))
	}
	for i, s := range subjects {
		errs = append(errs, wrongSubject(s, namespaced, field.NewPath("subjects").Index(i))...)
	}
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	return errs
}

func wrongSubject(s rbacv1.Subject, namespaced bool, path *field.Path) (errs field.ErrorList) {
	if s.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	group := rbacv1.GroupName
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		group = ""
		if s.Name != "" {
			errs = append(errs, wrongSubdomain(s.Name, path.Child("name"))...)
		}
		if !namespaced && s.Namespace == "" {
			errs = append(errs, field.Required(path.Child("namespace"), ""))
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
	default:
		return append(errs, field.NotSupported(path.Child("kind"), s.Kind, []string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
	}
	if s.APIGroup != group {
		errs = append(errs, field.NotSupported(path.Child("apiGroup"), s.APIGroup, []string{group}))
	}
	return errs
}
