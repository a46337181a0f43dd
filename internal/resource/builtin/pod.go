package builtin

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/diff"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/registry"
)

// pods is what holds for pods: they are data that nobody runs (rules B48 to B51).
var pods = rules[*corev1.Pod]{
	policy:   registry.Policy{Namespaced: true, UnconditionalUpdate: true, ReturnDeleted: true},
	defaults: fillInPod,
	spec:     func(p, from *corev1.Pod) { p.Spec = from.Spec },
	status:   func(p, from *corev1.Pod) { p.Status = from.Status },
	tracked:  func(p *corev1.Pod) any { return p.Spec },
	born: func(p *corev1.Pod) {
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qualityOf(&p.Spec)}
		admitPod(&p.Spec)
	},
	keep: func(p, old *corev1.Pod) {
		if is := &p.Spec.Priority; *is == nil && old.Spec.Priority != nil {
			orNew(is, *old.Spec.Priority)
		}
		if is := &p.Spec.PreemptionPolicy; *is == nil && old.Spec.PreemptionPolicy != nil {
			orNew(is, *old.Spec.PreemptionPolicy)
		}
		tolerate(&p.Spec)
	},
	wrong: func(p *corev1.Pod) field.ErrorList {
		return append(wrongFinalizers(p), wrongPodSpec(&p.Spec, field.NewPath("spec"))...)
	},
	wrongAfter: wrongPodAfter,
	grace:      graceOfPod,
}

func podKinds() []Kind {
	return []Kind{define(Kind{
		Version: "v1", Kind: "Pod", Plural: "pods", Singular: "pod", ShortNames: []string{"po"}, Categories: []string{"all"}, Revision: 1,
		Subresources: append(podPosts(), statusDoor(pods, keepOfPodStatus)),
	}, pods, map[string]func(*corev1.Pod) string{
		"spec.nodeName":            func(p *corev1.Pod) string { return p.Spec.NodeName },
		"spec.restartPolicy":       func(p *corev1.Pod) string { return string(p.Spec.RestartPolicy) },
		"spec.schedulerName":       func(p *corev1.Pod) string { return p.Spec.SchedulerName },
		"spec.serviceAccountName":  func(p *corev1.Pod) string { return p.Spec.ServiceAccountName },
		"spec.hostNetwork":         func(p *corev1.Pod) string { return strconv.FormatBool(p.Spec.HostNetwork) },
		"status.phase":             func(p *corev1.Pod) string { return string(p.Status.Phase) },
		"status.podIP":             func(p *corev1.Pod) string { return p.Status.PodIP },
		"status.podIPs":            podIPs,
		"status.nominatedNodeName": func(p *corev1.Pod) string { return p.Status.NominatedNodeName },
	})}
}

func podIPs(p *corev1.Pod) string {
	var ips []string
	for _, ip := range p.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	return strings.Join(ips, ",")
}

// keepOfPodStatus puts back what a write of the status leaves out or must not touch.
func keepOfPodStatus(p, old *corev1.Pod) {
	p.OwnerReferences = old.DeepCopy().OwnerReferences
	or(&p.Status.QOSClass, old.Status.QOSClass)
}

// notReadySeconds is how long a pod stays on a node that is not ready, if it does not say.
const notReadySeconds = int64(300)

// admitPod fills in what admission gives to new pods in the reference: a priority, and tolerations
// of nodes that are not ready. The value of a priority class is known only of the built-in ones.
func admitPod(s *corev1.PodSpec) {
	orNew(&s.PreemptionPolicy, corev1.PreemptLowerPriority)
	switch s.PriorityClassName {
	case "":
		orNew(&s.Priority, 0)
	case "system-cluster-critical":
		orNew(&s.Priority, systemPriority)
	case "system-node-critical":
		orNew(&s.Priority, systemPriority+1000)
	}
	tolerate(s)
}

// tolerate adds tolerations of nodes that are not ready, unless there are some already.
func tolerate(s *corev1.PodSpec) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerated := slices.ContainsFunc(s.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		})
		if !tolerated {
			seconds := notReadySeconds
			s.Tolerations = append(s.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
			})
		}
	}
}

