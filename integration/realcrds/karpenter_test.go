package realcrds

import "testing"

// quantity is what an amount of a resource must match.
const quantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

func TestKarpenter(t *testing.T) {
	project{
		name:  "karpenter",
		kinds: 4,
		defaults: []defaulted{
			{"nodepool", "spec.disruption.consolidateAfter", "0s"},
			{"nodepool", "spec.disruption.consolidationPolicy", "WhenEmptyOrUnderutilized"},
			{"nodepool", "spec.template.spec.expireAfter", "720h"},
			{"nodeclaim", "spec.expireAfter", "720h"},
			{"capacitybuffer", "spec.provisioningStrategy", "buffer.x-k8s.io/active-capacity"},
		},
		refusals: []refusal{
			{
				name: "a field that is required is missing", sample: "nodepool",
				edit: edit{"spec.template.spec.nodeClassRef", nil},
				want: []string{`spec.template.spec.nodeClassRef: Required value`, unfinished},
			},
			{
				name: "a value that is not one of those there are", sample: "nodepool",
				edit: edit{"spec.disruption.consolidationPolicy", "Never"},
				want: []string{`spec.disruption.consolidationPolicy: Unsupported value: "Never": supported values: "WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"`, unfinished},
			},
			{
				name: "more than all nodes", sample: "nodepool",
				edit: edit{"spec.disruption.budgets[0].nodes", "150%"},
				want: []string{`spec.disruption.budgets[0].nodes: Invalid value: "150%": spec.disruption.budgets[0].nodes in body should match '^((100|[0-9]{1,2})%|[0-9]+)$'`},
			},
			{
				name: "an amount that is none, where numbers and texts are allowed", sample: "nodepool",
				edit: edit{"spec.limits.cpu", "many"},
				want: []string{`spec.limits.cpu: Invalid value: "many": spec.limits.cpu in body should match '` + quantity + `'`},
			},
			{
				name: "a reason given twice, in a list that is a set", sample: "nodepool",
				edit: edit{"spec.disruption.budgets[0].reasons[1]", "Empty"},
				want: []string{`spec.disruption.budgets[0].reasons[1]: Duplicate value: "Empty"`},
			},
			{
				name: "the rule that a time has a length", sample: "nodepool",
				edit: edit{"spec.disruption.budgets[1].duration", nil},
				want: []string{`spec.disruption.budgets: Invalid value: 'schedule' must be set with 'duration'`},
			},
			{
				name: "the rule that some labels are not for everybody", sample: "nodepool",
				edit: edit{"spec.template.spec.requirements[0].key", "kubernetes.io/hostname"},
				want: []string{`spec.template.spec.requirements[0].key: Invalid value: "kubernetes.io/hostname": label "kubernetes.io/hostname" is restricted`},
			},
			{
				name: "the rule that one of several values has values", sample: "nodepool",
				edit: edit{"spec.template.spec.requirements[0].minValues", int64(3)},
				want: []string{`spec.template.spec.requirements: Invalid value: requirements with 'minValues' must have at least that many values specified in the 'values' field`},
			},
			{
				name: "the rule that a pool keeps the kind of its class", sample: "nodepool", when: onUpdate,
				edit: edit{"spec.template.spec.nodeClassRef.kind", "Another"},
				want: []string{`spec.template.spec.nodeClassRef: Invalid value: nodeClassRef.kind is immutable`},
			},
			{
				name: "the rule that a claim stays as it is", sample: "nodeclaim", when: onUpdate,
				edit: edit{"spec.expireAfter", "24h"},
				want: []string{`spec: Invalid value: spec is immutable`},
			},
			{
				name: "the rule that a price is given in one way", sample: "nodeoverlay",
				edit: edit{"spec.price", "1.5"},
				want: []string{`spec: Invalid value: cannot set both 'price' and 'priceAdjustment'`},
			},
			{
				name: "the rule that a buffer has a size", sample: "capacitybuffer",
				edit: edit{"spec.replicas", nil},
				want: []string{`spec: Invalid value: If podTemplateRef is set, replicas or limits must also be set`},
			},
		},
	}.run(t)
}
