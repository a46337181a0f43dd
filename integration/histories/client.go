package histories

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// A moment is when an answer came.
type moment struct {
	call, ret      int64
	oldest, newest kv.Revision // that can be read, right after
	now            time.Time   // by the store's clock; zero if it goes by another
}

// An Answer is what a client was told.
type Answer struct {
	name
	moment
	op   Op
	span *span

	txn  kv.Txn       // of Commit
	done kv.Committed // of Commit
	want kv.Revision  // of Read, Compact: the revision that was named, 0 if none was; of LookAgain: what the snapshot was of
	own  kv.Revision  // of Read: the newest that the client had itself written
	view *View        // of Read, LookAgain; nil if there was nothing to look at
	err  error
}

// A View is what was seen in a snapshot.
type View struct {
	rev          kv.Revision
	prefix, from string
	listed       []*kv.Version
	chain        []*kv.Version // the first of listed, and what it replaced, as far back as there is
	oldest       kv.Revision   // that could be read after the chain was walked; 0 if nothing is known of that
	odd          string        // how listing and getting differ; "" if they agree
}

// look lists what is under prefix from a key on, and gets each of these keys too.
func look(snap kv.Snapshot, prefix, from string) *View {
	v := &View{rev: snap.Revision(), prefix: prefix, from: from}
	listed := map[string]*kv.Version{}
	for version := range snap.Ascend(prefix, from) {
		v.listed = append(v.listed, version)
		listed[version.Key] = version
	}
	for _, k := range rangeOf(prefix, from) {
		if got := snap.Get(keys[k]); got != listed[keys[k]] {
			v.odd = fmt.Sprintf("%s is %s when it is listed, and %s when it is got", keys[k], describe(listed[keys[k]]), describe(got))
		}
	}
	return v
}

// chainMax is how far a version is walked backwards.
const chainMax = 64

// walk follows the first version that was listed backwards.
func (v *View) walk(e kv.Engine) {
	if len(v.listed) == 0 {
		return
	}
	for version := v.listed[0]; version != nil && len(v.chain) < chainMax; version = version.Prev() {
		v.chain = append(v.chain, version)
	}
	v.oldest, _ = e.Revisions()
}

// A client does its part of a plan.
type client struct {
	theatre *theatre
	number  int
	seats   []int // at which stage it is, operation by operation

	seen  map[int]kv.Revision    // the keys as last seen
	known []kv.Revision          // revisions, in the order in which they were heard of
	own   map[*stage]kv.Revision // the newest that it wrote there
	snaps [slots]kept
	follo [slots]*following

	answers  []*Answer
	segments []*Segment
}

// A kept snapshot is one that is looked at again, and what it was of.
type kept struct {
	kv.Snapshot
	rev kv.Revision
}

// A following is a watch under way.
type following struct {
	*Segment
	watch kv.Watch
	span  *span
}

func newClient(th *theatre, p Plan, number int) *client {
	return &client{
		theatre: th, number: number, seats: p.Seats(number, len(th.stages)),
		seen: map[int]kv.Revision{}, own: map[*stage]kv.Revision{},
	}
}

// run does ops, unless the run comes to an end before.
func (c *client) run(ops []Op) {
	for i, op := range ops {
		n, st := name{c.number, i}, c.theatre.stages[c.seats[i]]
		if op.Kind == Crash || op.Kind == Restart {
			st.again(op.Kind == Crash)
			continue
		}
		s := st.enter()
		if s == nil {
			return
		}
		c.do(n, op, s)
		st.leave()
	}
}

func (c *client) do(n name, op Op, s *span) {
	a := &Answer{name: n, op: op, span: s}
	switch op.Kind {
	case Commit:
		c.commit(a)
	case Read:
		c.read(a)
	case LookAgain:
		c.lookAgain(a)
	case Follow:
		c.follow(n, op, s)
		return
	case Leave:
		c.leave(op.Slot)
		return
	case Compact:
		c.compact(a)
	case Pass:
		s.stage.pass(s, op.For)
		return
	case Arm:
		s.stage.arm(s, op.Count)
		return
	}
	c.answers = append(c.answers, a)
}

