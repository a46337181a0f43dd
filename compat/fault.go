package compat

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// unreadable is the error of a stored value that cannot be turned into an object.
type unreadable struct {
	path     string
	revision kv.Revision
	sealed   bool // the transformer failed; else the codec did
	corrupt  bool // the value is at fault
	err      error
}

// Error says it in the reference's words.
func (e *unreadable) Error() string {
	what := "object not decodable"
	if e.sealed {
		what = "data from the storage is not transformable"
	}
	return fmt.Sprintf("%s revision=%d: %v", what, e.revision, e.err)
}

func (e *unreadable) Unwrap() error { return e.err }

// plainly is the error as whoever wants that one object gets it (rule K23).
func (s *Store) plainly(e *unreadable, format string) error {
	err := e.err
	if s.deletesCorrupt && e.corrupt {
		err = e
	}
	if !e.sealed {
		return err
	}
	return apistorage.NewInternalError(fmt.Errorf(format, err))
}

// fault turns what storage says, and what cannot be read, into what the reference's layers above
// understand (rules K12 to K14, K23). Every other error passes unchanged.
func (s *Store) fault(verb, key string, err error) error {
	var bad *unreadable
	var e *storage.Error
	switch {
	case errors.As(err, &bad):
		return s.plainly(bad, "%w")
	case !errors.As(err, &e):
		return err
	}
	switch e.Kind {
	case storage.NotFound:
		return apistorage.NewKeyNotFoundError(key, 0)
	case storage.TooNew:
		return apistorage.NewTooLargeResourceVersionError(uint64(e.Want), uint64(e.Have), 1)
	case storage.Expired:
		gone := apierrors.NewResourceExpired(e.Err.Error())
		gone.ErrStatus.ListMeta.Continue = e.Continue
		return gone
	case storage.BadRequest, storage.BadOptions:
		return apierrors.NewBadRequest(e.Err.Error())
	case storage.Timeout:
		return apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)
	case storage.Unknown:
		return apierrors.NewTimeoutError("whether the write was stored is not known: read the object again before you repeat it", 0)
	}
	down := apierrors.NewServerTimeout(s.resource, verb, 2)
	down.ErrStatus.Message += ": " + e.Error()
	return down
}

// corruptMax is how many unreadable objects a list reports (rule K62).
const corruptMax = 100

var errTooMany = errors.New("too many errors, the list is truncated")

// A casualties list is the unreadable objects of one list, and why it went no further, if it did
// not.
type casualties struct {
	corrupt []*apistorage.StorageError
	abort   error
}

// add takes the error of one object, and returns an error if the list ends with it.
func (c *casualties) add(s *Store, err error) error {
	var e *unreadable
	isRead := errors.As(err, &e)
	switch {
	case isRead && s.deletesCorrupt && e.corrupt:
		c.corrupt = append(c.corrupt, apistorage.NewCorruptObjError(e.path, e))
		if len(c.corrupt) < corruptMax {
			return nil
		}
		c.abort = errTooMany
	case isRead:
		c.abort = s.plainly(e, fmt.Sprintf("unable to transform key %q: ", e.path)+"%w")
	default:
		c.abort = err
	}
	return c.abort
}

// report is the error of the list, nil if it has none (rule K63).
func (c *casualties) report(resource schema.GroupResource) error {
	if len(c.corrupt) == 0 {
		return c.abort
	}
	var causes []metav1.StatusCause
	for _, e := range c.corrupt {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse, Field: e.Key, Message: e.Error()})
	}
	switch {
	case c.abort == errTooMany:
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeTooMany, Message: errTooMany.Error()})
	case c.abort != nil:
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeUnexpectedServerResponse, Message: c.abort.Error()})
	}
	message := fmt.Sprintf("failed to read one or more %s from the storage: %v", resource, c.corrupt[0])
	if more := len(c.corrupt) - 1; more > 0 {
		message += fmt.Sprintf(" (and %d more)", more)
	}
	err := storeReadError(message)
	err.ErrStatus.Details = &metav1.StatusDetails{Group: resource.Group, Kind: resource.Resource, Name: "list", Causes: causes}
	return err
}

func storeReadError(message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonStoreReadError, Message: message,
	}}
}

// watchFault is the status that ends a watch (rules K82 to K85). It says false if the watch ends
// in silence: it was stopped, or the engine was closed.
func (s *Store) watchFault(deleted bool, err error) (metav1.Status, bool) {
	var bad *unreadable
	switch {
	case storage.IsClosed(err):
		return metav1.Status{}, false
	case errors.As(err, &bad) && deleted && s.deletesCorrupt && bad.corrupt:
		return storeReadError(fmt.Sprintf("saw a DELETED event, but object data is corrupt - %v", bad)).ErrStatus, true
	}
	err = s.fault("watch", "", err)
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	return status.Status(), true
}
