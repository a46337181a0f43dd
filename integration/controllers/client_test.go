package controllers

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// sails is a deployment that turns a mill's sails.
func sails(name string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: named(name)}
	turn(&Mill{ObjectMeta: named(name), Spec: MillSpec{Sails: 4, Grain: "rye"}}, d)
	return d
}

// untyped is a mill as those write it who have no type for it.
func untyped(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"grain": "rye"}}}
	u.SetGroupVersionKind(mills.WithKind("Mill"))
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

// TestClient gives objects of every form the same life: built-in ones, which the client sends
// in protobuf, custom ones with a type and without.
func TestClient(t *testing.T) {
	t.Parallel()
	_, c := world(t)
	for what, o := range map[string]client.Object{
		"a config map":        &corev1.ConfigMap{ObjectMeta: named("thing")},
		"a deployment":        sails("thing"),
		"a mill":              mill("thing", "rye"),
		"a mill without type": untyped("other"),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			live(soon(t), t, c, o)
		})
	}
}

// live leads an object from its creation to its end.
func live(ctx context.Context, t *testing.T, c client.Client, o client.Object) {
	again := o.DeepCopyObject().(client.Object)
	tried := again.DeepCopyObject().(client.Object)
	must(t, c.Create(ctx, tried, client.DryRunAll))
	must(t, c.Create(ctx, o))
	if at := o.GetCreationTimestamp(); o.GetUID() == "" || o.GetResourceVersion() == "" || at.IsZero() {
		t.Errorf("create answers with uid %q, version %q, made at %v", o.GetUID(), o.GetResourceVersion(), at)
	}
	if err := c.Create(ctx, again); !apierrors.IsAlreadyExists(err) {
		t.Errorf("create of what exists: %v, want already exists", err)
	}
	stale := o.DeepCopyObject().(client.Object)
	o.SetLabels(map[string]string{"is": "red"})
	must(t, c.Update(ctx, o))
	patched(ctx, t, c, o, stale)

	key := client.ObjectKeyFromObject(o)
	must(t, c.Get(ctx, key, again))
	if again.GetLabels()["is"] != "blue" || again.GetLabels()["was"] != "red" || again.GetUID() != o.GetUID() {
		t.Errorf("get answers with %+v", again)
	}
	other := types.UID("another")
	if err := c.Delete(ctx, o, client.Preconditions{UID: &other}); !apierrors.IsConflict(err) {
		t.Errorf("delete of another: %v, want a conflict", err)
	}
	must(t, c.Delete(ctx, o, client.Preconditions{UID: ptr.To(o.GetUID())}))
	if err := c.Get(ctx, key, again); !apierrors.IsNotFound(err) {
		t.Errorf("get of what was deleted: %v, want not found", err)
	}
	if err := c.Delete(ctx, o); !apierrors.IsNotFound(err) {
		t.Errorf("delete of what was deleted: %v, want not found", err)
	}
}

