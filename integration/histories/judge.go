package histories

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
)

// minHistory is what is never forgotten unless somebody asks for it.
const minHistory = 75 * time.Second

// slack is how late a key may go.
const slack = time.Second

// A judge compares what was answered with a twin.
type judge struct {
	*twin
	theatre  *theatre
	answers  []*Answer
	segments []*Segment
	compacts []*Answer // those that may have been done, in the order of their calls
	told     []told
	problems []string
}

// told is how much some answer, and those before it, had shown.
type told struct {
	ret int64
	rev kv.Revision
}

// problemsMax is how many problems are told: the first are what matters.
const problemsMax = 12

func (j *judge) problem(format string, args ...any) {
	if len(j.problems) < problemsMax {
		j.problems = append(j.problems, fmt.Sprintf(format, args...))
	}
}

// newJudge is told everything that was answered in a run.
func newJudge(th *theatre, answers []*Answer, segments []*Segment, audits []*audit) *judge {
	j := &judge{theatre: th, answers: answers, segments: segments}
	log, end := record(audits)
	j.twin = &twin{end: end, by: map[name]*entry{}, history: map[int][]*kv.Version{}}
	for _, a := range answers {
		switch {
		case a.op.Kind == Compact && a.want != kv.Absent:
			j.compacts = append(j.compacts, a)
		case a.op.Kind == Commit && a.err == nil:
			j.told = append(j.told, told{a.ret, a.done.Revision})
		case a.op.Kind == Read && a.err == nil:
			j.told = append(j.told, told{a.ret, a.view.rev})
		}
	}
	slices.SortFunc(j.told, func(a, b told) int { return int(a.ret - b.ret) })
	for i := 1; i < len(j.told); i++ {
		j.told[i].rev = max(j.told[i].rev, j.told[i-1].rev)
	}
	j.replay(log)
	return j
}

// before returns the newest revision that had been shown to anybody when something was
// asked for.
func (j *judge) before(call int64) kv.Revision {
	i := sort.Search(len(j.told), func(i int) bool { return j.told[i].ret >= call })
	if i == 0 {
		return kv.Absent
	}
	return j.told[i-1].rev
}

// replay makes the commits that the audits were told of, and sees that each is what
// somebody asked for, wholly, once, and rightly.
func (j *judge) replay(log []*entry) {
	asked := map[name]*Answer{}
	for _, a := range j.answers {
		if a.op.Kind == Commit {
			asked[a.name] = a
		}
	}
	var last kv.Instant
	for _, e := range log {
		n, ok := nameOf(e.author)
		switch a := asked[n]; {
		case !ok:
			j.expired(e)
		case a == nil:
			j.problem("revision %d is a commit by %v, which made none", e.rev, n)
		default:
			j.committed(e, a)
		}
		if e.time < last {
			j.problem("revision %d is of %v, the one before it of %v", e.rev, e.time, last)
		}
		last = e.time
		j.apply(e)
	}
}

// committed judges a commit that there is.
func (j *judge) committed(e *entry, a *Answer) {
	if other := j.by[a.name]; other != nil {
		j.problem("%v is there twice, as revision %d and %d", a.name, other.rev, e.rev)
	}
	j.by[a.name] = e
	if a.err != nil && !errors.Is(a.err, kv.ErrUnknown) {
		j.problem("%v was answered %q, but it is there as revision %d", a.name, a.err, e.rev)
	}
	if c := j.broken(a.txn.Conditions, e.rev-1); c != nil {
		j.problem("%v is there as revision %d, but %s was not at %d", a.name, e.rev, c.Key, c.At)
	}
	want := j.effects(a.txn, e)
	j.sign(want, e)
	if i := j.sameEvents(e.events, want); i >= 0 {
		j.problem("%v became revision %d: event %d of it is %s, want %s", a.name, e.rev, i, describeEvent(e.events, i), describeEvent(want, i))
	}
}

// sign puts the times of expiry that a commit has into what it should be. In a shared store they are counted
// from when its writer signed it, and its own time may be somewhat later: what others had signed by then, also while it was
// on its way to a member that hung.
func (j *judge) sign(want []kv.Event, e *entry) {
	for i := range min(len(want), len(e.events)) {
		v, got := want[i].Version, e.events[i].Version
		early := v.Expires.Time().Sub(got.Expires.Time())
		if j.theatre.shared() && !v.Expires.IsZero() && !got.Expires.IsZero() && early > 0 && early < slack+hangs {
			v.Expires = got.Expires
		}
	}
}

