package builtin

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/registry"
)

var specPath = field.NewPath("spec")

// What a workload gets that does not say.
const (
	replicasUsual         = int32(1)
	revisionHistoryUsual  = int32(10)
	progressSecondsUsual  = int32(600)
	backoffLimitUsual     = int32(6)
	rollingShareUsual     = "25%"
	rollingUnavailableOne = 1
)

var workloadPolicy = registry.Policy{Namespaced: true, UnconditionalUpdate: true}

// deployments is what holds for deployments: they are data, which no controller acts on (rules
// B58, B65). Annotations raise the generation too (rule B9).
var deployments = rules[*appsv1.Deployment]{
	policy:  workloadPolicy,
	spec:    func(d, from *appsv1.Deployment) { d.Spec, d.Labels = from.Spec, from.Labels },
	status:  func(d, from *appsv1.Deployment) { d.Status = from.Status },
	tracked: func(d *appsv1.Deployment) any { return []any{d.Spec, d.Annotations} },
	defaults: func(d *appsv1.Deployment) {
		s := &d.Spec
		fillInPodSpec(&s.Template.Spec)
		orNew(&s.Replicas, replicasUsual)
		or(&s.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
		if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
			orNew(&s.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
			orNew(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString(rollingShareUsual))
			orNew(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString(rollingShareUsual))
		}
		orNew(&s.RevisionHistoryLimit, revisionHistoryUsual)
		orNew(&s.ProgressDeadlineSeconds, progressSecondsUsual)
	},
	wrong: func(d *appsv1.Deployment) field.ErrorList {
		s := &d.Spec
		errs := negative(s.Replicas, specPath.Child("replicas"))
		errs = append(errs, wrongSelected(s.Selector, &s.Template, "deployment")...)
		errs = append(errs, wrongRunning(&s.Template.Spec, "ReplicaSet")...)
		errs = append(errs, wrongStrategy(&s.Strategy, specPath.Child("strategy"))...)
		errs = append(errs, negative(&s.MinReadySeconds, specPath.Child("minReadySeconds"))...)
		errs = append(errs, negative(s.RevisionHistoryLimit, specPath.Child("revisionHistoryLimit"))...)
		path, deadline := specPath.Child("progressDeadlineSeconds"), s.ProgressDeadlineSeconds
		errs = append(errs, negative(deadline, path)...)
		if deadline != nil && *deadline <= s.MinReadySeconds {
			errs = append(errs, field.Invalid(path, deadline, "must be greater than minReadySeconds"))
		}
		return errs
	},
	wrongAfter: func(d, old *appsv1.Deployment) field.ErrorList {
		return validation.ValidateImmutableField(d.Spec.Selector, old.Spec.Selector, specPath.Child("selector"))
	},
}

// replicaSets is what holds for replica sets (rule B60).
var replicaSets = rules[*appsv1.ReplicaSet]{
	policy:  workloadPolicy,
	spec:    func(r, from *appsv1.ReplicaSet) { r.Spec, r.Labels = from.Spec, from.Labels },
	status:  func(r, from *appsv1.ReplicaSet) { r.Status = from.Status },
	tracked: func(r *appsv1.ReplicaSet) any { return r.Spec },
	defaults: func(r *appsv1.ReplicaSet) {
		fillInPodSpec(&r.Spec.Template.Spec)
		orNew(&r.Spec.Replicas, replicasUsual)
	},
	wrong: func(r *appsv1.ReplicaSet) field.ErrorList {
		s := &r.Spec
		errs := negative(s.Replicas, specPath.Child("replicas"))
		errs = append(errs, negative(&s.MinReadySeconds, specPath.Child("minReadySeconds"))...)
		errs = append(errs, wrongSelected(s.Selector, &s.Template, "deployment")...) // the reference says so here too
		return append(errs, wrongRunning(&s.Template.Spec, "ReplicaSet")...)
	},
	wrongAfter: func(r, old *appsv1.ReplicaSet) field.ErrorList {
		return validation.ValidateImmutableField(r.Spec.Selector, old.Spec.Selector, specPath.Child("selector"))
	},
}

// statefulSets is what holds for stateful sets (rule B59).
var statefulSets = rules[*appsv1.StatefulSet]{
	policy:  workloadPolicy,
	spec:    func(s, from *appsv1.StatefulSet) { s.Spec, s.Labels = from.Spec, from.Labels },
	status:  func(s, from *appsv1.StatefulSet) { s.Status = from.Status },
	tracked: func(s *appsv1.StatefulSet) any { return s.Spec },
	defaults: func(set *appsv1.StatefulSet) {
		s := &set.Spec
		fillInPodSpec(&s.Template.Spec)
		or(&s.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
		if s.UpdateStrategy.Type == "" {
			s.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
			orNew(&s.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
		}
		if rolling := s.UpdateStrategy.RollingUpdate; s.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType && rolling != nil {
			orNew(&rolling.Partition, 0)
			orNew(&rolling.MaxUnavailable, intstr.FromInt32(rollingUnavailableOne))
		}
		orNew(&s.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
		or(&s.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
		or(&s.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
		orNew(&s.Replicas, replicasUsual)
		orNew(&s.RevisionHistoryLimit, revisionHistoryUsual)
		for i := range s.VolumeClaimTemplates {
			claim := &s.VolumeClaimTemplates[i]
			claim.APIVersion, claim.Kind = cmp.Or(claim.APIVersion, "v1"), cmp.Or(claim.Kind, "PersistentVolumeClaim")
			fillInClaimSpec(&claim.Spec)
			or(&claim.Status.Phase, corev1.ClaimPending)
		}
	},
	wrong: wrongStatefulSet,
	wrongAfter: func(set, old *appsv1.StatefulSet) (errs field.ErrorList) {
		is, was := &set.Spec, &old.Spec
		for _, part := range []struct {
			name    string
			is, was any
		}{
			{"selector", is.Selector, was.Selector}, {"volumeClaimTemplates", is.VolumeClaimTemplates, was.VolumeClaimTemplates},
			{"serviceName", is.ServiceName, was.ServiceName}, {"podManagementPolicy", is.PodManagementPolicy, was.PodManagementPolicy},
		} {
			errs = append(errs, validation.ValidateImmutableField(part.is, part.was, specPath.Child(part.name))...)
		}
		return errs
	},
}

func workloadKinds() []Kind {
	row := func(kind, plural, singular, short string, scaled *resource.Scale, status Subresource) Kind {
		return Kind{
			Group: appsv1.GroupName, Version: "v1", Kind: kind, Plural: plural, Singular: singular,
			ShortNames: []string{short}, Categories: []string{"all"}, Revision: 1, Subresources: []Subresource{status}, Scaled: scaled,
		}
	}
	return []Kind{
		define(row("Deployment", "deployments", "deployment", "deploy", scaleOfReplicas(), statusDoor(deployments)), deployments, nil),
		define(row("ReplicaSet", "replicasets", "replicaset", "rs", scaleOfReplicas(), statusDoor(replicaSets)), replicaSets, nil),
		define(row("StatefulSet", "statefulsets", "statefulset", "sts", scaleOfReplicas(), statusDoor(statefulSets)), statefulSets, nil),
		define(row("DaemonSet", "daemonsets", "daemonset", "ds", nil, statusDoor(daemonSets)), daemonSets, nil),
	}
}

// scaleOfReplicas is the scale of what keeps a number of pods.
func scaleOfReplicas() *resource.Scale {
	return &resource.Scale{
		Replicas: []string{"spec", "replicas"}, Status: []string{"status", "replicas"}, Selector: []string{"spec", "selector"},
	}
}

// wrongSelected says what is wrong with the selector of a workload, and with the template that it
// has to select.
func wrongSelected(sel *metav1.LabelSelector, t *corev1.PodTemplateSpec, kind string) (errs field.ErrorList) {
	path := specPath.Child("selector")
	if sel == nil {
		errs = append(errs, field.Required(path, ""))
	} else {
		errs = append(errs, metav1validation.ValidateLabelSelector(sel, metav1validation.LabelSelectorValidationOptions{}, path)...)
		if len(sel.MatchLabels)+len(sel.MatchExpressions) == 0 {
			errs = append(errs, field.Invalid(path, sel, "empty selector is invalid for "+kind))
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(sel)
	if err != nil {
		return append(errs, field.Invalid(path, sel, "invalid label selector"))
	}
	if template := specPath.Child("template"); !selector.Empty() && !selector.Matches(labels.Set(t.Labels)) {
		errs = append(errs, field.Invalid(template.Child("metadata", "labels"), t.Labels, "`selector` does not match template `labels`"))
	}
	return append(errs, wrongTemplate(t, specPath.Child("template"))...)
}

// wrongRunning says that pods of a template would end, where they must not; kind is whose they are.
func wrongRunning(s *corev1.PodSpec, kind string) (errs field.ErrorList) {
	path := specPath.Child("template", "spec")
	if s.RestartPolicy != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(path.Child("restartPolicy"), s.RestartPolicy, restartPolicies[:1]))
	}
	if s.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("activeDeadlineSeconds"), "activeDeadlineSeconds in "+kind+" is not Supported"))
	}
	return errs
}

func wrongStrategy(s *appsv1.DeploymentStrategy, path *field.Path) (errs field.ErrorList) {
	rolling := path.Child("rollingUpdate")
	switch s.Type {
	case appsv1.RecreateDeploymentStrategyType:
		if s.RollingUpdate != nil {
			errs = append(errs, field.Forbidden(rolling, "may not be specified when strategy `type` is 'Recreate'"))
		}
		return errs
	case appsv1.RollingUpdateDeploymentStrategyType:
	default:
		return append(errs, field.NotSupported(path, s,
			[]string{string(appsv1.RecreateDeploymentStrategyType), string(appsv1.RollingUpdateDeploymentStrategyType)}))
	}
	unavailable, surge := s.RollingUpdate.MaxUnavailable, s.RollingUpdate.MaxSurge
	errs = append(errs, wrongShare(unavailable, rolling.Child("maxUnavailable"))...)
	errs = append(errs, wrongShare(surge, rolling.Child("maxSurge"))...)
	if shareOf(unavailable) == 0 && shareOf(surge) == 0 {
		errs = append(errs, field.Invalid(rolling.Child("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0"))
	}
	return append(errs, wrongExcess(unavailable, rolling.Child("maxUnavailable"))...)
}

// wrongExcess says that a share is more than the whole.
func wrongExcess(v *intstr.IntOrString, path *field.Path) field.ErrorList {
	if v.Type == intstr.String && shareOf(v) > 100 {
		return field.ErrorList{field.Invalid(path, v, "must not be greater than 100%")}
	}
	return nil
}

// wrongShare says why v is neither a number of pods nor a share of them.
func wrongShare(v *intstr.IntOrString, path *field.Path) (errs field.ErrorList) {
	if v.Type == intstr.Int {
		return validation.ValidateNonnegativeField(int64(v.IntVal), path)
	}
	for _, why := range utilvalidation.IsValidPercent(v.StrVal) {
		errs = append(errs, field.Invalid(path, v, why))
	}
	return errs
}

// shareOf is the number, or that before the per cent sign.
func shareOf(v *intstr.IntOrString) int {
	if n, err := intstr.GetScaledValueFromIntOrPercent(v, 100, false); err == nil {
		return n
	}
	return 0
}

func wrongStatefulSet(set *appsv1.StatefulSet) field.ErrorList {
	s, update := &set.Spec, specPath.Child("updateStrategy")
	var errs field.ErrorList
	if p := s.PodManagementPolicy; p != appsv1.OrderedReadyPodManagement && p != appsv1.ParallelPodManagement {
		errs = append(errs, field.Invalid(specPath.Child("podManagementPolicy"), p, "must be 'OrderedReady' or 'Parallel'"))
	}
	switch s.UpdateStrategy.Type {
	case appsv1.OnDeleteStatefulSetStrategyType:
		if s.UpdateStrategy.RollingUpdate != nil {
			errs = append(errs, field.Invalid(update.Child("rollingUpdate"), s.UpdateStrategy.RollingUpdate, "only allowed for updateStrategy 'RollingUpdate'"))
		}
	case appsv1.RollingUpdateStatefulSetStrategyType:
		if rolling := s.UpdateStrategy.RollingUpdate; rolling != nil {
			errs = append(errs, negative(rolling.Partition, update.Child("rollingUpdate", "partition"))...)
		}
	default:
		errs = append(errs, field.Invalid(update, s.UpdateStrategy, "must be 'RollingUpdate' or 'OnDelete'"))
	}
	errs = append(errs, negative(s.Replicas, specPath.Child("replicas"))...)
	errs = append(errs, negative(&s.MinReadySeconds, specPath.Child("minReadySeconds"))...)
	if s.Ordinals != nil {
		errs = append(errs, negative(&s.Ordinals.Start, specPath.Child("ordinals.start"))...)
	}
	if s.ServiceName != "" {
		errs = append(errs, wrongLabel(s.ServiceName, specPath.Child("serviceName"))...)
	}
	errs = append(errs, wrongSelected(s.Selector, withClaims(s), "statefulset")...)
	return append(errs, wrongRunning(&s.Template.Spec, "StatefulSet")...)
}

// withClaims is the template of a stateful set, with a volume for each of its claims.
func withClaims(s *appsv1.StatefulSetSpec) *corev1.PodTemplateSpec {
	t := s.Template.DeepCopy()
	t.Spec.Hostname, t.Spec.Subdomain = "", ""
	claimed := map[string]bool{}
	for _, claim := range s.VolumeClaimTemplates {
		claimed[claim.Name] = true
	}
	var volumes []corev1.Volume
	for _, claim := range s.VolumeClaimTemplates {
		volumes = append(volumes, corev1.Volume{Name: claim.Name})
	}
	for _, v := range t.Spec.Volumes {
		if !claimed[v.Name] {
			volumes = append(volumes, v)
		}
	}
	t.Spec.Volumes = volumes
	return t
}
