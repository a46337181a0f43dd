package histories

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pawl-dev/pawl/kv"
)

// Figures say what runs consisted of.
type Figures struct {
	Runs       int
	Operations int // that clients asked for
	Commits    int // that there are
	Expired    int // commits of keys that went by themselves
	Unknown    int // commits whose outcome was not known
	Refused    int // commits that lost a race
	Reads      int
	Events     int // told by watches
	Openings   int
	Crashes    int
	Troubles   int // that were made between an engine and its store
	Histories  int // that porcupine put in order
	Longest    int // operations of the longest of them
}

// Add adds other to f.
func (f *Figures) Add(other Figures) {
	f.Runs += other.Runs
	f.Operations += other.Operations
	f.Commits += other.Commits
	f.Expired += other.Expired
	f.Unknown += other.Unknown
	f.Refused += other.Refused
	f.Reads += other.Reads
	f.Events += other.Events
	f.Openings += other.Openings
	f.Crashes += other.Crashes
	f.Troubles += other.Troubles
	f.Histories += other.Histories
	f.Longest = max(f.Longest, other.Longest)
}

// String tells the figures in one line.
func (f Figures) String() string {
	return fmt.Sprintf("%d runs, %d operations: %d commits, of which %d expiries, %d refused, %d unknown, %d reads, %d events told; %d openings, %d crashes, %d times trouble; %d histories put in order, the longest of %d",
		f.Runs, f.Operations, f.Commits, f.Expired, f.Refused, f.Unknown, f.Reads, f.Events, f.Openings, f.Crashes, f.Troubles, f.Histories, f.Longest)
}

// A run is what became of a plan.
type run struct {
	theatre *theatre
	clients []*client
	last    []*Answer // what there was at the end, at each stage
	now     time.Time
}

// play has clients carry out a plan on a store.
func play(p Plan, subject Subject) (*run, error) {
	p = p.complete()
	th, err := newTheatre(subject, p.Patience, spaces)
	if err != nil {
		return nil, err
	}
	r := &run{theatre: th}
	var wg sync.WaitGroup
	for i := range p.Clients {
		c := newClient(th, p, i)
		r.clients = append(r.clients, c)
		wg.Go(func() { c.run(p.Client(i)) })
	}
	return r, inTime(p, func() error {
		wg.Wait()
		return r.finish()
	})
}

// inTime does f, and gives up if that takes longer than a run may.
func inTime(p Plan, f func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(4 * p.Patience):
		return errors.New("something goes on forever")
	}
}

// finish lets expire what is to expire, takes what watches have left to tell, and ends the run.
func (r *run) finish() error {
	for _, st := range r.theatre.stages {
		if err := r.settle(st); err != nil {
			return err
		}
	}
	for _, st := range r.theatre.stages {
		last, err := st.finish()
		if err != nil {
			return err
		}
		r.last = append(r.last, last)
	}
	return nil
}

