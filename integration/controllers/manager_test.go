package controllers

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// grinding is a server with a manager of mills at work, and the ledgers they need.
func grinding(ctx context.Context, t *testing.T) (*rest.Config, client.WithWatch) {
	t.Helper()
	config, c := world(t)
	must(t, c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ledgers}}))
	managed(t, config, options(t))
	return config, c
}

// observed says whether a mill's reconciler has seen its newest generation.
func observed(m *Mill) bool {
	return m.Generation > 0 && m.Status.ObservedGeneration == m.Generation
}

// built makes a mill and waits until its reconciler has done its part.
func built(ctx context.Context, t *testing.T, c client.WithWatch, name string) *Mill {
	t.Helper()
	must(t, c.Create(ctx, mill(name, "rye")))
	return await(ctx, t, c, mill(name, ""), "a mill that was reconciled", observed)
}

// A mill is built, turns, is changed, and goes, and all it owns goes after it
// (spec/store.md on finalizers, spec/http.md on status and on garbage collection).
func TestReconciler(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	_, c := grinding(ctx, t)

	m := built(ctx, t, c, "north")
	if m.Spec.Sails != 4 || !controllerutil.ContainsFinalizer(m, brake) {
		t.Errorf("the mill has %d sails and finalizers %v, want the default 4 and the brake", m.Spec.Sails, m.Finalizers)
	}
	sails, plan := &appsv1.Deployment{ObjectMeta: m.own()}, &corev1.ConfigMap{ObjectMeta: m.own()}
	for _, owned := range []client.Object{sails, plan} {
		must(t, c.Get(ctx, client.ObjectKeyFromObject(owned), owned))
		if !metav1.IsControlledBy(owned, m) {
			t.Errorf("%T is owned by %v, want the mill", owned, owned.GetOwnerReferences())
		}
	}

	// The test stands in for who runs deployments. What it writes wakes the mill's reconciler.
	sails.Status.Replicas, sails.Status.ReadyReplicas = 4, 4
	must(t, c.Status().Update(ctx, sails))
	await(ctx, t, c, m, "a mill that grinds", func(m *Mill) bool {
		return m.Status.Turning == 4 && meta.IsStatusConditionTrue(m.Status.Conditions, "Grinding")
	})
	must(t, c.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"sails":6}}`))))
	await(ctx, t, c, sails, "more sails", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 6 })
	await(ctx, t, c, m, "a mill without wind for all its sails", func(m *Mill) bool {
		return observed(m) && m.Status.Turning == 4 && meta.IsStatusConditionFalse(m.Status.Conditions, "Grinding")
	})

	// What is taken from the mill it makes again: it heard of the deletion.
	must(t, c.Delete(ctx, plan))
	await(ctx, t, c, plan, "a new plan", func(p *corev1.ConfigMap) bool { return p.UID != plan.UID && p.Data["sails"] == "6" })

	must(t, c.Delete(ctx, m))
	gone(ctx, t, c, m)
	gone(ctx, t, c, sails)
	gone(ctx, t, c, plan)
	gone(ctx, t, c, ledger(m))
}

// Of a mill that is deleted in the foreground all that it owns goes first (spec/http.md on
// propagation).
func TestForegroundDeletion(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	_, c := grinding(ctx, t)
	m := built(ctx, t, c, "north")
	sails := &appsv1.Deployment{ObjectMeta: m.own()}
	ends, owned := following(ctx, t, c, m), following(ctx, t, c, sails)
	defer ends.Stop()
	defer owned.Stop()

	must(t, c.Delete(ctx, m, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	versionOfEnd := func(what string, w <-chan watch.Event) uint64 {
		for {
			if e := next(ctx, t, what, w); e.Type == watch.Deleted {
				v, err := strconv.ParseUint(e.Object.(client.Object).GetResourceVersion(), 10, 64)
				must(t, err)
				return v
			}
		}
	}
	if sails, mill := versionOfEnd("the sails to go", owned.ResultChan()), versionOfEnd("the mill to go", ends.ResultChan()); sails >= mill {
		t.Errorf("the sails went at %d and the mill at %d, want the sails first", sails, mill)
	}
}

// What a mill owned that is deleted without what it owns stays, and is owned no more. Nobody
// reconciles this mill: a reconciler that has yet to hear of the end would claim its own again.
func TestOrphans(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	_, c := world(t)
	m := mill("north", "rye")
	must(t, c.Create(ctx, m))
	all := []client.Object{sails("north"), &corev1.ConfigMap{ObjectMeta: named("north")}, mill("child", "oats")}
	for _, owned := range all {
		must(t, controllerutil.SetControllerReference(m, owned, c.Scheme()))
		must(t, c.Create(ctx, owned))
	}
	must(t, c.Delete(ctx, m, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	gone(ctx, t, c, m)
	for _, owned := range all {
		must(t, c.Get(ctx, client.ObjectKeyFromObject(owned), owned))
		if len(owned.GetOwnerReferences()) != 0 || owned.GetDeletionTimestamp() != nil {
			t.Errorf("%T is owned by %v and goes at %v, want an orphan that stays", owned, owned.GetOwnerReferences(), owned.GetDeletionTimestamp())
		}
	}
}

// While a reconciler works on a mill, many others count on it, each beginning again when it
// loses a race. None of them is lost.
func TestConflictsAreTriedAgain(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	_, c := grinding(ctx, t)
	m := built(ctx, t, c, "north")
	const writers, times, key = 4, 5, "ratchet.example/count"
	patient := wait.Backoff{Steps: 1000, Duration: time.Millisecond, Jitter: 1}
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range times {
				err := retry.RetryOnConflict(patient, func() error { return counted(ctx, c, client.ObjectKeyFromObject(m), key) })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	got := await(ctx, t, c, m, "the reconciler to see the last change", observed)
	if got.Annotations[key] != strconv.Itoa(writers*times) || got.Generation != m.Generation+writers*times {
		t.Errorf("%d counted %s in generation %d", writers*times, got.Annotations[key], got.Generation)
	}
}

// counted adds one to a mill's annotation, and changes its spec too.
func counted(ctx context.Context, c client.Client, k client.ObjectKey, key string) error {
	var m Mill
	if err := c.Get(ctx, k, &m); err != nil {
		return err
	}
	n, _ := strconv.Atoi(m.Annotations[key]) // none is 0
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, strconv.Itoa(n+1))
	m.Spec.Sails = int32(1 + (n+1)%2)
	return c.Update(ctx, &m)
}

// A reconciler that has nothing to do writes nothing: what it would write is what the server
// stored, defaults included.
func TestCalm(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	_, c := grinding(ctx, t)
	m := built(ctx, t, c, "north")
	before := []client.Object{&appsv1.Deployment{}, &corev1.ConfigMap{}}
	for _, o := range before {
		must(t, c.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.own().Name}, o))
	}
	must(t, c.Patch(ctx, m, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"grain":"rye","sails":4},"metadata":{"labels":{"is":"new"}}}`))))
	other := built(ctx, t, c, "south") // by one worker, after it has looked at the mill again
	for _, o := range before {
		now := o.DeepCopyObject().(client.Object)
		must(t, c.Get(ctx, client.ObjectKeyFromObject(o), now))
		if now.GetResourceVersion() != o.GetResourceVersion() {
			t.Errorf("%T was written again, though nothing had changed: %+v", o, now)
		}
	}
	if other.Generation != 1 {
		t.Errorf("a mill of which only metadata and status were written is of generation %d, want 1", other.Generation)
	}
}

