package builtin

import (
	"fmt"
	"maps"
	"math"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The labels that a job had before they got a domain; both are written.
const (
	oldControllerUIDLabel = "controller-uid"
	oldJobNameLabel       = "job-name"
)

// jobs is what holds for jobs (rule B61).
var jobs = rules[*batchv1.Job]{
	policy:  orphaningPolicy,
	spec:    func(j, from *batchv1.Job) { j.Spec = from.Spec },
	status:  func(j, from *batchv1.Job) { j.Status = from.Status },
	tracked: func(j *batchv1.Job) any { return j.Spec },
	defaults: func(j *batchv1.Job) {
		s := &j.Spec
		fillInPodSpec(&s.Template.Spec)
		fillInFailurePolicy(s.PodFailurePolicy)
		if s.Completions == nil && s.Parallelism == nil {
			orNew(&s.Completions, 1)
		}
		orNew(&s.Parallelism, 1)
		if s.BackoffLimitPerIndex != nil {
			orNew(&s.BackoffLimit, math.MaxInt32)
		}
		orNew(&s.BackoffLimit, backoffLimitUsual)
		orNew(&s.CompletionMode, batchv1.NonIndexedCompletion)
		orNew(&s.Suspend, false)
		orNew(&s.ManualSelector, false)
		if s.PodReplacementPolicy == nil {
			policy := batchv1.TerminatingOrFailed
			if s.PodFailurePolicy != nil {
				policy = batchv1.Failed
			}
			s.PodReplacementPolicy = &policy
		}
		if len(j.Labels) == 0 {
			j.Labels = s.Template.Labels
		}
	},
	born:  selectOwnPods,
	wrong: wrongJob,
	wrongAfter: func(j, old *batchv1.Job) (errs field.ErrorList) {
		is, was := &j.Spec, &old.Spec
		for _, part := range []struct {
			name    string
			is, was any
		}{
			{"selector", is.Selector, was.Selector}, {"template", is.Template, was.Template}, {"completionMode", is.CompletionMode, was.CompletionMode},
			{"podFailurePolicy", is.PodFailurePolicy, was.PodFailurePolicy}, {"backoffLimitPerIndex", is.BackoffLimitPerIndex, was.BackoffLimitPerIndex},
			{"managedBy", is.ManagedBy, was.ManagedBy}, {"successPolicy", is.SuccessPolicy, was.SuccessPolicy},
		} {
			errs = append(errs, validation.ValidateImmutableField(part.is, part.was, specPath.Child(part.name))...)
		}
		if *is.CompletionMode != batchv1.IndexedCompletion {
			errs = append(errs, validation.ValidateImmutableField(is.Completions, was.Completions, specPath.Child("completions"))...)
		}
		return errs
	},
}

func jobKinds() []Kind {
	return []Kind{
		define(Kind{
			Group: batchv1.GroupName, Version: "v1", Kind: "Job", Plural: "jobs", Singular: "job", Categories: []string{"all"}, Revision: 2,
			Subresources: []Subresource{statusDoor(jobs)},
		}, jobs, map[string]func(*batchv1.Job) string{
			"status.successful": func(j *batchv1.Job) string { return strconv.Itoa(int(j.Status.Succeeded)) },
		}),
		define(Kind{
			Group: batchv1.GroupName, Version: "v1", Kind: "CronJob", Plural: "cronjobs", Singular: "cronjob",
			ShortNames: []string{"cj"}, Categories: []string{"all"}, Revision: 1, Subresources: []Subresource{statusDoor(cronJobs)},
		}, cronJobs, nil),
	}
}

// fillInFailurePolicy fills in that a condition of a pod matters if it holds.
func fillInFailurePolicy(p *batchv1.PodFailurePolicy) {
	if p == nil {
		return
	}
	for _, rule := range p.Rules {
		for i := range rule.OnPodConditions {
			or(&rule.OnPodConditions[i].Status, corev1.ConditionTrue)
		}
	}
}

// selectOwnPods makes a new job select the pods that carry its uid, and its template carry it,
// unless the job brings a selector of its own.
func selectOwnPods(j *batchv1.Job) {
	if is(j.Spec.ManualSelector) {
		return
	}
	t, uid := &j.Spec.Template, string(j.UID)
	carried := map[string]string{
		oldJobNameLabel: j.Name, batchv1.JobNameLabel: j.Name, oldControllerUIDLabel: uid, batchv1.ControllerUidLabel: uid,
	}
	maps.Copy(carried, t.Labels) // a label that does not fit is found by validation
	t.Labels = carried
	orNew(&j.Spec.Selector, metav1.LabelSelector{})
	if j.Spec.Selector.MatchLabels == nil {
		j.Spec.Selector.MatchLabels = map[string]string{}
	}
	if _, has := j.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel]; !has {
		j.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] = uid
	}
}

func wrongJob(j *batchv1.Job) field.ErrorList {
	return append(wrongSelectedByJob(j), wrongJobSpec(&j.Spec, specPath)...)
}

// wrongJobSpec says what is wrong with a job, or with the template of one.
func wrongJobSpec(s *batchv1.JobSpec, at *field.Path) (errs field.ErrorList) {
	for _, n := range []struct {
		name  string
		value *int32
	}{
		{"parallelism", s.Parallelism}, {"completions", s.Completions}, {"backoffLimit", s.BackoffLimit},
		{"ttlSecondsAfterFinished", s.TTLSecondsAfterFinished}, {"backoffLimitPerIndex", s.BackoffLimitPerIndex}, {"maxFailedIndexes", s.MaxFailedIndexes},
	} {
		errs = append(errs, negative(n.value, at.Child(n.name))...)
	}
	errs = append(errs, negative(s.ActiveDeadlineSeconds, at.Child("activeDeadlineSeconds"))...)
	if s.CompletionMode != nil {
		errs = append(errs, oneOf(*s.CompletionMode, at.Child("completionMode"), batchv1.NonIndexedCompletion, batchv1.IndexedCompletion)...)
		if *s.CompletionMode == batchv1.IndexedCompletion && s.Completions == nil {
			errs = append(errs, field.Required(at.Child("completions"), "when completion mode is Indexed"))
		}
	}
	errs = append(errs, wrongTemplate(&s.Template, at.Child("template"))...)
	path := at.Child("template", "spec", "restartPolicy")
	switch policy := s.Template.Spec.RestartPolicy; policy {
	case corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever:
	case corev1.RestartPolicyAlways, "":
		errs = append(errs, field.Required(path, fmt.Sprintf("valid values: %q, %q", corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)))
	default:
		errs = append(errs, field.NotSupported(path, policy, restartPolicies[1:]))
	}
	return errs
}

// wrongSelectedByJob says that a job would not select its own pods.
func wrongSelectedByJob(j *batchv1.Job) (errs field.ErrorList) {
	s := &j.Spec
	if s.Selector == nil {
		return append(errs, field.Required(specPath.Child("selector"), ""))
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Selector)
	if err != nil {
		return append(errs, field.Invalid(specPath.Child("selector"), s.Selector, err.Error()))
	}
	if !selector.Matches(labels.Set(s.Template.Labels)) {
		errs = append(errs, field.Invalid(specPath.Child("template", "metadata", "labels"), s.Template.Labels, "`selector` does not match template `labels`"))
	}
	return errs
}
