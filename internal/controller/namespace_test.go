package controller

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/registry"
)

func TestADeletedNamespaceGoesWithEverythingInIt(t *testing.T) { // rules B29, B32
	within(t, func(w *world) {
		w.define("test.example", "widgets", "Widget")
		w.create("", "namespaces", "", named("a"))
		w.create("", "namespaces", "", named("ab"))
		for _, ns := range []string{"a", "ab"} {
			w.create("", "configmaps", ns, named("one"))
			w.create("", "configmaps", ns, named("two"))
			w.create("", "secrets", ns, named("one"))
			w.create("coordination.k8s.io", "leases", ns, named("one"))
			w.create("test.example", "widgets", ns, named("one"))
		}
		w.delete("", "namespaces", "", "a")
		w.settle()
		if ns := w.namespace("a"); ns != nil {
			t.Errorf("still there: %+v", ns)
		}
		if left := w.keys("/a/"); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
		if kept := w.keys("/ab/"); len(kept) != 5 {
			t.Errorf("of a namespace that was not deleted there is %q", kept)
		}

		w.create("", "namespaces", "", named("a"))
		w.create("", "configmaps", "a", named("one"))
		w.settle()
		if got := w.keys("/a/"); len(got) != 1 {
			t.Errorf("the successor holds %q", got)
		}
	})
}

func TestAFinalizerHoldsANamespaceUntilItIsTakenAway(t *testing.T) { // rules B29, B31
	within(t, func(w *world) {
		w.create("", "namespaces", "", named("a"))
		w.create("", "configmaps", "a", holding("held"))
		w.create("", "secrets", "a", holding("held"))
		w.create("", "secrets", "a", named("free"))
		w.delete("", "namespaces", "", "a")
		w.settle()
		ns := w.namespace("a")
		if ns == nil || ns.Status.Phase != corev1.NamespaceTerminating {
			t.Fatalf("a held namespace is %+v", ns)
		}
		if grace := ns.DeletionGracePeriodSeconds; grace != nil {
			t.Errorf("a held namespace has %d seconds left; namespaces have no such field", *grace)
		}
		if left := w.keys("/a/"); len(left) != 2 {
			t.Errorf("left are %q", left)
		}
		want := []string{
			"NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully discovered",
			"NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types successfully parsed",
			"NamespaceDeletionContentFailure False ContentDeleted: All content successfully deleted, may be waiting on finalization",
			"NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances, secrets. has 1 resource instances",
			"NamespaceFinalizersRemaining True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: parity.example/hold in 2 resource instances",
		}
		expectConditions(t, ns, want)

		before := ns.ResourceVersion
		w.later(time.Hour)
		if after := w.namespace("a").ResourceVersion; after != before {
			t.Errorf("nothing happened for an hour, and the namespace went from %s to %s", before, after)
		}

		w.free("", "configmaps", "a", "held")
		w.later(tellPace)
		want[3] = "NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: secrets. has 1 resource instances"
		want[4] = strings.Replace(want[4], "in 2", "in 1", 1)
		expectConditions(t, w.namespace("a"), want)

		w.free("", "secrets", "a", "held")
		w.settle()
		if ns := w.namespace("a"); ns != nil {
			t.Errorf("nothing holds the namespace any more, and it is %+v", ns)
		}
	})
}

func expectConditions(t *testing.T, ns *corev1.Namespace, want []string) {
	t.Helper()
	if len(ns.Status.Conditions) != len(want) {
		t.Fatalf("got %d conditions, want %d: %+v", len(ns.Status.Conditions), len(want), ns.Status.Conditions)
	}
	for i, c := range ns.Status.Conditions {
		if got := fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message); got != want[i] {
			t.Errorf("condition %d is\n%s\nwant\n%s", i, got, want[i])
		}
		if c.LastTransitionTime.IsZero() {
			t.Errorf("%s has no time", c.Type)
		}
	}
}

