package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/storage"
)

// deleteUnreadable removes an object that nobody can read any more, whatever it says of
// finalizers, and asks and tells nobody: there is nothing to show them (rules K43, S107 to S110).
// One that can be read is refused: it is deleted like any other.
func (s *Store) deleteUnreadable(ctx context.Context, namespace, name string, o *metav1.DeleteOptions) (Deleted, error) {
	if err := checkDeleteOptions(o); err != nil {
		return Deleted{}, err
	}
	res, err := s.table.Modify(ctx, namespace, name, len(o.DryRun) > 0, func(_ context.Context, current storage.Version, _ *storage.View) (storage.Verdict, error) {
		if !current.Exists() {
			return storage.Verdict{}, &storage.Error{Kind: storage.NotFound, Namespace: namespace, Name: name}
		}
		switch _, err := current.Object(); {
		case err == nil:
			return storage.Verdict{}, s.invalidObject(storePrefix, namespace, name, "unsafe deletion is not allowed because the object is decodable from storage")
		case !storage.IsKind(err, storage.Corrupt):
			return storage.Verdict{}, err
		}
		return storage.Verdict{Action: storage.Remove}, nil
	})
	if err != nil {
		return Deleted{}, s.refuse("delete", name, err)
	}
	return Deleted{Removed: true, Version: res.Version}, nil
}

// unreadable is the answer to a list that holds what cannot be read (rule K63). The objects are
// called what clients call them, where the reference shows their keys.
func (s *Store) unreadable(e *storage.Error) error {
	text := fmt.Sprintf("failed to read one or more %s from the storage: %v", s.resource, e.Unreadable[0])
	if more := len(e.Unreadable) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	err := storeReadError(text)
	err.ErrStatus.Details = &metav1.StatusDetails{Group: s.resource.Group, Kind: s.resource.Resource, Name: "list"}
	for _, one := range e.Unreadable {
		place := one.Name
		if one.Namespace != "" {
			place = one.Namespace + "/" + place
		}
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: metav1.CauseTypeUnexpectedServerResponse, Field: place, Message: one.Error(),
		})
	}
	switch {
	case e.Cut():
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: metav1.CauseTypeTooMany, Message: "too many errors, the list is truncated",
		})
	case e.Aborted != nil:
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: metav1.CauseTypeUnexpectedServerResponse, Message: e.Aborted.Error(),
		})
	}
	return err
}

// DeletionUnreadable is what a watch is told that saw the deletion of an object which cannot be
// read (rule K85); every other error of a watch is [Store.WatchError].
func (s *Store) DeletionUnreadable(err error) error {
	var e *storage.Error
	if !errors.As(err, &e) || e.Kind != storage.Corrupt {
		return s.WatchError(err)
	}
	return storeReadError("saw a DELETED event, but object data is corrupt - " + err.Error())
}

func storeReadError(text string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError, Message: text,
	}}
}
