package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/pawl-dev/pawl/internal/admission"
	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// CustomResources is what the loops ask of whoever serves custom resources: a crd.Manager.
type CustomResources interface {
	// Confirm returns once the catalogue holds all definitions that were answered before the call.
	Confirm(ctx context.Context) error
	// Instances returns a store for the objects of a definition, nil if none can exist.
	Instances(definition string) *registry.Store
}

// NamespacesOptions are what [Namespaces] is made of. All but Space, Clock and Log are needed.
type NamespacesOptions struct {
	// Store, Status and Finalize are the three doors to namespaces.
	Store, Status, Finalize *registry.Store
	// Catalogue says which resources there are, and Custom knows of those that it does not show.
	Catalogue *resource.Registry
	Custom    CustomResources
	Space     string       // kv.DefaultSpace if empty
	Clock     clock.Clock  // nil means the real one
	Log       *slog.Logger // is told what no request can be told; nil means nobody
}

// Namespaces empties namespaces that are being deleted and lets them go (rules B29 to B32). It
// also brings those back that every server has, if one goes (rule B18).
type Namespaces struct {
	o    NamespacesOptions
	busy chan struct{} // holds one token for each namespace that is being emptied
}

// emptiedMax is how many namespaces are emptied at a time; the others wait for their turn.
const emptiedMax = 4

// NewNamespaces makes the loop. Nothing happens before [Namespaces.Run].
func NewNamespaces(o NamespacesOptions) *Namespaces {
	o.Clock, o.Log = clockOr(o.Clock), logOr(o.Log)
	return &Namespaces{o: o, busy: make(chan struct{}, emptiedMax)}
}

func clockOr(c clock.Clock) clock.Clock {
	if c == nil {
		return clock.RealClock{}
	}
	return c
}

func logOr(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}

// Run works until ctx ends or the engine is closed. When it returns, nothing that it started
// still runs. It is called once.
func (n *Namespaces) Run(ctx context.Context) error {
	l := &loop{
		table: n.o.Store.Table(), waits: waitsForEmptying, work: n.empty,
		restore: func(ctx context.Context) error { return admission.Bootstrap(ctx, n.o.Store) },
		clock:   n.o.Clock, log: n.o.Log.With("controller", "namespaces"),
	}
	return l.run(ctx)
}

func waitsForEmptying(v storage.Version) (bool, error) {
	ns, err := namespaceOf(v)
	if err != nil {
		return false, err
	}
	return slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes), nil
}

func namespaceOf(v storage.Version) (*corev1.Namespace, error) {
	obj, err := v.Object()
	if err != nil {
		return nil, err
	}
	return asNamespace(obj)
}

func asNamespace(obj runtime.Object) (*corev1.Namespace, error) {
	ns, ok := obj.(*corev1.Namespace)
	if !ok {
		return nil, fmt.Errorf("controller: a stored namespace is a %T", obj)
	}
	return ns, nil
}

// as is a context that writes as the reference's controller.
func as(ctx context.Context, verb, subresource string) context.Context {
	return storage.WithAuthor(ctx, kv.Author{
		User: "system:serviceaccount:kube-system:namespace-controller", Manager: "pawl", Verb: verb, Subresource: subresource,
	})
}

// tellPace is how long after a change of what is left the conditions tell of it: a
// namespace with many objects must not be written for each of them.
const tellPace = time.Second

// empty deletes everything in a namespace, waits until it is gone, and takes the finalizer
// away. It returns nil, too, when there is no such namespace waiting any more.
func (n *Namespaces) empty(ctx context.Context, t target) error {
	for swept := map[*registry.Store]bool{}; ; {
		left, err := n.sweep(ctx, t, swept)
		switch {
		case errors.Is(err, errNotWaiting):
			return nil
		case err != nil:
			return errors.Join(err, n.tell(ctx, t, summary{left: left, failure: err}))
		case len(left) == 0:
			return n.release(ctx, t)
		}
		if err := n.tell(ctx, t, summary{left: left}); err != nil {
			return err
		}
		if err := wait(ctx, n.o.Clock, podsFirst(left), patience{afterChange: tellPace}); err != nil {
			return err
		}
	}
}

// errNotWaiting says that a target is not there, or waits for nothing, in a confirmed state.
var errNotWaiting = errors.New("controller: nothing is waiting to be emptied")

