package storage

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/kv"
)

// A WatchFrom says where a watch begins, and whether it tells the state there before what
// changes (rule K88). It is one of [State], [After] and [AfterState]; nil is State{At: kv.Any}.
// [WatchQuery.Parse] makes one of what a client sends.
type WatchFrom interface{ begins() }

type (
	// State tells a state first, each object as an addition, in key order.
	State struct {
		At   kv.Freshness // [kv.Latest], [kv.Any] or [kv.AtLeast] a revision
		Mark bool         // whoever sends the events marks its end (rule K90)
	}
	// After tells the changes after a revision.
	After struct{ Revision kv.Revision }
	// AfterState tells the changes after a state, and of the state nothing.
	AfterState struct{ At kv.Freshness }
)

func (State) begins()      {}
func (After) begins()      {}
func (AfterState) begins() {}

// A WatchQuery is the options of a watch that mean something only together, as a client sends
// them.
type WatchQuery struct {
	ResourceVersion      string
	ResourceVersionMatch string
	Continue             string
	SendInitialEvents    *bool
	AllowBookmarks       bool
}

// Parse says what q means. This is the one place that knows (rules K48, K88, K90). The error is
// of kind [BadOptions] if options do not go together. That of a version that does not parse is
// no [Error]: the reference answers it with a 500 (rule K81).
func (q WatchQuery) Parse() (WatchFrom, error) {
	if errs := q.check(); len(errs) > 0 {
		return nil, &Error{Kind: BadOptions, Options: errs, Err: errs.ToAggregate()}
	}
	rev, err := ParseRevision(q.ResourceVersion)
	if err != nil {
		return nil, err
	}
	told := q.SendInitialEvents != nil && *q.SendInitialEvents
	switch {
	case q.SendInitialEvents == nil && rev == kv.Absent:
		return State{At: kv.Any}, nil
	case told:
		return State{At: freshest(q.ResourceVersion, rev), Mark: q.AllowBookmarks}, nil
	case rev == kv.Absent:
		return AfterState{freshest(q.ResourceVersion, rev)}, nil
	}
	return After{rev}, nil
}

// freshest is the state that a version asks for where initial events are spoken of.
func freshest(version string, rev kv.Revision) kv.Freshness {
	switch {
	case version == "":
		return kv.Latest
	case rev == kv.Absent:
		return kv.Any
	}
	return kv.AtLeast(rev)
}

// check says which options do not go together (rule K48).
func (q WatchQuery) check() field.ErrorList {
	var errs field.ErrorList
	match := q.ResourceVersionMatch
	if q.SendInitialEvents != nil && match != matchNotOlder {
		errs = append(errs, field.Forbidden(matchPath, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
	}
	if match == "" {
		return errs
	}
	if q.SendInitialEvents == nil {
		errs = append(errs, field.Forbidden(matchPath, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
	}
	if match != matchNotOlder {
		errs = append(errs, field.NotSupported(matchPath, match, []string{matchNotOlder}))
	}
	if q.Continue != "" {
		errs = append(errs, field.Forbidden(matchPath, matchWithContinue))
	}
	return errs
}
