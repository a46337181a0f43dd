package controllers

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// namedCluster is the metadata of what belongs to no namespace.
func namedCluster(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// metadataOf is an object of which only the metadata is wanted: a mill or a config map.
func metadataOf(kind string) *metav1.PartialObjectMetadata {
	gv := corev1.SchemeGroupVersion
	if kind == "Mill" {
		gv = mills
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gv.WithKind(kind))
	return m
}

// The client reads, patches, lists and deletes metadata alone, of built-in and of custom
// objects (spec/http.md H53, H55).
func TestMetadata(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	_, c := world(t)
	for _, o := range []client.Object{mill("thing", "rye"), &corev1.ConfigMap{ObjectMeta: named("thing")}} {
		must(t, c.Create(ctx, o))
		kind := "ConfigMap"
		if _, ok := o.(*Mill); ok {
			kind = "Mill"
		}
		m := metadataOf(kind)
		must(t, c.Get(ctx, client.ObjectKeyFromObject(o), m))
		if m.UID != o.GetUID() || m.ResourceVersion != o.GetResourceVersion() || m.Kind != kind {
			t.Errorf("the metadata of a %s is %+v", kind, m)
		}
		before := m.DeepCopy()
		m.Labels = map[string]string{"is": "red"}
		must(t, c.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
		stale := before.DeepCopy()
		stale.Labels = map[string]string{"is": "lost"}
		if err := c.Patch(ctx, stale, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); !apierrors.IsConflict(err) {
			t.Errorf("a patch of stale metadata: %v, want a conflict", err)
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(m.GroupVersionKind().GroupVersion().WithKind(kind + "List"))
		must(t, c.List(ctx, list, client.InNamespace("default"), client.MatchingLabels{"is": "red"}))
		if len(list.Items) != 1 || list.Items[0].UID != o.GetUID() || list.ResourceVersion == "" {
			t.Errorf("the list of a %s is %+v", kind, list)
		}
		must(t, c.Delete(ctx, m, client.Preconditions{UID: ptr.To(m.UID)}))
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), m); !apierrors.IsNotFound(err) {
			t.Errorf("metadata of what was deleted: %v, want not found", err)
		}
	}
}

// A manager whose controller wants only metadata hears of every change, and reads from a
// cache of metadata.
func TestControllerOfMetadata(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	config, c := world(t)
	m, err := manager.New(config, options(t))
	must(t, err)
	seen := make(chan string, 1000)
	must(t, builder.ControllerManagedBy(m).For(&Mill{}, builder.OnlyMetadata).Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		about := metadataOf("Mill")
		if err := m.GetClient().Get(ctx, r.NamespacedName, about); err != nil {
			if seen <- "gone"; apierrors.IsNotFound(err) {
				return reconcile.Result{}, nil
			}
			return reconcile.Result{}, err
		}
		seen <- "is " + about.Labels["is"]
		return reconcile.Result{}, nil
	})))
	started(t, m)
	thing := mill("thing", "rye")
	thing.Labels = map[string]string{"is": "red"}
	must(t, c.Create(ctx, thing))
	until(ctx, t, seen, "is red")
	thing.Labels["is"] = "blue"
	must(t, c.Update(ctx, thing))
	until(ctx, t, seen, "is blue")
	must(t, c.Delete(ctx, thing))
	until(ctx, t, seen, "gone")
}

// until waits until a value comes.
func until(ctx context.Context, t *testing.T, c <-chan string, want string) {
	t.Helper()
	for next(ctx, t, want, c) != want {
	}
}
