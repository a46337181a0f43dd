package builtin

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// daemonSets is what holds for daemon sets (rule B60). How often the template has changed was a
// field once: it is an annotation now, and still the server's to write.
var daemonSets = rules[*appsv1.DaemonSet]{
	policy: workloadPolicy,
	spec: func(d, from *appsv1.DaemonSet) {
		d.Spec, d.Labels = from.Spec, from.Labels
		setTemplateGeneration(d, templateGeneration(from))
	},
	status:  func(d, from *appsv1.DaemonSet) { d.Status = from.Status },
	tracked: func(d *appsv1.DaemonSet) any { return d.Spec },
	defaults: func(d *appsv1.DaemonSet) {
		s := &d.Spec
		fillInPodSpec(&s.Template.Spec)
		or(&s.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
		if s.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
			orNew(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
			orNew(&s.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(rollingUnavailableOne))
			orNew(&s.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
		}
		orNew(&s.RevisionHistoryLimit, revisionHistoryUsual)
		setTemplateGeneration(d, templateGeneration(d))
	},
	born: func(d *appsv1.DaemonSet) { setTemplateGeneration(d, max(templateGeneration(d), 1)) },
	keep: func(d, old *appsv1.DaemonSet) {
		n := templateGeneration(old)
		if !equality.Semantic.DeepEqual(d.Spec.Template, old.Spec.Template) {
			n++
		}
		setTemplateGeneration(d, n)
	},
	wrong: func(d *appsv1.DaemonSet) field.ErrorList {
		s := &d.Spec
		errs := append(wrongFinalizers(d), wrongSelected(s.Selector, &s.Template, "daemonset")...)
		errs = append(errs, wrongRunning(&s.Template.Spec, "DaemonSet")...)
		errs = append(errs, negative(&s.MinReadySeconds, specPath.Child("minReadySeconds"))...)
		errs = append(errs, wrongDaemonStrategy(&s.UpdateStrategy, specPath.Child("updateStrategy"))...)
		return append(errs, negative(s.RevisionHistoryLimit, specPath.Child("revisionHistoryLimit"))...)
	},
	wrongAfter: func(d, old *appsv1.DaemonSet) field.ErrorList {
		return validation.ValidateImmutableField(d.Spec.Selector, old.Spec.Selector, specPath.Child("selector"))
	},
}

// templateGeneration is how often the template has changed; 0 if d does not say, or says no number.
func templateGeneration(d *appsv1.DaemonSet) int64 {
	n, err := strconv.ParseInt(d.Annotations[appsv1.DeprecatedTemplateGeneration], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func setTemplateGeneration(d *appsv1.DaemonSet, n int64) {
	said := maps.Clone(d.Annotations) // which others may share
	if said == nil {
		said = map[string]string{}
	}
	said[appsv1.DeprecatedTemplateGeneration] = strconv.FormatInt(n, 10)
	d.Annotations = said
}

func wrongDaemonStrategy(s *appsv1.DaemonSetUpdateStrategy, path *field.Path) (errs field.ErrorList) {
	switch s.Type {
	case appsv1.OnDeleteDaemonSetStrategyType:
		return nil
	case appsv1.RollingUpdateDaemonSetStrategyType:
	default:
		return field.ErrorList{field.NotSupported(path, s, []string{
			string(appsv1.RollingUpdateDaemonSetStrategyType), string(appsv1.OnDeleteDaemonSetStrategyType),
		})}
	}
	unavailable, surge := s.RollingUpdate.MaxUnavailable, s.RollingUpdate.MaxSurge
	unavailablePath, surgePath := path.Child("rollingUpdate", "maxUnavailable"), path.Child("rollingUpdate", "maxSurge")
	errs = append(errs, wrongShare(unavailable, unavailablePath)...)
	errs = append(errs, wrongShare(surge, surgePath)...)
	errs = append(errs, wrongExcess(unavailable, unavailablePath)...)
	errs = append(errs, wrongExcess(surge, surgePath)...)
	switch {
	case shareOf(unavailable) != 0 && shareOf(surge) != 0:
		errs = append(errs, field.Invalid(surgePath, surge, "may not be set when maxUnavailable is non-zero"))
	case shareOf(unavailable) == 0 && shareOf(surge) == 0:
		errs = append(errs, field.Required(unavailablePath, "cannot be 0 when maxSurge is 0"))
	}
	return errs
}
