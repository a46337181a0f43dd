package registry

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/storage"
)

// refuse turns what storage says into what a client is told (rules S21 to S24, K13, K14).
// What is no error of storage passes unchanged: it is a status already, or a raw error that
// a client sees as 500.
func (s *Store) refuse(verb, name string, err error) error {
	var e *storage.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Kind {
	case storage.NotFound:
		return apierrors.NewNotFound(s.resource, name)
	case storage.Invalid:
		return apierrors.NewConflict(s.resource, name, e.Err)
	case storage.TooNew:
		return tooNew(e)
	case storage.Expired:
		return expired(e)
	case storage.BadRequest:
		return apierrors.NewBadRequest(e.Err.Error())
	case storage.BadOptions:
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", e.Options)
	case storage.Timeout:
		return apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)
	case storage.Unknown:
		return apierrors.NewTimeoutError("whether the write was stored is not known: read the object again before you repeat it", 0)
	case storage.Unavailable:
		return unavailable(s, verb, e)
	case storage.TooLarge:
		return apierrors.NewRequestEntityTooLargeError(e.Err.Error())
	case storage.Corrupt:
		if len(e.Unreadable) > 0 {
			return s.unreadable(e)
		}
	}
	return apierrors.NewInternalError(err)
}

// tooNew is the answer to a version that does not exist (rules K13, H102).
func tooNew(e *storage.Error) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", e.Want, e.Have), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

// expired is the answer to a version that is no longer kept (rules K14, K69, H101).
func expired(e *storage.Error) error {
	err := apierrors.NewResourceExpired(e.Err.Error())
	err.ErrStatus.ListMeta.Continue = e.Continue
	return err
}

// unavailable is the answer of a store that takes no writes, or cannot be reached. The cause
// is told: whoever runs a pawl alone has nobody else to tell them that a disk is full.
func unavailable(s *Store, verb string, e *storage.Error) error {
	err := apierrors.NewServerTimeout(s.resource, verb, 2)
	err.ErrStatus.Message += " " + e.Err.Error()
	return err
}

// alreadyExists is the answer to a create under a name that is taken (rules S24, S39, S40).
func (s *Store) alreadyExists(name, generateName string, deleting bool) error {
	err := apierrors.NewAlreadyExists(s.resource, name)
	if generateName != "" {
		err = apierrors.NewGenerateNameConflict(s.resource, name, 1)
	}
	if deleting {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// isTaken reports whether err is alreadyExists's.
func isTaken(err error) bool { return apierrors.IsAlreadyExists(err) }

func internal(text string) error {
	return apierrors.NewInternalError(errors.New(text))
}

// mustNotSetVersion is the answer to a create that names a resourceVersion (rule S41). Like
// the reference's it is a 500 without an API reason of its own.
func mustNotSetVersion() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
		Message: "resourceVersion should not be set on objects to be created",
	}}
}
