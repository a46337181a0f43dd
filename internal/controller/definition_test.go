package controller

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/registry"
)

// inhabited makes a definition with objects in two namespaces, one of them held by a finalizer.
func inhabited(w *world) {
	w.Helper()
	w.define("test.example", "widgets", "Widget")
	for _, ns := range []string{"a", "b"} {
		w.create("", "namespaces", "", named(ns))
		w.create("test.example", "widgets", ns, named("one"))
	}
	w.create("test.example", "widgets", "b", holding("held"))
}

// terminatingOf is what the condition Terminating of the definition says.
func terminatingOf(w *world) string {
	w.Helper()
	def := w.definition("widgets.test.example")
	if def == nil {
		return "gone"
	}
	for _, c := range def.Status.Conditions {
		if c.Type == apiextensionsv1.Terminating {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return "no such condition"
}

func TestADefinitionGoesWithItsObjects(t *testing.T) { // rules C31, C32, C33, C36
	within(t, func(w *world) {
		inhabited(w)
		w.deleteDefinition("widgets.test.example")
		w.settle()
		if got, want := terminatingOf(w), "True InstanceDeletionInProgress: CustomResource deletion is in progress"; got != want {
			t.Errorf("while an object is held the condition is %q, want %q", got, want)
		}
		if left := w.keys("/widgets/"); len(left) != 1 {
			t.Errorf("left are %q", left)
		}
		if err := w.tryCreate("test.example", "widgets", "a", named("late")); !apierrors.IsForbidden(err) {
			t.Errorf("a create while the definition goes: %v", err)
		}

		w.later(checkAfter)
		if got, want := terminatingOf(w), "True InstanceDeletionCheck: could not confirm zero CustomResources remaining: their finalizers hold some"; got != want {
			t.Errorf("after a minute the condition is %q, want %q", got, want)
		}
		before := w.definition("widgets.test.example").ResourceVersion
		w.later(time.Hour)
		if after := w.definition("widgets.test.example").ResourceVersion; after != before {
			t.Errorf("nothing happened for an hour, and the definition went from %s to %s", before, after)
		}

		w.free("test.example", "widgets", "b", "held")
		w.settle()
		if got := terminatingOf(w); got != "gone" {
			t.Errorf("nothing holds the definition any more, and its condition is %q", got)
		}
		if w.catalogue.Catalogue().Lookup("test.example", "widgets") != nil {
			t.Error("its resource is served still")
		}

		w.define("test.example", "widgets", "Widget")
		if left := w.keys("/widgets/"); len(left) > 0 {
			t.Errorf("the successor begins with %q", left)
		}
		w.create("test.example", "widgets", "a", named("one"))
		w.settle()
		if got := w.keys("/widgets/"); len(got) != 1 {
			t.Errorf("the successor holds %q", got)
		}
	})
}

func TestADefinitionThatSomethingElseHoldsSaysThatItsObjectsAreGone(t *testing.T) { // rule C31
	within(t, func(w *world) {
		inhabited(w)
		w.free("test.example", "widgets", "b", "held")
		_, err := w.definitions.Update(w.ctx, "", "widgets.test.example", func(_ context.Context, obj runtime.Object) (runtime.Object, error) {
			def := obj.(*apiextensionsv1.CustomResourceDefinition)
			def.Finalizers = []string{"parity.example/hold"}
			return def, nil
		}, registry.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.deleteDefinition("widgets.test.example")
		w.settle()
		if got, want := terminatingOf(w), "False InstanceDeletionCompleted: removed all instances"; got != want {
			t.Errorf("the condition is %q, want %q", got, want)
		}
		if left := w.keys("/widgets/"); len(left) > 0 {
			t.Errorf("left are %q", left)
		}
		if err := w.tryCreate("test.example", "widgets", "a", named("late")); !apierrors.IsForbidden(err) {
			t.Errorf("a create after that: %v", err)
		}
	})
}

func TestACreateThatRacesWithTheDefinitionsDeletionLeavesNothingBehind(t *testing.T) { // rules C33, C36
	within(t, func(w *world) {
		w.create("", "namespaces", "", named("a"))
		for range 5 {
			w.define("test.example", "widgets", "Widget")
			v := w.version("test.example", "widgets") // a request that has begun ends on this
			const writers, each = 16, 30
			var writing sync.WaitGroup
			for i := range writers {
				writing.Go(func() {
					for n := range each {
						obj, _, err := v.Form.Decode(fmt.Appendf(nil, `{"apiVersion":"test.example/v2","kind":"Widget","metadata":{"name":"x%d-%d"}}`, i, n))
						if err != nil {
							t.Error(err)
							return
						}
						_, err = v.Store.Create(w.ctx, "a", obj, registry.CreateOptions{})
						if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
							t.Errorf("a create under a definition that goes: %v", err)
						}
						if i == 0 && n == each/3 {
							w.deleteDefinition("widgets.test.example")
						}
					}
				})
			}
			writing.Wait()
			w.settle()
			if got := terminatingOf(w); got != "gone" {
				t.Errorf("the definition is there, and says %q", got)
			}
			if left := w.keys("/widgets/"); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		}
	})
}

func TestARestartInTheMiddleOfADefinitionsDeletion(t *testing.T) {
	within(t, func(w *world) {
		inhabited(w)
		w.deleteDefinition("widgets.test.example")
		w.later(checkAfter)
		before := w.definition("widgets.test.example").ResourceVersion
		w.stopLoops()
		w.startLoops()
		if after := w.definition("widgets.test.example").ResourceVersion; after != before {
			t.Errorf("a restart wrote the definition: it went from %s to %s", before, after)
		}
		w.stopLoops()
		w.free("test.example", "widgets", "b", "held")
		w.startLoops()
		if got := terminatingOf(w); got != "gone" {
			t.Errorf("after a restart the condition is %q", got)
		}
	})
}

func TestANamespaceAndADefinitionGoTogether(t *testing.T) {
	within(t, func(w *world) {
		inhabited(w)
		w.deleteDefinition("widgets.test.example")
		w.delete("", "namespaces", "", "a")
		w.delete("", "namespaces", "", "b")
		w.settle()
		if a, b := w.namespace("a"), w.namespace("b"); a != nil || b == nil {
			t.Errorf("with an object held in b there are %+v and %+v", a, b)
		}
		w.free("test.example", "widgets", "b", "held")
		w.settle()
		if b, crd := w.namespace("b"), terminatingOf(w); b != nil || crd != "gone" {
			t.Errorf("got %+v and %q", b, crd)
		}
	})
}

// What lies under the name of a definition that cannot be served is its own, unless a built-in
// resource keeps it there.
func TestADefinitionThatIsNotServedTakesWhatIsStoredUnderItsName(t *testing.T) { // rule C36
	for _, c := range []struct {
		name, group, plural, kind, key string
		stays                          bool
	}{
		{"objects that nobody can read go", "test.example", "widgets", "Widget", "default/test.example/widgets/a/lost", false},
		{"objects of a built-in resource stay", "coordination.k8s.io", "leases", "Lease", "default/coordination.k8s.io/leases/a/mine", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			within(t, func(w *world) {
				w.stopLoops()
				w.create("", "namespaces", "", named("a"))
				w.define(c.group, c.plural, c.kind)
				if _, err := w.engine.Commit(w.ctx, kv.Txn{Ops: []kv.Op{kv.Put(c.key, []byte("?"))}}); err != nil {
					t.Fatal(err)
				}
				w.deleteDefinition(c.plural + "." + c.group)
				d := NewDefinitions(DefinitionsOptions{Store: w.definitions, Status: w.status, Custom: servesNothing{w.manager}, Catalogue: w.catalogue})
				ctx, cancel := context.WithCancel(w.ctx)
				w.running.Go(func() { _ = d.Run(ctx) })
				w.settle()
				cancel()
				if w.definition(c.plural+"."+c.group) != nil {
					t.Error("the definition is there still")
				}
				if stays := len(w.keys(c.key)) > 0; stays != c.stays {
					t.Errorf("stays: %v, want %v", stays, c.stays)
				}
			})
		})
	}
}

// servesNothing is a manager that has no instances of anything.
type servesNothing struct{ CustomResources }

func (servesNothing) Instances(string) *registry.Store { return nil }