// expired judges a commit that nobody asked for: it deletes what was to go by then.
func (j *judge) expired(e *entry) {
	if e.author != (kv.Author{Manager: "pawl", Verb: "expire"}) {
		j.problem("revision %d is a commit by %+v, whoever that is", e.rev, e.author)
	}
	for _, ev := range e.events {
		was := j.at(numberOf(ev.Version.Key), e.rev-1)
		switch {
		case !ev.Version.Deleted || was == nil || !j.same(was, ev.Prev):
			j.problem("revision %d expires %s, which was %s", e.rev, describe(ev.Version), describe(was))
		case was.Expires.IsZero() || was.Expires > ev.Version.Time:
			j.problem("revision %d of %v expires %s before its time", e.rev, ev.Version.Time, describe(was))
		}
	}
}

// all judges every answer.
func (j *judge) all() {
	for _, a := range j.answers {
		switch a.op.Kind {
		case Commit:
			j.commit(a)
		case Read:
			j.read(a)
		case LookAgain:
			if a.view != nil && a.view.rev != a.want {
				j.problem("%v: a snapshot of revision %d is one of %d now", a.name, a.want, a.view.rev)
			}
		case Compact:
			j.compact(a)
		}
		if a.view != nil {
			j.view(a)
		}
	}
	for _, g := range j.segments {
		j.segment(g)
	}
}

// settled returns the newest revision up to rev at which something changed. Of a store that is
// one engine's every revision is such a one. A shared one may have others, which are shown only to who asks for them.
func (j *judge) settled(rev kv.Revision) kv.Revision {
	if !j.theatre.shared() || rev > j.end || rev == kv.Absent {
		return rev
	}
	i := sort.Search(len(j.log), func(i int) bool { return j.log[i].rev > rev })
	if i == 0 {
		return j.theatre.first
	}
	return j.log[i-1].rev
}

// same says whether two versions are the same. In a shared store one is as old as its writer signed it, or
// as what others had signed by then, which an engine does not know that was opened after it was forgotten.
func (j *judge) same(a, b *kv.Version) bool {
	if !j.theatre.shared() || a == nil || b == nil || a.Time == b.Time || a.Time.Time().Sub(b.Time.Time()).Abs() > slack+hangs {
		return kvtest.Same(a, b)
	}
	return kvtest.Same(a, &kv.Version{
		Key: b.Key, Value: b.Value, Revision: b.Revision, Created: b.Created, Time: a.Time, Expires: b.Expires,
		Author: b.Author, Deleted: b.Deleted,
	})
}

// sameEvents returns where two lists of events begin to differ, -1 if they do not.
func (j *judge) sameEvents(a, b []kv.Event) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || !j.same(a[i].Version, b[i].Version) || !j.same(a[i].Prev, b[i].Prev) {
			return i
		}
	}
	return -1
}

// plain returns a, with the revision of a state in place of one at which nothing changed.
func (j *judge) plain(a *Answer) *Answer {
	switch rev := j.settled(a.revision()); {
	case rev == a.revision():
		return a
	case a.view != nil:
		plain, view := *a, *a.view
		view.rev, plain.view = rev, &view
		return &plain
	case slices.ContainsFunc(a.done.Versions, func(v *kv.Version) bool { return v != nil }):
		return a
	default:
		plain := *a
		plain.done.Revision = rev
		return &plain
	}
}

// excused says whether an answer may be err because of what became of the store.
func (j *judge) excused(a *Answer) bool {
	happened := func(at int64) bool { return at != 0 && at <= a.ret }
	closed, cut := happened(a.span.closing.Load()), happened(a.span.cut.Load())
	troubled := j.theatre.troubled(a.call, a.ret)
	switch {
	case errors.Is(a.err, kv.ErrClosed):
		return closed
	case errors.Is(a.err, kv.ErrReadOnly):
		return cut && errors.Is(a.err, errPower)
	case errors.Is(a.err, kv.ErrUnknown):
		return cut && errors.Is(a.err, errPower) || a.op.Cancel || troubled
	case errors.Is(a.err, kv.ErrAway):
		return troubled
	}
	return false
}

func (j *judge) commit(a *Answer) {
	var conflict *kv.Error
	switch {
	case a.err == nil:
		j.done(a)
	case errors.Is(a.err, kv.ErrConflict) && errors.As(a.err, &conflict):
		j.conflict(a, conflict)
	case !j.excused(a):
		j.problem("%v: commit: %v", a.name, a.err)
	}
}