// begin and end note when something was asked for and answered.
func (c *client) begin(m *moment) { m.call = c.theatre.tick() }

func (c *client) end(m *moment, s *span) {
	m.ret = c.theatre.tick()
	if clock := c.theatre.subject.Clock; clock != nil {
		m.now = clock.Now()
	}
	m.oldest, m.newest = s.engine.Revisions()
}

// hear remembers a revision.
func (c *client) hear(rev kv.Revision) {
	if n := len(c.known); rev != kv.Absent && (n == 0 || c.known[n-1] != rev) {
		c.known = append(c.known, rev)
	}
	if len(c.known) > memory {
		c.known = c.known[len(c.known)-memory:]
	}
}

// back returns a revision that the client knows: the n-th before the newest, or the oldest.
func (c *client) back(n int) kv.Revision {
	if len(c.known) == 0 {
		return c.theatre.first
	}
	return c.known[max(0, len(c.known)-1-n)]
}

// named returns the revision that an operation names.
func (c *client) named(op Op) kv.Revision {
	if op.Ahead > 0 {
		return c.back(0) + kv.Revision(op.Ahead)
	}
	return c.back(op.Back)
}

func (c *client) commit(a *Answer) {
	a.txn = c.txn(a.name, a.op)
	ctx := context.Background()
	if a.op.Cancel {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		go cancel()
	}
	c.begin(&a.moment)
	a.done, a.err = a.span.engine.Commit(ctx, a.txn)
	c.end(&a.moment, a.span)

	var e *kv.Error
	switch {
	case a.err == nil:
		c.hear(a.done.Revision)
		c.own[a.span.stage] = max(c.own[a.span.stage], a.done.Revision)
		for _, v := range a.done.Versions {
			if v != nil {
				c.see(v.Key, v)
			}
		}
	case errors.As(a.err, &e) && e.Kind == kv.ErrConflict:
		c.hear(e.Have)
		c.seen[numberOf(e.Key)] = e.Have
	}
}

// see remembers what a key holds.
func (c *client) see(key string, v *kv.Version) {
	rev := kv.Absent
	if v != nil && !v.Deleted {
		rev = v.Revision
	}
	c.seen[numberOf(key)] = rev
}

// txn makes the transaction of an operation, from what the client has seen.
func (c *client) txn(n name, op Op) kv.Txn {
	txn := kv.Txn{Author: n.author()}
	for _, t := range op.Touches {
		switch t.Guard {
		case AsSeen:
			txn.Conditions = append(txn.Conditions, kv.Condition{Key: keys[t.Key], At: c.seen[t.Key]})
		case Free:
			txn.Conditions = append(txn.Conditions, kv.Condition{Key: keys[t.Key], At: kv.Absent})
		}
		switch {
		case t.Only:
		case t.Delete:
			txn.Ops = append(txn.Ops, kv.Delete(keys[t.Key]))
		default:
			expiry := t.Expiry
			expiry.For /= max(c.theatre.subject.Haste, 1)
			txn.Ops = append(txn.Ops, kv.Op{Key: keys[t.Key], Value: n.value(t), Expiry: expiry})
		}
	}
	return txn
}

// aheadMax is how long a read waits for a revision that may never come.
const aheadMax = 2 * time.Millisecond

func (c *client) read(a *Answer) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	at := kv.Latest
	switch a.op.Fresh {
	case AskAny:
		at = kv.Any
	case AskAtLeast:
		a.want = c.named(a.op)
		if a.op.Ahead > 0 {
			ctx, cancel = context.WithTimeout(ctx, aheadMax)
			defer cancel()
		}
		at = kv.AtLeast(a.want)
	case AskExactly:
		a.want = c.named(a.op)
		at = kv.Exactly(a.want)
	}
	a.own = c.own[a.span.stage]
	c.begin(&a.moment)
	snap, err := a.span.engine.Read(ctx, at)
	c.end(&a.moment, a.span)
	if a.err = err; err != nil {
		return
	}
	c.snaps[a.op.Slot] = kept{snap, snap.Revision()}
	a.view = look(snap, a.op.Prefix, a.op.From)
	a.view.walk(a.span.engine)
	if a.op.Fresh == AskExactly {
		return // the past is not what was last seen
	}
	c.hear(a.view.rev)
	for _, k := range rangeOf(a.op.Prefix, a.op.From) {
		c.seen[k] = kv.Absent
	}
	for _, v := range a.view.listed {
		c.see(v.Key, v)
	}
}

