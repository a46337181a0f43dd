package registry

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/storage"
)

// Deleted is what a delete did.
type Deleted struct {
	// Removed is false if something holds the object, which is being deleted from now on or
	// was already.
	Removed bool
	// Version is the removed object or, if it stays, the object as it is now.
	Version storage.Version
	// Object is the object of Version; nil if it was removed because it cannot be read.
	Object metav1.Object
}

// Delete removes an object or, if finalizers or its strategy hold it, marks it as being
// deleted (sections 12 to 14 of the rules). Nil options mean the defaults. A dry run is
// asked for in the options.
//
// A deletion in the foreground and one that orphans are marks with a finalizer, which a garbage
// collector is to take away when it has done its part. There must be one.
func (s *Store) Delete(ctx context.Context, namespace, name string, o *metav1.DeleteOptions) (Deleted, error) {
	if err := s.address(namespace, name); err != nil {
		return Deleted{}, err
	}
	ctx = authored(ctx, string(Delete))
	if o == nil {
		o = &metav1.DeleteOptions{}
	}
	if o.IgnoreStoreReadErrorWithClusterBreakingPotential != nil && *o.IgnoreStoreReadErrorWithClusterBreakingPotential {
		return s.deleteUnreadable(ctx, namespace, name, o)
	}
	d := &deletion{store: s, name: name, o: o, ends: &endings{store: s}}
	defer d.ends.close(ctx)
	res, err := s.table.Modify(ctx, namespace, name, len(o.DryRun) > 0, d.judge)
	if err != nil {
		s.conclude(ctx, d.ends, res, err)
		return Deleted{}, s.refuse("delete", name, err)
	}
	out := Deleted{Removed: d.fate == goes || d.fate == departs, Version: res.Version}
	if d.fate == departs && len(d.o.DryRun) == 0 {
		if out.Version, out.Removed, err = s.remove(ctx, res.Version); err != nil {
			d.ends.end(ctx, Ending{Outcome: Uncertain})
			return Deleted{}, s.refuse("delete", name, err)
		}
		if !out.Removed {
			d.fate = marked
		}
	}
	if _, out.Object, err = decode(out.Version); err != nil {
		return out, s.refuse("delete", name, err)
	}
	d.ends.end(ctx, ending(d.fate, out.Object))
	return out, nil
}

func ending(f fate, obj metav1.Object) Ending {
	switch f {
	case goes, departs:
		return Ending{Removed, obj}
	case lingers:
		return Ending{Unchanged, nil}
	}
	return Ending{Written, obj}
}

// A deletion is one call of [Store.Delete]. Fate is that of the last attempt.
type deletion struct {
	store *Store
	name  string
	o     *metav1.DeleteOptions
	ends  *endings
	once  bool // there is one commit for all: what is to be told that it has no time left goes untold
	fate  fate
}

// judge is one attempt (rules S80 to S100).
func (d *deletion) judge(ctx context.Context, current storage.Version, view *storage.View) (storage.Verdict, error) {
	s := d.store
	if !current.Exists() {
		return storage.Verdict{}, &storage.Error{Kind: storage.NotFound, Name: d.name}
	}
	old, oldMeta, err := decode(current)
	if err != nil {
		return storage.Verdict{}, err
	}
	if err := checkDeleteOptions(d.o); err != nil {
		return storage.Verdict{}, err
	}
	if err := d.precondition(current, oldMeta); err != nil {
		return storage.Verdict{}, err
	}
	if err := d.ends.begin(ctx, Delete, nil, old, len(d.o.DryRun) > 0); err != nil {
		return storage.Verdict{}, err
	}
	obj := old.DeepCopyObject()
	acc, err := meta.Accessor(obj)
	if err != nil {
		return storage.Verdict{}, err
	}
	deleting := oldMeta.GetDeletionTimestamp() != nil
	if p, ok := s.strategy.(DeletePreparer); ok && !deleting {
		p.PrepareForDelete(ctx, obj)
	}
	told := s.notice(obj, acc, d.o.GracePeriodSeconds)
	if told == timeStands {
		d.fate = lingers // its finalizers stay too (rule S94)
		return storage.Verdict{}, nil
	}
	finalizers, changed := propagating(acc.GetFinalizers(), propagate(s.policy.Dependents, d.o, acc.GetFinalizers()))
	acc.SetFinalizers(finalizers)
	h := s.holdingOf(obj, acc, oldMeta)
	d.fate = doom(h, changed)
	if told != noTime {
		h.grace = graceOf(acc)
		d.fate = doomTold(h)
	}
	switch {
	case d.fate == goes, d.fate == departs && d.once:
		s.claim(ctx, view, nil, old)
		return storage.Verdict{Action: storage.Remove}, nil
	case d.fate == lingers:
		return storage.Verdict{}, nil
	case told == noTime:
		s.markDeleting(acc)
	}
	s.strategy.Canonicalize(obj)
	acc.SetResourceVersion("")
	return storage.Verdict{Action: storage.Put, Object: obj}, nil
}