// done judges a commit that was answered as done.
func (j *judge) done(a *Answer) {
	rev := a.done.Revision
	if a.newest < rev {
		j.problem("%v: committed as revision %d, but the newest to be read was %d", a.name, rev, a.newest)
	}
	changed := slices.ContainsFunc(a.done.Versions, func(v *kv.Version) bool { return v != nil })
	e := j.by[a.name]
	switch {
	case len(a.done.Versions) != len(a.txn.Ops):
		j.problem("%v: %d versions for %d changes", a.name, len(a.done.Versions), len(a.txn.Ops))
		return
	case rev < j.settled(j.before(a.call)) || changed && rev == j.before(a.call):
		j.problem("%v: was revision %d, when %d had been shown before", a.name, rev, j.before(a.call))
	case rev > j.end:
		return
	case changed && (e == nil || e.rev != rev):
		j.problem("%v: was acknowledged as revision %d, and is not there", a.name, rev)
		return
	case !changed && e != nil:
		j.problem("%v: changed nothing, it was said, but it is revision %d", a.name, e.rev)
		return
	}
	if c := j.broken(a.txn.Conditions, rev); !changed && c != nil {
		j.problem("%v: holds at revision %d, it was said, but %s is not at %d", a.name, rev, c.Key, c.At)
	}
	for i, op := range a.txn.Ops {
		want := j.last(numberOf(op.Key), rev)
		if want != nil && want.Revision != rev || !changed {
			want = nil
		}
		if !changed && j.at(numberOf(op.Key), rev) != nil {
			j.problem("%v: %s was not there to delete at revision %d, it was said", a.name, op.Key, rev)
		}
		if got := a.done.Versions[i]; !j.same(got, want) {
			j.problem("%v: was told of %s, want %s", a.name, describe(got), describe(want))
		}
	}
}

// conflict judges a refusal: at some revision between what had been shown and what could be
// read afterwards it was right. What it was lost to can be read where it was answered; of a shared
// store something newer, that did not matter, may have been shown elsewhere.
func (j *judge) conflict(a *Answer, e *kv.Error) {
	from, to := j.before(a.call), a.newest
	if j.theatre.shared() {
		to = max(to, from)
	}
	if to > j.end {
		return
	}
	right := func(rev kv.Revision) bool {
		c := j.broken(a.txn.Conditions, rev)
		return c != nil && c.Key == e.Key && c.At == e.Want && revision(j.at(numberOf(c.Key), rev)) == e.Have
	}
	for rev := from; rev <= to; rev++ {
		if right(rev) {
			return
		}
	}
	j.problem("%v: was answered %q, which was not so at any revision from %d to %d", a.name, e, from, to)
}

func (j *judge) read(a *Answer) {
	shown := j.before(a.call)
	switch {
	case errors.Is(a.err, kv.ErrFuture):
		early := j.theatre.shared() && a.op.Fresh == AskAtLeast && a.op.Ahead > 0 // the store was not asked to the end
		if a.want <= shown && !early || a.op.Fresh != AskAtLeast && a.op.Fresh != AskExactly {
			j.problem("%v: %v, but revision %d had been shown", a.name, a.err, shown)
		}
	case errors.Is(a.err, kv.ErrCompacted):
		if a.op.Fresh != AskExactly || !j.forgotten(&a.moment, a.want, "") {
			j.problem("%v: %v, though nobody had it forgotten and what came after is young", a.name, a.err)
		}
	case a.err != nil:
		if !j.excused(a) {
			j.problem("%v: read: %v", a.name, a.err)
		}
	case a.op.Fresh == AskLatest && a.view.rev < j.settled(shown):
		j.problem("%v: the latest was revision %d, but %d had been shown", a.name, a.view.rev, shown)
	case a.op.Fresh == AskAtLeast && a.view.rev < a.want, a.op.Fresh == AskExactly && a.view.rev != a.want:
		j.problem("%v: asked for revision %d and got %d", a.name, a.want, a.view.rev)
	case a.op.Fresh == AskAny && a.view.rev < a.own:
		j.problem("%v: any state was revision %d, but the client had itself written %d", a.name, a.view.rev, a.own)
	case a.op.Fresh == AskExactly && a.want < j.floor(a):
		j.problem("%v: revision %d can be read, but what is before %d had been forgotten", a.name, a.want, j.floor(a))
	}
}

// floor returns below what history had been forgotten, on demand, when something was asked for. An
// engine forgets what it was told to itself, and what others were told to before it was opened.
func (j *judge) floor(a *Answer) (floor kv.Revision) {
	for _, c := range j.compacts {
		here := c.span.stage == a.span.stage || c.ret < a.span.opened.call
		if c.err == nil && c.ret < a.call && here {
			floor = max(floor, c.want)
		}
	}
	return floor
}

// forgotten says whether the history under prefix right after a revision may have been gone.
func (j *judge) forgotten(m *moment, rev kv.Revision, prefix string) bool {
	for _, c := range j.compacts {
		if c.call < m.ret && c.want > rev {
			return true
		}
	}
	e := j.after(rev, prefix)
	return e != nil && j.old(m, e)
}

// old says whether a commit was so old that it might be forgotten.
func (j *judge) old(m *moment, e *entry) bool {
	return m.now.Sub(e.time.Time()) > minHistory
}

func (j *judge) compact(a *Answer) {
	if a.want != kv.Absent && a.err != nil && !j.excused(a) {
		j.problem("%v: compact: %v", a.name, a.err)
	}
}

