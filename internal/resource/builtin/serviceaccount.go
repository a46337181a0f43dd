package builtin

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/pawl-dev/pawl/registry"
)

// serviceAccounts is what holds for service accounts: they are data.
var serviceAccounts = rules[*corev1.ServiceAccount]{
	policy: registry.Policy{Namespaced: true, UnconditionalUpdate: true, ReturnDeleted: true},
	born:   nameSecrets,
	keep:   func(a, _ *corev1.ServiceAccount) { nameSecrets(a) },
	wrong:  wrongFinalizersOf[*corev1.ServiceAccount],
}

// nameSecrets leaves of the references to secrets, which have to be in the same namespace, their
// names.
func nameSecrets(a *corev1.ServiceAccount) {
	for i, ref := range a.Secrets {
		a.Secrets[i] = corev1.ObjectReference{Name: ref.Name}
	}
}

func serviceAccountKinds() []Kind {
	return []Kind{define(Kind{
		Version: "v1", Kind: "ServiceAccount", Plural: "serviceaccounts", Singular: "serviceaccount",
		ShortNames: []string{"sa"}, Revision: 1,
	}, serviceAccounts, nil)}
}
