package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/internal/admission"
	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/internal/resource/builtin"
	"github.com/pawl-dev/pawl/internal/resource/crd"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// A world is a server without HTTP: an engine in memory, the real stores over it, and the loops.
type world struct {
	*testing.T
	ctx         context.Context
	engine      *disk
	catalogue   *resource.Registry
	manager     *crd.Manager
	definitions *registry.Store
	status      *registry.Store // of definitions

	stop    context.CancelFunc // of the loops
	running sync.WaitGroup
}

// A disk is an engine that takes no writes while it is full, and forgets what the next watch that
// somebody looks at has to tell, once it is told to.
type disk struct {
	kv.Engine
	full    atomic.Bool
	refused atomic.Int32
	behind  atomic.Bool
}

func (d *disk) Watch(prefix string, after kv.Revision) (kv.Watch, error) {
	watch, err := d.Engine.Watch(prefix, after)
	return &forgetful{watch, d}, err
}

type forgetful struct {
	kv.Watch
	disk *disk
}

func (f *forgetful) Next() (kv.Event, bool, error) {
	if f.disk.behind.CompareAndSwap(true, false) {
		return kv.Event{}, false, &kv.Error{Op: "watch", Kind: kv.ErrCompacted}
	}
	return f.Watch.Next()
}

func (d *disk) Commit(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
	if d.full.Load() {
		d.refused.Add(1)
		return kv.Committed{}, &kv.Error{Op: "commit", Kind: kv.ErrReadOnly}
	}
	return d.Engine.Commit(ctx, txn)
}

// within runs a test in a world of its own whose time passes only while everything waits: what is
// there after settle has come about by events alone, since no time has passed. When the test
// ends, nothing may be running any more, or synctest fails it.
func within(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		memory, err := local.Open(t.Context(), local.Options{Memory: true})
		if err != nil {
			t.Fatal(err)
		}
		engine := &disk{Engine: memory}
		w := newWorld(t, engine)
		ctx, cancel := context.WithCancel(t.Context())
		var serving sync.WaitGroup
		if err := w.manager.Start(ctx); err != nil {
			t.Fatal(err)
		}
		serving.Go(func() {
			if err := w.manager.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		w.startLoops()
		defer func() {
			w.stopLoops()
			cancel()
			serving.Wait()
			engine.Close()
		}()
		test(w)
	})
}

func newWorld(t *testing.T, engine *disk) *world {
	w := &world{T: t, ctx: t.Context(), engine: engine, catalogue: &resource.Registry{}}
	kinds := append(builtin.Kinds(), podKind())
	var guard func(schema.GroupResource) registry.Guard
	for _, k := range kinds {
		table := storage.NewTable(storage.Options{
			Engine: engine, Group: k.Group, Resource: k.Plural, Namespaced: k.Strategy.Policy().Namespaced, Codec: k.Codec(), Fields: k.Fields,
		})
		if guard == nil {
			guard = admission.NamespaceGuard(table) // namespaces come first
		}
		w.catalogue.Change(nil, k.Resource(func(k builtin.Kind, _ string, s registry.Strategy) *registry.Store {
			c := registry.Config{
				Kind: k.GroupVersionKind(), Resource: k.GroupResource(), Table: table, Strategy: s,
				GuardsFor: []func(schema.GroupResource) registry.Guard{guard},
			}
			if k.Plural == "namespaces" {
				c.Hooks = []registry.Hook{admission.ProtectNamespaces()}
			}
			return registry.Must(c)
		}))
	}
	table := storage.NewTable(storage.Options{
		Engine: engine, Group: crd.DefinitionResource.Group, Resource: crd.DefinitionResource.Resource, Codec: crd.DefinitionCodec{},
	})
	store := func(s registry.Strategy) *registry.Store {
		return registry.Must(registry.Config{Kind: crd.DefinitionKind, Resource: crd.DefinitionResource, Table: table, Strategy: s})
	}
	w.definitions, w.status = store(crd.Strategy{Now: metav1.Now}), store(crd.StatusStrategy{})
	w.manager = crd.NewManager(crd.Options{
		Definitions: w.definitions, Status: w.status, Catalogue: w.catalogue, Tables: storage.Options{Engine: engine},
		Stores: registry.Config{GuardsFor: []func(schema.GroupResource) registry.Guard{guard}},
	})
	return w
}

// podKind stands in for pods: configmaps under their name, so that they need no more than one.
func podKind() builtin.Kind {
	for _, k := range builtin.Kinds() {
		if k.Plural == "configmaps" {
			k.Kind, k.Plural, k.Singular = "Pod", "pods", "pod"
			return k
		}
	}
	panic("builtin has no configmaps")
}

