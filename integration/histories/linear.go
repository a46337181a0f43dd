package histories

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pawl-dev/pawl/kv"
)

// A state is what the model of a store holds: the newest revision, and every key.
type state struct {
	rev  kv.Revision
	keys [keysMax]held
}

// keysMax is at least the number of keys.
const keysMax = 16

// held is what a key holds: what the operation by put there, at revision rev. Of a commit
// whose outcome is unknown the model guesses that it was made; its revision is then only known to be
// later than rev, until somebody says which it is. The zero value is a key that does not exist.
type held struct {
	by    name
	rev   kv.Revision
	guess bool
}

// is says whether the store may be what s is, and k at revision rev, and returns what is
// known then.
func (s state) is(k int, rev kv.Revision) (state, bool) {
	h := s.keys[k]
	switch {
	case h == (held{}):
		return s, rev == kv.Absent
	case !h.guess:
		return s, rev == h.rev
	case rev <= h.rev:
		return s, false
	}
	for i, other := range s.keys {
		if other.guess && other.by == h.by {
			s.keys[i].rev, s.keys[i].guess = rev, false
		}
	}
	s.rev = max(s.rev, rev)
	return s, true
}

// shows says the same of a version that was read; nil is nothing.
func (s state) shows(k int, v *kv.Version) (state, bool) {
	if v == nil {
		return s, s.keys[k] == held{}
	}
	by, ok := nameOf(v.By())
	if !ok || s.keys[k].by != by {
		return s, false
	}
	return s.is(k, v.Revision)
}

// meets says the same of conditions, all of which hold.
func (s state) meets(conditions []kv.Condition) (state, bool) {
	ok := true
	for _, c := range conditions {
		if s, ok = s.is(numberOf(c.Key), c.At); !ok {
			return s, false
		}
	}
	return s, true
}

// expiry is a commit that deletes keys that had their time. Nobody asked for it: that it
// was made, and as which revision, is known from the watch.
type expiry struct {
	rev  kv.Revision
	gone []kv.Condition // the keys, and at which revision they were
}

// step returns what the store may be after a was answered as it was, if it may have been s before.
func step(s state, a *Answer) []state {
	var conflict *kv.Error
	switch {
	case a.op.Kind == Read:
		return s.read(a.view)
	case a.err == nil:
		return s.commit(a)
	case errors.Is(a.err, kv.ErrConflict) && errors.As(a.err, &conflict):
		return s.conflict(a, conflict)
	}
	return s.maybe(a)
}

func (s state) read(v *View) []state {
	if v.rev < s.rev {
		return nil
	}
	s.rev = v.rev
	rest := v.listed
	ok := true
	for _, k := range rangeOf(v.prefix, v.from) {
		var version *kv.Version
		if len(rest) > 0 && rest[0].Key == keys[k] {
			version, rest = rest[0], rest[1:]
		}
		if s, ok = s.shows(k, version); !ok || s.rev > v.rev {
			return nil
		}
	}
	return []state{s}
}

func (s state) commit(a *Answer) []state {
	rev := a.done.Revision
	s, ok := s.meets(a.txn.Conditions)
	if !ok || rev < s.rev {
		return nil
	}
	before := s.rev
	s.rev = rev
	for i, op := range a.txn.Ops {
		k := numberOf(op.Key)
		there := s.keys[k] != held{}
		if op.Delete && there != (a.done.Versions[i] != nil) {
			return nil
		}
		if op.Delete && !there {
			continue
		}
		if rev == before { // somebody else was this revision
			return nil
		}
		s.keys[k] = held{by: a.name, rev: rev}
		if op.Delete {
			s.keys[k] = held{}
		}
	}
	return []state{s}
}

func (s state) conflict(a *Answer, e *kv.Error) []state {
	i := slices.Index(a.txn.Conditions, kv.Condition{Key: e.Key, At: e.Want})
	if i < 0 || e.Have == e.Want {
		return nil
	}
	s, ok := s.meets(a.txn.Conditions[:i])
	if !ok {
		return nil
	}
	if s, ok = s.is(numberOf(e.Key), e.Have); !ok {
		return nil
	}
	return []state{s}
}