// view compares what was seen in a snapshot with what the twin was then.
func (j *judge) view(a *Answer) {
	v := a.view
	if v.odd != "" {
		j.problem("%v: in a snapshot of revision %d %s", a.name, v.rev, v.odd)
	}
	if v.rev > j.end {
		return
	}
	var want []*kv.Version
	for _, k := range rangeOf(v.prefix, v.from) {
		if version := j.at(k, v.rev); version != nil {
			want = append(want, version)
		}
	}
	for i := range max(len(want), len(v.listed)) {
		if i >= len(want) || i >= len(v.listed) || !j.same(want[i], v.listed[i]) {
			j.problem("%v: at revision %d under %q from %q number %d is %s, want %s", a.name, v.rev, v.prefix, v.from, i,
				describeAt(v.listed, i), describeAt(want, i))
			return
		}
	}
	j.chain(a, v)
}

func describeAt(all []*kv.Version, i int) string {
	if i >= len(all) {
		return "nothing"
	}
	return describe(all[i])
}

// chain compares how a version was walked backwards with the history of its key. What can
// still be read must be there.
func (j *judge) chain(a *Answer, v *View) {
	if len(v.chain) == 0 {
		return
	}
	k := numberOf(v.chain[0].Key)
	rev := v.rev
	for i, got := range v.chain {
		want := j.last(k, rev)
		if !j.same(got, want) {
			j.problem("%v: %s at revision %d, %d steps back: %s, want %s", a.name, keys[k], v.rev, i, describe(got), describe(want))
			return
		}
		rev = got.Revision - 1
	}
	rest := j.last(k, rev)
	if rest == nil || len(v.chain) == chainMax || rest.Deleted && rest.Revision <= v.oldest {
		return
	}
	if rev >= v.oldest {
		j.problem("%v: %s at revision %d ends %d steps back, before %s, though revision %d can be read",
			a.name, keys[k], v.rev, len(v.chain)-1, describe(rest), v.oldest)
	}
}

// segment judges what a watch told.
func (j *judge) segment(g *Segment) {
	want := j.under(g.topic, g.after)
	got := g.told
	for len(got) > 0 && got[len(got)-1].Version.Revision > j.end {
		got = got[:len(got)-1]
	}
	if i := j.sameEvents(got, want[:min(len(got), len(want))]); i >= 0 {
		j.problem("%v: a watch of %s after %d told as number %d %s, want %s", g.name, g.topic, g.after, i, describeEvent(got, i), describeEvent(want, i))
		return
	}
	last := g.after
	for _, c := range g.claims {
		if c.rev < last {
			j.problem("%v: the progress of a watch of %s went from %d to %d", g.name, g.topic, last, c.rev)
		}
		last = c.rev
		if c.events < len(want) && want[c.events].Version.Revision <= c.rev {
			j.problem("%v: a watch of %s claimed to have told everything up to %d, but not %s", g.name, g.topic, c.rev, describeEvent(want, c.events))
		}
	}
	j.ended(g, want[min(len(got), len(want)):])
}

// ended judges how a watch ended, or why it could not begin; rest is what it had not told.
func (j *judge) ended(g *Segment, rest []kv.Event) {
	if g.stopped && !errors.Is(g.left, kv.ErrClosed) && !errors.Is(g.left, kv.ErrCompacted) {
		j.problem("%v: a watch of %s that was stopped: %v", g.name, g.topic, g.left)
	}
	switch {
	case g.err == nil, errors.Is(g.err, kv.ErrClosed):
	case !errors.Is(g.err, kv.ErrCompacted):
		j.problem("%v: a watch of %s: %v", g.name, g.topic, g.err)
	case g.began && !slices.ContainsFunc(rest, func(e kv.Event) bool { return j.forgotten(&g.when, e.Version.Revision-1, e.Version.Key) }):
		j.problem("%v: a watch of %s that had told everything up to %d: %v, though it has missed nothing", g.name, g.topic, g.sure(), g.err)
	case !g.began && !j.forgotten(&g.when, g.after, tableOf(g.topic)):
		j.problem("%v: a watch of %s after %d: %v, though nobody had that forgotten and what came after is young", g.name, g.topic, g.after, g.err)
	}
}

// tableOf is the prefix that the history of a topic is forgotten with: its table, or its space.
func tableOf(topic string) string {
	if table := kv.TableOf(topic); table != "" {
		return table
	}
	return topic
}

// overdue judges what is left at the end of a run: nothing that was to be gone long since.
func (j *judge) overdue(last *View, now time.Time) {
	for _, v := range last.listed {
		if !v.Expires.IsZero() && now.Sub(v.Expires.Time()) > 2*slack {
			j.problem("at the end there is %s, at %s", describe(v), now.Format("15:04:05.000"))
		}
	}
}
