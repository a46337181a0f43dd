package builtin

import "testing"

func TestDataIsFilledIn(t *testing.T) {
	const node = `{"metadata":{"name":"a"},"spec":{"providerID":"p","podCIDR":"10.1.0.0/24","podCIDRs":["10.1.0.0/24"]},"status":{"capacity":{"cpu":"4"}}}`
	parts(t, []part{
		{"a service account names its secrets, and says no more of them", "ServiceAccount", "", "", `{"secrets":[{"name":"s","namespace":"n"}]}`, "secrets", `[{"name":"s"}]`},
		{"rule B66: a new node keeps its status", "Node", "", "", node, "status.capacity", `{"cpu":"4"}`},
		{"rule B66: all of a node can be had", "Node", "", "", node, "status.allocatable", `{"cpu":"4"}`},
		{"rule B10: the main door of a node changes no status", "Node", "", node, `{"metadata":{"name":"a"}}`, "status.capacity", `{"cpu":"4"}`},
		{"rule B10: the door for status changes nothing else", "Node", "status", node, `{"metadata":{"name":"a"},"spec":{"unschedulable":true},"status":{"phase":"x"}}`, "spec.unschedulable", ""},
		{"ports of endpoints are TCP", "Endpoints", "", "", `{"subsets":[{"ports":[{"port":80}]}]}`, "subsets.0.ports", `[{"port":80,"protocol":"TCP"}]`},
		{"rule B72: limits of containers follow from each other", "LimitRange", "", "", `{"spec":{"limits":[{"type":"Container","max":{"cpu":"2"},"min":{"memory":"1Mi"}}]}}`, "spec.limits.0",
			`{"default":{"cpu":"2"},"defaultRequest":{"cpu":"2","memory":"1Mi"},"max":{"cpu":"2"},"min":{"memory":"1Mi"},"type":"Container"}`},
		{"rule B72: those of pods do not", "LimitRange", "", "", `{"spec":{"limits":[{"type":"Pod","max":{"cpu":"2"}}]}}`, "spec.limits.0", `{"max":{"cpu":"2"},"type":"Pod"}`},
		{"rule B71: a priority class preempts", "PriorityClass", "", "", `{"value":5}`, "preemptionPolicy", `"PreemptLowerPriority"`},
	})
}

func TestWhatIsWrongWithData(t *testing.T) {
	const node = `{"spec":{"providerID":"p","podCIDR":"10.1.0.0/24","podCIDRs":["10.1.0.0/24"]}}`
	refusals(t, []write{
		{"rule B66: what a node is set up with, it is set up with once", "Node", "", node, `{"spec":{"providerID":"q","podCIDR":"10.2.0.0/24","podCIDRs":["10.2.0.0/24"]}}`,
			`[spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid, spec.providerID: Forbidden: node updates may not change providerID except from "" to valid]`},
		{"rule B66: it may be set up later", "Node", "", `{}`, node, ""},
		{"a node has one range of its own first", "Node", "", "", `{"spec":{"podCIDR":"a","podCIDRs":["b"]}}`, "spec.podCIDRs: Invalid value: [\"b\"]: first value must match `podCIDR`"},
		{"taints say what they do", "Node", "", "", `{"spec":{"taints":[{"effect":"Odd"}]}}`,
			`[spec.taints[0].key: Required value, spec.taints[0].effect: Unsupported value: "Odd": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"]`},
		{"endpoints are somewhere", "Endpoints", "", "", `{"subsets":[{"ports":[{"port":0},{"port":80,"name":"x"}]}]}`,
			"[subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`, subsets[0].ports[0].name: Required value, " +
				"subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive]"},
		{"rule B71: users have limits", "PriorityClass", "", "", `{"metadata":{"name":"a"},"value":1000000001}`,
			"value: Forbidden: maximum allowed value of a user defined priority is 1000000000"},
		{"rule B71: names of the system are its own", "PriorityClass", "", "", `{"metadata":{"name":"system-a"},"value":1}`,
			"metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only"},
		{"rule B71: the system uses them", "PriorityClass", "", "", `{"metadata":{"name":"system-node-critical"},"value":2000001000}`, ""},
		{"rule B71: a value does not change", "PriorityClass", "", `{"value":1}`, `{"value":2}`, "value: Forbidden: may not be changed in an update."},
	})
}