// settle lets expire what is to expire, and takes what the watches at a stage have left to tell.
func (r *run) settle(st *stage) error {
	if s := st.enter(); s != nil {
		_, newest := s.engine.Revisions()
		errs := []error{s.audit.await(newest)}
		if clock := st.subject.Clock; clock != nil {
			clock.Advance(3 * slack)
			r.now = clock.Now()
		}
		// Answered with what is newest, once that can be read.
		done, err := s.engine.Commit(context.Background(), kv.Txn{})
		if s.cut.Load() != 0 {
			r.now = time.Time{} // it takes no commits, and nothing expires
		} else {
			newest, errs = done.Revision, append(errs, err)
		}
		for _, c := range r.clients {
			errs = append(errs, c.drain(s, newest))
		}
		st.leave()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// judge returns a judge who has compared what was answered with the twin.
func (r *run) judge() *judge {
	var answers []*Answer
	var segments []*Segment
	var audits []*audit // of one stage: the others are compared with what they say
	for _, c := range r.clients {
		answers = append(answers, c.answers...)
		segments = append(segments, c.segments...)
	}
	for _, s := range r.theatre.spans() {
		answers = append(answers, s.opened)
		if s.stage.number == 0 {
			audits = append(audits, s.audit)
		}
		for _, stream := range s.audit.streams {
			segments = append(segments, &stream.segment)
		}
	}
	answers = append(answers, r.last...)
	j := newJudge(r.theatre, answers, segments, audits)
	j.all()
	if !r.now.IsZero() {
		j.overdue(r.last[0].view, r.now)
	}
	return j
}

// A history is what porcupine is to put in order.
type history struct {
	model porcupine.Model
	ops   []porcupine.Operation
}

// histories returns the history of each opening. While several engines have a store open at
// once, there is no moment between openings: then it is one history.
func (r *run) histories(j *judge) []history {
	if r.theatre.shared() {
		return []history{r.whole(j)}
	}
	var all []history
	spans := r.theatre.spans()
	for i, s := range spans {
		last := r.last[0]
		if i+1 < len(spans) {
			last = spans[i+1].opened
		}
		c := &chronicle{begin: s.opened.ret, end: s.ended}
		outside := func(a *Answer) bool { return a != last && (a.span != s || a.client < 0) }
		answers := slices.DeleteFunc(slices.Clone(j.answers), outside)
		expired := j.expiries(s.opened.view.rev, last.view.rev)
		all = append(all, history{model(s.opened.view), c.history(answers, sights(j.answers), expired)})
	}
	return all
}

// whole returns the history of a run on several engines, as far as the twin knows what there was.
func (r *run) whole(j *judge) history {
	spans := r.theatre.spans()
	opened := spans[0].opened
	c := &chronicle{begin: opened.ret}
	for _, s := range spans {
		c.end = max(c.end, s.ended)
	}
	var answers []*Answer
	for _, a := range j.answers {
		if a = j.plain(a); a != opened && a.revision() <= j.end {
			answers = append(answers, a)
		}
	}
	return history{model(opened.view), c.history(answers, j.sights(), j.expiries(opened.view.rev, j.end))}
}

// expiries returns the commits of keys that went by themselves, after one revision and up to another.
func (j *judge) expiries(after, upTo kv.Revision) []*expiry {
	var all []*expiry
	for _, e := range j.log {
		if _, ok := nameOf(e.author); ok || e.rev <= after || e.rev > upTo {
			continue
		}
		x := &expiry{rev: e.rev}
		for _, ev := range e.events {
			x.gone = append(x.gone, kv.Condition{Key: ev.Version.Key, At: revision(ev.Prev)})
		}
		all = append(all, x)
	}
	return all
}

// figures counts what there was.
func (r *run) figures(j *judge) Figures {
	f := Figures{Runs: 1, Openings: len(r.theatre.spans()), Troubles: len(r.theatre.troubles), Commits: len(j.log)}
	for _, e := range j.log {
		if _, asked := nameOf(e.author); !asked {
			f.Expired++
		}
	}
	for _, a := range j.answers {
		switch {
		case a.client < 0:
			continue
		case a.op.Kind != Commit:
			f.Reads++
		case errors.Is(a.err, kv.ErrUnknown):
			f.Unknown++
		case errors.Is(a.err, kv.ErrConflict):
			f.Refused++
		}
		f.Operations++
	}
	for _, g := range j.segments {
		f.Events += len(g.told)
	}
	for _, s := range r.theatre.spans() {
		if s.cut.Load() != 0 {
			f.Crashes++
		}
	}
	return f
}

// A Result is what came of a run.
type Result struct {
	Figures
	Broke []string // why the run could not go on
	Twin  []string // how the answers differ from what the twin says
	Order []string // what has no order, says porcupine
	Hard  []string // what porcupine could not decide in time
}

// Problems returns all that is wrong.
func (r Result) Problems() []string { return slices.Concat(r.Broke, r.Twin, r.Order, r.Hard) }

// Check has clients carry out a plan on a new store and judges what they are told. If a
// history has no order, a picture of it is put into the folder that is asked for.
func Check(t testing.TB, p Plan, open Opener, folder func() string) Result {
	t.Helper()
	p = p.complete()
	r, err := play(p, open(t, p.Seed))
	if err != nil {
		return Result{Broke: []string{"the run could not go on: " + err.Error()}}
	}
	j := r.judge()
	res := Result{Figures: r.figures(j), Twin: j.problems}
	for i, h := range r.histories(j) {
		res.Histories++
		res.Longest = max(res.Longest, len(h.ops))
		switch Linearize(h.model, h.ops, p.Patience) {
		case porcupine.Unknown:
			res.Hard = append(res.Hard, fmt.Sprintf("opening %d: whether there is an order of %d answers was not found out in %v", i, len(h.ops), p.Patience))
			return res // the others would take as long
		case porcupine.Illegal:
			what := fmt.Sprintf("opening %d: no order explains the %d answers", i, len(h.ops))
			if folder != nil {
				path := filepath.Join(folder(), fmt.Sprintf("seed-%d-opening-%d.html", p.Seed, i))
				what += fmt.Sprintf("; a picture of it is %s (error %v)", path, draw(h.model, h.ops, p.Patience, path))
			}
			res.Order = append(res.Order, what)
		}
	}
	return res
}
