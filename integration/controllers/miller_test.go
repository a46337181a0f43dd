package controllers

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// brake is the finalizer of mills.
const brake = "ratchet.example/brake"

// ledgers is the namespace in which every mill has a line.
const ledgers = "ledgers"

// A miller reconciles mills.
type miller struct {
	client.Client
	events events.EventRecorder
}

func (m *miller) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	var mill Mill
	if err := m.Get(ctx, r.NamespacedName, &mill); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !mill.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, m.stop(ctx, &mill)
	}
	return reconcile.Result{}, m.run(ctx, &mill)
}

// run brings about what a mill asks for. It writes only what differs.
func (m *miller) run(ctx context.Context, mill *Mill) error {
	if controllerutil.AddFinalizer(mill, brake) {
		if err := m.Update(ctx, mill); err != nil {
			return err
		}
		m.events.Eventf(mill, nil, corev1.EventTypeNormal, "Built", "Build", "mill %s will grind %s", mill.Name, mill.Spec.Grain)
	}
	line := ledger(mill)
	if _, err := controllerutil.CreateOrUpdate(ctx, m.Client, line, func() error {
		line.Data = map[string]string{"grain": mill.Spec.Grain}
		return nil
	}); err != nil {
		return fmt.Errorf("the ledger: %w", err)
	}
	plan := &corev1.ConfigMap{ObjectMeta: mill.own()}
	if _, err := controllerutil.CreateOrUpdate(ctx, m.Client, plan, func() error {
		plan.Data = map[string]string{"sails": fmt.Sprint(mill.Spec.Sails)}
		return controllerutil.SetControllerReference(mill, plan, m.Scheme())
	}); err != nil {
		return fmt.Errorf("the plan: %w", err)
	}
	sails := &appsv1.Deployment{ObjectMeta: mill.own()}
	if _, err := controllerutil.CreateOrUpdate(ctx, m.Client, sails, func() error {
		turn(mill, sails)
		return controllerutil.SetControllerReference(mill, sails, m.Scheme())
	}); err != nil {
		return fmt.Errorf("the sails: %w", err)
	}
	return m.tell(ctx, mill, sails)
}

// tell writes a mill's status, if there is news.
func (m *miller) tell(ctx context.Context, mill *Mill, sails *appsv1.Deployment) error {
	before := mill.DeepCopyObject().(*Mill)
	mill.Status.Turning = sails.Status.ReadyReplicas
	mill.Status.Selector = "mill=" + mill.Name
	mill.Status.ObservedGeneration = mill.Generation
	c := metav1.Condition{Type: "Grinding", Status: metav1.ConditionFalse, Reason: "NoWind", ObservedGeneration: mill.Generation}
	if mill.Status.Turning == mill.Spec.Sails {
		c.Status, c.Reason = metav1.ConditionTrue, "Wind"
	}
	changed := meta.SetStatusCondition(&mill.Status.Conditions, c)
	if !changed && before.Status.Turning == mill.Status.Turning && before.Status.ObservedGeneration == mill.Generation {
		return nil
	}
	return m.Status().Update(ctx, mill)
}

// stop takes back what a mill cannot own, and then lets it go.
func (m *miller) stop(ctx context.Context, mill *Mill) error {
	if err := client.IgnoreNotFound(m.Delete(ctx, ledger(mill))); err != nil {
		return err
	}
	if !controllerutil.RemoveFinalizer(mill, brake) {
		return nil
	}
	return client.IgnoreNotFound(m.Update(ctx, mill))
}

// ledger is a mill's line in the ledger.
func ledger(m *Mill) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ledgers, Name: m.Namespace + "." + m.Name}}
}

// own is the name of what a mill owns.
func (m *Mill) own() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name + "-own"}
}

// turn makes a deployment turn a mill's sails. What it does not say keeps its defaults.
func turn(m *Mill, d *appsv1.Deployment) {
	labels := map[string]string{"mill": m.Name}
	d.Spec.Replicas = ptr.To(m.Spec.Sails)
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	if len(d.Spec.Template.Spec.Containers) == 0 {
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "sail"}}
	}
	d.Spec.Template.Spec.Containers[0].Image = "sail:" + m.Spec.Grain
}

// options are those of every manager here: it serves nothing itself, and shares no names
// with those of other tests.
func options(t *testing.T) manager.Options {
	return manager.Options{
		Scheme:                 scheme(t),
		Logger:                 logger(t),
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{SkipNameValidation: ptr.To(true)},
	}
}

// managed starts a manager with a miller. The manager ends with the test, or when stopped.
func managed(t *testing.T, c *rest.Config, o manager.Options) (m manager.Manager, stop func()) {
	t.Helper()
	m, err := manager.New(c, o)
	must(t, err)
	must(t, builder.ControllerManagedBy(m).For(&Mill{}).Owns(&corev1.ConfigMap{}).Owns(&appsv1.Deployment{}).
		Complete(&miller{m.GetClient(), m.GetEventRecorder("miller")}))
	return m, started(t, m)
}

// started starts a manager, a cache or the like, and returns what ends it.
func started(t *testing.T, m manager.Runnable) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := m.Start(ctx); err != nil {
			t.Errorf("what was started ended with %v", err)
		}
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}
