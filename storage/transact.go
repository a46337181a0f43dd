package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawl-dev/pawl/kv"
)

// A Change is what is to become of one object in a [Transact].
type Change struct {
	Table           *Table
	Namespace, Name string
	Judge           Judge
}

// A ChangeError is the error of one judge of a [Transact].
type ChangeError struct {
	Index int // of the change
	Err   error
}

// Error is the judge's error.
func (e *ChangeError) Error() string { return fmt.Sprintf("storage: change %d: %v", e.Index, e.Err) }

// Unwrap returns the judge's error.
func (e *ChangeError) Unwrap() error { return e.Err }

// Transact is [Table.Modify] for several objects of one engine, no two of them the same: all or
// nothing, in one commit. The judges are asked in their order, all about one state. What one leaves
// behind, of its object and of other keys, those after it see in their views as if it were there.
//
// The error of a judge is a [*ChangeError], and comes only if what the judges saw is the newest state.
// More than a commit can hold is [TooLarge]. A change that leaves its object as it is still is a
// condition of the commit.
func Transact(ctx context.Context, dryRun bool, changes ...Change) ([]Result, error) {
	t, err := newTransaction(changes)
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	if !dryRun {
		t.join(ctx, t.changes, t.keys)
	}
	defer t.leave()
	at, author := kv.Any, AuthorFrom(ctx)
	for {
		a, err := t.attempt(ctx, at)
		if err != nil {
			return nil, err
		}
		if a.final() || dryRun {
			sure, err := a.confirm(ctx)
			if err != nil {
				return nil, err
			}
			if !sure {
				at = kv.Latest
				continue
			}
		}
		if a.err != nil {
			return nil, a.err
		}
		if err := a.fits(); err != nil {
			return nil, err
		}
		if a.final() || dryRun {
			a.observe(dryRun, author)
			return a.outcomes(), nil
		}
		results, err := a.commit(ctx, author)
		if err == nil {
			a.observe(dryRun, author)
		}
		if !errors.Is(err, kv.ErrConflict) {
			return results, err
		}
		t.again(ctx, err, author)
		at = afterLosing(err)
	}
}

// A transaction is one call of Transact.
type transaction struct {
	engine  kv.Engine
	changes []Change
	keys    []string
	places
}

func newTransaction(changes []Change) (*transaction, error) {
	t := &transaction{changes: changes, keys: make([]string, len(changes))}
	index := make(map[string]int, len(changes))
	for i, c := range changes {
		t.keys[i] = c.Table.Key(c.Namespace, c.Name)
		if t.engine == nil {
			t.engine = c.Table.engine
		}
		if first, twice := index[t.keys[i]]; twice {
			return nil, &Error{Kind: BadRequest, Namespace: c.Namespace, Name: c.Name, Err: fmt.Errorf("changes %d and %d are of the same object", first, i)}
		}
		if t.engine != c.Table.engine {
			return nil, &Error{Kind: BadRequest, Namespace: c.Namespace, Name: c.Name, Err: fmt.Errorf("change %d is of another engine than the first", i)}
		}
		index[t.keys[i]] = i
	}
	return t, nil
}

// again takes note of a race that was lost, before it is run again.
func (t *transaction) again(ctx context.Context, to error, author kv.Author) {
	var e *kv.Error
	at := 0
	if errors.As(to, &e) {
		at = max(slices.Index(t.keys, e.Key), 0)
	}
	c := t.changes[at]
	c.Table.Observe(Retried, c.Namespace, c.Name, author.Manager)
	t.take(ctx, t.changes, t.keys)
}

// A joint is the attempts at all changes of a transaction, at one state.
type joint struct {
	*transaction
	parts  []*attempt
	err    error // of the last of parts
	ops    []kv.Op
	at     map[string]int         // where in ops a key is
	drafts map[string]*kv.Version // what ops will have left; nil where they delete
	seen   map[string]kv.Condition
}

