package histories

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"unique"

	"github.com/pawl-dev/pawl/kv"
)

// A twin has made every commit of a run that there was, one after the other. It keeps, in
// the plainest way, what every key held at every revision.
type twin struct {
	end     kv.Revision // the twin knows everything up to it
	log     []*entry
	by      map[name]*entry
	history map[int][]*kv.Version // of each key, deletions included
}

// An entry is one commit.
type entry struct {
	rev    kv.Revision
	time   kv.Instant
	author kv.Author
	events []kv.Event
}

// record puts what the audits were told into the order of revisions.
func record(audits []*audit) (log []*entry, end kv.Revision) {
	at := map[kv.Revision]*entry{}
	for i := range audits[0].streams {
		for _, a := range audits {
			g := &a.streams[i].segment
			for _, e := range g.told {
				v := e.Version
				if v.Revision > g.sure() { // the next audit tells it again
					continue
				}
				if at[v.Revision] == nil {
					at[v.Revision] = &entry{rev: v.Revision, time: v.Time, author: v.By()}
				}
				at[v.Revision].events = append(at[v.Revision].events, e)
			}
		}
	}
	for _, e := range at {
		log = append(log, e)
	}
	slices.SortFunc(log, func(a, b *entry) int { return int(int64(a.rev) - int64(b.rev)) })
	last := audits[len(audits)-1]
	end = last.streams[0].segment.sure()
	for _, s := range last.streams {
		end = min(end, s.segment.sure())
	}
	return log, end
}

// at returns what a key held at a revision, nil if it did not exist.
func (tw *twin) at(k int, rev kv.Revision) *kv.Version {
	if v := tw.last(k, rev); v != nil && !v.Deleted {
		return v
	}
	return nil
}

// last returns the last change of a key up to a revision.
func (tw *twin) last(k int, rev kv.Revision) *kv.Version {
	h := tw.history[k]
	i := sort.Search(len(h), func(i int) bool { return h[i].Revision > rev })
	if i == 0 {
		return nil
	}
	return h[i-1]
}

// revision returns at which revision a key was, [kv.Absent] if it did not exist.
func revision(v *kv.Version) kv.Revision {
	if v == nil {
		return kv.Absent
	}
	return v.Revision
}

// broken returns the first of conditions that does not hold at a revision, nil if all do.
func (tw *twin) broken(conditions []kv.Condition, rev kv.Revision) *kv.Condition {
	for i, c := range conditions {
		if revision(tw.at(numberOf(c.Key), rev)) != c.At {
			return &conditions[i]
		}
	}
	return nil
}

// after returns the first commit after a revision that touches what is under prefix, nil
// if there is none.
func (tw *twin) after(rev kv.Revision, prefix string) *entry {
	i := sort.Search(len(tw.log), func(i int) bool { return tw.log[i].rev > rev })
	for _, e := range tw.log[i:] {
		for _, ev := range e.events {
			if strings.HasPrefix(ev.Version.Key, prefix) {
				return e
			}
		}
	}
	return nil
}

// under returns what a watch of topic must tell after a revision.
func (tw *twin) under(topic string, rev kv.Revision) []kv.Event {
	var all []kv.Event
	i := sort.Search(len(tw.log), func(i int) bool { return tw.log[i].rev > rev })
	for _, e := range tw.log[i:] {
		for _, ev := range e.events {
			if covers(topic, ev.Version.Key) {
				all = append(all, ev)
			}
		}
	}
	return all
}

// effects returns what a transaction must do to the state before revision rev, as the
// events of the commit e say that it was done: only times are taken from there.
func (tw *twin) effects(txn kv.Txn, e *entry) []kv.Event {
	var all []kv.Event
	for _, op := range txn.Ops {
		was := tw.at(numberOf(op.Key), e.rev-1)
		if op.Delete && was == nil {
			continue
		}
		v := &kv.Version{
			Key: op.Key, Value: op.Value, Revision: e.rev, Created: e.rev,
			Time: e.time, Author: unique.Make(txn.Author), Deleted: op.Delete,
		}
		if was != nil {
			v.Created = was.Created
		}
		switch {
		case op.Delete:
		case op.Expiry.Kind == kv.After:
			v.Expires = e.time.Add(op.Expiry.For)
		case op.Expiry.Kind == kv.Keep && was != nil:
			v.Expires = was.Expires
		}
		all = append(all, kv.Event{Version: v, Prev: was})
	}
	// Each space is told of by a watch of its own.
	slices.SortStableFunc(all, func(a, b kv.Event) int { return spaceOf(a) - spaceOf(b) })
	return all
}

func spaceOf(e kv.Event) int {
	return slices.IndexFunc(spaces, func(s string) bool { return strings.HasPrefix(e.Version.Key, s) })
}

// apply makes the commit e.
func (tw *twin) apply(e *entry) {
	for _, ev := range e.events {
		k := numberOf(ev.Version.Key)
		tw.history[k] = append(tw.history[k], ev.Version)
	}
	tw.log = append(tw.log, e)
}

// describe says what a version is, shortly.
func describe(v *kv.Version) string {
	if v == nil {
		return "nothing"
	}
	value, _, _ := strings.Cut(string(v.Value), ":")
	if v.Deleted {
		value = "a deletion"
	}
	expires := ""
	if !v.Expires.IsZero() {
		expires = v.Expires.Time().Format(", expires 15:04:05.000")
	}
	return fmt.Sprintf("%s@%d = %s (created %d, by %s%s)", v.Key, v.Revision, value, v.Created, v.By().User, expires)
}

func describeEvent(all []kv.Event, i int) string {
	if i >= len(all) {
		return "nothing"
	}
	return describe(all[i].Version) + " in place of " + describe(all[i].Prev)
}
