package registry

import (
	"context"
	"errors"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// A ConflictError refuses a write that was made against another version than the one that exists
// (rule S50), or that named another object by its UID (rules S45, S82). It is an API status like any
// other; what stands in the way is worked out when [ConflictError.Explain] is called, and not before.
type ConflictError struct {
	status  *apierrors.StatusError
	store   *Store
	current storage.Version // the version that exists, if any does
	seen    kv.Revision     // the version the writer had read
	uid     types.UID       // the object that the writer meant, if that is what does not fit

	sent    runtime.Object // the object the writer wanted; nil of one who only looks
	patch   Desire         // what sent was computed with, from current, which it only reads; nil of an object that was sent as it is
	removes bool           // the writer wanted the object gone; there is no sent

	rebased bool             // the write could have been rebased but for the fields that both sides changed
	changes []fieldpath.Path // with rebased: those that the write changes

	mu        sync.Mutex // guards what follows, and sent once it is being explained
	explained *Explanation
}

// Error is the reference's message.
func (e *ConflictError) Error() string { return e.status.Error() }

// Status is the reference's answer, without an explanation.
func (e *ConflictError) Status() metav1.Status { return e.status.Status() }

// Current returns the version that stood in the way. It does not exist if the write named an object
// by its UID, and there is none.
func (e *ConflictError) Current() storage.Version { return e.current }

// Seen returns the version that the writer had read; [kv.Absent] if it named none.
func (e *ConflictError) Seen() kv.Revision { return e.seen }

// contended tells the observer of the table if err is a conflict about an object that exists.
func (s *Store) contended(ctx context.Context, err error) {
	if c, ok := errors.AsType[*ConflictError](err); ok && c.current.Exists() {
		s.table.Observe(storage.Conflicted, c.current.Namespace(), c.current.Name(), storage.AuthorFrom(ctx).Manager)
	}
}

const conflictText = "the object has been modified; please apply your changes to the latest version and try again"

// conflict refuses a write that was made against another version than current. With patch, sent is what
// that makes of current.
func (s *Store) conflict(current storage.Version, seen kv.Revision, sent runtime.Object, patch Desire) error {
	return &ConflictError{
		status: apierrors.NewConflict(s.resource, current.Name(), errors.New(conflictText)),
		store:  s, seen: seen, current: current, sent: sent, patch: patch,
	}
}

// overlapping refuses a write that was to be rebased.
func (s *Store) overlapping(current storage.Version, seen kv.Revision, changes []fieldpath.Path) error {
	return &ConflictError{
		status: apierrors.NewConflict(s.resource, current.Name(), errors.New(conflictText)),
		store:  s, seen: seen, current: current, rebased: true, changes: changes,
	}
}

// Explain works out what changed since the writer read. It reads nothing but history that is
// kept in memory, and does so once. The [Desire] of a patch it may ask what it makes of the version that
// the patch names.
func (e *ConflictError) Explain(ctx context.Context) (Explanation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.explained == nil {
		x, err := e.explain(ctx)
		if err != nil {
			return Explanation{}, err
		}
		e.explained = &x
	}
	x := *e.explained
	x.Fields = slices.Clone(x.Fields)
	return x, nil
}

func (e *ConflictError) explain(ctx context.Context) (Explanation, error) {
	if e.uid != "" {
		return explainIdentity(e.current, e.uid), nil
	}
	seen, how := ancestor(e.current, e.seen, e.store.oldest())
	if how != earlier {
		return explainRelation(e.current, how), nil
	}
	since, err := e.store.since(ctx, seen, e.current)
	switch {
	case err != nil:
		return Explanation{}, err
	case since.cut:
		return Explanation{Unknown: versionForgotten}, nil
	}
	touched, err := e.touched(ctx, seen, since.net)
	if err != nil {
		return Explanation{}, err
	}
	x := Explanation{Fields: since.marked(touched)}
	if e.rebased {
		x.Fields = slices.DeleteFunc(x.Fields, func(c FieldChange) bool { return !c.Contended })
	}
	if len(x.Fields) == 0 {
		x.Unknown = nothingLeft
	}
	return x, nil
}

// touched returns the fields that the refused write changes: in the version it was based on
// or, if it is a patch, in the one that exists and, unless that is all of net already, in that one. What this endpoint
// puts back whatever is sent is not touched. Nil is every field there is: that is what a delete changes.
func (e *ConflictError) touched(ctx context.Context, seen storage.Version, net []fieldpath.Path) (*paths, error) {
	switch {
	case e.removes:
		return nil, nil
	case e.rebased:
		return indexed(e.changes), nil
	case e.sent == nil:
		return indexed(nil), nil
	case e.patch == nil:
		fields, err := e.changed(ctx, seen, e.sent)
		return indexed(fields), err
	}
	fields, err := e.changed(ctx, e.current, e.sent)
	if err != nil {
		return nil, err
	}
	if touched := indexed(fields); !slices.ContainsFunc(net, func(p fieldpath.Path) bool { return !touched.touch(p) }) {
		return touched, nil
	}
	before, err := e.patching(ctx, seen)
	return indexed(append(fields, before...)), err
}

// changed returns the fields in which obj, as the successor of base, differs from it.
func (e *ConflictError) changed(ctx context.Context, base storage.Version, obj runtime.Object) ([]fieldpath.Path, error) {
	was, err := e.store.reading(ctx, base)
	if err != nil {
		return nil, err
	}
	e.store.prepareSuccessor(ctx, obj, was.object)
	wanted, err := fieldsOf(obj)
	if err != nil {
		return nil, err
	}
	return compare(e.store.shapeOf(), was.content, wanted), nil
}

// patching returns the fields that the patch changes in the version that it names. What it sets to a
// value that somebody else has given it since it changes there, and not in what exists; one that cannot be applied
// there changes none.
func (e *ConflictError) patching(ctx context.Context, seen storage.Version) ([]fieldpath.Path, error) {
	was, err := e.store.reading(ctx, seen)
	if err != nil {
		return nil, err
	}
	obj, err := e.patch(ctx, was.object)
	if err != nil {
		return nil, nil
	}
	return e.changed(ctx, seen, obj)
}