// markDeleting makes the object one that is being deleted and has no time left (rule S97).
func (s *Store) markDeleting(acc metav1.Object) {
	now := metav1.NewTime(s.clock.Now().UTC().Truncate(secondsOnly))
	if zero := int64(0); !s.policy.NoGrace {
		acc.SetDeletionGracePeriodSeconds(&zero)
	}
	if t := acc.GetDeletionTimestamp(); t == nil || t.After(now.Time) {
		if t == nil && acc.GetGeneration() > 0 {
			acc.SetGeneration(acc.GetGeneration() + 1)
		}
		acc.SetDeletionTimestamp(&now)
	}
}

var deleteOptionsKind = schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}

// checkDeleteOptions refuses options that make no sense (rule S81).
func checkDeleteOptions(o *metav1.DeleteOptions) error {
	if errs := metav1validation.ValidateDeleteOptions(o); len(errs) > 0 {
		return apierrors.NewInvalid(deleteOptionsKind, "", errs)
	}
	return nil
}

// precondition checks the UID and the resourceVersion that the sender named. The kind
// stands where the resource belongs: so does the reference's (rule S82).
func (d *deletion) precondition(current storage.Version, have metav1.Object) error {
	p := d.o.Preconditions
	if p == nil {
		return nil
	}
	kind := schema.GroupResource{Group: d.store.kind.Group, Resource: d.store.kind.Kind}
	if p.UID != nil && *p.UID != have.GetUID() {
		status := apierrors.NewConflict(kind, d.name, fmt.Errorf(
			"the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, have.GetUID()))
		return &ConflictError{status: status, store: d.store, current: current, uid: *p.UID, removes: true}
	}
	if p.ResourceVersion == nil || *p.ResourceVersion == have.GetResourceVersion() {
		return nil
	}
	status := apierrors.NewConflict(kind, d.name, fmt.Errorf(
		"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, have.GetResourceVersion()))
	seen, err := parseUint(*p.ResourceVersion)
	if err != nil || seen == unnamed {
		return status // the sender had read no version: there is nothing to explain
	}
	return &ConflictError{status: status, store: d.store, seen: seen, current: current, removes: true}
}

// DeleteCollectionPage is how many objects a collection delete looks at together (rule S116). Who
// reads the options of one has to know: a version means another thing beside a limit.
const DeleteCollectionPage = 10000

// DeleteCollection deletes every object that list picks, each as [Store.Delete] would, and
// returns them as they were (section 16 of the rules). Objects that are gone by then are
// passed over. If some could not be deleted the error is the first of their errors; what
// has been deleted stays so. With a limit it is one page, which says where the next would begin.
func (s *Store) DeleteCollection(ctx context.Context, list ListOptions, o *metav1.DeleteOptions) (*storage.Page, error) {
	if o == nil {
		o = &metav1.DeleteOptions{}
	}
	if err := checkDeleteOptions(o); err != nil {
		return nil, err
	}
	onePage := list.Limit > 0
	if !onePage {
		list.Limit = DeleteCollectionPage
	}
	var all *storage.Page
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		page, err := s.List(ctx, list)
		if err != nil {
			return nil, err
		}
		if err := s.deleteAll(ctx, page.Items, o); err != nil {
			return nil, err
		}
		switch {
		case onePage:
			return page, nil
		case all == nil:
			all = &storage.Page{Items: page.Items, Revision: page.Revision} // nothing will be left (rule S117)
		default:
			all.Items = append(all.Items, page.Items...)
		}
		if page.Continue == "" {
			return all, nil
		}
		if list.From, _, err = (storage.ListQuery{Continue: page.Continue}).Parse(); err != nil {
			return nil, s.ListError(err)
		}
	}
}

// deleteAll deletes objects side by side, so that they share the store's fsyncs. Each is
// deleted only if it still is the object that was listed. A worker stops at its first error,
// the others go on (rule S114).
func (s *Store) deleteAll(ctx context.Context, items []storage.Version, o *metav1.DeleteOptions) error {
	errs := make([]error, min(deleteWorkers, len(items)))
	var next atomic.Int64
	var workers sync.WaitGroup
	for w := range errs {
		workers.Go(func() {
			for errs[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= len(items) {
					return
				}
				errs[w] = s.deleteListed(ctx, items[i], o)
			}
		})
	}
	workers.Wait()
	return cmp.Or(errs...)
}

// deleteListed deletes one object that was listed. A panic must not leave it: it runs on a
// goroutine where nobody else would catch it (rule S115).
func (s *Store) deleteListed(ctx context.Context, v storage.Version, o *metav1.DeleteOptions) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("DeleteCollection goroutine panicked: %v", r)
		}
	}()
	md, err := v.Metadata()
	if err != nil {
		return s.refuse("delete", v.Name(), err)
	}
	own := o.DeepCopy()
	if own.Preconditions == nil {
		own.Preconditions = &metav1.Preconditions{}
	}
	if own.Preconditions.UID == nil {
		own.Preconditions.UID = &md.UID
	}
	_, err = s.Delete(ctx, v.Namespace(), v.Name(), own)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) && o.Preconditions == nil {
		return nil // gone, or replaced by another object of that name
	}
	return err
}
