package storage

import (
	"errors"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/kv"
)

// A From says where a list begins, and which state of the store it shows (rule K52). It is one
// of [Consistent], [AtHand], [NotOlder], [Exactly], [PagesAt], [ContinueAt] and
// [ContinueLatest]; nil is Consistent. [ListQuery.Parse] makes one of what a client sends.
type From interface {
	// state is which state is read, for a collection or for one object alone.
	state(single bool) kv.Freshness
	// start is the first key that is listed, relative to the prefix of the list.
	start() string
}

type (
	// Consistent is the newest state: it holds every write that was answered before.
	Consistent struct{}
	// AtHand is whatever state is there without asking anybody.
	AtHand struct{}
	// NotOlder is a state that holds a revision.
	NotOlder struct{ Revision kv.Revision }
	// Exactly is the state just after a revision.
	Exactly struct{ Revision kv.Revision }
	// PagesAt is what a version and a limit mean if nothing is said of how they match: pages
	// of exactly that revision. One object alone has no pages; for it this is NotOlder.
	PagesAt struct{ Revision kv.Revision }
	// ContinueAt goes on from Start at a revision: the pages of one list are one state.
	ContinueAt struct {
		Revision kv.Revision
		Start    string
	}
	// ContinueLatest goes on from Start at the newest state (rule K70).
	ContinueLatest struct{ Start string }
)

func (Consistent) state(bool) kv.Freshness     { return kv.Latest }
func (AtHand) state(bool) kv.Freshness         { return kv.Any }
func (f NotOlder) state(bool) kv.Freshness     { return kv.AtLeast(f.Revision) }
func (f Exactly) state(bool) kv.Freshness      { return kv.Exactly(f.Revision) }
func (f ContinueAt) state(bool) kv.Freshness   { return kv.Exactly(f.Revision) }
func (ContinueLatest) state(bool) kv.Freshness { return kv.Latest }
func (f PagesAt) state(single bool) kv.Freshness {
	if single {
		return kv.AtLeast(f.Revision)
	}
	return kv.Exactly(f.Revision)
}

func (Consistent) start() string       { return "" }
func (AtHand) start() string           { return "" }
func (NotOlder) start() string         { return "" }
func (Exactly) start() string          { return "" }
func (PagesAt) start() string          { return "" }
func (f ContinueAt) start() string     { return f.Start }
func (f ContinueLatest) start() string { return f.Start }

// Continues reports whether f goes on with a list that was begun before.
func Continues(f From) bool {
	switch f.(type) {
	case ContinueAt, ContinueLatest:
		return true
	}
	return false
}

// A ListQuery is the options of a list that mean something only together, as a client sends
// them.
type ListQuery struct {
	ResourceVersion      string
	ResourceVersionMatch string
	Limit                int64
	Continue             string
	SendInitialEvents    *bool
}

// Parse says what q means: where the list begins, and how many objects a page has, 0 for all.
// This is the one place that knows (rules K47 to K52). The error is of kind [BadOptions] if
// options do not go together, [BadRequest] if one cannot be understood.
func (q ListQuery) Parse() (From, int64, error) {
	if errs := q.check(); len(errs) > 0 {
		return nil, 0, &Error{Kind: BadOptions, Options: errs, Err: errs.ToAggregate()}
	}
	limit := max(q.Limit, 0)
	if q.Continue != "" {
		from, err := q.continued()
		return from, limit, err
	}
	if q.ResourceVersion == "" {
		return Consistent{}, limit, nil
	}
	rev, err := ParseRevision(q.ResourceVersion)
	if err != nil {
		return nil, 0, &Error{Kind: BadRequest, Err: fmt.Errorf("invalid resource version: %w", err)}
	}
	switch {
	case rev == kv.Absent:
		return AtHand{}, 0, nil // rule K52: what is at hand is never cut into pages
	case q.ResourceVersionMatch == matchExact:
		return Exactly{rev}, limit, nil
	case q.ResourceVersionMatch == "" && limit > 0:
		return PagesAt{rev}, limit, nil
	}
	return NotOlder{rev}, limit, nil
}

// continued reads the token (rule K49).
func (q ListQuery) continued() (From, error) {
	start, rev, err := decodeContinue(q.Continue)
	if err != nil {
		return nil, &Error{Kind: BadRequest, Err: fmt.Errorf("invalid continue token: %w", err)}
	}
	if q.ResourceVersion != "" && q.ResourceVersion != "0" {
		return nil, &Error{Kind: BadRequest, Err: errors.New("specifying resource version is not allowed when using continue")}
	}
	if rev == latestPage {
		return ContinueLatest{start}, nil
	}
	return ContinueAt{kv.Revision(rev), start}, nil
}

// What resourceVersionMatch can be, if it is anything.
const (
	matchExact    = string(metav1.ResourceVersionMatchExact)
	matchNotOlder = string(metav1.ResourceVersionMatchNotOlderThan)
)

var (
	matchPath   = field.NewPath("resourceVersionMatch")
	initialPath = field.NewPath("sendInitialEvents")
)

const matchWithContinue = "resourceVersionMatch is forbidden when continue is provided"

// check says which options do not go together (rule K47).
func (q ListQuery) check() field.ErrorList {
	var errs field.ErrorList
	if match := q.ResourceVersionMatch; match != "" {
		if q.ResourceVersion == "" {
			errs = append(errs, field.Forbidden(matchPath, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
		}
		if q.Continue != "" {
			errs = append(errs, field.Forbidden(matchPath, matchWithContinue))
		}
		if match != matchExact && match != matchNotOlder {
			errs = append(errs, field.NotSupported(matchPath, match, []string{matchExact, matchNotOlder, ""}))
		}
		if match == matchExact && q.ResourceVersion == "0" {
			errs = append(errs, field.Forbidden(matchPath, `resourceVersionMatch "exact" is forbidden for resourceVersion "0"`))
		}
	}
	if q.SendInitialEvents != nil {
		errs = append(errs, field.Forbidden(initialPath, "sendInitialEvents is forbidden for list"))
	}
	return errs
}

// ParseRevision reads the resourceVersion of a request; "" and "0" are [kv.Absent] (rule K10).
func ParseRevision(s string) (kv.Revision, error) {
	if s == "" || s == "0" {
		return kv.Absent, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion: Invalid value: %q: %w", s, err)
	}
	return kv.Revision(n), nil
}
