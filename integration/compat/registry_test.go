package compat

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/client-go/tools/cache"

	"github.com/pawl-dev/pawl/compat"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
)

// decorator is the function of the package doc of compat, as an aggregated API server has it.
func decorator(engine kv.Engine) generic.StorageDecorator {
	return func(config *storagebackend.ConfigForResource, prefix string,
		_ func(runtime.Object) (string, error), newFunc, _ func() runtime.Object,
		_ apistorage.AttrFunc, _ apistorage.IndexerFuncs, _ *cache.Indexers,
	) (apistorage.Interface, factory.DestroyFunc, error) {
		s, err := compat.New(compat.Options{
			Engine: engine, ResourcePrefix: prefix, Resource: config.GroupResource,
			Codec: config.Codec, Transformer: config.Transformer, NewFunc: newFunc,
			WatchStarted: flowcontrol.WatchInitialized,
		})
		return s, func() {}, err
	}
}

// strategy is that of the simplest resource there is.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

func (strategy) NamespaceScoped() bool                                    { return true }
func (strategy) AllowCreateOnUpdate(context.Context) bool                 { return false }
func (strategy) AllowUnconditionalUpdate(context.Context) bool            { return false }
func (strategy) Canonicalize(runtime.Object)                              {}
func (strategy) PrepareForCreate(context.Context, runtime.Object)         {}
func (strategy) PrepareForUpdate(_ context.Context, _, _ runtime.Object)  {}
func (strategy) Validate(context.Context, runtime.Object) field.ErrorList { return nil }
func (strategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }
func (strategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// podRegistry is the registry of pods of an aggregated API server, over an engine.
func podRegistry(t testing.TB, engine kv.Engine) *genericregistry.Store {
	t.Helper()
	scheme, _ := newScheme(t)
	pods := example.SchemeGroupVersion.WithResource("pods").GroupResource()
	plain := strategy{scheme, names.SimpleNameGenerator}
	store := &genericregistry.Store{
		NewFunc:                   newPod,
		NewListFunc:               func() runtime.Object { return &example.PodList{} },
		DefaultQualifiedResource:  pods,
		SingularQualifiedResource: schema.GroupResource{Group: pods.Group, Resource: "pod"},
		CreateStrategy:            plain,
		UpdateStrategy:            plain,
		DeleteStrategy:            plain,
		TableConvertor:            rest.NewDefaultTableConvertor(pods),
	}
	config := storagebackend.NewDefaultConfig("/registry", exampleCodec(t))
	options := &generic.StoreOptions{RESTOptions: generic.RESTOptions{
		StorageConfig: config.ForResource(pods), Decorator: decorator(engine), ResourcePrefix: pods.Group + "/pods", DeleteCollectionWorkers: 2,
	}}
	if err := store.CompleteWithOptions(options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Destroy)
	return store
}

// as is the context of a request of somebody.
func as(ctx context.Context, name string) context.Context {
	return request.WithUser(request.WithNamespace(ctx, "shop"), &user.DefaultInfo{Name: name})
}

func pod(name string, labels map[string]string) *example.Pod {
	return &example.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: labels}}
}

// change labels a pod as a client does: at the version it has read.
func change(ctx context.Context, store *genericregistry.Store, read runtime.Object, color string) (*example.Pod, error) {
	p := read.(*example.Pod).DeepCopy()
	p.Labels = map[string]string{"color": color}
	obj, _, err := store.Update(ctx, p.Name, rest.DefaultUpdatedObjectInfo(p), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*example.Pod), nil
}

func listed(t *testing.T, ctx context.Context, store *genericregistry.Store, selector string) string {
	t.Helper()
	s, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	list, err := store.List(ctx, &metainternalversion.ListOptions{LabelSelector: s})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, p := range list.(*example.PodList).Items {
		found = append(found, p.Name)
	}
	return fmt.Sprint(found)
}

// TestARegistryOnAnEngine is the day of an aggregated API server: its objects are created, changed
// by two at once, watched, listed, finalized and deleted, and are there after a restart.
func TestARegistryOnAnEngine(t *testing.T) {
	dir := t.TempDir()
	engine := open(t, local.Options{Dir: dir})
	store := podRegistry(t, engine)
	ctx := as(t.Context(), "ann")

	first, err := store.Create(ctx, pod("one", map[string]string{"color": "red"}), rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Create(ctx, pod("one", nil), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("created twice: %v", err)
	}
	w, err := store.Watch(ctx, &metainternalversion.ListOptions{ResourceVersion: first.(*example.Pod).ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := change(as(ctx, "bob"), store, first, "green"); err != nil {
		t.Fatal(err)
	}
	if _, err := change(ctx, store, first, "blue"); !apierrors.IsConflict(err) {
		t.Errorf("changed at a version that is not the newest: %v", err)
	}
	if e := <-w.ResultChan(); e.Type != "MODIFIED" || e.Object.(*example.Pod).Labels["color"] != "green" {
		t.Errorf("watched %+v", e)
	}
	held := pod("held", map[string]string{"color": "green"})
	held.Finalizers = []string{"example.com/lock"}
	if _, err := store.Create(ctx, held, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, ctx, store, "color=green"); got != "[held one]" {
		t.Errorf("green are %s", got)
	}
	if _, err := store.DeleteCollection(ctx, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, &metainternalversion.ListOptions{}); err != nil {
		t.Error(err)
	}
	if got := listed(t, ctx, store, ""); got != "[held]" {
		t.Errorf("after all were deleted there are %s", got)
	}
	whoWrote(t, engine, "ann")
	w.Stop()
	store.Destroy()
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}

	again := podRegistry(t, open(t, local.Options{Dir: dir}))
	obj, err := again.Get(ctx, "held", &metav1.GetOptions{})
	if err != nil || obj.(*example.Pod).DeletionTimestamp == nil {
		t.Fatalf("after a restart there is %+v, %v", obj, err)
	}
	released := obj.(*example.Pod).DeepCopy()
	released.Finalizers = nil
	if _, _, err := again.Update(ctx, "held", rest.DefaultUpdatedObjectInfo(released), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := again.Get(ctx, "held", &metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the last finalizer: %v", err)
	}
}

// whoWrote sees that versions know their authors.
func whoWrote(t *testing.T, engine kv.Engine, name string) {
	t.Helper()
	snap, err := engine.Read(t.Context(), kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	for v := range snap.Ascend(compat.DefaultSpace+"/"+examplev1.SchemeGroupVersion.Group+"/pods/", "") {
		if v.By().User != name {
			t.Errorf("%s was written by %+v", v.Key, v.By())
		}
	}
}
