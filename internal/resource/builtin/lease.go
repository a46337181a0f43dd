package builtin

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/registry"
)

// leases is what holds for leases: whoever takes one over must say which version it saw, or
// two would hold it (rules B11, B12, B45).
var leases = rules[*coordinationv1.Lease]{
	policy: registry.Policy{Namespaced: true, CreateOnUpdate: true},
	born:   uncoordinated,
	keep:   func(l, _ *coordinationv1.Lease) { uncoordinated(l) },
	wrong: func(l *coordinationv1.Lease) (errs field.ErrorList) {
		path := field.NewPath("spec")
		if d := l.Spec.LeaseDurationSeconds; d != nil && *d <= 0 {
			errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *d, "must be greater than 0"))
		}
		if n := l.Spec.LeaseTransitions; n != nil && *n < 0 {
			errs = append(errs, field.Invalid(path.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
		}
		return errs
	},
}

// uncoordinated drops the fields of coordinated leader election, as the reference does while
// that feature is off.
func uncoordinated(l *coordinationv1.Lease) {
	l.Spec.Strategy, l.Spec.PreferredHolder = nil, nil
}