// What a reconciler tells of is seen in both groups of events.
func TestEventsAreHeard(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	_, c := grinding(ctx, t)
	w, err := c.Watch(ctx, &corev1.EventList{}, client.InNamespace("default"), client.MatchingFields{"involvedObject.kind": "Mill", "reason": "Built"})
	must(t, err)
	defer w.Stop()
	m := built(ctx, t, c, "north")
	heard := next(ctx, t, "an event", w.ResultChan()).Object.(*corev1.Event)
	if heard.InvolvedObject.UID != m.UID || heard.Message != "mill north will grind rye" {
		t.Errorf("heard %+v", heard)
	}
	var same eventsv1.Event
	must(t, c.Get(ctx, client.ObjectKeyFromObject(heard), &same))
	if same.Regarding.UID != m.UID || same.Note != heard.Message || same.ReportingController != "miller" {
		t.Errorf("the other group has %+v", same)
	}
}

// Of two managers one works. When it stops it lets the lease go, and the other takes over at
// once, and finds what was left.
func TestLeaderElection(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	config, c := world(t)
	must(t, c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ledgers}}))
	o := options(t)
	o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "miller", "default"
	o.LeaderElectionReleaseOnCancel, o.RetryPeriod = true, ptr.To(50*time.Millisecond)
	first, stop := managed(t, config, o)
	leads(ctx, t, "the first manager", first)
	second, _ := managed(t, config, o)
	built(ctx, t, c, "north")
	select {
	case <-second.Elected():
		t.Error("two managers lead")
	default:
	}
	stop()
	leads(ctx, t, "the second manager", second)
	built(ctx, t, c, "south")
	var lease coordinationv1.Lease
	must(t, c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "miller"}, &lease))
	if n := ptr.Deref(lease.Spec.LeaseTransitions, 0); n < 1 {
		t.Errorf("the lease changed hands %d times", n)
	}
}

// leads waits until a manager leads.
func leads(ctx context.Context, t *testing.T, who string, m manager.Manager) {
	t.Helper()
	select {
	case <-m.Elected():
	case <-ctx.Done():
		t.Fatalf("waited in vain for %s to lead", who)
	}
}
