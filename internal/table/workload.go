package table

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
)

// workloads are pods and what makes and keeps them.
func workloads() kinds {
	return kinds{
		v1("", "Pod"):                              pods(),
		v1("", "PodTemplate"):                      podTemplate(),
		v1("", "ReplicationController"):            replicationController(),
		v1(appsv1.GroupName, "Deployment"):         deployment(),
		v1(appsv1.GroupName, "ReplicaSet"):         replicaSet(),
		v1(appsv1.GroupName, "StatefulSet"):        statefulSet(),
		v1(appsv1.GroupName, "DaemonSet"):          daemonSet(),
		v1(appsv1.GroupName, "ControllerRevision"): controllerRevision(),
	}
}

// replicas is a number of replicas, one if nothing is said of it.
func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

func podTemplate() *Columns {
	shown := []column{name}
	for _, c := range containers(func(t *corev1.PodTemplate) *corev1.PodTemplateSpec { return &t.Template }) {
		c.Priority = 0
		shown = append(shown, c)
	}
	return columns(append(shown, text("Pod Labels", "The labels for the pod template.", func(t *corev1.PodTemplate) string {
		return labels.FormatLabels(t.Template.Labels)
	}))...)
}

func replicationController() *Columns {
	type RC = *corev1.ReplicationController
	status := func(field string) string { return swagger(corev1.ReplicationControllerStatus{}, field) }
	spec := func(field string) string { return swagger(corev1.ReplicationControllerSpec{}, field) }
	return columns(slices.Concat([]column{
		name,
		number("Desired", spec("replicas"), func(r RC) int32 { return replicas(r.Spec.Replicas) }),
		number("Current", status("replicas"), func(r RC) int32 { return r.Status.Replicas }),
		number("Ready", status("readyReplicas"), func(r RC) int32 { return r.Status.ReadyReplicas }),
		age,
	}, containers(func(r RC) *corev1.PodTemplateSpec { return r.Spec.Template }), []column{
		text("Selector", spec("selector"), func(r RC) string { return labels.FormatLabels(r.Spec.Selector) }).wide(),
	})...)
}

func deployment() *Columns {
	type D = *appsv1.Deployment
	status := func(field string) string { return swagger(appsv1.DeploymentStatus{}, field) }
	return columns(slices.Concat([]column{
		name,
		text("Ready", "Number of the pod with ready state", func(d D) string {
			return fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, replicas(d.Spec.Replicas))
		}),
		number("Up-to-date", status("updatedReplicas"), func(d D) int32 { return d.Status.UpdatedReplicas }).as("string"),
		number("Available", status("availableReplicas"), func(d D) int32 { return d.Status.AvailableReplicas }).as("string"),
		age,
	}, containers(func(d D) *corev1.PodTemplateSpec { return &d.Spec.Template }), []column{
		text("Selector", swagger(appsv1.DeploymentSpec{}, "selector"), func(d D) string {
			s, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
			if err != nil {
				return "<invalid>"
			}
			return s.String()
		}).wide(),
	})...)
}

func replicaSet() *Columns {
	type RS = *appsv1.ReplicaSet
	status := func(field string) string { return swagger(appsv1.ReplicaSetStatus{}, field) }
	spec := func(field string) string { return swagger(appsv1.ReplicaSetSpec{}, field) }
	return columns(slices.Concat([]column{
		name,
		number("Desired", spec("replicas"), func(r RS) int32 { return replicas(r.Spec.Replicas) }),
		number("Current", status("replicas"), func(r RS) int32 { return r.Status.Replicas }),
		number("Ready", status("readyReplicas"), func(r RS) int32 { return r.Status.ReadyReplicas }),
		age,
	}, containers(func(r RS) *corev1.PodTemplateSpec { return &r.Spec.Template }), []column{
		text("Selector", spec("selector"), func(r RS) string { return metav1.FormatLabelSelector(r.Spec.Selector) }).wide(),
	})...)
}

func statefulSet() *Columns {
	type SS = *appsv1.StatefulSet
	return columns(slices.Concat([]column{
		name,
		text("Ready", "Number of the pod with ready state", func(s SS) string {
			return fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, replicas(s.Spec.Replicas))
		}),
		age,
	}, containers(func(s SS) *corev1.PodTemplateSpec { return &s.Spec.Template }))...)
}

