package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/pawl-dev/pawl/kv"
)

// A ticket is a commit under way, by which the watch's goroutine knows it when it sees it.
type ticket struct {
	id        id
	ops       []kv.Op
	done      chan struct{} // closed when it was seen, and can be read
	committed kv.Committed
}

// match makes the versions of a deed the commit's: their slots, and their place among the answers.
func (t *ticket) match(d deed) {
	t.committed = kv.Committed{Revision: d.revision, Versions: make([]*kv.Version, len(t.ops))}
	for _, v := range d.versions {
		for i := range t.ops {
			if t.ops[i].Key != v.Key {
				continue
			}
			t.committed.Versions[i] = v
			if slot := t.ops[i].Slot; slot != nil {
				v.Slot.Store(slot)
			}
			break
		}
	}
}

// seen says whether the commit was made, as far as can be read now.
func (t *ticket) seen() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// Commit implements [kv.Engine].
func (e *Engine) Commit(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
	if err := txn.Check(); err != nil {
		return kv.Committed{}, err
	}
	if err := ctx.Err(); err != nil {
		return kv.Committed{}, inDoubt(err)
	}
	t, err := e.enter(txn)
	if err != nil {
		return kv.Committed{}, err
	}
	defer e.leave(t)
	c := &attempts{e: e, wait: wait{caller: ctx, term: e.patience.term()}, txn: txn, ticket: t, author: encodeAuthor(txn.Author), loads: e.follows.loads.Load()}
	defer c.wait.over()
	return c.run()
}

func inDoubt(err error) error { return &kv.Error{Op: "commit", Kind: kv.ErrUnknown, Err: err} }

// enter returns a ticket for txn, or why it is refused before anybody is asked.
func (e *Engine) enter(txn kv.Txn) (*ticket, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.stopped != nil:
		return nil, &kv.Error{Op: "commit", Kind: kv.ErrClosed, Err: e.stopped}
	case e.closed:
		return nil, &kv.Error{Op: "commit", Kind: kv.ErrClosed}
	}
	if err := e.health.err(); err != nil {
		return nil, err
	}
	e.number++
	t := &ticket{id: id{e.replica, e.number}, ops: txn.Ops, done: make(chan struct{})}
	e.tickets[t.id.number] = t
	e.commits.Add(1)
	return t, nil
}

func (e *Engine) leave(t *ticket) {
	e.mu.Lock()
	delete(e.tickets, t.id.number)
	e.mu.Unlock()
	e.commits.Done()
}

