package builtin

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/registry"
)

// nodes is what holds for nodes: what a new one brings of its status stays (rules B7, B66).
var nodes = rules[*corev1.Node]{
	policy: registry.Policy{UnconditionalUpdate: true},
	spec:   func(n, from *corev1.Node) { n.Spec = from.Spec },
	keep:   func(n, old *corev1.Node) { old.Status.DeepCopyInto(&n.Status) },
	defaults: func(n *corev1.Node) {
		roundUp(n.Status.Capacity)
		roundUp(n.Status.Allocatable)
		if n.Status.Capacity != nil && n.Status.Allocatable == nil {
			n.Status.Allocatable = maps.Clone(n.Status.Capacity)
		}
	},
	wrong: func(n *corev1.Node) field.ErrorList {
		errs := wrongFinalizers(n)
		for i, cidr := range n.Spec.PodCIDRs {
			if i == 0 && cidr != n.Spec.PodCIDR {
				errs = append(errs, field.Invalid(specPath.Child("podCIDRs"), n.Spec.PodCIDRs, "first value must match `podCIDR`"))
			}
		}
		for i, t := range n.Spec.Taints {
			path := specPath.Child("taints").Index(i)
			if t.Key == "" {
				errs = append(errs, field.Required(path.Child("key"), ""))
			}
			errs = append(errs, oneOf(t.Effect, path.Child("effect"), corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
		}
		return errs
	},
	wrongAfter: func(n, old *corev1.Node) (errs field.ErrorList) {
		if len(old.Spec.PodCIDRs) > 0 && !slices.Equal(n.Spec.PodCIDRs, old.Spec.PodCIDRs) {
			errs = append(errs, field.Forbidden(specPath.Child("podCIDRs"), "node updates may not change podCIDR except from \"\" to valid"))
		}
		if old.Spec.ProviderID != "" && n.Spec.ProviderID != old.Spec.ProviderID {
			errs = append(errs, field.Forbidden(specPath.Child("providerID"), "node updates may not change providerID except from \"\" to valid"))
		}
		return errs
	},
}

func nodeKinds() []Kind {
	return []Kind{define(Kind{
		Version: "v1", Kind: "Node", Plural: "nodes", Singular: "node", ShortNames: []string{"no"}, Revision: 1,
		Subresources: []Subresource{statusDoor(nodes)},
	}, nodes, map[string]func(*corev1.Node) string{
		"spec.unschedulable": func(n *corev1.Node) string { return strconv.FormatBool(n.Spec.Unschedulable) },
	})}
}
