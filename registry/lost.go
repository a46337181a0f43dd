package registry

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// DefaultAttempts is how often a [Collection] tries an update before it gives up. Whoever lost a
// race once waits their turn at the object, so only one that is always slower than others comes
// near it.
const DefaultAttempts = 100

// A LostError says that an update was tried again until it was not to be tried any more, and what
// it lost to. It is a conflict, for errors.As and for apierrors.IsConflict.
type LostError struct {
	Attempts int            // how often it was tried
	Conflict *ConflictError // the last attempt, and the version that it lost to
	Err      error          // why no more were made: the cause of the context's end; nil if they were used up
}

// Error reads like "gave up after 3 attempts: Operation cannot be fulfilled on …".
func (e *LostError) Error() string {
	why := ""
	if e.Err != nil {
		why = " (" + e.Err.Error() + ")"
	}
	return fmt.Sprintf("gave up after %d attempts%s: %v", e.Attempts, why, e.Conflict)
}

// Unwrap makes the conflict known, and why no more attempts were made.
func (e *LostError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Conflict}
	}
	return []error{e.Conflict, e.Err}
}

// A trial counts the attempts of an update that were to be committed, and keeps the last.
type trial struct {
	made int
	base kv.Revision    // the version that the last was made from
	sent runtime.Object // what it would have stored
}

func (t *trial) attempt(base kv.Revision, obj runtime.Object) {
	t.made++
	t.base, t.sent = base, obj
}

// lostTo reports whether the last attempt lost to current.
func (t *trial) lostTo(current storage.Version) bool {
	return t.made > 0 && current.Exists() && current.Revision() != t.base
}

func (t *trial) lost(s *Store, current storage.Version, why error) error {
	return &LostError{Attempts: t.made, Conflict: s.conflict(current, t.base, t.sent, nil).(*ConflictError), Err: why}
}

// spent is the error of an update that lost to current and has no more attempts; nil if it may go on.
func (u *update) spent(current storage.Version) error {
	if u.o.Attempts == 0 || u.trial.made < u.o.Attempts || !u.trial.lostTo(current) {
		return nil
	}
	return u.trial.lost(u.store, current, nil)
}

// ranOut is the error of an update that ended with err: that it ran out of time because it lost, if it did.
func (u *update) ranOut(ctx context.Context, err error) error {
	if u.o.Attempts == 0 || !storage.IsKind(err, storage.Timeout) {
		return err
	}
	current, gone := u.store.table.Get(context.WithoutCancel(ctx), u.namespace, u.name, kv.Any)
	if gone != nil || !u.trial.lostTo(current) {
		return err
	}
	return u.trial.lost(u.store, current, context.Cause(ctx))
}
