package table

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func pods() *Columns {
	type P = *corev1.Pod
	spec := func(field string) string { return swagger(corev1.PodSpec{}, field) }
	status := func(field string) string { return swagger(corev1.PodStatus{}, field) }
	c := columns(
		name,
		text("Ready", "The aggregate readiness state of this pod for accepting traffic.", func(p P) string {
			s := summarize(p)
			return fmt.Sprintf("%d/%d", s.ready, s.total)
		}),
		text("Status", "The aggregate status of the containers in this pod.", podStatus),
		timed("Restarts", "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted.", podRestarts),
		age,
		text("IP", status("podIP"), func(p P) string {
			if len(p.Status.PodIPs) == 0 {
				return none
			}
			return or(p.Status.PodIPs[0].IP, none)
		}).wide(),
		text("Node", spec("nodeName"), func(p P) string { return or(p.Spec.NodeName, none) }).wide(),
		text("Nominated Node", status("nominatedNodeName"), func(p P) string { return or(p.Status.NominatedNodeName, none) }).wide(),
		text("Readiness Gates", spec("readinessGates"), readinessGates).wide(),
	)
	c.conditions = podConditions
	return c
}

// podConditions say that a pod will not run any more.
func podConditions(obj runtime.Object) []metav1.TableRowCondition {
	p := obj.(*corev1.Pod)
	c := metav1.TableRowCondition{Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: string(p.Status.Phase)}
	switch p.Status.Phase {
	case corev1.PodSucceeded:
		c.Message = "The pod has completed successfully."
	case corev1.PodFailed:
		c.Message = "The pod failed."
	default:
		return nil
	}
	return []metav1.TableRowCondition{c}
}

// podStatus is the one word for how a pod is (rule B76).
func podStatus(p *corev1.Pod) string {
	if p.DeletionTimestamp != nil {
		switch {
		case p.Status.Reason == "NodeLost":
			return "Unknown"
		case p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed:
			return "Terminating"
		}
	}
	return summarize(p).reason
}

func podRestarts(p *corev1.Pod, now time.Time) string {
	s := summarize(p)
	if s.restarts == 0 || s.restarted.IsZero() {
		return strconv.Itoa(s.restarts)
	}
	return fmt.Sprintf("%d (%s ago)", s.restarts, since(s.restarted, now))
}

func readinessGates(p *corev1.Pod) string {
	if len(p.Spec.ReadinessGates) == 0 {
		return none
	}
	open := 0
	for _, gate := range p.Spec.ReadinessGates {
		if podHas(p, gate.ConditionType) {
			open++
		}
	}
	return fmt.Sprintf("%d/%d", open, len(p.Spec.ReadinessGates))
}

// podHas reports whether a condition holds.
func podHas(p *corev1.Pod, condition corev1.PodConditionType) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == condition {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// A summary is what the containers of a pod come to.
type summary struct {
	reason       string
	ready, total int
	restarts     int
	restarted    metav1.Time
}

// summarize looks at the init containers in their order. If one of them still holds the pod
// up that is what there is to say of it; otherwise the containers proper decide.
func summarize(p *corev1.Pod) summary {
	s := summary{reason: podReason(p), total: len(p.Spec.Containers)}
	sidecars := map[string]bool{}
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars[c.Name] = true
			s.total++
		}
	}
	var side summary // the restarts of sidecars alone
	held := false
	for i, c := range p.Status.InitContainerStatuses {
		s.restart(c)
		if sidecars[c.Name] {
			side.restart(c)
		}
		if sidecars[c.Name] && flag(c.Started, false) && !succeeded(c) {
			if c.Ready {
				s.ready++
			}
			continue
		}
		if !succeeded(c) {
			s.reason, held = initReason(c, i, len(p.Spec.InitContainers)), true
			break
		}
	}
	if held && !podHas(p, corev1.PodInitialized) {
		return s
	}
	s.restarts, s.restarted = side.restarts, side.restarted
	s.run(p)
	return s
}

// podReason is how a pod is as far as its containers do not tell.
func podReason(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			return corev1.PodReasonSchedulingGated
		}
	}
	return or(p.Status.Reason, string(p.Status.Phase))
}

// run takes in the containers proper. The first of them that has something to say says it.
func (s *summary) run(p *corev1.Pod) {
	running, failure := false, ""
	statuses := p.Status.ContainerStatuses
	for i := len(statuses) - 1; i >= 0; i-- {
		c := statuses[i]
		s.restart(c)
		switch {
		case c.State.Waiting != nil && c.State.Waiting.Reason != "":
			s.reason = c.State.Waiting.Reason
		case c.State.Terminated != nil:
			s.reason = endReason(c.State.Terminated)
			if c.State.Terminated.ExitCode != 0 {
				failure = s.reason
			}
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	if s.reason != "Completed" {
		return
	}
	switch {
	case running && podHas(p, corev1.PodReady):
		s.reason = "Running"
	case failure != "":
		s.reason = failure
	case running:
		s.reason = "NotReady"
	}
}

// restart counts the restarts of a container in.
func (s *summary) restart(c corev1.ContainerStatus) {
	s.restarts += int(c.RestartCount)
	if last := c.LastTerminationState.Terminated; last != nil && s.restarted.Before(&last.FinishedAt) {
		s.restarted = last.FinishedAt
	}
}

func succeeded(c corev1.ContainerStatus) bool {
	return c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
}

// initReason is why the init container at a place among several has not succeeded.
func initReason(c corev1.ContainerStatus, place, of int) string {
	waits := c.State.Waiting
	switch {
	case c.State.Terminated != nil:
		return "Init:" + endReason(c.State.Terminated)
	case waits != nil && waits.Reason != "" && waits.Reason != "PodInitializing":
		return "Init:" + waits.Reason
	}
	return fmt.Sprintf("Init:%d/%d", place, of)
}

// endReason is why a container ended.
func endReason(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}

// The names and images of containers, as columns of what has a pod template.
func containers[T runtime.Object](template func(T) *corev1.PodTemplateSpec) []column {
	joined := func(field func(corev1.Container) string) func(T) string {
		return func(obj T) string {
			t := template(obj)
			if t == nil {
				return ""
			}
			parts := make([]string, len(t.Spec.Containers))
			for i, c := range t.Spec.Containers {
				parts[i] = field(c)
			}
			return strings.Join(parts, ",")
		}
	}
	return []column{
		text("Containers", "Names of each container in the template.", joined(func(c corev1.Container) string { return c.Name })).wide(),
		text("Images", "Images referenced by each container in the template.", joined(func(c corev1.Container) string { return c.Image })).wide(),
	}
}
