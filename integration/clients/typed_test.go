package clients

import (
	"context"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/pawl-dev/pawl/pawltest"
)

// An object is a pointer to one of the types that client-go generates clients for.
type object[T any] interface {
	*T
	metav1.Object
	runtime.Object
}

// A client is what client-go's typed clients have in common.
type client[P, L any] interface {
	Create(context.Context, P, metav1.CreateOptions) (P, error)
	Update(context.Context, P, metav1.UpdateOptions) (P, error)
	Get(context.Context, string, metav1.GetOptions) (P, error)
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (P, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// TestTyped gives the clients of all built-in kinds the same life of an object, in JSON and
// in protobuf (spec/http.md H51, H52).
func TestTyped(t *testing.T) {
	t.Parallel()
	for _, form := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		t.Run(form, func(t *testing.T) {
			t.Parallel()
			config := rest.CopyConfig(pawltest.New(t))
			config.ContentType, config.AcceptContentTypes = form, form
			c := typed(t, config)
			const ns = "default"
			t.Run("configmaps", func(t *testing.T) {
				live(t, c.CoreV1().ConfigMaps(ns), &corev1.ConfigMap{ObjectMeta: named("thing"), Data: map[string]string{"is": "red"}})
			})
			t.Run("secrets", func(t *testing.T) {
				live(t, c.CoreV1().Secrets(ns), &corev1.Secret{ObjectMeta: named("thing"), StringData: map[string]string{"is": "red"}})
			})
			t.Run("leases", func(t *testing.T) {
				holder, seconds := "me", int32(15)
				live(t, c.CoordinationV1().Leases(ns), &coordinationv1.Lease{ObjectMeta: named("thing"),
					Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds}})
			})
			t.Run("namespaces", func(t *testing.T) {
				live(t, c.CoreV1().Namespaces(), &corev1.Namespace{ObjectMeta: named("thing")})
			})
		})
	}
}

// live leads an object from its creation to its end, and a watch looks on.
func live[T any, P object[T], L runtime.Object](t *testing.T, c client[P, L], thing P) {
	ctx := soon(t)
	list, err := c.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen, err := c.Watch(ctx, metav1.ListOptions{ResourceVersion: versionOf(t, list), FieldSelector: "metadata.name=thing"})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()

	red := made(t, c, ctx, thing)
	blue := updated(t, c, ctx, red)
	refused(t, c, ctx, red)
	patched(t, c, ctx, blue)
	if err := c.Delete(ctx, "thing", metav1.DeleteOptions{}); err != nil {
		t.Fatalf("delete: %v", err)
	}
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Modified, watch.Modified, watch.Modified} {
		if got := next(ctx, t, "what the watch saw", seen.ResultChan()); got.Type != want {
			t.Fatalf("the watch saw %s, want %s: %v", got.Type, want, got.Object)
		}
	}
	for next(ctx, t, "the end, on the watch", seen.ResultChan()).Type != watch.Deleted {
		// A namespace is Terminating for a moment.
	}
	if _, err := c.Get(ctx, "thing", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get of what was deleted: %v, want not found", err)
	}
}

func versionOf(t *testing.T, list runtime.Object) string {
	t.Helper()
	return list.(metav1.ListInterface).GetResourceVersion()
}

func made[T any, P object[T], L any](t *testing.T, c client[P, L], ctx context.Context, thing P) P {
	t.Helper()
	red, err := c.Create(ctx, thing, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	if at := red.GetCreationTimestamp(); red.GetUID() == "" || red.GetResourceVersion() == "" || at.IsZero() {
		t.Errorf("create answered with uid %q, version %q, made at %v", red.GetUID(), red.GetResourceVersion(), at)
	}
	if _, err := c.Create(ctx, thing, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("create of what exists: %v, want already exists", err)
	}
	got, err := c.Get(ctx, "thing", metav1.GetOptions{})
	if err != nil || got.GetUID() != red.GetUID() || got.GetResourceVersion() != red.GetResourceVersion() {
		t.Errorf("get: %v %v, want what create answered", got, err)
	}
	return red
}

func updated[T any, P object[T], L any](t *testing.T, c client[P, L], ctx context.Context, red P) P {
	t.Helper()
	blue := red.DeepCopyObject().(P)
	blue.SetLabels(map[string]string{"is": "blue"})
	blue, err := c.Update(ctx, blue, metav1.UpdateOptions{})
	if err != nil {
		t.Fatalf("update: %v", err)
	}
	if blue.GetResourceVersion() == red.GetResourceVersion() || blue.GetUID() != red.GetUID() {
		t.Errorf("update answered with uid %q and version %q after %q and %q", blue.GetUID(), blue.GetResourceVersion(), red.GetUID(), red.GetResourceVersion())
	}
	return blue
}

// refused writes from the version before, and is told why that is refused.
func refused[T any, P object[T], L any](t *testing.T, c client[P, L], ctx context.Context, red P) {
	t.Helper()
	green := red.DeepCopyObject().(P)
	green.SetLabels(map[string]string{"is": "green"})
	_, err := c.Update(ctx, green, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		t.Fatalf("update from an older version: %v, want a conflict", err)
	}
	for _, cause := range err.(apierrors.APIStatus).Status().Details.Causes {
		if cause.Type == "FieldChanged" && cause.Field == ".metadata.labels.is" {
			return
		}
	}
	t.Errorf("the conflict does not say that the label changed: %+v", err)
}

func patched[T any, P object[T], L any](t *testing.T, c client[P, L], ctx context.Context, blue P) {
	t.Helper()
	for _, p := range []struct {
		kind types.PatchType
		text string
		want string
	}{
		{types.MergePatchType, `{"metadata":{"labels":{"is":"merged"}}}`, "merged"},
		{types.JSONPatchType, `[{"op":"replace","path":"/metadata/labels/is","value":"replaced"}]`, "replaced"},
		{types.StrategicMergePatchType, `{"metadata":{"labels":{"is":"strategic"}}}`, "strategic"},
	} {
		got, err := c.Patch(ctx, blue.GetName(), p.kind, []byte(p.text), metav1.PatchOptions{})
		if err != nil {
			t.Fatalf("patch %s: %v", p.kind, err)
		}
		if got.GetLabels()["is"] != p.want {
			t.Errorf("patch %s left labels %v, want is=%s", p.kind, got.GetLabels(), p.want)
		}
	}
}