// ticketOf returns the ticket of a commit of this engine's that somebody still waits for, nil if there is none.
func (e *Engine) ticketOf(i id) *ticket {
	if i.replica != e.replica {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.tickets[i.number]
	if t == nil || t.seen() {
		return nil
	}
	return t
}

// attempts are what it takes to make one commit.
type attempts struct {
	e      *Engine
	wait   wait
	txn    kv.Txn
	ticket *ticket
	author []byte
	loads  int64 // how often everything had been read when it began
}

// run makes attempts until one says how the commit ends. That a condition can never hold again is certain by
// whatever is seen; but who is told so is told what it lost to, and that may have moved on at another replica.
func (c *attempts) run() (kv.Committed, error) {
	confirmed := false // the index has shown all that was answered before
	for {
		seen := c.e.index.Newest()
		how, conflict, rev := chart(c.txn, seen)
		switch {
		case how == lost && confirmed:
			return kv.Committed{}, conflict
		case how == lost:
			if _, err := c.e.latest(c.wait.ctx(), "commit"); err != nil {
				return kv.Committed{}, c.nothing(err)
			}
			confirmed = true
			continue
		case how == behind:
			if err := c.catchUp(rev); err != nil {
				return kv.Committed{}, err
			}
			confirmed = true
			continue
		}
		done, over, err := c.attempt(makePlan(c.txn, seen))
		if over {
			return done, err
		}
	}
}

// catchUp waits for what a condition speaks of. A revision that is not shown once all is known is one that no key is at.
func (c *attempts) catchUp(rev kv.Revision) error {
	if _, err := c.e.latest(c.wait.ctx(), "commit"); err != nil {
		return c.nothing(err)
	}
	if c.e.newest() >= rev {
		return nil
	}
	seen := c.e.index.Newest()
	for _, cond := range c.txn.Conditions {
		if have := revisionOf(seen.Get(cond.Key)); have != cond.At {
			return &kv.Error{Op: "commit", Key: cond.Key, Want: cond.At, Have: have, Kind: kv.ErrConflict}
		}
	}
	return nil
}

// attempt asks etcd to do what is planned. It is not over if something changed that only the plan rested on, or if
// etcd was not able to look at it.
func (c *attempts) attempt(p plan) (done kv.Committed, over bool, err error) {
	if !p.writes() && len(p.conditions) == 0 { // nor births, which are of what is written
		if _, err := c.e.latest(c.wait.ctx(), "commit"); err != nil {
			return kv.Committed{}, true, c.nothing(err)
		}
		return c.unchanged(c.e.newest()), true, nil
	}
	s := signature{id: c.ticket.id, time: c.e.now(), author: c.author}
	switch s.leases, err = c.leases(p); {
	case err != nil && judge(err, true) == again:
		return c.explain(err, true)
	case err != nil:
		return kv.Committed{}, true, c.nothing(err)
	}
	request := p.request(c.e.in, s)
	size, problem := fits(request)
	if problem != "" {
		return kv.Committed{}, true, &kv.Error{Op: "commit", Kind: kv.ErrTooLarge, Err: errors.New(problem)}
	}
	r, sent, err := c.e.groups.txn(&c.wait, request, size, c.ticket.done)
	switch {
	case err != nil:
		return c.explain(err, sent)
	case r == nil:
		return c.ticket.committed, true, nil
	case !r.GetSucceeded():
		return c.conflict(p, r)
	case !p.writes():
		held := c.e.in.ours(r.GetHeader().GetRevision())
		if err := c.e.reach(c.wait.ctx(), held); err != nil {
			return kv.Committed{}, true, c.nothing(err)
		}
		return c.unchanged(held), true, nil
	}
	return c.await()
}

// unchanged answers for a commit that changed nothing, and whose conditions held at a revision. The index may show a
// later one by now, at which they do not.
func (c *attempts) unchanged(held kv.Revision) kv.Committed {
	return kv.Committed{Revision: min(held, c.e.newest()), Versions: make([]*kv.Version, len(c.txn.Ops))}
}

// now is the time of a commit that is made now, by this clock and what was seen of others'.
func (e *Engine) now() kv.Instant {
	return max(kv.InstantOf(e.opts.Clock.Now()), kv.Instant(e.follows.last.Load()))
}

// leases returns those that a plan needs.
func (c *attempts) leases(p plan) (map[time.Duration]int64, error) {
	if p.lasting == 0 {
		return nil, nil
	}
	keys := map[time.Duration]int{}
	for _, op := range c.txn.Ops {
		if op.Expiry.Kind == kv.After {
			keys[op.Expiry.For]++
		}
	}
	all := make(map[time.Duration]int64, len(keys))
	for d, n := range keys {
		number, err := c.e.leases.get(c.wait.ctx(), d, n)
		if err != nil {
			if says(err, errNoSpace) {
				c.e.health.isFull()
			}
			return nil, err
		}
		all[d] = number
	}
	return all, nil
}

// await waits until what was done can be read.
func (c *attempts) await() (done kv.Committed, over bool, err error) {
	select {
	case <-c.ticket.done:
		return c.ticket.committed, true, nil
	case <-c.wait.caller.Done():
	case <-c.wait.term.Done():
	}
	return kv.Committed{}, true, inDoubt(fmt.Errorf("it was made, and cannot be read yet: %w", c.wait.err()))
}

// nothing says that nothing was written, and why.
func (c *attempts) nothing(err error) error {
	if err := c.wait.caller.Err(); err != nil {
		return inDoubt(err) // so is every commit whose caller went away
	}
	var known *kv.Error
	if errors.As(err, &known) {
		return err
	}
	if says(err, errNoSpace) {
		return noRoom()
	}
	if why := c.e.named(err); isDenied(why) {
		return readOnly(why)
	}
	return c.e.failed(c.wait.caller, "commit", err)
}

// conflict answers for conditions that did not hold, once what they lost to can be read.
func (c *attempts) conflict(p plan, r *pb.TxnResponse) (done kv.Committed, over bool, err error) {
	var first *kv.Error
	lostTo, have := int64(never), int64(never) // etcd's revisions
	for i, cond := range p.rests() {
		at := int64(never)
		if kvs := r.GetResponses()[i].GetResponseRange().GetKvs(); len(kvs) > 0 {
			at = kvs[0].GetModRevision()
		}
		// The answer rests on the conditions that hold, too, up to the first that does not.
		if lostTo = max(lostTo, at); at == never {
			lostTo = r.GetHeader().GetRevision() // the deletion's is not told
		}
		if i < len(c.txn.Conditions) && at != c.e.in.theirs(cond.At) && first == nil {
			first, have = &kv.Error{Op: "commit", Key: cond.Key, Want: cond.At, Kind: kv.ErrConflict}, at
		}
	}
	err = c.e.reach(c.wait.ctx(), c.e.in.ours(lostTo))
	known := true
	if first != nil && have != never {
		first.Have, known = c.e.revisionAt(first.Key, have)
	}
	switch {
	case c.ticket.seen(): // an attempt before this one was made after all
		return c.ticket.committed, true, nil
	case err != nil:
		return kv.Committed{}, true, c.nothing(err)
	case first != nil && known:
		return kv.Committed{}, true, first
	}
	return kv.Committed{}, false, nil
}

// explain answers for a transaction that failed.
func (c *attempts) explain(cause error, sent bool) (done kv.Committed, over bool, err error) {
	if err := c.wait.caller.Err(); err != nil {
		return kv.Committed{}, true, inDoubt(err)
	}
	switch what := judge(cause, sent); what {
	case again, noLease:
		if what == noLease {
			c.e.leases.drop(c.wait.ctx())
		}
		select {
		case <-time.After(againAfter):
			return kv.Committed{}, false, nil
		case <-c.wait.ctx().Done():
		}
		return kv.Committed{}, true, c.nothing(cause)
	case tooMuch:
		return kv.Committed{}, true, &kv.Error{Op: "commit", Kind: kv.ErrTooLarge, Err: cause}
	case refused:
		why := c.e.named(cause)
		if isDenied(why) {
			c.e.health.bar(why)
		}
		return kv.Committed{}, true, readOnly(why)
	case full:
		c.e.health.isFull()
		_, err := c.e.latest(c.wait.ctx(), "commit")
		switch {
		case c.ticket.seen():
			return c.ticket.committed, true, nil
		case err != nil, c.e.follows.loads.Load() != c.loads: // it may have been made, and written over since
			return kv.Committed{}, true, inDoubt(cause)
		}
		return kv.Committed{}, true, noRoom()
	}
	// It may be done at any time. If it is done by now, the index shows it as soon as it shows what is newest now.
	bounded, cancel := context.WithTimeout(c.wait.caller, doubtMax)
	defer cancel()
	c.e.latest(bounded, "commit")
	if c.ticket.seen() {
		return c.ticket.committed, true, nil
	}
	return kv.Committed{}, true, inDoubt(cause)
}
