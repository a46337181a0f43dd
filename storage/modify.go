package storage

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/kv"
)

// An Action is what a judge wants done to an object.
type Action uint8

// The actions of a [Verdict].
const (
	Leave  Action = iota // as it is
	Put                  // Verdict.Object takes its place
	Remove               // it goes
)

// A Verdict is what a [Judge] makes of an object.
type Verdict struct {
	Action Action
	Object runtime.Object // with Put; without resourceVersion
	Expiry kv.Expiry      // with Put

	// Value, with Put, is what to store in place of an Object that the table's codec encodes. It
	// means nothing to storage, which never looks into it and remembers nothing about it: whoever
	// puts it reads it, with [Version.Value], picks by it, with [Selector.Func], and says Leave if
	// it would put what is there.
	Value []byte
}

// A Judge decides what should become of current, which may not exist. It runs again
// whenever what it saw turns out not to be what is stored, so it must depend on nothing but
// its arguments. What it needs to know of other keys it asks view for.
type Judge func(ctx context.Context, current Version, view *View) (Verdict, error)

// A View is the state that a judge looks at. What is looked at through it is part of the
// condition of the commit: nothing of that may have changed when the verdict lands.
type View struct {
	table *Table
	snap  kv.Snapshot
	seen  []kv.Condition
	also  []kv.Op

	drafts map[string]*kv.Version // in a transaction: what the changes before this one leave behind
}

// claimGroup stands where the group stands in the key of an object. No group is called that, so no
// object is ever under such a key.
const claimGroup = "claims"

// ClaimPrefix returns the prefix of keys of one sort that are put beside objects, in the space that
// the view is of. What they hold is no object: tables do not show it, and [ParseKey] knows it.
func (w *View) ClaimPrefix(sort string) string {
	space, _, _ := strings.Cut(w.table.prefix, "/")
	return TablePrefix(space, claimGroup, sort)
}

// Get returns what key holds, nil if it does not exist.
func (w *View) Get(key string) *kv.Version {
	if v, drafted := w.drafts[key]; drafted {
		return v
	}
	v := w.snap.Get(key)
	c := kv.Condition{Key: key, At: revisionOf(v)}
	if !slices.Contains(w.seen, c) {
		w.seen = append(w.seen, c)
	}
	return v
}

// Peek returns what key holds, and does not make it a condition: for finding one key among many.
// Whoever settles on one asks Get.
func (w *View) Peek(key string) *kv.Version {
	if v, drafted := w.drafts[key]; drafted {
		return v
	}
	return w.snap.Get(key)
}

// Put makes the commit of the verdict put value under another key than the object's, too. If the
// verdict comes to no commit, or another attempt is made, nothing is put.
func (w *View) Put(key string, value []byte) { w.also = append(w.also, kv.Put(key, value)) }

// Delete makes the commit of the verdict delete another key than the object's, too.
func (w *View) Delete(key string) { w.also = append(w.also, kv.Delete(key)) }

func revisionOf(v *kv.Version) kv.Revision {
	if v == nil {
		return kv.Absent
	}
	return v.Revision
}

// holds reports whether everything seen is the same in snap.
func (w *View) holds(snap kv.Snapshot) bool {
	if snap.Revision() == w.snap.Revision() {
		return true
	}
	for _, c := range w.seen {
		if revisionOf(snap.Get(c.Key)) != c.At {
			return false
		}
	}
	return true
}

// A Result is what [Table.Modify] did.
type Result struct {
	// Wrote is false if the verdict was to leave the object, or to put what was there.
	Wrote bool
	// Version is what is there now or, if it was removed, what was there, at the revision of
	// its removal.
	Version Version
	// Prev is what was there before, if anything was written.
	Prev Version
}

// Modify asks judge what should become of the object, and makes that so on the condition
// that nothing the judge looked at has changed, asking again until it has not. A dry run
// does everything but the commit (rules S130 to S133).
//
// An error of the judge is returned as it is, but only if what it saw is the newest state.
func (t *Table) Modify(ctx context.Context, namespace, name string, dryRun bool, judge Judge) (Result, error) {
	key := t.Key(namespace, name)
	at, author := kv.Any, AuthorFrom(ctx)
	var done func()
	if !dryRun {
		done = t.turns.join(ctx, key)
	}
	defer func() {
		if done != nil {
			done()
		}
	}()
	for {
		a, err := t.attempt(ctx, key, at, judge)
		if err != nil {
			return Result{}, err
		}
		if a.final() || dryRun {
			sure, err := t.confirm(ctx, a.view)
			if err != nil {
				return Result{}, err
			}
			if !sure {
				at = kv.Latest
				continue
			}
		}
		if a.err != nil {
			return Result{}, a.err
		}
		if a.final() || dryRun {
			if a.unchanged && !dryRun {
				t.Observe(Unchanged, namespace, name, author.Manager)
			}
			return a.outcome(), nil
		}
		res, err := t.commit(ctx, a, author)
		if !errors.Is(err, kv.ErrConflict) {
			return res, err
		}
		t.Observe(Retried, namespace, name, author.Manager)
		if done == nil {
			done = t.turns.take(ctx, key)
		}
		at = afterLosing(err)
	}
}

