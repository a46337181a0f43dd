package builtin

import (
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
)

// Kinds returns the table of the built-in resources (section 1 of the rules), a new one for
// each caller.
func Kinds() []Kind {
	return slices.Concat(
		configKinds(), serviceAccountKinds(), eventKinds(), podKinds(), serviceKinds(), nodeKinds(), dataKinds(), volumeKinds(),
		replicationKinds(), workloadKinds(), jobKinds(), ingressKinds(), rbacKinds(), schedulingKinds(),
	)
}

// configKinds are the kinds that everything else rests on.
func configKinds() []Kind {
	return []Kind{
		define(Kind{
			Version: "v1", Kind: "Namespace", Plural: "namespaces", Singular: "namespace",
			ShortNames: []string{"ns"}, NoDeleteCollection: true, Revision: 1,
			Subresources: []Subresource{
				{Name: "status", Verbs: []string{"get", "patch", "update"}, Strategy: strategy[*corev1.Namespace]{namespaceStatus}},
				{Name: "finalize", Verbs: []string{"update"}, Strategy: strategy[*corev1.Namespace]{namespaceFinalize}},
			},
		}, namespaces, map[string]func(*corev1.Namespace) string{
			"status.phase": func(ns *corev1.Namespace) string { return string(ns.Status.Phase) },
		}),
		define(Kind{
			Version: "v1", Kind: "ConfigMap", Plural: "configmaps", Singular: "configmap",
			ShortNames: []string{"cm"}, Revision: 1,
		}, configMaps, nil),
		define(Kind{
			Version: "v1", Kind: "Secret", Plural: "secrets", Singular: "secret", Revision: 1,
		}, secrets, map[string]func(*corev1.Secret) string{
			"type": func(s *corev1.Secret) string { return string(s.Type) },
		}),
		define(Kind{
			Group: coordinationv1.GroupName, Version: "v1", Kind: "Lease", Plural: "leases", Singular: "lease", Revision: 1,
		}, leases, nil),
	}
}
