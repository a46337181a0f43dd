package builtin

import "testing"

func TestBindingsNameTheOneGroupThatCanBeMeant(t *testing.T) { // rule B46
	const binding = `{"metadata":{"name":"a"},"roleRef":{"kind":"ClusterRole","name":"r"},"subjects":[{"kind":"User","name":"ann"},{"kind":"Group","name":"crew"},` +
		`{"kind":"ServiceAccount","name":"bot","namespace":"b"},{"kind":"Robot","name":"x"}]}`
	for _, kind := range []string{"RoleBinding", "ClusterRoleBinding"} {
		parts(t, []part{
			{kind + ": the role", kind, "", "", binding, "roleRef.apiGroup", `"rbac.authorization.k8s.io"`},
			{kind + ": a user", kind, "", "", binding, "subjects.0.apiGroup", `"rbac.authorization.k8s.io"`},
			{kind + ": a group", kind, "", "", binding, "subjects.1.apiGroup", `"rbac.authorization.k8s.io"`},
			{kind + ": a service account is of the core group", kind, "", "", binding, "subjects.2.apiGroup", ""},
			{kind + ": what else there may be is of none", kind, "", "", binding, "subjects.3.apiGroup", ""},
		})
	}
}

func TestWhatIsWrongWithRolesAndBindings(t *testing.T) { // rules B46, B47
	ref := func(kind, rest string) string { return `{"roleRef":{"kind":"` + kind + `","name":"r"}` + rest + `}` }
	refusals(t, []write{
		{"a rule is about something", "Role", "", "", `{"rules":[{}]}`, "[rules[0].verbs: Required value, " +
			"rules[0].apiGroups: Required value: resource rules must supply at least one api group, rules[0].resources: Required value: resource rules must supply at least one resource]"},
		{"a role has no rules about paths", "Role", "", "", `{"rules":[{"verbs":["get"],"nonResourceURLs":["/a"]}]}`,
			`rules[0].nonResourceURLs: Invalid value: ["/a"]: namespaced rules cannot apply to non-resource URLs`},
		{"a cluster role may have some", "ClusterRole", "", "", `{"rules":[{"verbs":["get"],"nonResourceURLs":["/a"]}]}`, ""},
		{"but not about resources too", "ClusterRole", "", "", `{"rules":[{"verbs":["get"],"nonResourceURLs":["/a"],"resources":["pods"]}]}`,
			`rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and non-resource URLs`},
		{"who adds up roles says which", "ClusterRole", "", "", `{"aggregationRule":{}}`,
			"aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil"},
		{"a binding in a namespace is to either kind of role", "RoleBinding", "", "", ref("ClusterRole", ""), ""},
		{"one of the cluster to one", "ClusterRoleBinding", "", "", ref("Role", ""), `roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"`},
		{"a role has a name that fits into a path", "RoleBinding", "", "", `{"roleRef":{"kind":"Role","name":"a/b"}}`, `roleRef.name: Invalid value: "a/b": may not contain '/'`},
		{"a role is of one group", "RoleBinding", "", "", `{"roleRef":{"kind":"Role","name":"r","apiGroup":"x"}}`,
			`roleRef.apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io"`},
		{"service accounts of the cluster have a namespace", "ClusterRoleBinding", "", "", ref("ClusterRole", `,"subjects":[{"kind":"ServiceAccount","name":"bot"}]`),
			"subjects[0].namespace: Required value"},
		{"users have names, and one group", "RoleBinding", "", "", ref("Role", `,"subjects":[{"kind":"User","apiGroup":"x"}]`),
			`[subjects[0].name: Required value, subjects[0].apiGroup: Unsupported value: "x": supported values: "rbac.authorization.k8s.io"]`},
		{"what a binding is to does not change", "RoleBinding", "", ref("Role", ""), ref("ClusterRole", ""),
			`roleRef: Invalid value: {"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"}: field is immutable`},
		{"nor that of the cluster", "ClusterRoleBinding", "", ref("ClusterRole", ""), `{"roleRef":{"kind":"ClusterRole","name":"s"}}`,
			`roleRef: Invalid value: {"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"s"}: field is immutable`},
	})
}
