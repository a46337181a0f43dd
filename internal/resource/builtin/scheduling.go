package builtin

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/registry"
)

const (
	userPriorityMax = int32(1000000000)     // of classes that are not the system's own
	systemPriority  = int32(2 * 1000000000) // of system-cluster-critical
	systemPrefix    = "system-"
)

// priorityClasses is what holds for priority classes (rule B71).
var priorityClasses = rules[*schedulingv1.PriorityClass]{
	policy:   registry.Policy{UnconditionalUpdate: true},
	tracked:  func(c *schedulingv1.PriorityClass) any { return nil },
	defaults: func(c *schedulingv1.PriorityClass) { orNew(&c.PreemptionPolicy, corev1.PreemptLowerPriority) },
	wrong: func(c *schedulingv1.PriorityClass) (errs field.ErrorList) {
		known := map[string]int32{"system-cluster-critical": systemPriority, "system-node-critical": systemPriority + 1000}
		value, system := known[c.Name]
		switch {
		case strings.HasPrefix(c.Name, systemPrefix) && (!system || value != c.Value):
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"), "priority class names with '"+systemPrefix+"' prefix are reserved for system use only"))
		case !system && c.Value > userPriorityMax:
			errs = append(errs, field.Forbidden(field.NewPath("value"), fmt.Sprintf("maximum allowed value of a user defined priority is %v", userPriorityMax)))
		}
		return append(errs, oneOf(*c.PreemptionPolicy, field.NewPath("preemptionPolicy"), corev1.PreemptLowerPriority, corev1.PreemptNever)...)
	},
	wrongAfter: func(c, old *schedulingv1.PriorityClass) (errs field.ErrorList) {
		if c.Value != old.Value {
			errs = append(errs, field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
		}
		return append(errs, validation.ValidateImmutableField(c.PreemptionPolicy, old.PreemptionPolicy, field.NewPath("preemptionPolicy"))...)
	},
}

func schedulingKinds() []Kind {
	return []Kind{define(Kind{
		Group: schedulingv1.GroupName, Version: "v1", Kind: "PriorityClass", Plural: "priorityclasses", Singular: "priorityclass",
		ShortNames: []string{"pc"}, Revision: 1,
	}, priorityClasses, nil)}
}