func (t *transaction) attempt(ctx context.Context, at kv.Freshness) (*joint, error) {
	if ctx.Err() != nil {
		return nil, &Error{Kind: Timeout, Err: context.Cause(ctx)}
	}
	snap, err := t.changes[0].Table.read(ctx, at)
	if err != nil {
		return nil, err
	}
	j := &joint{transaction: t, at: map[string]int{}, drafts: map[string]*kv.Version{}, seen: map[string]kv.Condition{}}
	for i, c := range t.changes {
		a := c.Table.judged(ctx, t.keys[i], &View{table: c.Table, snap: snap, drafts: j.drafts}, c.Judge)
		j.parts = append(j.parts, a)
		for _, s := range a.view.seen {
			j.seen[s.Key] = s
		}
		if a.err != nil {
			j.err = &ChangeError{i, a.err}
			return j, nil
		}
		if a.verdict.Action != Leave {
			j.draft(a)
		}
	}
	return j, nil
}

// draft notes what an attempt would write, where those after it see it.
func (j *joint) draft(a *attempt) {
	for _, op := range append([]kv.Op{a.op()}, a.view.also...) {
		i, again := j.at[op.Key]
		if !again {
			i = len(j.ops)
			j.at[op.Key], j.ops = i, append(j.ops, op)
		}
		j.ops[i] = op // what comes later stands, as if it had been written later
		var v *kv.Version
		if !op.Delete {
			v = &kv.Version{Key: op.Key, Value: op.Value}
			if op.Slot != nil {
				v.Slot.Store(op.Slot)
			}
		}
		j.drafts[op.Key] = v
	}
}

// final reports whether the attempts end without a commit that would check what they saw.
func (j *joint) final() bool { return j.err != nil || len(j.ops) == 0 }

// confirm reports whether the newest state is the one that was seen.
func (j *joint) confirm(ctx context.Context) (bool, error) {
	snap, err := j.changes[0].Table.read(ctx, kv.Latest)
	if err != nil {
		return false, err
	}
	for _, a := range j.parts {
		if !a.view.holds(snap) {
			return false, nil
		}
	}
	return true, nil
}

func (j *joint) outcomes() []Result {
	out := make([]Result, len(j.parts))
	for i, a := range j.parts {
		out[i] = a.outcome()
	}
	return out
}

// fits says what is too much for one commit, nil if nothing is.
func (j *joint) fits() error {
	if len(j.ops) == 0 {
		return nil // what is only looked at is not committed
	}
	if n := len(j.seen) + len(j.ops); n > kv.MaxTxnOps {
		return &Error{Kind: TooLarge, Err: fmt.Errorf("the transaction comes to %d conditions and changes, and at most %d are allowed: make several of it", n, kv.MaxTxnOps)}
	}
	size := 0
	for _, op := range j.ops {
		size += len(op.Key) + len(op.Value)
	}
	if size > kv.MaxTxnBytes {
		return &Error{Kind: TooLarge, Err: fmt.Errorf("the transaction writes %d bytes, and at most %d are allowed: make several of it", size, kv.MaxTxnBytes)}
	}
	return nil
}

// observe tells of the changes that would have changed nothing.
func (j *joint) observe(dryRun bool, author kv.Author) {
	for i, a := range j.parts {
		if c := j.changes[i]; a.unchanged && !dryRun {
			c.Table.Observe(Unchanged, c.Namespace, c.Name, author.Manager)
		}
	}
}

func (j *joint) commit(ctx context.Context, author kv.Author) ([]Result, error) {
	if ctx.Err() != nil {
		return nil, &Error{Kind: Timeout, Err: context.Cause(ctx)}
	}
	txn := kv.Txn{Author: author, Ops: j.ops, Conditions: make([]kv.Condition, 0, len(j.seen))}
	for _, c := range j.seen {
		txn.Conditions = append(txn.Conditions, c)
	}
	slices.SortFunc(txn.Conditions, func(a, b kv.Condition) int { return cmp.Compare(a.Key, b.Key) })
	did, err := j.engine.Commit(ctx, txn)
	if errors.Is(err, kv.ErrConflict) {
		return nil, err
	}
	if err != nil {
		return nil, engineError(ctx.Err(), err)
	}
	out := make([]Result, len(j.parts))
	for i, a := range j.parts {
		var v *kv.Version
		if at, wrote := j.at[a.key]; wrote && a.verdict.Action != Leave {
			v = did.Versions[at]
		}
		out[i] = a.result(did.Revision, v)
	}
	return out, nil
}
