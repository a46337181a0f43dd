package faults

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

// A told commit is one that a watch showed.
type told struct {
	rev     kv.Revision
	at      time.Time
	author  kv.Author
	changes []change // in the order of keys
}

// A change is one key's part in a commit.
type change struct {
	key      string
	value    string
	deleted  bool
	created  kv.Revision
	expires  time.Time
	replaces kv.Revision // as the event said; Absent if it named nothing
}

func (t told) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d at %s by %s%s", t.rev, t.at.Format(time.TimeOnly), t.author.User, t.author.Verb)
	for _, c := range t.changes {
		what := c.value[:min(len(c.value), 12)]
		if c.deleted {
			what = "deleted"
		}
		fmt.Fprintf(&b, ", %s (made at %d, was %d) %q", c.key, c.created, c.replaces, what)
	}
	return b.String()
}

func equal(a, b told) bool {
	return a.rev == b.rev && a.at.Equal(b.at) && a.author == b.author && slices.EqualFunc(a.changes, b.changes, func(x, y change) bool {
		same := x.expires.Equal(y.expires)
		x.expires = y.expires
		return same && x == y
	})
}

// An attempt is a commit that a client asked for: what it is to make of keys, "" for nothing.
type attempt map[string]string

// made reports whether t is what came of a.
func (a attempt) made(t told) bool {
	effective := 0
	for _, c := range t.changes {
		want, asked := a[c.key]
		if !asked || want != c.value || c.deleted != (want == "") {
			return false
		}
		effective++
	}
	// Deletions of what is not there are left out, and only they.
	for key, value := range a {
		if value != "" && !slices.ContainsFunc(t.changes, func(c change) bool { return c.key == key }) {
			return false
		}
	}
	return effective > 0
}

// A memory is what clients know of a store.
type memory struct {
	mu        sync.Mutex
	commits   []told                 // that were shown, from the store's first
	open      map[string]attempt     // by author: not answered, or answered as unknown
	answers   map[string]kv.Revision // by author: acknowledged, and not shown yet
	forgotten kv.Revision            // compaction that was acknowledged
	forgets   kv.Revision            // that was asked for
	shown     kv.Revision            // the newest that could be read
	jumps     bool                   // the clock may have been set
}

func newMemory() *memory {
	return &memory{open: map[string]attempt{}, answers: map[string]kv.Revision{}, forgotten: 1, forgets: 1, shown: 1}
}

// frozen returns the memory as it is now, of a store whose newest revision is shown.
func (m *memory) frozen(shown kv.Revision) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &memory{
		commits: slices.Clip(m.commits), open: maps.Clone(m.open), answers: maps.Clone(m.answers),
		forgotten: m.forgotten, forgets: m.forgets, shown: max(m.shown, shown), jumps: m.jumps,
	}
}

// without returns the memory as if the newest commit had not been answered.
func (m *memory) without() *memory {
	f := m.frozen(0)
	last := f.commits[len(f.commits)-1]
	a := attempt{}
	for _, c := range last.changes {
		a[c.key] = c.value
	}
	f.commits = f.commits[:len(f.commits)-1]
	f.open = map[string]attempt{last.author.User: a}
	f.shown = f.commits[len(f.commits)-1].rev
	return f
}

// asked adds what a later memory was asked for since, and has had no answer.
func (m *memory) asked(later *memory) {
	later.mu.Lock()
	defer later.mu.Unlock()
	for who, a := range later.open {
		if _, known := m.open[who]; !known {
			m.open[who] = a
		}
	}
	m.forgets = max(m.forgets, later.forgets)
}

// ask remembers a commit that is asked for.
func (m *memory) ask(who string, txn kv.Txn) {
	a := attempt{}
	for _, op := range txn.Ops {
		a[op.Key] = string(op.Value)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[who] = a
}

// answer remembers what was said of it.
func (m *memory) answer(who string, done kv.Committed, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case errors.Is(err, kv.ErrUnknown):
		return
	case err == nil && slices.ContainsFunc(done.Versions, func(v *kv.Version) bool { return v != nil }):
		m.answers[who] = done.Revision
	}
	delete(m.open, who)
}

