package controller

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// A task is one verdict on its way to be carried out: all of it, so that it needs the graph no more.
type task struct {
	verdict
	store           *registry.Store
	namespace, name string
	uid             types.UID
	revision        kv.Revision // that was judged
	owners          []reference // that it had
}

// An outcome is how a task ended.
type outcome struct {
	node *node
	err  error
}

// errUnserved is that there is no store for an object.
var errUnserved = errors.New("nobody serves this resource")

// begin carries a verdict out, on a goroutine of its own.
func (r *collection) begin(ctx context.Context, n *node, v verdict) {
	n.busy = true
	r.working++
	group, plural, namespace, name, _ := storage.ParseKey(n.key)
	t := task{
		verdict: v, store: storeOf(r.o.Catalogue.Catalogue(), r.o.Custom, group, plural),
		namespace: namespace, name: name, uid: n.uid, revision: n.revision, owners: n.references(),
	}
	r.running.Go(func() {
		r.done <- outcome{n, t.do(ctx)} // there is room for all that may be under way
	})
}

// do carries the task out. That the object has gone, or is another, is no error.
func (t *task) do(ctx context.Context) error {
	if t.store == nil {
		return errUnserved
	}
	var err error
	if t.what == deletes {
		err = t.delete(asCollector(ctx, "delete"))
	} else {
		_, err = t.store.Update(asCollector(ctx, "update"), t.namespace, t.name, t.change, registry.UpdateOptions{UID: t.uid, Owned: true})
	}
	if gone(err) {
		return nil
	}
	return err
}

// asCollector is a context that writes as the reference's collector.
func asCollector(ctx context.Context, verb string) context.Context {
	return storage.WithAuthor(ctx, kv.Author{User: "system:serviceaccount:kube-system:generic-garbage-collector", Verb: verb})
}

// delete deletes the object as long as it names the owners that were judged. If it does not, the
// change that says so is on its way, and the object is judged anew.
func (t *task) delete(ctx context.Context) error {
	revision := t.revision.String()
	for p := (&metav1.Preconditions{UID: &t.uid, ResourceVersion: &revision}); ; {
		_, err := t.store.Delete(ctx, t.namespace, t.name, &metav1.DeleteOptions{PropagationPolicy: &t.policy, Preconditions: p})
		if !apierrors.IsConflict(err) {
			return err
		}
		v, err := t.store.Get(ctx, t.namespace, t.name, "")
		if err != nil {
			return err
		}
		md, err := v.Metadata()
		if err != nil {
			return err
		}
		if md.UID != t.uid || !slices.Equal(referencesOf(md.OwnerReferences), t.owners) {
			return nil
		}
		revision = md.ResourceVersion
	}
}

// change is the change that the verdict asks for.
func (t *task) change(_ context.Context, obj runtime.Object) (runtime.Object, error) {
	acc, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	refs := slices.Clone(acc.GetOwnerReferences())
	switch t.what {
	case disowns:
		refs = slices.DeleteFunc(refs, func(r metav1.OwnerReference) bool { return slices.Contains(t.uids, r.UID) })
	case unblocks:
		for i := range refs {
			if refs[i].BlockOwnerDeletion != nil {
				no := false
				refs[i].BlockOwnerDeletion = &no
			}
		}
	case releases:
		acc.SetFinalizers(slices.DeleteFunc(slices.Clone(acc.GetFinalizers()), func(f string) bool { return f == t.gives }))
		return obj, nil
	}
	if len(refs) == 0 {
		refs = nil
	}
	acc.SetOwnerReferences(refs)
	return obj, nil
}
