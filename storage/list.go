package storage

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/pawl-dev/pawl/kv"
)

// From says where a list begins and at which state of the store: what the four options
// resourceVersion, resourceVersionMatch, limit and continue mean together. [ParseFrom]
// makes one.
type From struct {
	kind  fromKind
	rev   kv.Revision
	start string // with continued and continuedLatest: the first key, relative to the list's prefix
}

type fromKind uint8

const (
	consistent      fromKind = iota // the newest state
	anyState                        // whatever is at hand
	notOlder                        // rev or newer
	exact                           // rev
	continued                       // rev, from start on
	continuedLatest                 // the newest state, from start on
)

// Consistent is the newest state, from the beginning.
var Consistent = From{}

// ParseFrom says what the options of a list mean (rules K47 to K52). Whether they may be
// combined has been checked before; what is checked here is that each can be understood.
func ParseFrom(resourceVersion, match string, limit int64, token string) (From, error) {
	if token != "" {
		return parseContinued(resourceVersion, token)
	}
	if resourceVersion == "" {
		return Consistent, nil
	}
	rev, err := ParseRevision(resourceVersion)
	if err != nil {
		return From{}, &Error{Kind: BadRequest, Err: fmt.Errorf("invalid resource version: %w", err)}
	}
	switch match {
	case "Exact":
		return From{kind: exact, rev: rev}, nil
	case "NotOlderThan", "":
	default:
		return From{}, &Error{Kind: BadRequest, Err: fmt.Errorf("unknown ResourceVersionMatch value: %v", match)}
	}
	switch {
	case rev == kv.Absent:
		return From{kind: anyState}, nil
	case match == "" && limit > 0:
		return From{kind: exact, rev: rev}, nil // a limit without a match asks for exactly that version (rule K52)
	}
	return From{kind: notOlder, rev: rev}, nil
}

func parseContinued(resourceVersion, token string) (From, error) {
	start, rev, err := decodeContinue(token)
	if err != nil {
		return From{}, &Error{Kind: BadRequest, Err: fmt.Errorf("invalid continue token: %w", err)}
	}
	if resourceVersion != "" && resourceVersion != "0" {
		return From{}, &Error{Kind: BadRequest, Err: errors.New("specifying resource version is not allowed when using continue")}
	}
	if rev == latestPage {
		return From{kind: continuedLatest, start: start}, nil
	}
	return From{kind: continued, rev: kv.Revision(rev), start: start}, nil
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

// ListOptions say which objects a list holds. The zero value is everything, now.
type ListOptions struct {
	Namespace string // "" for all
	Name      string // one object alone (rule S125)
	From      From
	Limit     int64 // 0 for all
	Selector  Selector
}

// A Page is a list, or a part of one.
type Page struct {
	Items     []Version
	Revision  kv.Revision
	Continue  string // "" if nothing is left
	Remaining *int64 // how many objects are left, where that is known (rule K61)
}

// List returns the objects that o asks for, in key order, all at one revision.
func (t *Table) List(ctx context.Context, o ListOptions) (*Page, error) {
	if o.From.kind == anyState {
		o.Limit = 0 // rule K52: a list of whatever is at hand is never cut
	}
	snap, err := t.read(ctx, o.From.freshness())
	if err != nil {
		var e *Error
		if errors.As(err, &e) && e.Kind == Expired {
			err = o.From.expired(e, o.From.start)
		}
		return nil, err
	}
	page := &Page{Items: []Version{}, Revision: snap.Revision()}
	if rev, ok := o.From.freshness().Exactly(); ok {
		page.Revision = rev
	}
	if o.Name != "" {
		return page, t.one(snap, o, page)
	}
	return page, t.fill(ctx, snap, o, page)
}

// one lists a single object.
func (t *Table) one(snap kv.Snapshot, o ListOptions, page *Page) error {
	v := t.at(snap.Get(t.Key(o.Namespace, o.Name)))
	if !v.Exists() {
		return nil
	}
	ok, err := o.Selector.Matches(v)
	if ok {
		page.Items = append(page.Items, v)
	}
	return err
}

// cancelEvery is how many objects are looked at between two looks at the context.
const cancelEvery = 4096

// fill adds objects until the page is full, and says what is left.
func (t *Table) fill(ctx context.Context, snap kv.Snapshot, o ListOptions, page *Page) error {
	prefix, pick := t.scope(o.Namespace), o.Selector.sieve()
	var last string
	left, looked := int64(0), 0
	for kvv := range snap.Ascend(prefix, prefix+o.From.start) {
		if looked++; looked%cancelEvery == 0 && ctx.Err() != nil {
			return &Error{Kind: Timeout, Err: context.Cause(ctx)}
		}
		if o.Limit > 0 && int64(len(page.Items)) == o.Limit {
			if left++; !pick.all {
				break
			}
			continue
		}
		v := Version{table: t, kv: kvv, rev: kvv.Revision}
		ok, err := pick.matches(v)
		if err != nil {
			return err
		}
		if ok {
			page.Items = append(page.Items, v)
		}
		last = kvv.Key
	}
	if left > 0 {
		page.Continue = encodeContinue(last[len(prefix):], int64(page.Revision))
		if pick.all {
			page.Remaining = &left
		}
	}
	return nil
}

// Count returns how many objects there are, at whatever state is at hand.
func (t *Table) Count(ctx context.Context) (int, error) {
	snap, err := t.read(ctx, kv.Any)
	if err != nil {
		return 0, err
	}
	n := 0
	for range snap.Ascend(t.prefix, "") {
		n++
	}
	return n, nil
}