// patched patches o, which is newer than stale, in each way there is for every kind.
func patched(ctx context.Context, t *testing.T, c client.Client, o, stale client.Object) {
	t.Helper()
	lost := stale.DeepCopyObject().(client.Object)
	lost.SetLabels(map[string]string{"is": "lost"})
	if err := c.Update(ctx, lost.DeepCopyObject().(client.Object)); !apierrors.IsConflict(err) {
		t.Errorf("an update of a stale object: %v, want a conflict", err)
	}
	if err := c.Patch(ctx, lost, client.MergeFromWithOptions(stale, client.MergeFromWithOptimisticLock{})); !apierrors.IsConflict(err) {
		t.Errorf("a patch of a stale object, with a lock: %v, want a conflict", err)
	}
	before := o.DeepCopyObject().(client.Object)
	o.SetLabels(map[string]string{"is": "blue"})
	must(t, c.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
	must(t, c.Patch(ctx, o, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"test","path":"/metadata/labels/is","value":"blue"},{"op":"add","path":"/metadata/labels/was","value":"red"}]`))))
	if before.GetResourceVersion() == o.GetResourceVersion() {
		t.Error("patches answered with the version from before")
	}
}

// Two managers apply a config map and a mill: each its own fields, until one wants the
// other's (spec/http.md on apply).
func TestApply(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	_, c := world(t)
	ann, bob := client.FieldOwner("ann"), client.FieldOwner("bob")

	red := corev1ac.ConfigMap("thing", "default").WithData(map[string]string{"is": "red"})
	must(t, c.Apply(ctx, red, ann))
	if red.UID == nil || red.ResourceVersion == nil {
		t.Errorf("apply answers with %+v, want uid and version", red)
	}
	must(t, c.Apply(ctx, corev1ac.ConfigMap("thing", "default").WithData(map[string]string{"big": "yes"}), bob))
	blue := func() *corev1ac.ConfigMapApplyConfiguration {
		return corev1ac.ConfigMap("thing", "default").WithData(map[string]string{"is": "blue", "big": "yes"})
	}
	if err := c.Apply(ctx, blue(), bob); !apierrors.IsConflict(err) {
		t.Errorf("apply of what another applied: %v, want a conflict", err)
	}
	must(t, c.Apply(ctx, blue(), bob, client.ForceOwnership))
	must(t, c.Apply(ctx, corev1ac.ConfigMap("thing", "default"), ann)) // gives up what is hers no more
	var got corev1.ConfigMap
	must(t, c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "thing"}, &got))
	if fmt.Sprint(got.Data) != "map[big:yes is:blue]" {
		t.Errorf("the config map holds %v", got.Data)
	}

	must(t, c.Apply(ctx, client.ApplyConfigurationFromUnstructured(untyped("thing")), ann))
	oats := untyped("thing")
	must(t, unstructured.SetNestedField(oats.Object, "oats", "spec", "grain"))
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(oats.DeepCopy()), bob); !apierrors.IsConflict(err) {
		t.Errorf("apply of a mill's grain that another applied: %v, want a conflict", err)
	}
	must(t, c.Apply(ctx, client.ApplyConfigurationFromUnstructured(oats), bob, client.ForceOwnership))
	var m Mill
	must(t, c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "thing"}, &m))
	if m.Spec.Grain != "oats" || m.Generation != 2 {
		t.Errorf("the mill grinds %s in generation %d, want oats in 2", m.Spec.Grain, m.Generation)
	}
}

// Status is written apart from all else: by update, by patch and by apply, of built-in and of
// custom objects.
func TestStatus(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	_, c := world(t)
	m := mill("thing", "rye")
	m.Status.Turning = 7
	must(t, c.Create(ctx, m))
	if m.Status.Turning != 0 {
		t.Errorf("create wrote a status: %+v", m.Status)
	}
	m.Spec.Grain, m.Status.Turning = "wheat", 1
	must(t, c.Status().Update(ctx, m))
	if m.Spec.Grain != "rye" || m.Status.Turning != 1 || m.Generation != 1 {
		t.Errorf("after a status update the mill is %+v", m)
	}
	before := m.DeepCopyObject().(*Mill)
	m.Status.Turning = 2
	must(t, c.Status().Patch(ctx, m, client.MergeFrom(before)))
	said := untyped("thing")
	said.Object = map[string]any{"apiVersion": "ratchet.example/v1", "kind": "Mill", "metadata": said.Object["metadata"], "status": map[string]any{"selector": "is=red"}}
	must(t, c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(said), client.FieldOwner("ann")))
	must(t, c.Get(ctx, client.ObjectKeyFromObject(m), m))
	if m.Status.Turning != 2 || m.Status.Selector != "is=red" {
		t.Errorf("the status is %+v", m.Status)
	}

	d := sails("thing")
	must(t, c.Create(ctx, d))
	must(t, c.Status().Apply(ctx, appsv1ac.Deployment("thing", "default").WithStatus(appsv1ac.DeploymentStatus().WithReplicas(3).WithReadyReplicas(2)), client.FieldOwner("ann")))
	must(t, c.Get(ctx, client.ObjectKeyFromObject(d), d))
	if d.Status.ReadyReplicas != 2 || d.Generation != 1 {
		t.Errorf("the deployment has %d ready in generation %d, want 2 in 1", d.Status.ReadyReplicas, d.Generation)
	}
}

// Scale is read and written of built-in and of custom objects alike.
func TestScale(t *testing.T) {
	t.Parallel()
	_, c := world(t)
	for what, o := range map[string]client.Object{"a deployment": sails("thing"), "a mill": mill("thing", "rye")} {
		t.Run(what, func(t *testing.T) {
			ctx := soon(t)
			must(t, c.Create(ctx, o))
			var scale autoscalingv1.Scale
			must(t, c.SubResource("scale").Get(ctx, o, &scale))
			if scale.Spec.Replicas != 4 || scale.UID != o.GetUID() {
				t.Errorf("the scale is %+v, want 4 of this object", scale)
			}
			scale.Spec.Replicas = 6
			must(t, c.SubResource("scale").Update(ctx, o, client.WithSubResourceBody(&scale)))
			if scale.Spec.Replicas != 6 {
				t.Errorf("an update answers with %+v", scale.Spec)
			}
			must(t, c.SubResource("scale").Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":5}}`)), client.WithSubResourceBody(&scale)))
			must(t, c.Get(ctx, client.ObjectKeyFromObject(o), o))
			if scale.Spec.Replicas != 5 || o.GetGeneration() != 3 {
				t.Errorf("scaled to %d in generation %d, want 5 in 3", scale.Spec.Replicas, o.GetGeneration())
			}
		})
	}
}

