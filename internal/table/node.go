package table

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// nodes are the machines.
func nodes() kinds {
	type N = *corev1.Node
	info := func(field string) string { return swagger(corev1.NodeSystemInfo{}, field) }
	addresses := swagger(corev1.NodeStatus{}, "addresses")
	return kinds{
		v1("", "Node"): columns(
			name,
			text("Status", "The status of the node", nodeStatus),
			text("Roles", "The roles of the node", nodeRoles),
			age,
			text("Version", info("kubeletVersion"), func(n N) string { return n.Status.NodeInfo.KubeletVersion }),
			text("Internal-IP", addresses, func(n N) string { return nodeAddress(n, corev1.NodeInternalIP) }).wide(),
			text("External-IP", addresses, func(n N) string { return nodeAddress(n, corev1.NodeExternalIP) }).wide(),
			text("OS-Image", info("osImage"), func(n N) string { return or(n.Status.NodeInfo.OSImage, unknown) }).wide(),
			text("Kernel-Version", info("kernelVersion"), func(n N) string {
				kernel := or(n.Status.NodeInfo.KernelVersion, unknown)
				if arch := n.Status.NodeInfo.Architecture; arch != "" {
					kernel += " (" + arch + ")"
				}
				return kernel
			}).wide(),
			text("Container-Runtime", info("containerRuntimeVersion"), func(n N) string {
				return or(n.Status.NodeInfo.ContainerRuntimeVersion, unknown)
			}).wide(),
		),
	}
}

// nodeStatus says whether a node is ready, and whether it takes pods (rule B77).
func nodeStatus(n *corev1.Node) string {
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		switch {
		case c.Type != corev1.NodeReady:
		case c.Status == corev1.ConditionTrue:
			status = "Ready"
		default:
			status = "NotReady"
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

// nodeRoles are the roles that labels give a node.
func nodeRoles(n *corev1.Node) string {
	var roles []string
	for label, value := range n.Labels {
		if role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/"); ok && role != "" {
			roles = append(roles, role)
		}
		if label == "kubernetes.io/role" && value != "" {
			roles = append(roles, value)
		}
	}
	return or(strings.Join(sorted(roles), ","), none)
}

func nodeAddress(n *corev1.Node, kind corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return none
}