// afterLosing is the state that whoever lost a race has to look at: one that holds what it
// lost to. A removal has no revision to ask for.
func afterLosing(lost error) kv.Freshness {
	var e *kv.Error
	if errors.As(lost, &e) && e.Have != kv.Absent {
		return kv.AtLeast(e.Have)
	}
	return kv.Latest
}

// An attempt is one judgement of one state.
type attempt struct {
	table   *Table
	key     string
	view    *View
	current Version
	verdict Verdict
	err     error // the judge's
	value   []byte
	doc     document

	unchanged bool // what was to be put is what is there
}

func (t *Table) attempt(ctx context.Context, key string, at kv.Freshness, judge Judge) (*attempt, error) {
	if ctx.Err() != nil {
		return nil, &Error{Kind: Timeout, Err: context.Cause(ctx)}
	}
	snap, err := t.read(ctx, at)
	if err != nil {
		return nil, err
	}
	return t.judged(ctx, key, &View{table: t, snap: snap}, judge), nil
}

// judged is an attempt at the state that view shows.
func (t *Table) judged(ctx context.Context, key string, view *View, judge Judge) *attempt {
	a := &attempt{table: t, key: key, view: view}
	a.current = t.at(a.view.Get(key))
	a.verdict, a.err = judge(ctx, a.current, a.view)
	switch {
	case a.err != nil || a.verdict.Action != Put:
	case a.verdict.Value != nil:
		a.value = a.verdict.Value
	default:
		a.value, a.doc, a.err = t.encode(a.verdict.Object)
	}
	if a.err == nil && len(a.view.also) == 0 && a.same() {
		a.unchanged = a.verdict.Action == Put
		a.verdict.Action = Leave
	}
	return a
}

// same reports whether the verdict would change nothing (rule K33).
func (a *attempt) same() bool {
	if !a.current.Exists() {
		return a.verdict.Action == Remove
	}
	if a.verdict.Action != Put {
		return false
	}
	stored, err := a.current.document()
	return err == nil && bytes.Equal(stored.json, a.doc.json)
}

// final reports whether the attempt ends without a commit that would check what it saw.
func (a *attempt) final() bool { return a.err != nil || a.verdict.Action == Leave }

// confirm reports whether the newest state is the one that was seen.
func (t *Table) confirm(ctx context.Context, view *View) (bool, error) {
	snap, err := t.read(ctx, kv.Latest)
	if err != nil {
		return false, err
	}
	return view.holds(snap), nil
}

// outcome is what an attempt comes to when nothing is committed.
func (a *attempt) outcome() Result {
	switch a.verdict.Action {
	case Put:
		draft := &kv.Version{Key: a.key, Value: a.verdict.Value, Revision: revisionOf(a.current.kv)}
		return Result{Wrote: true, Version: Version{table: a.table, kv: draft, rev: a.current.rev, draft: &a.doc}, Prev: a.current}
	case Remove:
		return Result{Wrote: true, Version: a.current, Prev: a.current}
	default:
		return Result{Version: a.current}
	}
}

func (t *Table) commit(ctx context.Context, a *attempt, author kv.Author) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, &Error{Kind: Timeout, Err: context.Cause(ctx)} // an engine that is asked says it does not know
	}
	did, err := t.engine.Commit(ctx, kv.Txn{Author: author, Conditions: a.view.seen, Ops: append([]kv.Op{a.op()}, a.view.also...)})
	if errors.Is(err, kv.ErrConflict) {
		return Result{}, err
	}
	if err != nil {
		return Result{}, engineError(ctx.Err(), err)
	}
	return a.result(did.Revision, did.Versions[0]), nil
}

// op is what the attempt does to its object.
func (a *attempt) op() kv.Op {
	if a.verdict.Action != Put {
		return kv.Op{Key: a.key, Delete: true}
	}
	op := kv.Op{Key: a.key, Value: a.value, Expiry: a.verdict.Expiry}
	if a.verdict.Object != nil {
		op.Slot = a.table.memoOf(a.verdict.Object)
	}
	return op
}

// result is what came of the attempt in a commit, where v is what is under its key now.
func (a *attempt) result(rev kv.Revision, v *kv.Version) Result {
	switch a.verdict.Action {
	case Put:
		return Result{Wrote: true, Prev: a.current, Version: a.table.at(v)}
	case Remove:
		return Result{Wrote: true, Prev: a.current, Version: Version{table: a.table, kv: a.current.kv, rev: rev}}
	}
	return Result{Version: a.current}
}

type authorKey struct{}

// WithAuthor returns a context whose writes are by author.
func WithAuthor(ctx context.Context, author kv.Author) context.Context {
	return context.WithValue(ctx, authorKey{}, author)
}

// AuthorFrom returns who writes under ctx.
func AuthorFrom(ctx context.Context) kv.Author {
	a, _ := ctx.Value(authorKey{}).(kv.Author)
	return a
}
