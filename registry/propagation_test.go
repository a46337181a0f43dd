//lint:file-ignore SA1019 clients still send orphanDependents

package registry

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPropagate(t *testing.T) {
	policy := func(p metav1.DeletionPropagation) *metav1.DeleteOptions {
		return &metav1.DeleteOptions{PropagationPolicy: &p}
	}
	option := func(b bool) *metav1.DeleteOptions { return &metav1.DeleteOptions{OrphanDependents: &b} }
	nothing := &metav1.DeleteOptions{}
	for _, c := range []struct {
		name       string
		kind       Dependents
		o          *metav1.DeleteOptions
		finalizers []string
		want       propagation
	}{
		{"nobody says anything", Collected, nothing, nil, background},
		{"nobody says anything, and a finalizer of somebody else holds it", Collected, nothing, []string{"x.y/a"}, background},
		{"the kind says it (B63)", Orphaned, nothing, nil, orphaning},
		{"the kind says it, and a finalizer of somebody else holds it", Orphaned, nothing, []string{"x.y/a"}, orphaning},
		{"the object says it", Collected, nothing, []string{"orphan"}, orphaning},
		{"the object says it, in the foreground", Collected, nothing, []string{"x.y/a", "foregroundDeletion"}, foreground},
		{"the object says both, and the first counts", Collected, nothing, []string{"foregroundDeletion", "orphan"}, foreground},
		{"the object says both, the other way round", Collected, nothing, []string{"orphan", "foregroundDeletion"}, orphaning},
		{"the object says more than its kind", Orphaned, nothing, []string{"foregroundDeletion"}, foreground},
		{"the sender asks for orphans", Collected, policy("Orphan"), nil, orphaning},
		{"the sender asks for the foreground", Collected, policy("Foreground"), nil, foreground},
		{"the sender asks for the background", Collected, policy("Background"), nil, background},
		{"the sender says more than the object", Collected, policy("Foreground"), []string{"orphan"}, foreground},
		{"the sender says more than the object: background", Collected, policy("Background"), []string{"orphan"}, background},
		{"the sender says more than the object: orphans", Collected, policy("Orphan"), []string{"foregroundDeletion"}, orphaning},
		{"the sender says more than the kind", Orphaned, policy("Background"), nil, background},
		{"the sender says more than the kind: foreground", Orphaned, policy("Foreground"), nil, foreground},
		{"the old option asks for orphans", Collected, option(true), nil, orphaning},
		{"the old option asks for none", Collected, option(false), nil, background},
		{"the old option asks for none, and says more than the object", Collected, option(false), []string{"orphan"}, background},
		{"the old option asks for none: that is no foreground either", Collected, option(false), []string{"foregroundDeletion"}, background},
		{"the old option says more than the object", Collected, option(true), []string{"foregroundDeletion"}, orphaning},
		{"the old option says more than the kind", Orphaned, option(false), nil, background},
		{"a kind without dependents waits for none, whatever the sender asks for", Disallowed, policy("Foreground"), nil, background},
		{"a kind without dependents has no orphans", Disallowed, policy("Orphan"), nil, background},
		{"a kind without dependents has no orphans by the old option", Disallowed, option(true), nil, background},
		{"a kind without dependents waits for none, whatever the object says", Disallowed, nothing, []string{"foregroundDeletion"}, background},
	} {
		if got := propagate(c.kind, c.o, c.finalizers); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func TestPropagating(t *testing.T) {
	for _, c := range []struct {
		name       string
		finalizers []string
		p          propagation
		want       []string
		changed    bool
	}{
		{"nothing there, nothing added", nil, background, nil, false},
		{"another's finalizer is left alone", []string{"x.y/a"}, background, []string{"x.y/a"}, false},
		{"the collector's goes", []string{"orphan"}, background, []string{}, true},
		{"both of the collector's go", []string{"orphan", "x.y/a", "foregroundDeletion"}, background, []string{"x.y/a"}, true},
		{"the collector's is added at the end", []string{"x.y/b", "x.y/a"}, orphaning, []string{"x.y/b", "x.y/a", "orphan"}, true},
		{"one takes the place of the other", []string{"orphan", "x.y/a"}, foreground, []string{"x.y/a", "foregroundDeletion"}, true},
		{"and back", []string{"foregroundDeletion"}, orphaning, []string{"orphan"}, true},
		{"what is there stays where it is", []string{"orphan", "x.y/a"}, orphaning, []string{"orphan", "x.y/a"}, false},
		{"what is there stays where it is, in the foreground", []string{"foregroundDeletion", "x.y/a"}, foreground, []string{"foregroundDeletion", "x.y/a"}, false},
		{"what is there twice is there", []string{"x.y/a", "orphan", "x.y/a"}, orphaning, []string{"x.y/a", "orphan", "x.y/a"}, false},
		{"the one that is wanted stays when the other goes", []string{"orphan", "foregroundDeletion"}, foreground, []string{"foregroundDeletion"}, true},
	} {
		was := slices.Clone(c.finalizers)
		got, changed := propagating(c.finalizers, c.p)
		if !slices.Equal(got, c.want) || changed != c.changed {
			t.Errorf("%s: %q, changed %v; want %q, %v", c.name, got, changed, c.want, c.changed)
		}
		if !slices.Equal(was, c.finalizers) {
			t.Errorf("%s: the list that was given has been changed", c.name)
		}
	}
}
