package histories

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pawl-dev/pawl/kv"
)

// links is how many keys the ring has.
const links = 16

// linkKeys are the keys of the ring. They lie in two tables, so that half of a swap is in
// each.
var linkKeys = func() (all []string) {
	for i := range links {
		all = append(all, fmt.Sprintf("ring/core/%s/n/k%02d", []string{"even", "odd"}[i%2], i))
	}
	return all
}()

// ringSpace is where the ring lies.
const ringSpace = "ring/"

// A ring says for each key which one comes next, and as of which revision.
type ring [links]struct {
	next int
	rev  kv.Revision
}

// put says what a version says; nil is no link.
func (r *ring) put(i int, v *kv.Version) {
	r[i].next, r[i].rev = -1, kv.Absent
	if v != nil && !v.Deleted {
		fmt.Sscan(string(v.Value), &r[i].next)
		r[i].rev = v.Revision
	}
}

// problem says what is wrong with the ring, "" if it is one.
func (r *ring) problem() string {
	var path []int
	for i := 0; len(path) < links; i = r[i].next {
		if i < 0 || i >= links || slices.Contains(path, i) {
			return fmt.Sprintf("from link 0 one comes by %v to %d", path, i)
		}
		path = append(path, i)
	}
	if last := path[links-1]; r[last].next != 0 {
		return fmt.Sprintf("from link 0 one comes by %v to %d", path, r[last].next)
	}
	return ""
}

// ringOf reads the ring.
func ringOf(s kv.Snapshot) *ring {
	var r ring
	for i, k := range linkKeys {
		r.put(i, s.Get(k))
	}
	return &r
}

// swap returns the transaction that swaps the two links after i, and only if they are still
// where r shows them.
func (r *ring) swap(i int, by name) kv.Txn {
	second := r[i].next
	third := r[second].next
	txn := kv.Txn{Author: by.author()}
	for _, l := range []struct{ at, next int }{{i, third}, {third, second}, {second, r[third].next}} {
		txn.Conditions = append(txn.Conditions, kv.Condition{Key: linkKeys[l.at], At: r[l.at].rev})
		txn.Ops = append(txn.Ops, kv.Put(linkKeys[l.at], fmt.Append(nil, l.next)))
	}
	return txn
}

// RingFigures say what became of a ring.
type RingFigures struct {
	Swaps, Refused, Unknown int
	Seen                    int // rings that were read
	Told                    int // rings that watches told of
	Openings, Crashes       int
	Troubles                int
}

// Add adds other to f.
func (f *RingFigures) Add(other RingFigures) {
	f.Swaps += other.Swaps
	f.Refused += other.Refused
	f.Unknown += other.Unknown
	f.Seen += other.Seen
	f.Told += other.Told
	f.Openings += other.Openings
	f.Crashes += other.Crashes
	f.Troubles += other.Troubles
}

// String tells the figures in one line.
func (f RingFigures) String() string {
	return fmt.Sprintf("%d swaps, %d refused, %d unknown; %d rings read, %d told; %d openings, %d crashes, %d times trouble",
		f.Swaps, f.Refused, f.Unknown, f.Seen, f.Told, f.Openings, f.Crashes, f.Troubles)
}

// A wheel is a ring that is being turned.
type wheel struct {
	theatre *theatre
	plan    Plan
	made    kv.Revision // when the ring was

	swaps, refused, unknown, seen atomic.Int64

	mu       sync.Mutex // guards what follows
	problems []string
}

func (w *wheel) problem(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.problems) < problemsMax {
		w.problems = append(w.problems, fmt.Sprintf(format, args...))
	}
}

// Ring has clients swap links of a ring and look at it, while the store is closed, opened and
// loses its power, and returns what they saw that was no ring. The plan says how many there are,
// how much they do, and when the store ends.
func Ring(t testing.TB, p Plan, open Opener) (RingFigures, []string) {
	t.Helper()
	w := &wheel{plan: p.complete()}
	subject := open(t, p.Seed)
	if err := w.turn(subject); err != nil {
		w.problem("the run could not go on: %v", err)
		return RingFigures{}, w.problems
	}
	f := RingFigures{
		Swaps: int(w.swaps.Load()), Refused: int(w.refused.Load()), Unknown: int(w.unknown.Load()),
		Seen: int(w.seen.Load()), Told: w.follow(w.theatre.stages[0]), Openings: len(w.theatre.spans()), Troubles: len(w.theatre.troubles),
	}
	for _, st := range w.theatre.stages[1:] {
		w.follow(st)
	}
	for _, s := range w.theatre.spans() {
		if s.cut.Load() != 0 {
			f.Crashes++
		}
	}
	return f, w.problems
}

