package table

import (
	"fmt"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// scaling are the kinds that say how many pods there are, and which matter most.
func scaling() kinds {
	return kinds{
		v1(autoscalingv1.GroupName, "Scale"):                                                                   scale(),
		v1(autoscalingv1.GroupName, "HorizontalPodAutoscaler"):                                                 autoscalerOld(),
		schema.GroupVersion{Group: autoscalingv2.GroupName, Version: "v2"}.WithKind("HorizontalPodAutoscaler"): autoscaler(),
		v1(policyv1.GroupName, "PodDisruptionBudget"):                                                          disruptionBudget(),
		v1(schedulingv1.GroupName, "PriorityClass"):                                                            priorityClass(),
	}
}

// scale is that of the subresource, of built-ins and custom resources (rule C104).
func scale() *Columns {
	type S = *autoscalingv1.Scale
	name := name
	name.Format = ""
	return columns(
		name,
		number("Desired", swagger(autoscalingv1.ScaleSpec{}, "replicas"), func(s S) int32 { return s.Spec.Replicas }),
		number("Available", swagger(autoscalingv1.ScaleStatus{}, "replicas"), func(s S) int32 { return s.Status.Replicas }),
		age,
	)
}

func autoscaler() *Columns {
	type HPA = *autoscalingv2.HorizontalPodAutoscaler
	spec := func(field string) string { return swagger(autoscalingv2.HorizontalPodAutoscalerSpec{}, field) }
	status := func(field string) string { return swagger(autoscalingv2.HorizontalPodAutoscalerStatus{}, field) }
	return columns(
		name,
		text("Reference", spec("scaleTargetRef"), func(h HPA) string { return h.Spec.ScaleTargetRef.Kind + "/" + h.Spec.ScaleTargetRef.Name }),
		text("Targets", spec("metrics"), func(h HPA) string { return targets(h.Spec.Metrics, h.Status.CurrentMetrics) }),
		text("MinPods", spec("minReplicas"), func(h HPA) string { return least(h.Spec.MinReplicas) }),
		number("MaxPods", spec("maxReplicas"), func(h HPA) int32 { return h.Spec.MaxReplicas }).as("string"),
		number("Replicas", status("currentReplicas"), func(h HPA) int32 { return h.Status.CurrentReplicas }).as("string"),
		age,
	)
}

// autoscalerOld is the same in the version that knows only CPU.
func autoscalerOld() *Columns {
	type HPA = *autoscalingv1.HorizontalPodAutoscaler
	spec := func(field string) string { return swagger(autoscalingv2.HorizontalPodAutoscalerSpec{}, field) }
	status := func(field string) string { return swagger(autoscalingv2.HorizontalPodAutoscalerStatus{}, field) }
	return columns(
		name,
		text("Reference", spec("scaleTargetRef"), func(h HPA) string { return h.Spec.ScaleTargetRef.Kind + "/" + h.Spec.ScaleTargetRef.Name }),
		text("Targets", spec("metrics"), func(h HPA) string {
			if h.Spec.TargetCPUUtilizationPercentage == nil {
				return none
			}
			return fmt.Sprintf("cpu: %s/%s", percent(h.Status.CurrentCPUUtilizationPercentage, unknown), percent(h.Spec.TargetCPUUtilizationPercentage, ""))
		}),
		text("MinPods", spec("minReplicas"), func(h HPA) string { return least(h.Spec.MinReplicas) }),
		number("MaxPods", spec("maxReplicas"), func(h HPA) int32 { return h.Spec.MaxReplicas }).as("string"),
		number("Replicas", status("currentReplicas"), func(h HPA) int32 { return h.Status.CurrentReplicas }).as("string"),
		age,
	)
}

func least(n *int32) string {
	if n == nil {
		return unset
	}
	return fmt.Sprint(*n)
}

func percent(n *int32, otherwise string) string {
	if n == nil {
		return otherwise
	}
	return fmt.Sprintf("%d%%", *n)
}

// targetsShown is how many metrics a cell holds.
const targetsShown = 2

// targets are the metrics that an autoscaler follows, each with its value and its target.
func targets(specs []autoscalingv2.MetricSpec, statuses []autoscalingv2.MetricStatus) string {
	var all []string
	for i, spec := range specs {
		var status autoscalingv2.MetricStatus
		if i < len(statuses) {
			status = statuses[i]
		}
		all = append(all, target(spec, status))
	}
	if more := len(all) - targetsShown; more > 0 {
		return fmt.Sprintf("%s + %d more...", strings.Join(all[:targetsShown], ", "), more)
	}
	return or(strings.Join(all, ", "), none)
}

func target(spec autoscalingv2.MetricSpec, status autoscalingv2.MetricStatus) string {
	switch {
	case spec.Type == autoscalingv2.ExternalMetricSourceType && spec.External != nil:
		var current *autoscalingv2.MetricValueStatus
		if status.External != nil {
			current = &status.External.Current
		}
		return amount(spec.External.Target, current)
	case spec.Type == autoscalingv2.ObjectMetricSourceType && spec.Object != nil:
		var current *autoscalingv2.MetricValueStatus
		if status.Object != nil {
			current = &status.Object.Current
		}
		return amount(spec.Object.Target, current)
	case spec.Type == autoscalingv2.PodsMetricSourceType && spec.Pods != nil:
		var current *autoscalingv2.MetricValueStatus
		if status.Pods != nil {
			current = &status.Pods.Current
		}
		return average(current) + "/" + spec.Pods.Target.AverageValue.String()
	case spec.Type == autoscalingv2.ResourceMetricSourceType && spec.Resource != nil:
		var current *autoscalingv2.MetricValueStatus
		if status.Resource != nil {
			current = &status.Resource.Current
		}
		return consumption(spec.Resource.Name, spec.Resource.Target, current)
	case spec.Type == autoscalingv2.ContainerResourceMetricSourceType && spec.ContainerResource != nil:
		var current *autoscalingv2.MetricValueStatus
		if status.ContainerResource != nil {
			current = &status.ContainerResource.Current
		}
		return consumption(spec.ContainerResource.Name, spec.ContainerResource.Target, current)
	}
	return "<unknown type>"
}

// amount is a metric that is a number, per pod or as a whole.
func amount(t autoscalingv2.MetricTarget, current *autoscalingv2.MetricValueStatus) string {
	if t.AverageValue != nil {
		return average(current) + "/" + t.AverageValue.String() + " (avg)"
	}
	value := unknown
	if current != nil {
		value = current.Value.String()
	}
	return value + "/" + t.Value.String()
}

// consumption is how much of a resource is used, as a number or in per cent of what was asked for.
func consumption(resource corev1.ResourceName, t autoscalingv2.MetricTarget, current *autoscalingv2.MetricValueStatus) string {
	if t.AverageValue != nil {
		return fmt.Sprintf("%s: %s/%s", resource, average(current), t.AverageValue)
	}
	used := unknown
	if current != nil {
		used = percent(current.AverageUtilization, unknown)
	}
	return fmt.Sprintf("%s: %s/%s", resource, used, percent(t.AverageUtilization, "<auto>"))
}

func average(current *autoscalingv2.MetricValueStatus) string {
	if current == nil || current.AverageValue == nil {
		return unknown
	}
	return current.AverageValue.String()
}

func disruptionBudget() *Columns {
	type PDB = *policyv1.PodDisruptionBudget
	bound := func(n *intstr.IntOrString) string {
		if n == nil {
			return "N/A"
		}
		return n.String()
	}
	return columns(
		name,
		text("Min Available", "The minimum number of pods that must be available.", func(b PDB) string { return bound(b.Spec.MinAvailable) }),
		text("Max Unavailable", "The maximum number of pods that may be unavailable.", func(b PDB) string { return bound(b.Spec.MaxUnavailable) }),
		number("Allowed Disruptions", "Calculated number of pods that may be disrupted at this time.", func(b PDB) int32 { return b.Status.DisruptionsAllowed }),
		age,
	)
}

func priorityClass() *Columns {
	type PC = *schedulingv1.PriorityClass
	doc := func(field string) string { return swagger(schedulingv1.PriorityClass{}, field) }
	return columns(
		name,
		number("Value", doc("value"), func(c PC) int32 { return c.Value }),
		truth("Global-Default", doc("globalDefault"), func(c PC) bool { return c.GlobalDefault }),
		age,
		text("PreemptionPolicy", doc("preemptionPolicy"), func(c PC) string { return at(c.PreemptionPolicy, "") }),
	)
}