// Lists are read in pages, by labels and by fields, and deleted by the same.
func TestListAndDeleteAllOf(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	_, c := world(t)
	for i, grain := range []string{"rye", "oats", "rye", "wheat", "rye"} {
		m := mill(fmt.Sprint("mill-", i), grain)
		m.Labels = map[string]string{"odd": fmt.Sprint(i%2 == 1)}
		must(t, c.Create(ctx, m))
	}
	for _, tt := range []struct {
		name    string
		options []client.ListOption
		want    string
	}{
		{"all", nil, "[mill-0 mill-1 mill-2 mill-3 mill-4]"},
		{"by label", []client.ListOption{client.MatchingLabels{"odd": "true"}}, "[mill-1 mill-3]"},
		{"by a field that its definition names", []client.ListOption{client.MatchingFields{"spec.grain": "rye"}}, "[mill-0 mill-2 mill-4]"},
		{"by both", []client.ListOption{client.HasLabels{"odd"}, client.MatchingFields{"spec.grain": "oats"}}, "[mill-1]"},
		{"of a namespace that has none", []client.ListOption{client.InNamespace("kube-system")}, "[]"},
	} {
		if got := pages(ctx, t, c, 2, tt.options...); fmt.Sprint(got) != tt.want {
			t.Errorf("%s: %v, want %s", tt.name, got, tt.want)
		}
	}
	must(t, c.DeleteAllOf(ctx, &Mill{}, client.InNamespace("default"), client.MatchingLabels{"odd": "true"}))
	must(t, c.DeleteAllOf(ctx, &Mill{}, client.InNamespace("default"), client.MatchingFields{"metadata.name": "mill-0"}))
	if got := pages(ctx, t, c, 2); fmt.Sprint(got) != "[mill-2 mill-4]" {
		t.Errorf("what is left is %v", got)
	}
	must(t, c.DeleteAllOf(ctx, untyped(""), client.InNamespace("default")))
	if got := pages(ctx, t, c, 2); len(got) != 0 {
		t.Errorf("what is left is %v, want nothing", got)
	}
}

// pages are the names of mills, read so many at a time.
func pages(ctx context.Context, t *testing.T, c client.Client, size int, options ...client.ListOption) []string {
	t.Helper()
	names := []string{}
	for from := ""; ; {
		var list MillList
		must(t, c.List(ctx, &list, append(options, client.Limit(size), client.Continue(from))...))
		if len(list.Items) > size {
			t.Errorf("a page of %d, want at most %d", len(list.Items), size)
		}
		for _, m := range list.Items {
			names = append(names, m.Name)
		}
		if from = list.Continue; from == "" {
			return names
		}
	}
}

// CreateOrUpdate and CreateOrPatch create, leave alone what is as wanted, and change what is
// not: also a deployment, to which the server adds much that nobody asked for.
func TestCreateOrUpdate(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	_, c := world(t)
	const created, none, updated = controllerutil.OperationResultCreated, controllerutil.OperationResultNone, controllerutil.OperationResultUpdated
	grain := "rye"
	for name, write := range map[string]func(client.Object, controllerutil.MutateFn) (controllerutil.OperationResult, error){
		"update": func(o client.Object, f controllerutil.MutateFn) (controllerutil.OperationResult, error) {
			return controllerutil.CreateOrUpdate(ctx, c, o, f)
		},
		"patch": func(o client.Object, f controllerutil.MutateFn) (controllerutil.OperationResult, error) {
			return controllerutil.CreateOrPatch(ctx, c, o, f)
		},
	} {
		for _, step := range []struct {
			grain string
			want  controllerutil.OperationResult
		}{{"rye", created}, {"rye", none}, {"oats", updated}, {"oats", none}} {
			grain = step.grain
			d, m := &appsv1.Deployment{ObjectMeta: named(name)}, &Mill{ObjectMeta: named(name)}
			did, err := write(m, func() error { m.Spec.Grain = grain; return nil })
			if err != nil || did != step.want {
				t.Errorf("%s of a mill to %s: %s, %v, want %s", name, grain, did, err, step.want)
			}
			did, err = write(d, func() error { turn(m, d); return controllerutil.SetControllerReference(m, d, c.Scheme()) })
			if err != nil || did != step.want {
				t.Errorf("%s of a deployment to %s: %s, %v, want %s", name, grain, did, err, step.want)
			}
		}
	}
}

// What the definition refuses is refused, and named, whoever sends it.
func TestInvalid(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	_, c := world(t)
	bad := mill("bad", "sand")
	if err := c.Create(ctx, bad); !apierrors.IsInvalid(err) || !apierrors.HasStatusCause(err, metav1.CauseTypeFieldValueNotSupported) {
		t.Errorf("a mill of sand: %v, want invalid, as no supported value", err)
	}
	bad = mill("bad", "oats")
	bad.Spec.Sails = 1
	if err := c.Create(ctx, bad); !apierrors.IsInvalid(err) {
		t.Errorf("a mill of oats with one sail: %v, want invalid", err)
	}
	odd := untyped("bad")
	odd.Object["spec"].(map[string]any)["wings"] = int64(2)
	if err := client.WithFieldValidation(c, metav1.FieldValidationStrict).Create(ctx, odd); !apierrors.IsBadRequest(err) {
		t.Errorf("a mill with wings, strictly: %v, want a bad request", err)
	}
}
