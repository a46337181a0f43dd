//lint:file-ignore SA1019 clients still send orphanDependents

package registry

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Dependents says what a delete does to the objects that name the deleted one as their owner,
// if neither the sender nor the object says anything (rules S91, B63).
type Dependents uint8

const (
	Collected  Dependents = iota // they go afterwards, in the background
	Orphaned                     // they stay, without the reference
	Disallowed                   // there cannot be any: whatever is asked for, nothing waits for them
)

// A propagation is what a delete does to dependents. Beyond the delete itself it is the garbage
// collector's work, and a finalizer on the owner is how the collector is told.
type propagation uint8

const (
	background propagation = 1 + iota // those who are left without an owner go afterwards
	foreground                        // the owner stays until those who block it have gone
	orphaning                         // the owner stays until nobody refers to it any more
)

// propagate says what a delete does to dependents: the first that answers decides, out of the
// kind that can have none, the old option, the policy, a finalizer that the object has, and
// the kind (rules S91, S92). The options have been checked.
func propagate(kind Dependents, o *metav1.DeleteOptions, finalizers []string) propagation {
	switch {
	case kind == Disallowed:
		return background
	case o.OrphanDependents != nil && *o.OrphanDependents:
		return orphaning
	case o.OrphanDependents != nil:
		return background
	case o.PropagationPolicy != nil:
		return propagationOf(*o.PropagationPolicy)
	}
	for _, f := range finalizers {
		switch f {
		case metav1.FinalizerOrphanDependents:
			return orphaning
		case metav1.FinalizerDeleteDependents:
			return foreground
		}
	}
	if kind == Orphaned {
		return orphaning
	}
	return background
}

func propagationOf(p metav1.DeletionPropagation) propagation {
	switch p {
	case metav1.DeletePropagationOrphan:
		return orphaning
	case metav1.DeletePropagationForeground:
		return foreground
	}
	return background
}

// propagating returns the finalizers of an object that is deleted that way, and whether they are
// others than it has. The collector's come last; if nothing is added or lost, everything stays in
// its place (rule S93). What it is given stays as it is.
func propagating(finalizers []string, p propagation) (now []string, changed bool) {
	now = slices.DeleteFunc(slices.Clone(finalizers), isCollectors)
	switch p {
	case orphaning:
		now = append(now, metav1.FinalizerOrphanDependents)
	case foreground:
		now = append(now, metav1.FinalizerDeleteDependents)
	}
	if sameSet(now, finalizers) {
		return finalizers, false
	}
	return now, true
}

func isCollectors(finalizer string) bool {
	return finalizer == metav1.FinalizerOrphanDependents || finalizer == metav1.FinalizerDeleteDependents
}

func sameSet(a, b []string) bool {
	in := func(all []string) func(string) bool {
		return func(s string) bool { return !slices.Contains(all, s) }
	}
	return !slices.ContainsFunc(a, in(b)) && !slices.ContainsFunc(b, in(a))
}
