package builtin

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/registry"
)

// orphaningPolicy is that of other workloads, but that pods stay when what made them is deleted and
// nobody says otherwise (rule B63).
var orphaningPolicy = registry.Policy{Namespaced: true, UnconditionalUpdate: true, Dependents: registry.Orphaned}

// replicationControllers is what holds for replication controllers, which were there before replica
// sets: their selectors are plain labels, may change, and are those of the template if nobody says.
var replicationControllers = rules[*corev1.ReplicationController]{
	policy:  orphaningPolicy,
	spec:    func(c, from *corev1.ReplicationController) { c.Spec = from.Spec },
	status:  func(c, from *corev1.ReplicationController) { c.Status = from.Status },
	tracked: func(c *corev1.ReplicationController) any { return c.Spec },
	defaults: func(c *corev1.ReplicationController) {
		orNew(&c.Spec.Replicas, replicasUsual)
		t := c.Spec.Template
		if t == nil {
			return
		}
		fillInPodSpec(&t.Spec)
		if len(c.Spec.Selector) == 0 {
			c.Spec.Selector = maps.Clone(t.Labels)
		}
		if len(c.Labels) == 0 {
			c.Labels = maps.Clone(t.Labels)
		}
	},
	wrong: func(c *corev1.ReplicationController) field.ErrorList {
		s, template := &c.Spec, specPath.Child("template")
		errs := append(wrongFinalizers(c), negative(&s.MinReadySeconds, specPath.Child("minReadySeconds"))...)
		if len(s.Selector) == 0 {
			errs = append(errs, field.Required(specPath.Child("selector"), ""))
		}
		errs = append(errs, negative(s.Replicas, specPath.Child("replicas"))...)
		if s.Template == nil {
			return append(errs, field.Required(template, ""))
		}
		if !labels.SelectorFromSet(s.Selector).Matches(labels.Set(s.Template.Labels)) {
			errs = append(errs, field.Invalid(template.Child("metadata", "labels"), s.Template.Labels, "`selector` does not match template `labels`"))
		}
		errs = append(errs, wrongTemplate(s.Template, template)...)
		return append(errs, wrongRunning(&s.Template.Spec, "ReplicationController")...)
	},
}

func replicationKinds() []Kind {
	return []Kind{define(Kind{
		Version: "v1", Kind: "ReplicationController", Plural: "replicationcontrollers", Singular: "replicationcontroller",
		ShortNames: []string{"rc"}, Categories: []string{"all"}, Revision: 1,
		Subresources: []Subresource{statusDoor(replicationControllers)}, Scaled: scaleOfReplicas(),
	}, replicationControllers, map[string]func(*corev1.ReplicationController) string{
		"status.replicas": func(c *corev1.ReplicationController) string { return strconv.Itoa(int(c.Status.Replicas)) },
	})}
}