func daemonSet() *Columns {
	type DS = *appsv1.DaemonSet
	status := func(field string) string { return swagger(appsv1.DaemonSetStatus{}, field) }
	return columns(slices.Concat([]column{
		name,
		number("Desired", status("desiredNumberScheduled"), func(d DS) int32 { return d.Status.DesiredNumberScheduled }),
		number("Current", status("currentNumberScheduled"), func(d DS) int32 { return d.Status.CurrentNumberScheduled }),
		number("Ready", status("numberReady"), func(d DS) int32 { return d.Status.NumberReady }),
		number("Up-to-date", status("updatedNumberScheduled"), func(d DS) int32 { return d.Status.UpdatedNumberScheduled }),
		number("Available", status("numberAvailable"), func(d DS) int32 { return d.Status.NumberAvailable }),
		text("Node Selector", swagger(corev1.PodSpec{}, "nodeSelector"), func(d DS) string {
			return labels.FormatLabels(d.Spec.Template.Spec.NodeSelector)
		}),
		age,
	}, containers(func(d DS) *corev1.PodTemplateSpec { return &d.Spec.Template }), []column{
		text("Selector", swagger(appsv1.DaemonSetSpec{}, "selector"), func(d DS) string { return metav1.FormatLabelSelector(d.Spec.Selector) }).wide(),
	})...)
}

func controllerRevision() *Columns {
	type CR = *appsv1.ControllerRevision
	return columns(
		name,
		text("Controller", "Controller of the object", func(r CR) string {
			owner := metav1.GetControllerOf(r)
			if owner == nil {
				return none
			}
			kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
			return strings.ToLower(kind.String()) + "/" + owner.Name
		}),
		number("Revision", swagger(appsv1.ControllerRevision{}, "revision"), func(r CR) int64 { return r.Revision }).as("string"),
		age,
	)
}

// batch are the kinds of work that ends.
func batch() kinds {
	return kinds{
		v1(batchv1.GroupName, "Job"):     job(),
		v1(batchv1.GroupName, "CronJob"): cronJob(),
	}
}

func job() *Columns {
	type J = *batchv1.Job
	return columns(slices.Concat([]column{
		name,
		text("Status", "Status of the job.", jobStatus),
		text("Completions", swagger(batchv1.JobStatus{}, "succeeded"), jobCompletions),
		timed("Duration", "Time required to complete the job.", func(j J, now time.Time) string {
			switch start, end := j.Status.StartTime, j.Status.CompletionTime; {
			case start == nil:
				return ""
			case end == nil:
				return duration.HumanDuration(now.Sub(start.Time))
			default:
				return duration.HumanDuration(end.Sub(start.Time))
			}
		}),
		age,
	}, containers(func(j J) *corev1.PodTemplateSpec { return &j.Spec.Template }), []column{
		text("Selector", swagger(batchv1.JobSpec{}, "selector"), func(j J) string { return metav1.FormatLabelSelector(j.Spec.Selector) }).wide(),
	})...)
}

// jobStatus is the weightiest condition that holds. That a job is being deleted weighs less
// than its end, and more than all else.
func jobStatus(j *batchv1.Job) string {
	holds := func(condition batchv1.JobConditionType) bool {
		i := slices.IndexFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == condition })
		return i >= 0 && j.Status.Conditions[i].Status == corev1.ConditionTrue
	}
	for _, c := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if holds(c) {
			return string(c)
		}
	}
	if j.DeletionTimestamp != nil {
		return "Terminating"
	}
	for _, c := range []batchv1.JobConditionType{batchv1.JobSuspended, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet} {
		if holds(c) {
			return string(c)
		}
	}
	return "Running"
}

func jobCompletions(j *batchv1.Job) string {
	switch parallel := j.Spec.Parallelism; {
	case j.Spec.Completions != nil:
		return fmt.Sprintf("%d/%d", j.Status.Succeeded, *j.Spec.Completions)
	case parallel != nil && *parallel > 1:
		return fmt.Sprintf("%d/1 of %d", j.Status.Succeeded, *parallel)
	}
	return fmt.Sprintf("%d/1", j.Status.Succeeded)
}

func cronJob() *Columns {
	type CJ = *batchv1.CronJob
	spec := func(field string) string { return swagger(batchv1.CronJobSpec{}, field) }
	status := func(field string) string { return swagger(batchv1.CronJobStatus{}, field) }
	return columns(slices.Concat([]column{
		name,
		text("Schedule", spec("schedule"), func(c CJ) string { return c.Spec.Schedule }),
		text("Timezone", spec("timeZone"), func(c CJ) string { return at(c.Spec.TimeZone, none) }),
		text("Suspend", spec("suspend"), func(c CJ) string { return yes(c.Spec.Suspend) }).as("boolean"),
		number("Active", status("active"), func(c CJ) int { return len(c.Status.Active) }),
		timed("Last Schedule", status("lastScheduleTime"), func(c CJ, now time.Time) string {
			if c.Status.LastScheduleTime == nil {
				return none
			}
			return since(*c.Status.LastScheduleTime, now)
		}),
		age,
	}, containers(func(c CJ) *corev1.PodTemplateSpec { return &c.Spec.JobTemplate.Spec.Template }), []column{
		text("Selector", swagger(batchv1.JobSpec{}, "selector"), func(c CJ) string {
			return metav1.FormatLabelSelector(c.Spec.JobTemplate.Spec.Selector)
		}).wide(),
	})...)
}

// yes is True or False, as text.
func yes(b *bool) string {
	switch {
	case b == nil:
		return unset
	case *b:
		return "True"
	}
	return "False"
}