// graceOfPod is how long a pod has left: nothing if no node runs it, or it has ended (rule B50).
func graceOfPod(p *corev1.Pod, asked *int64) int64 {
	seconds := int64(0)
	switch {
	case p.Spec.NodeName == "" || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded:
		return 0
	case asked != nil:
		seconds = *asked
	case p.Spec.TerminationGracePeriodSeconds != nil:
		seconds = *p.Spec.TerminationGracePeriodSeconds
	}
	if seconds < 0 {
		return 1
	}
	return seconds
}

// changeable are the fields that updates of a pod may change, as the error text names them.
const changeable = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`," +
	"`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

// wrongPodAfter says what an update must not change: all but a few fields (rule B49).
func wrongPodAfter(p, old *corev1.Pod) field.ErrorList {
	path := field.NewPath("spec")
	for _, list := range []struct {
		name    string
		is, was int
	}{
		{"containers", len(p.Spec.Containers), len(old.Spec.Containers)},
		{"initContainers", len(p.Spec.InitContainers), len(old.Spec.InitContainers)},
	} {
		if list.is != list.was {
			return field.ErrorList{field.Forbidden(path.Child(list.name), "pod updates may not add or remove containers")}
		}
	}
	errs := wrongDeadlineAfter(p.Spec.ActiveDeadlineSeconds, old.Spec.ActiveDeadlineSeconds, path.Child("activeDeadlineSeconds"))
	errs = append(errs, wrongTolerationsAfter(p.Spec.Tolerations, old.Spec.Tolerations, path.Child("tolerations"))...)
	errs = append(errs, wrongGatesAfter(p.Spec.SchedulingGates, old.Spec.SchedulingGates, path.Child("schedulingGates"))...)
	as := p.Spec.DeepCopy() // but for what may change
	for i := range as.Containers {
		as.Containers[i].Image = old.Spec.Containers[i].Image
	}
	for i := range as.InitContainers {
		as.InitContainers[i].Image = old.Spec.InitContainers[i].Image
	}
	as.ActiveDeadlineSeconds, as.Tolerations, as.SchedulingGates = old.Spec.ActiveDeadlineSeconds, old.Spec.Tolerations, old.Spec.SchedulingGates
	if !equality.Semantic.DeepEqual(*as, old.Spec) {
		errs = append(errs, field.Forbidden(path, fmt.Sprintf("pod updates may not change fields other than %s\n%v", changeable, diff.Diff(old.Spec, *as))))
	}
	return errs
}

// wrongDeadlineAfter lets a deadline come nearer, and no more.
func wrongDeadlineAfter(is, was *int64, path *field.Path) field.ErrorList {
	switch {
	case is == nil && was != nil:
		return field.ErrorList{field.Invalid(path, is, "must not update from a positive integer to nil value")}
	case is == nil:
	case *is < 0 || *is > math.MaxInt32:
		return field.ErrorList{field.Invalid(path, *is, utilvalidation.InclusiveRangeError(0, math.MaxInt32))}
	case was != nil && *was < *is:
		return field.ErrorList{field.Invalid(path, *is, "must be less than or equal to previous value")}
	}
	return nil
}

// wrongTolerationsAfter lets tolerations be added, and the time of one that counts change.
func wrongTolerationsAfter(is, was []corev1.Toleration, path *field.Path) field.ErrorList {
	for _, old := range was {
		old.TolerationSeconds = nil
		kept := slices.ContainsFunc(is, func(t corev1.Toleration) bool {
			t.TolerationSeconds = nil
			return t == old
		})
		if !kept {
			return field.ErrorList{field.Forbidden(path, "existing toleration can not be modified except its tolerationSeconds")}
		}
	}
	return nil
}

// wrongGatesAfter lets gates be taken away.
func wrongGatesAfter(is, was []corev1.PodSchedulingGate, path *field.Path) (errs field.ErrorList) {
	for i, gate := range is {
		if !slices.Contains(was, gate) {
			errs = append(errs, field.Forbidden(path.Index(i), fmt.Sprintf("only deletion is allowed, but found new scheduling gate '%s'", gate.Name)))
		}
	}
	return errs
}
