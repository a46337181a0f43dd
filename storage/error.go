package storage

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/kv"
)

// A Kind is one of the ways in which storage says no (rule K12, and those that the
// reference spreads over other error types: K13, K14, K50, K67).
type Kind uint8

// The kinds of [Error].
const (
	NotFound    Kind = 1 + iota // the object does not exist
	Invalid                     // a precondition does not hold
	Corrupt                     // what is stored cannot be read
	TooNew                      // the version asked for does not exist yet
	Expired                     // the version asked for is no longer kept
	BadRequest                  // the call cannot be understood, or asks for what no engine can store
	BadOptions                  // options of a list or a watch do not go together
	Unavailable                 // the engine failed, or takes no writes
	Unknown                     // whether it was written is not known
	Timeout                     // the context ended first, or the engine had no answer in time
	TooLarge                    // more than one commit can hold
)

var kindNames = [...]string{
	NotFound: "not found", Invalid: "invalid object", Corrupt: "corrupt object",
	TooNew: "version too new", Expired: "version no longer kept", BadRequest: "bad request",
	BadOptions:  "options that do not go together",
	Unavailable: "store unavailable", Unknown: "outcome unknown", Timeout: "request timeout",
	TooLarge: "too large",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// An Error says which object, or which request, and what stood in the way.
type Error struct {
	Kind      Kind
	Namespace string
	Name      string
	Want      kv.Revision     // with TooNew and Expired: asked for
	Have      kv.Revision     // with TooNew: the newest; with Expired: the oldest
	Continue  string          // with Expired: a token that goes on at the newest state (rule K69)
	Listing   bool            // with Expired: a list asked, not a watch
	Options   field.ErrorList // with BadOptions: which, and why
	Err       error           // more about it

	Unreadable []*Error // with Corrupt, of a list: each object, of which this is the first (rule K63)
	Aborted    error    // with Unreadable: what else ended the list before its end
}

// Error reads like "storage: not found: default/color".
func (e *Error) Error() string {
	text := "storage: " + e.Kind.String()
	if e.Name != "" {
		text += ": " + e.Name
		if e.Namespace != "" {
			text = "storage: " + e.Kind.String() + ": " + e.Namespace + "/" + e.Name
		}
	}
	if e.Want != 0 {
		text += fmt.Sprintf(": asked for %d, have %d", e.Want, e.Have)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

// IsKind reports whether err is an [Error] of that kind, however wrapped.
func IsKind(err error, k Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == k
}

// engineError says what an engine's error means to whoever called storage.
func engineError(ctxErr, err error) *Error {
	e := &Error{Kind: Unavailable, Err: err}
	var k *kv.Error
	if errors.As(err, &k) {
		e.Want, e.Have = k.Want, k.Have
	}
	switch {
	case errors.Is(err, kv.ErrFuture):
		e.Kind = TooNew
	case errors.Is(err, kv.ErrCompacted):
		e.Kind = Expired
	case errors.Is(err, kv.ErrUnknown):
		e.Kind = Unknown
	case errors.Is(err, kv.ErrInvalid):
		e.Kind = BadRequest
	case errors.Is(err, kv.ErrTooLarge):
		e.Kind = TooLarge
	case ctxErr != nil, errors.Is(err, kv.ErrAway) && errors.Is(err, context.DeadlineExceeded):
		e.Kind = Timeout
	}
	return e
}