// forget remembers a compaction that is asked for, or done.
func (m *memory) forget(rev kv.Revision, done bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgets = max(m.forgets, rev)
	if done {
		m.forgotten = max(m.forgotten, rev)
	}
}

// see remembers the commits that a watch shows.
func (m *memory) see(w kv.Watch) error {
	commits, err := drain(w)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range commits {
		if n := len(m.commits); n > 0 && t.at.Before(m.commits[n-1].at) {
			return fmt.Errorf("%v is older than %v", t, m.commits[n-1])
		}
		m.commits = append(m.commits, t)
		m.shown = max(m.shown, t.rev)
		delete(m.open, t.author.User)
		if rev, ok := m.answers[t.author.User]; ok && rev != t.rev {
			return fmt.Errorf("%s was answered revision %d, and shown %d", t.author.User, rev, t.rev)
		}
		delete(m.answers, t.author.User)
	}
	for who, rev := range m.answers {
		return fmt.Errorf("%s was answered revision %d, and it was never shown", who, rev)
	}
	return nil
}

// drain returns the commits that w has to tell.
func drain(w kv.Watch) (all []told, err error) {
	for {
		e, more, err := w.Next()
		if err != nil || !more {
			return all, err
		}
		v := e.Version
		if n := len(all); n == 0 || all[n-1].rev != v.Revision {
			if n > 0 && all[n-1].rev > v.Revision {
				return nil, fmt.Errorf("revision %d came after %d", v.Revision, all[n-1].rev)
			}
			all = append(all, told{rev: v.Revision, at: v.Time.Time(), author: v.By()})
		}
		c := change{key: v.Key, value: string(v.Value), deleted: v.Deleted, created: v.Created, expires: v.Expires.Time()}
		if e.Prev != nil {
			c.replaces = e.Prev.Revision
		}
		last := &all[len(all)-1]
		last.changes = append(last.changes, c)
		slices.SortFunc(last.changes, func(a, b change) int { return strings.Compare(a.key, b.key) })
	}
}

// state is what a store holds: of each key the commit and the change that made it so.
type state map[string]held

type held struct {
	told
	change
}

// after returns the state after the commits up to rev.
func after(commits []told, rev kv.Revision) state {
	s := state{}
	for _, t := range commits {
		if t.rev > rev {
			break
		}
		s.apply(t)
	}
	return s
}

func (s state) apply(t told) {
	for _, c := range t.changes {
		if c.deleted {
			delete(s, c.key)
		} else {
			s[c.key] = held{t, c}
		}
	}
}

// follows returns an error unless t, which nobody was shown before, may come after s.
func (m *memory) follows(s state, t told) error {
	if t.author == local.Expirer {
		for _, c := range t.changes {
			was, ok := s[c.key]
			if !ok || !c.deleted || was.expires.IsZero() || was.expires.After(t.at) && !m.jumps {
				return fmt.Errorf("%v: %s had not expired: %v", t, c.key, was)
			}
		}
		return nil
	}
	a, asked := m.open[t.author.User]
	if !asked {
		return fmt.Errorf("%v: that was never asked for, or refused, or is here twice", t)
	}
	if !a.made(t) {
		return fmt.Errorf("%v: asked for was %v", t, a)
	}
	for key, value := range a {
		if _, was := s[key]; value == "" && was && !slices.ContainsFunc(t.changes, func(c change) bool { return c.key == key }) {
			return fmt.Errorf("%v: it does not delete %s", t, key)
		}
	}
	delete(m.open, t.author.User)
	return nil
}

