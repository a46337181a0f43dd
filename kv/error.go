package kv

import (
	"errors"
	"fmt"
	"strings"
)

// The kinds of [Error], for errors.Is.
var (
	ErrConflict  = errors.New("conflict")                       // a condition does not hold; nothing was written
	ErrCompacted = errors.New("history is gone")                // the revision asked for is no longer kept
	ErrFuture    = errors.New("no such revision yet")           // the revision asked for does not exist
	ErrInvalid   = errors.New("invalid")                        // the call breaks a rule of this package; nothing was written
	ErrTooLarge  = errors.New("too large")                      // more than the engine takes in one commit; nothing was written
	ErrAway      = errors.New("the store cannot be reached")    // nothing was written; what is at hand can be read
	ErrReadOnly  = errors.New("the store takes no more writes") // nothing was written
	ErrUnknown   = errors.New("outcome unknown")                // it was written wholly or not at all
	ErrClosed    = errors.New("closed")
)

// An Error says what was tried, on which key, and what stood in the way.
type Error struct {
	Op   string   // "commit", "read", "watch", "compact", "open"
	Key  string   // the key or prefix; "" if the whole store is meant
	Want Revision // what the caller had seen or asked for
	Have Revision // what is there instead
	Kind error    // one of the Err variables
	Err  error    // what failed beneath, if anything did
}

// Error reads like "kv: commit: conflict on default/core/configmaps/a: caller saw revision 41, now 43".
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "kv: %s: %v", e.Op, e.Kind)
	if e.Key != "" {
		fmt.Fprintf(&b, " on %s", e.Key)
	}
	switch e.Kind {
	case ErrConflict:
		now := describe(e.Have)
		if e.Want != Absent {
			now = strings.TrimPrefix(now, "revision ") // said once already
		}
		fmt.Fprintf(&b, ": caller saw %s, now %s", describe(e.Want), now)
	case ErrCompacted:
		fmt.Fprintf(&b, ": asked for revision %d, oldest is %d", e.Want, e.Have)
	case ErrFuture:
		fmt.Fprintf(&b, ": asked for revision %d, newest is %d", e.Want, e.Have)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

func describe(r Revision) string {
	if r == Absent {
		return "nothing"
	}
	return fmt.Sprintf("revision %d", r)
}

// Unwrap makes errors.Is and errors.As see both the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}
