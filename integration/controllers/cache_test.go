package controllers

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cached is a cache that runs until the test ends. Before it starts, prepare may ask for more.
func cached(ctx context.Context, t *testing.T, config *rest.Config, o cache.Options, prepare func(cache.Cache)) cache.Cache {
	t.Helper()
	o.Scheme = scheme(t)
	c, err := cache.New(config, o)
	must(t, err)
	prepare(c)
	started(t, c)
	if !c.WaitForCacheSync(ctx) {
		t.Fatal("the cache does not sync")
	}
	return c
}

// follow hands on what an informer of o's kind tells its handlers, as "added NAME" and the like.
func follow(ctx context.Context, t *testing.T, c cache.Cache, o client.Object) <-chan string {
	t.Helper()
	informer, err := c.GetInformer(ctx, o, cache.BlockUntilSynced(false))
	must(t, err)
	heard := make(chan string, 1000)
	name := func(o any) string {
		key, err := toolscache.DeletionHandlingObjectToName(o)
		if err != nil {
			t.Error(err)
		}
		return key.Name
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { heard <- "added " + name(o) },
		UpdateFunc: func(_, o any) { heard <- "updated " + name(o) },
		DeleteFunc: func(o any) { heard <- "deleted " + name(o) },
	})
	must(t, err)
	return heard
}

// hear waits for what an informer is to tell: this, in any order, and nothing between.
func hear(ctx context.Context, t *testing.T, heard <-chan string, want ...string) {
	t.Helper()
	var got []string
	for range want {
		got = append(got, next(ctx, t, fmt.Sprint(want, " after ", got), heard))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("heard %v, want %v", got, want)
	}
}