// startLoops starts both loops, as a server does when it starts.
func (w *world) startLoops() {
	var ctx context.Context
	ctx, w.stop = context.WithCancel(w.ctx)
	namespaces := w.catalogue.Catalogue().Lookup("", "namespaces").Versions[0]
	n := NewNamespaces(NamespacesOptions{
		Store: namespaces.Store, Status: namespaces.Subresources["status"].Store, Finalize: namespaces.Subresources["finalize"].Store,
		Catalogue: w.catalogue, Custom: w.manager,
	})
	d := NewDefinitions(DefinitionsOptions{Store: w.definitions, Status: w.status, Custom: w.manager, Catalogue: w.catalogue})
	for _, run := range []func(context.Context) error{n.Run, d.Run} {
		w.running.Go(func() {
			if err := run(ctx); err != nil {
				w.Error(err)
			}
		})
	}
	w.settle()
}

// stopLoops stops the loops and waits until nothing of them runs.
func (w *world) stopLoops() {
	w.stop()
	w.running.Wait()
}

// settle waits until nothing happens any more unless time passes.
func (w *world) settle() { synctest.Wait() }

// later lets time pass.
func (w *world) later(d time.Duration) {
	time.Sleep(d)
	w.settle()
}

func (w *world) version(group, plural string) *resource.Version {
	w.Helper()
	r := w.catalogue.Catalogue().Lookup(group, plural)
	if r == nil {
		w.Fatalf("%s.%s is not served", plural, group)
	}
	return r.Versions[0]
}

// create makes an object of a resource; its metadata may say more than its name.
func (w *world) create(group, plural, namespace, metadata string) {
	w.Helper()
	if err := w.tryCreate(group, plural, namespace, metadata); err != nil {
		w.Fatalf("%s %s/%s: %v", plural, namespace, metadata, err)
	}
}

func (w *world) tryCreate(group, plural, namespace, metadata string) error {
	v := w.version(group, plural)
	gvk := v.Form.GroupVersionKind()
	obj, _, err := v.Form.Decode(fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":%s}`, gvk.GroupVersion().String(), gvk.Kind, metadata))
	if err != nil {
		return err
	}
	_, err = v.Store.Create(w.ctx, namespace, obj, registry.CreateOptions{})
	return err
}

func named(name string) string { return fmt.Sprintf(`{"name":%q}`, name) }

func holding(name string) string {
	return fmt.Sprintf(`{"name":%q,"finalizers":["parity.example/hold"]}`, name)
}

func (w *world) delete(group, plural, namespace, name string) {
	w.Helper()
	if _, err := w.version(group, plural).Store.Delete(w.ctx, namespace, name, nil); err != nil {
		w.Fatal(err)
	}
}

// free takes all finalizers of an object away.
func (w *world) free(group, plural, namespace, name string) {
	w.Helper()
	_, err := w.version(group, plural).Store.Update(w.ctx, namespace, name, withoutFinalizers, registry.UpdateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

func withoutFinalizers(_ context.Context, obj runtime.Object) (runtime.Object, error) {
	acc, err := meta.Accessor(obj)
	if err == nil {
		acc.SetFinalizers(nil)
	}
	return obj, err
}

// keys are those in the store that have a part like part.
func (w *world) keys(part string) (found []string) {
	w.Helper()
	snap, err := w.engine.Read(w.ctx, kv.Latest)
	if err != nil {
		w.Fatal(err)
	}
	for v := range snap.Ascend("", "") {
		if strings.Contains(v.Key, part) {
			found = append(found, v.Key)
		}
	}
	return found
}

// namespace returns a namespace, nil if it does not exist.
func (w *world) namespace(name string) *corev1.Namespace {
	w.Helper()
	v, err := w.version("", "namespaces").Store.Get(w.ctx, "", name, "")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	ns, err := namespaceOf(v)
	if err != nil {
		w.Fatal(err)
	}
	return ns
}

// definition returns a definition, nil if it does not exist.
func (w *world) definition(name string) *apiextensionsv1.CustomResourceDefinition {
	w.Helper()
	v, err := w.definitions.Get(w.ctx, "", name, "")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	obj, err := v.Object()
	if err != nil {
		w.Fatal(err)
	}
	return obj.(*apiextensionsv1.CustomResourceDefinition)
}

// define makes a definition of a namespaced kind.
func (w *world) define(group, plural, kind string) {
	w.Helper()
	def := map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name":        plural + "." + group,
			"annotations": map[string]any{"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/1111"},
		},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"plural": plural, "kind": kind},
			"versions": []any{
				map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}},
				map[string]any{"name": "v2", "served": true, "storage": false, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}},
			},
		},
	}
	data, err := json.Marshal(def)
	if err != nil {
		w.Fatal(err)
	}
	obj, _, err := crd.DefinitionForm{}.Decode(data)
	if err != nil {
		w.Fatal(err)
	}
	if _, err := w.definitions.Create(w.ctx, "", obj, registry.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	if err := w.manager.Confirm(w.ctx); err != nil {
		w.Fatal(err)
	}
}

func (w *world) deleteDefinition(name string) {
	w.Helper()
	if _, err := w.definitions.Delete(w.ctx, "", name, nil); err != nil {
		w.Fatal(err)
	}
}
