package crd

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// A world is definitions in an engine in memory, and a manager that follows them.
type world struct {
	t           *testing.T
	engine      kv.Engine
	definitions *registry.Store
	status      *registry.Store
	catalogue   *resource.Registry
	manager     *Manager
}

// inWorld runs a story; the manager is started where the story starts it.
func inWorld(t *testing.T, story func(w *world)) {
	t.Helper()
	engine, err := local.Open(t.Context(), local.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, engine: engine}
	table := storage.NewTable(storage.Options{Engine: engine, Group: DefinitionResource.Group, Resource: DefinitionResource.Resource, Codec: DefinitionCodec{}})
	main := registry.Config{Kind: DefinitionKind, Resource: DefinitionResource, Table: table, Strategy: Strategy{Now: metav1.Now}}
	status := main
	status.Strategy = StatusStrategy{}
	w.definitions, w.status = registry.Must(main), registry.Must(status)
	story(w)
	if err := engine.Close(); err != nil {
		t.Error(err)
	}
}

// open makes a manager with an empty catalogue, which reads what is stored.
func (w *world) open() {
	w.t.Helper()
	w.catalogue = &resource.Registry{}
	w.manager = NewManager(Options{
		Definitions: w.definitions, Status: w.status, Catalogue: w.catalogue, Tables: storage.Options{Engine: w.engine, Turns: &storage.Turns{}},
	})
	if err := w.manager.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// start makes a manager that follows the definitions until stop ends it.
func (w *world) start() (stop func()) {
	w.t.Helper()
	w.open()
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error)
	go func() { ended <- w.manager.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	}
}

// answered waits as a server does before it answers a write of a definition.
func (w *world) answered(rev kv.Revision, err error) {
	w.t.Helper()
	if err == nil {
		err = w.manager.WaitFor(w.t.Context(), rev)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) define(text string) {
	w.t.Helper()
	v, err := w.definitions.Create(w.t.Context(), "", decoded(w.t, text), registry.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.answered(v.Revision(), nil)
}

func (w *world) change(name string, change func(*apiextensionsv1.CustomResourceDefinition)) {
	w.t.Helper()
	did, err := w.definitions.Update(w.t.Context(), "", name, func(_ context.Context, current runtime.Object) (runtime.Object, error) {
		change(current.(*apiextensionsv1.CustomResourceDefinition))
		return current, nil
	}, registry.UpdateOptions{})
	w.answered(did.Version.Revision(), err)
}

func (w *world) remove(name string) {
	w.t.Helper()
	did, err := w.definitions.Delete(w.t.Context(), "", name, nil)
	w.answered(did.Version.Revision(), err)
}

// cleanUp does what ends a deletion: the instances are gone, the finalizer goes.
func (w *world) cleanUp(name string) {
	w.t.Helper()
	did, err := w.status.Update(w.t.Context(), "", name, func(_ context.Context, current runtime.Object) (runtime.Object, error) {
		current.(*apiextensionsv1.CustomResourceDefinition).Finalizers = nil
		return current, nil
	}, registry.UpdateOptions{})
	w.answered(did.Version.Revision(), err)
}

func (w *world) definition(name string) *apiextensionsv1.CustomResourceDefinition {
	w.t.Helper()
	v, err := w.definitions.Get(w.t.Context(), "", name, "")
	if err != nil {
		w.t.Fatal(err)
	}
	obj, err := v.Object()
	if err != nil {
		w.t.Fatal(err)
	}
	return obj.(*apiextensionsv1.CustomResourceDefinition)
}

// widgets returns the resource that is served, nil if none is.
func (w *world) widgets() *resource.Resource {
	return w.catalogue.Catalogue().Lookup("test.example", "widgets")
}

// make creates a widget through a version of r.
func (w *world) make(r *resource.Resource, version, name string) error {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
	u.SetGroupVersionKind(r.Version(version).Form.GroupVersionKind())
	u.SetName(name)
	_, err := r.Version(version).Store.Create(w.t.Context(), "ns", u, registry.CreateOptions{})
	return err
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestADefinitionIsUsableTheMomentTheCallReturns(t *testing.T) {
	inWorld(t, func(w *world) {
		defer w.start()()
		w.define(twoVersions)
		r := w.widgets()
		if r == nil {
			t.Fatal("nothing is served")
		}
		if err := w.make(r, "v2", "a"); err != nil {
			t.Fatal(err)
		}
		v, err := r.Version("v1").Store.Get(t.Context(), "ns", "a", "")
		if err != nil {
			t.Fatal(err)
		}
		obj, err := v.Object()
		if err != nil {
			t.Fatal(err)
		}
		if u := obj.(*unstructured.Unstructured); u.GetAPIVersion() != "test.example/v1" || u.GetGeneration() != 1 {
			t.Errorf("what was created in v2 is read in v1 (rule C81): %v", u.Object)
		}
		if got := r.Versions[0].Name; got != "v2" {
			t.Errorf("the preferred version is the first by order, not the stored one (rule C90): %s", got)
		}
		same(t, "conditions in the order in which they came (rules C19, C20)", described(w.definition("widgets.test.example").Status), []string{
			"widgets/widget/Widget/WidgetList/",
			"NamesAccepted=True NoConflicts: no conflicts found",
			"Established=True InitialNamesAccepted: the initial names have been accepted",
		})
	})
}

func TestItIsInstallingBeforeItIsEstablished(t *testing.T) {
	inWorld(t, func(w *world) {
		defer w.start()()
		watch, err := w.definitions.Watch(t.Context(), registry.WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Stop()
		w.define(twoVersions)
		var seen []string
		for {
			e, ok, err := watch.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			obj, err := e.Version.Object()
			if err != nil {
				t.Fatal(err)
			}
			reason := "none"
			for _, c := range obj.(*apiextensionsv1.CustomResourceDefinition).Status.Conditions {
				reason = c.Reason
			}
			seen = append(seen, string(e.Type)+" "+reason)
		}
		same(t, "rule C20", seen, []string{"ADDED none", "MODIFIED Installing", "MODIFIED InitialNamesAccepted"})
	})
}

func TestARestartServesWhatWasServed(t *testing.T) {
	inWorld(t, func(w *world) {
		stop := w.start()
		w.define(twoVersions)
		before := w.definition("widgets.test.example").ResourceVersion
		stop()
		if err := w.manager.WaitFor(t.Context(), 1<<40); err == nil {
			t.Error("a manager that no longer runs says so to those who wait")
		}
		defer w.start()()
		if w.widgets() == nil {
			t.Error("it is in the catalogue when Start returns")
		}
		if after := w.definition("widgets.test.example").ResourceVersion; after != before {
			t.Errorf("nothing is written: %s, was %s", after, before)
		}
	})
}

func TestAChangeTakesEffectAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		defer w.start()()
		w.define(twoVersions)
		old := w.widgets()

		w.change("widgets.test.example", func(d *apiextensionsv1.CustomResourceDefinition) { d.Labels = map[string]string{"a": "b"} })
		if w.widgets() != old || isClosed(old.Closed) {
			t.Error("a label of the definition is nothing to its clients")
		}
		if err := w.make(old, "v1", "a"); err != nil {
			t.Errorf("and creating goes on: %v", err)
		}

		w.change("widgets.test.example", func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Versions[1].Served = false
			d.Spec.Names.ShortNames = []string{"wd"}
		})
		now := w.widgets()
		if now == old || !isClosed(old.Closed) || isClosed(now.Closed) {
			t.Error("another takes its place, whose watches are open (rule C28)")
		}
		if now.Version("v2") != nil || strings.Join(now.ShortNames, " ") != "wd" {
			t.Errorf("v2 is no longer served (rule C27), the short name is: %v", now)
		}
		if err := w.make(old, "v2", "b"); err != nil {
			t.Errorf("a request in flight finishes on what it began with (rule C28): %v", err)
		}
	})
}