func TestFinalizersOfTheNamespaceItselfHoldItAfterItsContentIsGone(t *testing.T) { // rule B30
	within(t, func(w *world) {
		w.create("", "namespaces", "", holding("a"))
		w.create("", "configmaps", "a", named("one"))
		w.delete("", "namespaces", "", "a")
		w.settle()
		ns := w.namespace("a")
		if ns == nil || len(ns.Spec.Finalizers) > 0 || len(w.keys("/a/")) > 0 {
			t.Fatalf("an empty namespace that is held is %+v, with %q", ns, w.keys("/a/"))
		}
		if c := ns.Status.Conditions; len(c) != 5 || c[3].Message != "All content successfully removed" {
			t.Errorf("its conditions are %+v", c)
		}
		w.free("", "namespaces", "", "a")
		if ns := w.namespace("a"); ns != nil {
			t.Errorf("free to go, and it is %+v", ns)
		}
	})
}

func TestAFinalizerThatComesBackIsServedAgain(t *testing.T) {
	within(t, func(w *world) {
		w.create("", "namespaces", "", holding("a"))
		w.delete("", "namespaces", "", "a")
		w.settle()
		finalize := w.version("", "namespaces").Subresources["finalize"].Store
		_, err := finalize.Update(w.ctx, "", "a", func(_ context.Context, obj runtime.Object) (runtime.Object, error) {
			ns := obj.(*corev1.Namespace)
			ns.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
			return ns, nil
		}, registry.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.settle()
		if ns := w.namespace("a"); ns == nil || len(ns.Spec.Finalizers) > 0 {
			t.Errorf("got %+v", ns)
		}
	})
}

func TestPodsGoBeforeAnythingElse(t *testing.T) { // rule B29
	within(t, func(w *world) {
		w.create("", "namespaces", "", named("a"))
		w.create("", "pods", "a", holding("slow"))
		w.create("", "configmaps", "a", named("needed"))
		w.delete("", "namespaces", "", "a")
		w.later(time.Hour)
		if left := w.keys("/a/"); len(left) != 2 {
			t.Errorf("while a pod is there, left are %q", left)
		}
		w.free("", "pods", "a", "slow")
		w.settle()
		if ns, left := w.namespace("a"), w.keys("/a/"); ns != nil || len(left) > 0 {
			t.Errorf("got %+v with %q", ns, left)
		}
	})
}

// Every create of a race either is refused, or its object goes with the namespace.
func TestACreateThatRacesWithTheDeletionLeavesNothingBehind(t *testing.T) { // rule B28
	within(t, func(w *world) {
		w.define("test.example", "widgets", "Widget")
		const writers, each = 16, 30
		for round := range 5 {
			ns := fmt.Sprintf("a%d", round)
			w.create("", "namespaces", "", named(ns))
			var writing sync.WaitGroup
			landed := make([]int, writers)
			for i := range writers {
				writing.Go(func() {
					group, plural := "", "configmaps"
					if i%2 == 1 {
						group, plural = "test.example", "widgets"
					}
					for n := range each {
						switch err := w.tryCreate(group, plural, ns, named(fmt.Sprintf("x%d-%d", i, n))); {
						case err == nil:
							landed[i]++
						case !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err):
							t.Errorf("a create in a namespace that goes: %v", err)
						}
						if i == 0 && n == each/3 {
							w.delete("", "namespaces", "", ns)
						}
					}
				})
			}
			writing.Wait()
			w.settle()
			if got := w.namespace(ns); got != nil {
				t.Errorf("still there: %+v", got)
			}
			if left := w.keys("/" + ns + "/"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
			total := 0
			for _, n := range landed {
				total += n
			}
			if total == 0 || total == writers*each {
				t.Errorf("%d of %d creates landed: that was no race", total, writers*each)
			}
		}
	})
}

func TestARestartInTheMiddleOfANamespacesDeletion(t *testing.T) {
	within(t, func(w *world) {
		w.create("", "namespaces", "", named("a"))
		w.create("", "namespaces", "", named("b"))
		w.create("", "configmaps", "a", holding("held"))
		w.create("", "configmaps", "b", named("one"))
		w.delete("", "namespaces", "", "a")
		w.settle()
		w.stopLoops()

		w.free("", "configmaps", "a", "held") // nobody sees this
		w.delete("", "namespaces", "", "b")   // nor this
		w.settle()
		if w.namespace("a") == nil || w.namespace("b") == nil {
			t.Fatal("a namespace went although nothing ran")
		}
		w.startLoops()
		if a, b := w.namespace("a"), w.namespace("b"); a != nil || b != nil {
			t.Errorf("after a restart there are %+v, %+v", a, b)
		}
	})
}

func TestAWatchThatFellBehindBeginsAgain(t *testing.T) {
	within(t, func(w *world) {
		w.create("", "namespaces", "", named("a"))
		w.create("", "namespaces", "", named("b"))
		w.create("", "configmaps", "a", holding("held"))
		w.delete("", "namespaces", "", "a")
		w.settle()
		for _, step := range []struct {
			name string
			do   func()
		}{
			{"a", func() { w.free("", "configmaps", "a", "held") }}, // what is left is watched
			{"b", func() { w.delete("", "namespaces", "", "b") }},   // and so are namespaces
		} {
			w.engine.behind.Store(true)
			step.do()
			w.settle()
			if w.engine.behind.Load() {
				t.Error("no watch fell behind")
			}
			if ns := w.namespace(step.name); ns != nil {
				t.Errorf("got %+v", ns)
			}
		}
	})
}

func TestManyHeldObjectsDoNotWriteTheNamespaceForEach(t *testing.T) {
	within(t, func(w *world) {
		const many = 200
		w.create("", "namespaces", "", named("a"))
		for i := range many {
			w.create("", "configmaps", "a", holding(fmt.Sprint("x", i)))
		}
		w.delete("", "namespaces", "", "a")
		w.settle()
		before := w.namespace("a").ResourceVersion
		for i := range many - 1 {
			w.free("", "configmaps", "a", fmt.Sprint("x", i))
			w.settle()
		}
		if after := w.namespace("a").ResourceVersion; after != before {
			t.Errorf("in no time the namespace went from %s to %s", before, after)
		}
		w.free("", "configmaps", "a", fmt.Sprint("x", many-1))
		w.settle()
		if ns := w.namespace("a"); ns != nil {
			t.Errorf("got %+v", ns)
		}
	})
}

func TestAStoreThatTakesNoWritesIsTriedAgain(t *testing.T) {
	within(t, func(w *world) {
		w.create("", "namespaces", "", named("a"))
		w.create("", "configmaps", "a", named("one"))
		w.stopLoops()
		w.delete("", "namespaces", "", "a")
		w.engine.full.Store(true)
		w.startLoops()
		w.later(time.Hour)
		if tries := w.engine.refused.Load(); tries < 3600/30 || tries > 10*3600/30 {
			t.Errorf("tried %d times in an hour", tries)
		}
		w.engine.full.Store(false)
		w.later(pauseMax)
		if ns := w.namespace("a"); ns != nil {
			t.Errorf("the store takes writes again, and the namespace is %+v", ns)
		}
	})
}

func TestLoopsEndWithTheEngine(t *testing.T) {
	within(t, func(w *world) {
		w.create("", "namespaces", "", named("a"))
		w.create("", "configmaps", "a", holding("held"))
		w.delete("", "namespaces", "", "a")
		w.settle()
		if err := w.engine.Close(); err != nil {
			t.Fatal(err)
		}
		w.running.Wait() // nobody stops them
	})
}

func TestOnlyWhatWasSeenIsDeleted(t *testing.T) {
	within(t, func(w *world) {
		w.create("", "namespaces", "", named("a"))
		w.create("", "configmaps", "a", named("again"))
		w.create("", "configmaps", "a", named("old"))
		store := w.version("", "configmaps").Store
		_, newest := w.engine.Revisions()
		r, err := restAt(w.ctx, store, "a", newest)
		if err != nil {
			t.Fatal(err)
		}
		w.delete("", "configmaps", "a", "again")
		w.create("", "configmaps", "a", named("again"))
		w.create("", "configmaps", "a", named("new"))
		if err := r.delete(w.ctx); err != nil {
			t.Fatal(err)
		}
		if left, want := w.keys("/configmaps/a/"), "[default/core/configmaps/a/again default/core/configmaps/a/new]"; fmt.Sprint(left) != want {
			t.Errorf("left are %s, want %s", left, want)
		}
	})
}

func TestOnlyTheNamespaceThatIsMeantIsEmptied(t *testing.T) {
	within(t, func(w *world) {
		w.stopLoops()
		namespaces := w.version("", "namespaces")
		n := NewNamespaces(NamespacesOptions{
			Store: namespaces.Store, Status: namespaces.Subresources["status"].Store, Finalize: namespaces.Subresources["finalize"].Store,
			Catalogue: w.catalogue, Custom: w.manager,
		})
		w.create("", "namespaces", "", named("a"))
		w.create("", "configmaps", "a", named("one"))
		uid := w.namespace("a").UID
		empty := func(uid types.UID, left int) {
			t.Helper()
			if err := n.empty(w.ctx, target{"a", uid}); err != nil {
				t.Error(err)
			}
			if got := w.keys("/a/"); len(got) != left {
				t.Errorf("left are %q, want %d", got, left)
			}
		}
		empty(uid, 1) // it is not being deleted
		w.delete("", "namespaces", "", "a")
		empty("of a predecessor", 1)
		empty(uid, 0)
	})
}

func TestFinalizersOfTheCollectorDoNotHoldANamespace(t *testing.T) { // rule S93
	within(t, func(w *world) {
		w.create("", "namespaces", "", named("a"))
		w.create("", "configmaps", "a", `{"name":"asked","finalizers":["orphan"]}`)
		w.create("", "secrets", "a", `{"name":"not-asked","finalizers":["foregroundDeletion"]}`)
		w.delete("", "configmaps", "a", "asked")
		w.delete("", "namespaces", "", "a")
		w.settle()
		if ns := w.namespace("a"); ns != nil {
			t.Errorf("got %+v with %q", ns, w.keys("/a/"))
		}
	})
}

func TestSystemNamespacesExistAndComeBack(t *testing.T) { // rules B18, B19
	within(t, func(w *world) {
		for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
			if w.namespace(name) == nil {
				t.Errorf("there is no %s", name)
			}
		}
		uid := w.namespace("kube-node-lease").UID
		w.delete("", "namespaces", "", "kube-node-lease")
		w.settle()
		if ns := w.namespace("kube-node-lease"); ns == nil || ns.UID == uid || ns.DeletionTimestamp != nil {
			t.Errorf("deleted, and it is %+v", ns)
		}
	})
}

func TestObjectsThatNobodyServesHoldTheNamespaceAndAreToldOf(t *testing.T) {
	within(t, func(w *world) {
		w.define("test.example", "widgets", "Widget")
		w.create("", "namespaces", "", named("a"))
		w.create("", "configmaps", "a", named("one"))
		w.create("test.example", "widgets", "a", named("lost"))
		// Taken out by hand: no way that the server offers leads here.
		w.stopLoops()
		w.deleteDefinition("widgets.test.example")
		if _, err := w.status.Update(w.ctx, "", "widgets.test.example", withoutFinalizers, registry.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.startLoops()
		w.delete("", "namespaces", "", "a")
		w.settle()
		ns := w.namespace("a")
		if ns == nil || len(w.keys("/configmaps/a/")) > 0 {
			t.Fatalf("got %+v", ns)
		}
		if c := ns.Status.Conditions; len(c) != 5 || !strings.Contains(c[2].Message, "there are objects of widgets.test.example, and no such resource is served") {
			t.Errorf("its conditions are %+v", c)
		}
		w.define("test.example", "widgets", "Widget")
		w.later(pauseMax)
		if ns := w.namespace("a"); ns != nil {
			t.Errorf("served again, and it is %+v", ns)
		}
	})
}