// names are the names of mills that a reader lists.
func names(ctx context.Context, t *testing.T, r client.Reader, options ...client.ListOption) string {
	t.Helper()
	var list MillList
	must(t, r.List(ctx, &list, options...))
	all := []string{}
	for _, m := range list.Items {
		all = append(all, m.Name)
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}

// A cache syncs, is read by name, by label and by an index of its own, and follows what
// changes and what goes.
func TestCache(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	config, c := world(t)
	for i, grain := range []string{"rye", "oats", "rye"} {
		m := mill(fmt.Sprint("mill-", i), grain)
		m.Labels = map[string]string{"first": fmt.Sprint(i == 0)}
		must(t, c.Create(ctx, m))
	}
	must(t, c.Create(ctx, &corev1.Namespace{ObjectMeta: namedCluster("far")}))
	must(t, c.Create(ctx, &Mill{ObjectMeta: metav1.ObjectMeta{Namespace: "far", Name: "mill-9"}, Spec: MillSpec{Grain: "rye"}}))

	var heard <-chan string
	r := cached(ctx, t, config, cache.Options{}, func(r cache.Cache) {
		must(t, r.IndexField(ctx, &Mill{}, "grain", func(o client.Object) []string { return []string{o.(*Mill).Spec.Grain} }))
		heard = follow(ctx, t, r, &Mill{})
	})
	hear(ctx, t, heard, "added mill-0", "added mill-1", "added mill-2", "added mill-9")
	near := client.InNamespace("default")
	for _, tt := range []struct {
		name    string
		options []client.ListOption
		want    string
	}{
		{"all", nil, "[mill-0 mill-1 mill-2 mill-9]"},
		{"of a namespace", []client.ListOption{near}, "[mill-0 mill-1 mill-2]"},
		{"by label", []client.ListOption{client.MatchingLabels{"first": "true"}}, "[mill-0]"},
		{"by index", []client.ListOption{client.MatchingFields{"grain": "rye"}}, "[mill-0 mill-2 mill-9]"},
		{"by index and label, of a namespace", []client.ListOption{near, client.MatchingFields{"grain": "rye"}, client.MatchingLabels{"first": "false"}}, "[mill-2]"},
	} {
		if got := names(ctx, t, r, tt.options...); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}

	m := &Mill{}
	must(t, r.Get(ctx, client.ObjectKey{Namespace: "default", Name: "mill-2"}, m))
	m.Spec.Grain = "wheat"
	must(t, c.Update(ctx, m))
	must(t, c.Delete(ctx, mill("mill-0", "")))
	must(t, c.Create(ctx, mill("mill-3", "rye")))
	hear(ctx, t, heard, "updated mill-2", "deleted mill-0", "added mill-3")
	if got := names(ctx, t, r, near, client.MatchingFields{"grain": "rye"}); got != "[mill-3]" {
		t.Errorf("after the changes: %s by index, want mill-3", got)
	}
	if err := r.Get(ctx, client.ObjectKey{Namespace: "default", Name: "mill-0"}, m); !apierrors.IsNotFound(err) {
		t.Errorf("get of what was deleted: %v, want not found", err)
	}
}

// A cache that is told to look at some objects only sees these: what is labelled anew comes
// and goes.
func TestCacheOfSome(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	config, c := world(t)
	must(t, c.Create(ctx, &corev1.Namespace{ObjectMeta: namedCluster("far")}))
	var heard <-chan string
	r := cached(ctx, t, config, cache.Options{
		DefaultNamespaces: map[string]cache.Config{"default": {}, "kube-system": {}},
		ByObject:          map[client.Object]cache.ByObject{&Mill{}: {Label: labels.SelectorFromSet(labels.Set{"is": "red"})}},
	}, func(r cache.Cache) { heard = follow(ctx, t, r, &Mill{}) })
	for _, at := range []metav1.ObjectMeta{named("red"), named("blue"), {Namespace: "far", Name: "distant"}, {Namespace: "kube-system", Name: "system"}} {
		m := &Mill{ObjectMeta: at, Spec: MillSpec{Grain: "rye"}}
		m.Labels = map[string]string{"is": "red"}
		if m.Name == "blue" {
			m.Labels["is"] = "blue"
		}
		must(t, c.Create(ctx, m))
	}
	hear(ctx, t, heard, "added red", "added system")
	paint := func(name, color string) {
		must(t, c.Patch(ctx, mill(name, ""), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"is":"`+color+`"}}}`))))
	}
	paint("red", "blue")
	hear(ctx, t, heard, "deleted red")
	paint("blue", "red")
	hear(ctx, t, heard, "added blue")
	if got := names(ctx, t, r); got != "[blue system]" {
		t.Errorf("the cache holds %s", got)
	}
}

// One cache holds the same objects in three forms, each with a watch of its own: typed,
// untyped and as metadata, which is all that the last keeps and is sent.
func TestCacheOfEveryForm(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	config, c := world(t)
	must(t, c.Create(ctx, mill("thing", "rye")))
	must(t, c.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("thing"), Data: map[string]string{"is": "red"}}))
	r := cached(ctx, t, config, cache.Options{DefaultTransform: cache.TransformStripManagedFields()}, func(cache.Cache) {})
	key := client.ObjectKey{Namespace: "default", Name: "thing"}
	for _, o := range []client.Object{&Mill{}, untyped(""), metadataOf("Mill"), &corev1.ConfigMap{}, metadataOf("ConfigMap")} {
		must(t, r.Get(ctx, key, o)) // starts the informer, and waits for it
		if o.GetName() != "thing" || o.GetUID() == "" || o.GetManagedFields() != nil {
			t.Errorf("%T is %+v", o, o)
		}
		if u, ok := o.(*unstructured.Unstructured); ok {
			if sails, _, _ := unstructured.NestedInt64(u.Object, "spec", "sails"); sails != 4 {
				t.Errorf("an untyped mill is %v", u.Object)
			}
		}
	}
	if err := r.Get(ctx, client.ObjectKey{Namespace: "default", Name: "other"}, metadataOf("Mill")); !apierrors.IsNotFound(err) {
		t.Errorf("get of what is not there: %v, want not found", err)
	}
	must(t, r.RemoveInformer(ctx, &Mill{}))
	must(t, r.Get(ctx, key, &Mill{}))
}

// A manager's client that is to read its own writes does: after each write, of whatever kind,
// the cache is read once, and is as new. It rests on versions that are numbers and grow over
// all objects of a kind, and on what each write answers.
func TestClientReadsItsWrites(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	config, _ := world(t)
	r := cached(ctx, t, config, cache.Options{}, func(cache.Cache) {})
	c, err := client.New(config, client.Options{Scheme: scheme(t), Cache: &client.CacheOptions{Reader: r, Unstructured: true, EnableReadYourWritesConsistency: ptr.To(true)}})
	must(t, err)
	for _, o := range []client.Object{mill("thing", "rye"), sails("thing"), &corev1.ConfigMap{ObjectMeta: named("thing")}, &corev1.ServiceAccount{ObjectMeta: named("thing")}, sail("thing")} {
		read := func(after string) {
			t.Helper()
			got := o.DeepCopyObject().(client.Object)
			must(t, c.Get(ctx, client.ObjectKeyFromObject(o), got))
			if got.GetResourceVersion() != o.GetResourceVersion() {
				t.Errorf("after %s the cache has %T at version %s, want %s", after, o, got.GetResourceVersion(), o.GetResourceVersion())
			}
		}
		must(t, c.Create(ctx, o))
		read("create")
		o.SetLabels(map[string]string{"is": "red"})
		o.SetFinalizers([]string{brake})
		must(t, c.Update(ctx, o))
		read("update")
		before := o.DeepCopyObject().(client.Object)
		o.SetLabels(map[string]string{"is": "blue"})
		must(t, c.Patch(ctx, o, client.MergeFrom(before)))
		read("patch")
		must(t, c.Delete(ctx, o, client.GracePeriodSeconds(0)))
		must(t, c.Get(ctx, client.ObjectKeyFromObject(o), o))
		if o.GetDeletionTimestamp() == nil {
			t.Errorf("after delete the cache has %T without a time of deletion", o)
		}
		o.SetFinalizers(nil)
		must(t, c.Update(ctx, o))
		again := o.DeepCopyObject().(client.Object)
		again.SetResourceVersion("")
		again.SetUID("")
		must(t, c.Create(ctx, again))
		must(t, c.Delete(ctx, again, client.GracePeriodSeconds(0)))
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			t.Errorf("after its end the cache answers for %T: %v, want not found", o, err)
		}
	}
}