// maybe is what becomes of s by a commit that was made, or was not.
func (s state) maybe(a *Answer) []state {
	did, ok := s.meets(a.txn.Conditions)
	if !ok {
		return []state{s}
	}
	before := did.rev
	for _, op := range a.txn.Ops {
		k := numberOf(op.Key)
		switch {
		case !op.Delete:
			did.keys[k] = held{by: a.name, rev: before, guess: true}
		case did.keys[k] != held{}:
			did.keys[k] = held{}
		default:
			continue
		}
		did.rev = before + 1
	}
	if did == s {
		return []state{s}
	}
	return []state{s, did}
}

// A sight is a commit whose outcome was unknown to who asked for it, but of which somebody saw
// what it had written.
type sight struct {
	*Answer
	rev  kv.Revision
	seen int64 // when that was answered, for the first time
}

// sights finds, in what clients read, the commits of which they did not know.
func sights(answers []*Answer) map[name]*sight {
	found := map[name]*sight{}
	for _, a := range answers {
		if a.op.Kind == Commit && errors.Is(a.err, kv.ErrUnknown) {
			found[a.name] = &sight{Answer: a}
		}
	}
	for _, a := range answers {
		if a.view == nil {
			continue
		}
		for _, v := range a.view.listed {
			by, _ := nameOf(v.By())
			if x := found[by]; x != nil && (x.rev == kv.Absent || a.ret < x.seen) {
				x.rev, x.seen = v.Revision, a.ret
			}
		}
	}
	return found
}

// sights returns of all commits that were unknown to who asked for them, but were made, which
// revision they became, as the twin knows it.
func (j *judge) sights() map[name]*sight {
	found := sights(j.answers)
	for n, x := range found {
		e := j.by[n]
		switch {
		case e == nil:
			delete(found, n)
		case x.rev == kv.Absent:
			x.rev, x.seen = e.rev, math.MaxInt64/fine
		}
	}
	return found
}

// made is what s becomes by a commit that was seen.
func (s state) made(x *sight) []state {
	s, ok := s.meets(x.txn.Conditions)
	if !ok || x.rev <= s.rev {
		return nil
	}
	s.rev = x.rev
	for _, op := range x.txn.Ops {
		s.keys[numberOf(op.Key)] = held{}
		if !op.Delete {
			s.keys[numberOf(op.Key)] = held{by: x.name, rev: x.rev}
		}
	}
	return []state{s}
}

func (s state) expire(x *expiry) []state {
	s, ok := s.meets(x.gone)
	if !ok || x.rev <= s.rev {
		return nil
	}
	s.rev = x.rev
	for _, c := range x.gone {
		s.keys[numberOf(c.Key)] = held{}
	}
	return []state{s}
}

// model is porcupine's model of a store that begins as it was seen when it was opened.
func model(opened *View) porcupine.Model {
	first := state{rev: opened.rev}
	for _, v := range opened.listed {
		by, _ := nameOf(v.By())
		first.keys[numberOf(v.Key)] = held{by: by, rev: v.Revision}
	}
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{first} },
		Step: func(s, input, _ any) (next []any) {
			var all []state
			switch in := input.(type) {
			case *Answer:
				all = step(s.(state), in)
			case *sight:
				all = s.(state).made(in)
			case *expiry:
				all = s.(state).expire(in)
			}
			for _, s := range all {
				next = append(next, s)
			}
			return next
		},
		Hash: func(s any) uint64 {
			h := uint64(s.(state).rev)
			for _, k := range s.(state).keys {
				h = h*0x9e3779b97f4a7c15 + uint64(k.rev)
			}
			return h
		},
		DescribeOperation: func(input, _ any) string { return fmt.Sprint(input) },
		DescribeState:     func(s any) string { return fmt.Sprint(s) },
	}
	return m.ToModel()
}