// lookAgain looks at a snapshot from before, which may be that of a store closed since.
func (c *client) lookAgain(a *Answer) {
	c.begin(&a.moment)
	if k := c.snaps[a.op.Slot]; k.Snapshot != nil {
		a.want, a.view = k.rev, look(k, a.op.Prefix, a.op.From)
	}
	c.end(&a.moment, a.span)
}

// compact has history forgotten that the audit has seen.
func (c *client) compact(a *Answer) {
	a.want = c.back(a.op.Back)
	compactor, ok := a.span.engine.(kv.Compactor)
	if !ok || c.theatre.audited(a.want) != nil {
		a.want = kv.Absent
		return
	}
	c.begin(&a.moment)
	a.err = compactor.Compact(context.Background(), a.want)
	c.end(&a.moment, a.span)
}

// follow takes the next events of a watch. If there is none it begins one, if that of
// an earlier opening of the store is left it goes on where that ended.
func (c *client) follow(n name, op Op, s *span) {
	f := c.follo[op.Slot]
	switch {
	case f == nil:
		f = c.watch(n, s, op.Prefix, c.named(op))
	case f.span != s:
		c.leave(op.Slot)
		f = c.watch(n, s, f.topic, f.sure())
	}
	if c.follo[op.Slot] = f; f == nil {
		return
	}
	f.claim(f.watch) // there may be something to tell
	for range op.Count {
		ok, err := f.take()
		if err != nil {
			f.err = err
			c.end(&f.when, s)
			c.follo[op.Slot] = nil
			return
		}
		if !ok {
			_, newest := s.engine.Revisions()
			c.hear(min(f.claim(f.watch), newest)) // a watch from the future is sure of more than there is
			return
		}
	}
}

// take takes the next event, if there is one.
func (f *following) take() (ok bool, err error) {
	e, ok, err := f.watch.Next()
	if ok {
		f.told = append(f.told, e)
	}
	return ok, err
}

// watch begins a watch; nil if it cannot be.
func (c *client) watch(n name, s *span, topic string, after kv.Revision) *following {
	g := &Segment{name: n, topic: topic, after: after}
	c.segments = append(c.segments, g)
	c.begin(&g.when)
	w, err := s.engine.Watch(topic, after)
	c.end(&g.when, s)
	if g.err = err; err != nil {
		return nil
	}
	g.began = true
	return &following{g, w, s}
}

// leave ends a watch.
func (c *client) leave(slot int) {
	if f := c.follo[slot]; f != nil {
		f.watch.Stop()
		f.stopped = true
		_, _, f.left = f.watch.Next()
		c.follo[slot] = nil
	}
}

// drain takes what the watches of this opening have to tell up to newest, waiting for it.
func (c *client) drain(s *span, newest kv.Revision) error {
	late := time.NewTimer(c.theatre.patience)
	defer late.Stop()
	for slot, f := range c.follo {
		for f != nil && f.span == s && f.sure() < newest {
			ok, err := f.take()
			switch {
			case err != nil:
				f.err = err
				c.end(&f.when, s)
				f = nil
				continue
			case ok || f.claim(f.watch) >= newest:
				continue
			}
			select {
			case <-f.watch.Wait():
			case <-late.C:
				return fmt.Errorf("%v: a watch of %s is sure of revision %d only, long after %d could be read", f.name, f.topic, f.sure(), newest)
			}
		}
		c.leave(slot)
	}
	return nil
}
