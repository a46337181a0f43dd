package controller

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestVerdict(t *testing.T) {
	const background, foreground, orphan = metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan
	deleted := func(p metav1.DeletionPropagation) verdict { return verdict{what: deletes, policy: p} }
	without := func(uids ...types.UID) verdict { return verdict{what: disowns, uids: uids} }
	nothing := verdict{what: rests}
	for _, c := range []struct {
		name       string
		stage      stage
		owners     []standing // the owners are called 0, 1, …
		dependents int        // all of which block
		asks       metav1.DeletionPropagation
		want       verdict
	}{
		{"it names no owners", alive, nil, 0, background, nothing},
		{"its owner is there", alive, []standing{solid}, 0, background, nothing},
		{"its owner is not", alive, []standing{absent}, 0, background, deleted(background)},
		{"its owner is not, and it has dependents", alive, []standing{absent}, 2, background, deleted(background)},
		{"its owner is not, and it asks for orphans", alive, []standing{absent}, 2, orphan, deleted(orphan)},
		{"its owner is not, and it asks to go after its dependents", alive, []standing{absent}, 2, foreground, deleted(foreground)},
		{"none of its owners is there", alive, []standing{absent, absent}, 0, background, deleted(background)},
		{"one of its owners is there", alive, []standing{absent, solid}, 0, background, without("0")},
		{"its owner waits for it", alive, []standing{expected}, 0, background, deleted(background)},
		{"its owner waits for it, and it has dependents", alive, []standing{expected}, 1, background, deleted(foreground)},
		{"its owner waits for it, and another is not there", alive, []standing{absent, expected}, 1, background, deleted(foreground)},
		{"its owner waits for it, and another stays", alive, []standing{expected, solid}, 1, background, without("0")},
		{"one owner stays, one waits, one is not there", alive, []standing{solid, expected, absent}, 0, background, without("2", "1")},
		{"its owner sets it free", alive, []standing{freed}, 0, background, without("0")},
		{"one owner sets it free, another is not there: it stays", alive, []standing{freed, absent}, 0, background, without("0", "1")},
		{"one owner sets it free, another is there", alive, []standing{solid, freed}, 0, background, without("1")},
		{"nobody can say whether its owner is there", alive, []standing{unknown}, 0, background, verdict{what: unsure}},
		{"nobody can say of one of its owners", alive, []standing{absent, unknown}, 0, background, verdict{what: unsure}},
		{"nobody can say of one of its owners, and another sets it free", alive, []standing{freed, unknown, absent}, 0, background, without("0")},
		{"it is going already", leaving, []standing{absent}, 0, background, nothing},
		{"it is going already, and its owner waits", leaving, []standing{expected}, 3, background, nothing},
		{"it is going already, and its owner sets it free", leaving, []standing{freed}, 0, background, without("0")},
		{"it waits for its dependents", lingering, nil, 1, foreground, nothing},
		{"it waits for its dependents, and has no owner any more", lingering, []standing{absent}, 1, foreground, nothing},
		{"it waited for its dependents", lingering, []standing{solid}, 0, foreground, verdict{what: releases, gives: "foregroundDeletion"}},
		{"it sets its dependents free", letting, nil, 1, orphan, nothing},
		{"it has set its dependents free", letting, nil, 0, orphan, verdict{what: releases, gives: "orphan"}},
		{"it is not there any more", lost, []standing{absent}, 0, background, nothing},
		{"it is only named", unseen, nil, 2, background, nothing},
	} {
		n := &node{uid: "it", key: "s/g/r/ns/it", stage: c.stage, asks: c.asks, dependents: map[*node]int{}, blocks: c.dependents}
		for i, s := range c.owners {
			o := &node{key: "s/g/r/ns/o", stage: map[standing]stage{solid: alive, absent: lost, expected: lingering, freed: letting}[s]}
			e := edge{ref: reference{uid: types.UID(fmt.Sprint(i))}, owner: o, key: o.key}
			if s == unknown {
				e.key = ""
			}
			n.owners = append(n.owners, e)
		}
		for range c.dependents {
			n.dependents[&node{stage: alive}] = 1
		}
		got := n.verdict()
		if got.what != c.want.what || got.policy != c.want.policy || got.gives != c.want.gives || !slices.Equal(got.uids, c.want.uids) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestStanding(t *testing.T) {
	for _, c := range []struct {
		name      string
		of        stage
		is, meant string // where the owner is, and where the reference says
		want      standing
	}{
		{"nobody found it where it should be", unseen, "", "k", absent},
		{"nobody knows where it should be", unseen, "", "", unknown},
		{"it is there", alive, "k", "k", solid},
		{"it is there, and the reference names another place", alive, "k", "l", absent},
		{"it is there, and the kind of the reference is not served", alive, "k", "", unknown},
		{"it is being deleted by others", leaving, "k", "k", solid},
		{"it waits", lingering, "k", "k", expected},
		{"it waits, and the reference names another place", lingering, "k", "l", absent},
		{"it sets dependents free", letting, "k", "k", freed},
		{"it sets dependents free, by UID alone", letting, "k", "", freed},
		{"it was there", lost, "k", "k", absent},
	} {
		e := edge{owner: &node{stage: c.of, key: c.is}, key: c.meant}
		if got := e.standing(); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestCircles(t *testing.T) {
	type edges map[string]string // dependents: their owners, one letter each
	for _, c := range []struct {
		name    string
		owners  edges
		lingers string // who waits for dependents
		of      string
		want    bool
	}{
		{"a tree is none", edges{"b": "a", "c": "b"}, "ab", "b", false},
		{"a chain whose end waits is none", edges{"b": "a", "c": "b"}, "abc", "b", false},
		{"two that own each other", edges{"a": "b", "b": "a"}, "a", "b", true},
		{"two that own each other, and wait both", edges{"a": "b", "b": "a"}, "ab", "a", true},
		{"one that owns itself", edges{"a": "a"}, "a", "a", true},
		{"three, and only one waits", edges{"a": "b", "b": "c", "c": "a"}, "a", "c", false},
		{"three, and two wait", edges{"a": "b", "b": "c", "c": "a"}, "ac", "b", true},
		{"a dependent that waits, beside no circle", edges{"b": "a", "c": "b"}, "ac", "b", false},
		{"a circle above is not its own", edges{"a": "b", "b": "a", "c": "a", "d": "c"}, "abd", "c", false},
		{"one of two ways leads round", edges{"b": "xa", "a": "b"}, "ax", "b", true},
	} {
		g := newGraph(func(*node) {})
		for dependent, owners := range c.owners {
			var refs []reference
			for _, o := range owners {
				refs = append(refs, reference{uid: types.UID(string(o)), blocks: true})
			}
			g.connect(g.node(types.UID(dependent)), refs)
		}
		for _, uid := range c.lingers {
			g.node(types.UID(string(uid))).stage = lingering
		}
		if got := g.node(types.UID(c.of)).inCircle(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
