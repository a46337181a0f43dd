package controller

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A verdict is what is to be done to an object.
type verdict struct {
	what   deed
	policy metav1.DeletionPropagation // with deletes
	uids   []types.UID                // with disowns: whose references go
	gives  string                     // with releases: the finalizer that goes
}

// A deed is one of the things that the collector does to an object.
type deed uint8

const (
	rests    deed = iota // nothing, until something changes
	unsure               // nothing, until the kinds that are served change
	deletes              // it is deleted
	disowns              // references to owners are taken away
	unblocks             // its references no longer block the deletion of its owners
	releases             // the finalizer that asks for the collector is taken away
)

// A standing is what a reference is worth.
type standing uint8

const (
	unknown  standing = iota // nobody can say
	solid                    // the owner is there
	absent                   // it is not
	expected                 // the owner waits for the object to go
	freed                    // the owner waits for the reference to go
)

func (e *edge) standing() standing {
	o := e.owner
	switch {
	case o.stage == letting:
		return freed
	case e.key == "":
		return unknown
	case o.stage == unseen || o.stage == lost || o.key != e.key:
		return absent // also what is named rightly by its UID, and wrongly by its place
	case o.stage == lingering:
		return expected
	}
	return solid
}

// verdict says what is to be done to an object. Its owners have been sought. It changes nothing.
//
// What an owner asks for that orphans comes first, and counts as an owner that stays.
func (n *node) verdict() verdict {
	switch {
	case n.stage == unseen || n.stage == lost:
		return verdict{what: rests}
	case n.stage == lingering && n.blocks == 0:
		return verdict{what: releases, gives: metav1.FinalizerDeleteDependents}
	case n.stage == letting && len(n.dependents) == 0:
		return verdict{what: releases, gives: metav1.FinalizerOrphanDependents}
	}
	var of [freed + 1][]types.UID
	for i := range n.owners {
		s := n.owners[i].standing()
		of[s] = append(of[s], n.owners[i].ref.uid)
	}
	idle := slices.Concat(of[freed], of[absent], of[expected])
	switch {
	case n.stage != alive && len(of[freed]) > 0:
		return verdict{what: disowns, uids: of[freed]}
	case n.stage == lingering && n.inCircle():
		return verdict{what: unblocks}
	case n.stage != alive:
		return verdict{what: rests}
	case len(of[unknown]) > 0 && len(of[freed]) > 0:
		return verdict{what: disowns, uids: of[freed]}
	case len(of[unknown]) > 0:
		return verdict{what: unsure}
	case len(idle) == 0:
		return verdict{what: rests}
	case len(of[solid]) > 0 || len(of[freed]) > 0:
		return verdict{what: disowns, uids: idle}
	case len(of[expected]) == 0 || len(n.dependents) == 0:
		return verdict{what: deletes, policy: n.asks}
	case n.inCircle():
		return verdict{what: unblocks}
	}
	return verdict{what: deletes, policy: metav1.DeletePropagationForeground}
}

// inCircle reports whether an object in the foreground would wait for itself: whether a way of
// references that block leads from it, over owners that wait, back to it. The last of a circle
// that comes to wait has a dependent that waits already: unless there is one, nothing is looked for.
func (n *node) inCircle() bool {
	if !n.hasLingeringDependent() {
		return false
	}
	seen := map[*node]bool{}
	for next := []*node{n}; len(next) > 0; {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		for _, e := range at.owners {
			switch {
			case !e.ref.blocks:
			case e.owner == n:
				return true
			case e.owner.stage == lingering && !seen[e.owner]:
				seen[e.owner] = true
				next = append(next, e.owner)
			}
		}
	}
	return false
}

func (n *node) hasLingeringDependent() bool {
	for d := range n.dependents {
		if d.stage == lingering {
			return true
		}
	}
	return false
}