// turn makes the ring and has the clients do what they do.
func (w *wheel) turn(subject Subject) (err error) {
	if w.theatre, err = newTheatre(subject, w.plan.Patience, []string{ringSpace}); err != nil {
		return err
	}
	var txn kv.Txn
	for i, k := range linkKeys {
		txn.Ops = append(txn.Ops, kv.Put(k, fmt.Append(nil, (i+1)%links)))
	}
	first := w.theatre.stages[0].enter()
	made, err := first.engine.Commit(context.Background(), txn)
	if err != nil {
		return err
	}
	w.made = made.Revision
	first.stage.leave()
	var wg sync.WaitGroup
	for i := range w.plan.Clients {
		wg.Go(func() { w.client(i) })
	}
	return inTime(w.plan, func() error {
		wg.Wait()
		for _, st := range w.theatre.stages {
			if _, err := st.finish(); err != nil {
				return err
			}
		}
		return nil
	})
}

// client swaps and looks. When it closes the store or cuts its power, and when it looks, is
// what the plan says of operations of that kind; all others are swaps.
func (w *wheel) client(number int) {
	r := rand.New(rand.NewPCG(w.plan.Seed, uint64(number)<<16))
	var known []kv.Revision
	seats := w.plan.Seats(number, len(w.theatre.stages))
	for i, op := range w.plan.Client(number) {
		link, back, st := r.IntN(links), r.IntN(memory), w.theatre.stages[seats[i]]
		if op.Kind == Crash || op.Kind == Restart {
			st.again(op.Kind == Crash)
			continue
		}
		s := st.enter()
		if s == nil {
			return
		}
		switch {
		case op.Kind == Arm:
			st.arm(s, op.Count)
		case op.Kind == Pass:
			st.pass(s, op.For)
		case op.Kind == Compact && len(known) > 0:
			w.compact(s, known[max(0, len(known)-1-op.Back)])
		case op.Kind == Read && op.Fresh == AskExactly && len(known) > 0:
			w.look(s, kv.Exactly(known[max(0, len(known)-1-back)]))
		default:
			known = append(known, w.swap(s, name{number, i}, link))
		}
		st.leave()
	}
}

// compact has history forgotten that the audit has seen.
func (w *wheel) compact(s *span, rev kv.Revision) {
	if c, ok := s.engine.(kv.Compactor); ok && w.theatre.audited(rev) == nil {
		c.Compact(context.Background(), rev)
	}
}

// look reads the ring; nil if it cannot be read.
func (w *wheel) look(s *span, at kv.Freshness) *ring {
	began := w.theatre.tick()
	snap, err := s.engine.Read(context.Background(), at)
	switch {
	case errors.Is(err, kv.ErrCompacted), errors.Is(err, kv.ErrClosed):
		return nil
	case errors.Is(err, kv.ErrAway) && w.theatre.troubled(began, w.theatre.tick()):
		return nil
	case err != nil:
		w.problem("read: %v", err)
		return nil
	}
	r := ringOf(snap)
	if p := r.problem(); p != "" {
		w.problem("at revision %d: %s", snap.Revision(), p)
		return nil
	}
	w.seen.Add(1)
	return r
}

// swap swaps two links, and returns a revision that it has heard of.
func (w *wheel) swap(s *span, by name, link int) kv.Revision {
	_, newest := s.engine.Revisions()
	newest = max(newest, w.made)
	r := w.look(s, kv.Latest)
	if r == nil {
		return newest
	}
	began := w.theatre.tick()
	done, err := s.engine.Commit(context.Background(), r.swap(link, by))
	troubled := w.theatre.subject.Disturb == nil || w.theatre.troubled(began, w.theatre.tick())
	switch {
	case err == nil:
		w.swaps.Add(1)
		return done.Revision
	case errors.Is(err, kv.ErrConflict):
		w.refused.Add(1)
	case errors.Is(err, kv.ErrUnknown) && troubled:
		w.unknown.Add(1)
	case errors.Is(err, kv.ErrAway) && troubled:
	case !errors.Is(err, kv.ErrClosed) && !errors.Is(err, kv.ErrReadOnly):
		w.problem("%v: %v", by, err)
	}
	return newest
}

// follow goes through what the watches at a stage told, and returns of how many rings that was:
// one for each revision.
func (w *wheel) follow(st *stage) (rings int) {
	var audits []*audit
	for _, s := range st.spans {
		audits = append(audits, s.audit)
	}
	log, _ := record(audits)
	var r ring
	for _, e := range log {
		for _, ev := range e.events {
			r.put(slices.Index(linkKeys, ev.Version.Key), ev.Version)
		}
		if p := r.problem(); p != "" {
			w.problem("told up to revision %d: %s", e.rev, p)
			return rings
		}
		rings++
	}
	swaps := w.swaps.Load()
	if n := int64(rings - 1); n < swaps || n > swaps+w.unknown.Load() {
		w.problem("%d swaps were told, %d were made and %d may have been", n, swaps, w.unknown.Load())
	}
	return rings
}
