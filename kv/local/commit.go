package local

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"time"
	"unique"

	"github.com/pawl-dev/pawl/kv"
)

// A ticket is a commit that has been sequenced and waits to be written.
type ticket struct {
	commit
	committed kv.Committed
	lapses    []lapsed  // before it, of the keys whose expiry it changed
	group     *group    // that it became part of
	err       error     // final when the group is done
	one       [1]change // room for changes, of which there mostly is one
}

// op returns what errors call the work.
func (t *ticket) op() string {
	if t.forget != 0 {
		return "compact"
	}
	return "commit"
}

// Commit implements [kv.Engine].
func (e *Engine) Commit(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
	if err := txn.Check(); err != nil {
		return kv.Committed{}, err
	}
	if err := ctx.Err(); err != nil {
		return kv.Committed{}, &kv.Error{Op: "commit", Kind: kv.ErrUnknown, Err: err}
	}
	t, rests, err := e.enter(txn)
	if t == nil {
		return e.settle(ctx, len(txn.Ops), rests, err)
	}
	defer t.group.waiting.Done()
	if e.log == nil {
		e.writeNow(t)
		return t.committed, t.err
	}
	select {
	case <-t.group.done:
		return t.committed, t.err
	case <-ctx.Done():
		return kv.Committed{}, &kv.Error{Op: "commit", Kind: kv.ErrUnknown, Err: ctx.Err()}
	}
}

// A ground is what a judgement rests on: a revision that was sequenced in an era.
type ground struct {
	seen kv.Revision
	era  *era
}

// enter judges txn and, if it stands and changes something, sequences it. Otherwise there
// is no ticket, but what the judgement rests on and, if txn is refused, why.
func (e *Engine) enter(txn kv.Txn) (t *ticket, rests ground, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	rests = ground{era: e.era}
	switch {
	case e.era.ended() != nil:
		return nil, rests, readOnly(e.era.why)
	case e.closed:
		return nil, rests, &kv.Error{Op: "commit", Kind: kv.ErrClosed}
	}
	var few [4]*kv.Version
	seen, lostTo, conflict := e.judge(txn.Conditions, few[:0])
	if conflict != nil {
		rests.seen = lostTo
		return nil, rests, conflict
	}
	now, elapsed := e.time.now()
	if t = e.sequence(now, elapsed, txn, seen); t != nil {
		t.group.waiting.Add(1)
	}
	if e.log != nil {
		e.work.Signal()
	}
	e.arm(elapsed)
	rests.seen = e.newest
	return t, rests, nil
}

func readOnly(why error) error { return &kv.Error{Op: "commit", Kind: kv.ErrReadOnly, Err: why} }

// settle answers a commit that changed nothing, once what it was judged by can be read.
func (e *Engine) settle(ctx context.Context, ops int, rests ground, err error) (kv.Committed, error) {
	why := e.index.Await(ctx, rests.seen, rests.era.over)
	switch ended := rests.era.ended(); {
	case ended != nil && rests.seen > rests.era.last:
		return kv.Committed{}, readOnly(ended) // by now another commit may have that revision
	case errors.Is(why, kv.ErrClosed):
		return kv.Committed{}, &kv.Error{Op: "commit", Kind: kv.ErrClosed}
	case why != nil:
		return kv.Committed{}, &kv.Error{Op: "commit", Kind: kv.ErrUnknown, Err: why}
	case err != nil:
		return kv.Committed{}, err
	}
	return kv.Committed{Revision: rests.seen, Versions: make([]*kv.Version, ops)}, nil
}

// judge returns the conflict of the first condition that does not hold, if there is one, and
// the newest revision that this rests on: those before it may hold only because of what cannot
// be read yet. It appends to seen what is current of the conditions' keys. The caller holds e.mu.
func (e *Engine) judge(conditions []kv.Condition, seen []*kv.Version) (_ []*kv.Version, lostTo kv.Revision, conflict error) {
	for _, c := range conditions {
		have := kv.Absent
		v := e.current(c.Key)
		if v != nil {
			lostTo = max(lostTo, v.Revision)
			if !v.Deleted {
				have = v.Revision
			}
		}
		if have != c.At {
			return nil, lostTo, &kv.Error{Op: "commit", Key: c.Key, Want: c.At, Have: have, Kind: kv.ErrConflict}
		}
		seen = append(seen, v)
	}
	return seen, kv.Absent, nil
}