// sweep deletes until a confirmed state shows only what finalizers hold, and returns that.
// Swept is what has been deleted once before: from then on only what is not being deleted
// yet is worth another try. Pods go first, and the others once there are none.
func (n *Namespaces) sweep(ctx context.Context, t target, swept map[*registry.Store]bool) ([]*rest, error) {
	select {
	case n.busy <- struct{}{}:
		defer func() { <-n.busy }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for {
		left, err := n.survey(ctx, t)
		if len(left) == 0 {
			return nil, err
		}
		quiet := true
		for _, r := range podsFirst(left) {
			if swept[r.store] && r.held() {
				continue
			}
			quiet = false
			err = errors.Join(err, r.delete(as(ctx, "delete", "")))
			swept[r.store] = true
		}
		if quiet || err != nil {
			return left, err
		}
	}
}

// podsFirst returns what may be deleted now.
func podsFirst(left []*rest) []*rest {
	for _, r := range left {
		if gr := r.store.Resource(); gr.Group == corev1.GroupName && gr.Resource == "pods" {
			return []*rest{r}
		}
	}
	return left
}

// survey reads what the namespace holds, from one confirmed state in which it is waiting. An
// error beside a rest is that there is something which nobody serves. The
// catalogue is read before that state: what objects there are of resources that it does not
// know could only have come into being since, and nothing could.
func (n *Namespaces) survey(ctx context.Context, t target) ([]*rest, error) {
	if err := n.o.Custom.Confirm(ctx); err != nil {
		return nil, err
	}
	catalogue := n.o.Catalogue.Catalogue()
	table := n.o.Store.Table()
	snap, err := table.Engine().Read(ctx, kv.Latest)
	if err != nil {
		return nil, err
	}
	if err := stillWaiting(table.Version(snap.Get(table.Key("", t.name))), t, waitsForEmptying); err != nil {
		return nil, err
	}
	var left []*rest
	var errs []error
	for group, plural := range storage.Occupied(snap, n.o.Space, t.name) {
		store := storeOf(catalogue, n.o.Custom, group, plural)
		if store == nil {
			errs = append(errs, fmt.Errorf("there are objects of %s.%s, and no such resource is served", plural, group))
			continue
		}
		r, err := restAt(ctx, store, t.name, snap.Revision())
		if err != nil {
			return nil, err
		}
		left = append(left, r)
	}
	return left, errors.Join(errs...)
}

// stillWaiting returns errNotWaiting unless v is the target, is being deleted, and waits.
func stillWaiting(v storage.Version, t target, waits func(storage.Version) (bool, error)) error {
	if !v.Exists() {
		return errNotWaiting
	}
	md, err := v.Metadata()
	if err != nil {
		return err
	}
	if md.UID != t.uid || md.DeletionTimestamp == nil {
		return errNotWaiting
	}
	if ok, err := waits(v); err != nil || ok {
		return err
	}
	return errNotWaiting
}

// storeOf returns a store for the objects of a resource, nil if nobody serves it. Which of its
// versions that speaks does not matter: they are over one table.
func storeOf(c *resource.Catalogue, custom CustomResources, group, plural string) *registry.Store {
	r := c.Lookup(group, plural)
	if r == nil {
		return custom.Instances(plural + "." + group)
	}
	v := r.Version(r.StorageVersion)
	if v == nil {
		v = r.Versions[0]
	}
	return v.Store
}

// tell writes conditions if they say something new (rule B31).
func (n *Namespaces) tell(ctx context.Context, t target, s summary) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_, err := n.o.Status.Update(as(ctx, "update", "status"), "", t.name, func(_ context.Context, obj runtime.Object) (runtime.Object, error) {
		ns, err := asNamespace(obj)
		if err != nil || ns.DeletionTimestamp == nil {
			return obj, err
		}
		setConditions(&ns.Status, s.conditions(), metav1.NewTime(n.o.Clock.Now().UTC()).Rfc3339Copy())
		return ns, nil
	}, registry.UpdateOptions{UID: t.uid, Owned: true})
	if gone(err) {
		return nil
	}
	return err
}

// release takes the finalizer away. The namespace goes with it, if nothing else holds it; if
// something does, its conditions say that this is not its content.
func (n *Namespaces) release(ctx context.Context, t target) error {
	v, err := n.o.Store.Get(ctx, "", t.name, "")
	if gone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	ns, err := namespaceOf(v)
	if err != nil {
		return err
	}
	if len(ns.Finalizers) > 0 || len(ns.Spec.Finalizers) > 1 {
		if err := n.tell(ctx, t, summary{}); err != nil {
			return err
		}
	}
	_, err = n.o.Finalize.Update(as(ctx, "update", "finalize"), "", t.name, func(_ context.Context, obj runtime.Object) (runtime.Object, error) {
		ns, err := asNamespace(obj)
		if err != nil || ns.DeletionTimestamp == nil {
			return obj, err
		}
		ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
		return ns, nil
	}, registry.UpdateOptions{UID: t.uid, Owned: true})
	if gone(err) {
		return nil
	}
	return err
}