func TestNamesThatBecomeFreeAreGivenToThoseWhoWait(t *testing.T) {
	inWorld(t, func(w *world) {
		defer w.start()()
		w.define(twoVersions)
		w.define(strings.ReplaceAll(twoVersions, "widgets", "gizmos")) // of the same kind
		if w.catalogue.Catalogue().Lookup("test.example", "gizmos") != nil {
			t.Error("nothing is served of a definition whose names clash (rule C22)")
		}
		w.remove("widgets.test.example")
		w.cleanUp("widgets.test.example")
		if w.catalogue.Catalogue().Lookup("test.example", "gizmos") == nil {
			t.Errorf("its names are free now (rule C24): %q", described(w.definition("gizmos.test.example").Status))
		}
	})
}

func TestADefinitionThatIsBeingDeleted(t *testing.T) {
	inWorld(t, func(w *world) {
		defer w.start()()
		w.define(twoVersions)
		old := w.widgets()
		if err := w.make(old, "v1", "a"); err != nil {
			t.Fatal(err)
		}
		w.remove("widgets.test.example")
		r := w.widgets()
		if r == nil || !r.Terminating || isClosed(old.Closed) {
			t.Fatalf("it is served, its watches go on, and discovery says less of it (rules C32, C33): %+v", r)
		}
		for name, through := range map[string]*resource.Resource{"the resource now": r, "the one before": old} {
			err := w.make(through, "v1", "b")
			if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), "create not allowed while custom resource definition is terminating") {
				t.Errorf("%s: nothing comes into being (rule C33): %v", name, err)
			}
		}
		if _, err := r.Version("v1").Store.Get(t.Context(), "ns", "a", ""); err != nil {
			t.Errorf("what is there can be read (rule C32): %v", err)
		}
		if _, err := w.manager.Instances("widgets.test.example").DeleteCollection(t.Context(), registry.ListOptions{}, nil); err != nil {
			t.Errorf("and is cleaned up (rule C31): %v", err)
		}

		w.cleanUp("widgets.test.example")
		if w.widgets() != nil || !isClosed(old.Closed) || w.manager.Instances("widgets.test.example") != nil {
			t.Error("then it is gone, and its watches end")
		}
		if err := w.make(old, "v1", "c"); !apierrors.IsNotFound(err) {
			t.Errorf("a request that began before finds nothing: %v", err)
		}

		w.define(twoVersions)
		if err := w.make(old, "v1", "c"); !apierrors.IsNotFound(err) {
			t.Errorf("nor after it is made anew, for that is another definition: %v", err)
		}
		page, err := w.widgets().Version("v1").Store.List(t.Context(), registry.ListOptions{})
		if err != nil || len(page.Items) != 0 {
			t.Errorf("which starts with no instances (rule C36): %v, %v", page, err)
		}
	})
}

func TestADefinitionThatWasNeverServedGoesAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		defer w.start()()
		w.define(twoVersions)
		w.define(strings.ReplaceAll(twoVersions, "widgets", "gizmos"))
		w.remove("gizmos.test.example")
		if _, err := w.definitions.Get(t.Context(), "", "gizmos.test.example", ""); !apierrors.IsNotFound(err) {
			t.Errorf("rule C34: %v", err)
		}
	})
}

func TestABuiltinResourceIsNotReplaced(t *testing.T) {
	inWorld(t, func(w *world) {
		defer w.start()()
		builtin := &resource.Resource{Group: "test.example", Plural: "widgets"}
		w.catalogue.Change(nil, builtin)
		w.define(twoVersions)
		if w.widgets() != builtin {
			t.Error("a definition takes the place of what every server has")
		}
	})
}

func TestWhoSawADefinitionEstablishedFindsIt(t *testing.T) {
	inWorld(t, func(w *world) {
		defer w.start()()
		// Somebody else's create is not answered yet.
		if _, err := w.definitions.Create(t.Context(), "", decoded(t, twoVersions), registry.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := w.manager.Confirm(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.widgets() == nil {
			t.Error("rule C21")
		}
	})
}

func TestNothingComesIntoBeingAfterADefinitionBeginsToGo(t *testing.T) {
	inWorld(t, func(w *world) {
		defer w.start()()
		w.define(twoVersions)
		r := w.widgets()
		refused := make(chan error)
		const writers = 8
		for i := range writers {
			go func() {
				for n := 0; ; n++ {
					if err := w.make(r, "v1", fmt.Sprintf("w%d-%d", i, n)); err != nil {
						refused <- err
						return
					}
				}
			}()
		}
		w.remove("widgets.test.example")
		for range writers {
			if err := <-refused; !apierrors.IsForbidden(err) {
				t.Errorf("rule C33: %v", err)
			}
		}
		v, err := w.definitions.Get(t.Context(), "", "widgets.test.example", "")
		if err != nil {
			t.Fatal(err)
		}
		page, err := w.manager.Instances("widgets.test.example").List(t.Context(), registry.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Items {
			if item.Revision() > v.Revision() {
				t.Errorf("%s came into being at %d, but the definition is going since %d", item.Name(), item.Revision(), v.Revision())
			}
		}
	})
}

func TestOfTwoDefinitionsOfOneKindOneIsServed(t *testing.T) {
	inWorld(t, func(w *world) {
		defer w.start()()
		var both sync.WaitGroup
		for _, plural := range []string{"widgets", "gizmos"} {
			both.Go(func() { w.define(strings.ReplaceAll(twoVersions, "widgets", plural)) })
		}
		both.Wait()
		if got := len(w.catalogue.Catalogue().Resources()); got != 1 {
			t.Errorf("%d are served (rule C22)", got)
		}
	})
}

func TestADefinitionThatCannotBeReadDoesNotStopTheOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		key := w.definitions.Table().Key("", "bad.test.example")
		if _, err := w.engine.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(key, []byte("no definition"))}}); err != nil {
			t.Fatal(err)
		}
		defer w.start()()
		w.define(twoVersions)
		if w.widgets() == nil {
			t.Error("the good one is served")
		}
	})
}

func TestAManagerThatFellBehindReadsAllAnew(t *testing.T) {
	inWorld(t, func(w *world) {
		ctx := t.Context()
		create := func(text string) {
			t.Helper()
			if _, err := w.definitions.Create(ctx, "", decoded(t, text), registry.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		create(twoVersions)
		w.open()
		old := w.widgets()

		// While nobody follows, one definition goes and another comes.
		if _, err := w.definitions.Delete(ctx, "", "widgets.test.example", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := w.status.Update(ctx, "", "widgets.test.example", func(_ context.Context, current runtime.Object) (runtime.Object, error) {
			current.(*apiextensionsv1.CustomResourceDefinition).Finalizers = nil
			return current, nil
		}, registry.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		create(strings.ReplaceAll(twoVersions, "widgets", "gizmos"))
		if err := w.manager.begin(ctx); err != nil {
			t.Fatal(err)
		}
		defer w.manager.watch.Stop()
		if w.widgets() != nil || !isClosed(old.Closed) {
			t.Error("what is gone is no longer served, and its watches end")
		}
		if w.catalogue.Catalogue().Lookup("test.example", "gizmos") == nil {
			t.Error("what came is served")
		}
	})
}