// current returns the newest sequenced version of key, which may be a deletion if it is
// not published yet; nil if there is none. The caller holds e.mu.
func (e *Engine) current(key string) *kv.Version {
	if v := e.pending[key]; v != nil {
		return v
	}
	return e.index.Newest().Get(key)
}

// sequence gives txn, whose conditions hold as seen by judge, the next revision and a place in the
// queue. It returns nil if txn changes nothing. The caller holds e.mu.
func (e *Engine) sequence(now time.Time, elapsed time.Duration, txn kv.Txn, seen []*kv.Version) *ticket {
	rev := e.newest + 1
	at := stamp(now, e.last)
	t := &ticket{
		commit:    commit{revision: rev, time: at, author: e.author.of(txn.Author)},
		committed: kv.Committed{Revision: rev, Versions: make([]*kv.Version, len(txn.Ops))},
	}
	t.changes = slices.Grow(t.one[:0], len(txn.Ops))
	for i, op := range txn.Ops {
		var was *kv.Version
		if i < len(seen) && txn.Conditions[i].Key == op.Key { // as it mostly is
			was = seen[i]
		} else {
			was = e.current(op.Key)
		}
		if was != nil && was.Deleted {
			was = nil
		}
		if op.Delete && was == nil {
			continue
		}
		c := newChange(op, was, t.commit)
		e.lapse(t, op, c.version, elapsed)
		t.changes = append(t.changes, c)
		t.committed.Versions[i] = c.version
	}
	if len(t.changes) == 0 {
		return nil
	}
	for _, c := range t.changes {
		e.pending[c.version.Key] = c.version
	}
	e.newest, e.last = rev, at
	e.enqueue(t)
	return t
}

// A signature is the author of the last commit: the next one mostly has the same, and making a handle takes
// longer than comparing.
type signature struct {
	author kv.Author
	handle unique.Handle[kv.Author]
}

func (s *signature) of(a kv.Author) unique.Handle[kv.Author] {
	if s.handle == (unique.Handle[kv.Author]{}) || s.author != a {
		s.author, s.handle = a, unique.Make(a)
	}
	return s.handle
}

// stamp returns the time of a commit made now, which is never before that of the last.
func stamp(now, last time.Time) time.Time {
	at := now.Round(0).UTC()
	if at.Before(last) {
		return last
	}
	return at
}

// newChange returns what op makes of was, the version that exists.
func newChange(op kv.Op, was *kv.Version, c commit) change {
	v := &kv.Version{
		Key:      op.Key,
		Revision: c.revision,
		Created:  c.revision,
		Time:     kv.InstantOf(c.time),
		Author:   c.author,
		Deleted:  op.Delete,
	}
	ch := change{version: v}
	if was != nil {
		ch.replaces = was.Revision
		v.Created = was.Created
		v.Key = was.Key // so that versions of one key share it
	}
	if op.Delete {
		return ch
	}
	v.Value = bytes.Clone(op.Value)
	if op.Slot != nil {
		v.Slot.Store(op.Slot)
	}
	switch {
	case op.Expiry.Kind == kv.After:
		v.Expires = v.Time.Add(op.Expiry.For)
	case op.Expiry.Kind == kv.Keep && was != nil:
		v.Expires = was.Expires
	}
	return ch
}

// lapse notes when v, which t brings, goes by itself. The caller holds e.mu.
func (e *Engine) lapse(t *ticket, op kv.Op, v *kv.Version, elapsed time.Duration) {
	due := never
	switch {
	case v.Expires.IsZero():
	case op.Expiry.Kind == kv.After:
		if due = elapsed + op.Expiry.For; due < elapsed { // more than there are nanoseconds to count
			due = math.MaxInt64
		}
	default:
		return // as it was
	}
	if was := e.lapses.set(v.Key, due); was != due {
		t.lapses = append(t.lapses, lapsed{v.Key, was})
	}
}
