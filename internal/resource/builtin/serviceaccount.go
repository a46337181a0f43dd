package builtin

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pawl-dev/pawl/registry"
)

// serviceAccounts is what holds for service accounts: they are data.
var serviceAccounts = rules[*corev1.ServiceAccount]{
	policy: registry.Policy{Namespaced: true, UnconditionalUpdate: true, ReturnDeleted: true},
	wrong:  wrongFinalizersOf[*corev1.ServiceAccount],
}

func serviceAccountKinds() []Kind {
	return []Kind{define(Kind{
		Version: "v1", Kind: "ServiceAccount", Plural: "serviceaccounts", Singular: "serviceaccount",
		ShortNames: []string{"sa"}, Revision: 1,
	}, serviceAccounts, nil)}
}