// String tells what was asked and answered, for the picture of a history.
func (a *Answer) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %v", a.name, a.op.Kind)
	for _, c := range a.txn.Conditions {
		fmt.Fprintf(&b, " if %s at %d", c.Key, c.At)
	}
	for _, op := range a.txn.Ops {
		verb := "put"
		if op.Delete {
			verb = "delete"
		}
		fmt.Fprintf(&b, " %s %s", verb, op.Key)
	}
	switch {
	case a.err != nil:
		fmt.Fprintf(&b, ": %v", a.err)
	case a.op.Kind == Commit:
		fmt.Fprintf(&b, ": revision %d", a.done.Revision)
	case a.view != nil:
		fmt.Fprintf(&b, " %q from %q: revision %d", a.view.prefix, a.view.from, a.view.rev)
		for _, v := range a.view.listed {
			fmt.Fprintf(&b, ", %s", describe(v))
		}
	}
	return b.String()
}

// fine is how many steps a tick is divided into, to put what nobody asked for into an order.
const fine = 1 << 20

// A chronicle is what happened in one opening of the store, as far as it must have an order.
type chronicle struct {
	begin, end int64
	ops        []porcupine.Operation
}

func (c *chronicle) add(client int, input any, call, ret int64) {
	c.ops = append(c.ops, porcupine.Operation{ClientId: client, Input: input, Call: call * fine, Return: ret * fine})
}

// window returns when a commit must have been made that became revision rev: after those with
// smaller revisions were asked for, and before anything newer was answered. The model would
// find that out, but only after it has tried all else.
func (c *chronicle) window(rev kv.Revision) (call, ret int64) {
	call, ret = c.begin*fine, c.end*fine
	for _, op := range c.ops {
		a, ok := op.Input.(*Answer)
		if !ok {
			continue
		}
		known := a.revision()
		switch {
		case known == kv.Absent:
		case known < rev:
			call = max(call, op.Call)
		default:
			ret = min(ret, op.Return)
		}
	}
	return call, max(ret, call)
}

// revision is the one that was answered, [kv.Absent] if none was.
func (a *Answer) revision() kv.Revision {
	if a.view != nil {
		return a.view.rev
	}
	return a.done.Revision
}

// history returns the operations of answers that have an order: commits, and reads of the latest
// state. Seen are the commits of whose outcome something else is known than was answered.
func (c *chronicle) history(answers []*Answer, seen map[name]*sight, expired []*expiry) []porcupine.Operation {
	clients := 0
	for _, a := range answers {
		clients = max(clients, a.client+1)
	}
	var unknown []*Answer
	for _, a := range answers {
		client := a.client
		if client < 0 { // who looked when the store was opened
			client = clients - client
		}
		switch {
		case a.op.Kind == Read && a.op.Fresh == AskLatest && a.err == nil,
			a.op.Kind == Commit && (a.err == nil || errors.Is(a.err, kv.ErrConflict)):
			c.add(client, a, a.call, a.ret)
		case a.op.Kind == Commit && errors.Is(a.err, kv.ErrUnknown):
			unknown = append(unknown, a)
		}
	}
	for _, a := range unknown {
		x := seen[a.name]
		if x == nil {
			continue // it was not made
		}
		if x.rev == kv.Absent {
			c.add(a.client, a, a.call, c.end)
			continue
		}
		_, ret := c.window(x.rev)
		c.ops = append(c.ops, porcupine.Operation{
			ClientId: a.client, Input: x, Call: a.call * fine, Return: max(min(ret, x.seen*fine), a.call*fine),
		})
	}
	for i, x := range expired {
		call, ret := c.window(x.rev)
		c.ops = append(c.ops, porcupine.Operation{ClientId: clients, Input: x, Call: call + int64(i), Return: ret + int64(i)})
	}
	return c.ops
}

// Linearize asks porcupine whether the operations of one opening can have happened one
// after the other.
func Linearize(m porcupine.Model, history []porcupine.Operation, patience time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(m, history, patience)
}

// draw draws a history that has no order, as a page for a browser, as far as there is one.
func draw(m porcupine.Model, history []porcupine.Operation, patience time.Duration, path string) error {
	_, info := porcupine.CheckOperationsVerbose(m, history, patience)
	return porcupine.VisualizePath(m, info, path)
}