// audit returns an error unless e holds what m says. Afterwards m knows what became of what
// was open: what is not there now may never be.
func (m *memory) audit(e kv.Engine, now time.Time, r *rand.Rand) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	oldest, newest := e.Revisions()
	switch {
	case newest < m.shown:
		return fmt.Errorf("revision %d was shown, and the newest is %d", m.shown, newest)
	case oldest < m.forgotten:
		return fmt.Errorf("history before %d was compacted, and the oldest is %d", m.forgotten, oldest)
	}
	if err := m.absorb(e, oldest); err != nil {
		return err
	}
	for who, rev := range m.answers {
		return fmt.Errorf("%s was answered revision %d, and it is not there", who, rev)
	}
	clear(m.open)
	m.shown = newest
	for _, rev := range []kv.Revision{newest, oldest, oldest + kv.Revision(r.IntN(int(newest-oldest)+1))} {
		if err := m.shows(e, rev); err != nil {
			return err
		}
	}
	if m.jumps {
		return nil // what lately means cannot be told
	}
	return m.remembers(e, now)
}

// absorb compares the history of e after oldest with what was shown, and adds what comes after.
func (m *memory) absorb(e kv.Engine, oldest kv.Revision) error {
	w, err := e.Watch("default/", oldest)
	if err != nil {
		return err
	}
	defer w.Stop()
	history, err := drain(w)
	if err != nil {
		return err
	}
	if _, newest := e.Revisions(); oldest > m.shown && newest > m.shown {
		return fmt.Errorf("revision %d is the newest, and what happened after %d cannot be told any more: let less time pass", newest, m.shown)
	}
	known := m.since(oldest)
	for i, want := range known {
		if i >= len(history) {
			return fmt.Errorf("%v was shown, and is not there", want)
		}
		if !equal(history[i], want) {
			return fmt.Errorf("it was shown:\n%v\nnow there is:\n%v", want, history[i])
		}
	}
	s := after(m.commits, 1<<62)
	for _, t := range history[len(known):] {
		if rev, answered := m.answers[t.author.User]; answered && rev == t.rev {
			delete(m.answers, t.author.User)
		} else if err := m.follows(s, t); err != nil {
			return err
		}
		for _, c := range t.changes {
			if was := s[c.key]; was.rev != c.replaces {
				return fmt.Errorf("%v: %s was at %d", t, c.key, was.rev)
			}
		}
		s.apply(t)
		m.commits = append(m.commits, t)
	}
	return nil
}

// since returns the commits after rev.
func (m *memory) since(rev kv.Revision) []told {
	i := slices.IndexFunc(m.commits, func(t told) bool { return t.rev > rev })
	if i < 0 {
		return nil
	}
	return m.commits[i:]
}

// shows returns an error unless e shows at rev what the commits up to it made.
func (m *memory) shows(e kv.Engine, rev kv.Revision) error {
	snap, err := e.Read(noContext, kv.Exactly(rev))
	if err != nil {
		return err
	}
	want := after(m.commits, rev)
	for v := range snap.Ascend("", "") {
		h, ok := want[v.Key]
		if !ok || h.rev != v.Revision || h.value != string(v.Value) || h.created != v.Created || !h.expires.Equal(v.Expires.Time()) || h.author != v.By() {
			return fmt.Errorf("at revision %d %s is at %d by %s, want %v", rev, v.Key, v.Revision, v.By().User, h.told)
		}
		delete(want, v.Key)
	}
	for key, h := range want {
		return fmt.Errorf("at revision %d there is no %s, which %v made", rev, key, h.told)
	}
	return nil
}

// remembers returns an error unless every table can tell what happened to it lately.
func (m *memory) remembers(e kv.Engine, now time.Time) error {
	from := m.forgets
	for _, t := range m.commits {
		if now.Sub(t.at) > mvcc.MinHistory {
			from = max(from, t.rev)
		}
	}
	for _, table := range tables {
		w, err := e.Watch(table, from)
		if err != nil {
			return fmt.Errorf("less than %v of history is there: %w", mvcc.MinHistory, err)
		}
		w.Stop()
	}
	return nil
}
