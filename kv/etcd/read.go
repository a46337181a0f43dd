package etcd

import (
	"bytes"
	"fmt"
	"unique"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pawl-dev/pawl/kv"
)

// Expirer is the author of the deletions that leases make.
var Expirer = kv.Author{Manager: "pawl", Verb: "expire"}

// A reader makes versions of what etcd tells. It remembers the time of the last commit: writers go by
// clocks that differ, so the time of a commit is what its writer's clock showed, or the last commit's.
type reader struct {
	in      keyspace
	last    kv.Instant
	current func(key string) *kv.Version // what a key is before what is read now; nil if it is absent

	floor kv.Revision // the last that was read
	moved bool        // since somebody looked

	origin  int64 // etcd's revision of the store's origin; never if it has none
	settled int64 // etcd's revision at which that was so
	rooted  bool  // the origin was seen

	authors map[string]unique.Handle[kv.Author] // some of them, by how they are written
}

// authorsMax is how many authors are remembered.
const authorsMax = 1024

// A deed is one commit as the watch tells it.
type deed struct {
	id       id // zero if nobody signed it
	revision kv.Revision
	versions []*kv.Version
}

// An UnreadableError says that something is in etcd which this pawl did not put there.
type UnreadableError struct {
	Key    string // in etcd
	Reason error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("what etcd holds under %s cannot be read: %v; is it a newer pawl's, or another program's? give this one another prefix", e.Key, e.Reason)
}

func (e *UnreadableError) Unwrap() error { return e.Reason }

// A happening is an event, and the envelope that it brings.
type happening struct {
	*mvccpb.Event
	envelope
}

// deeds returns the commits that events are of, and the versions of all of them.
func (r *reader) deeds(events []*mvccpb.Event) (deeds []deed, versions []*kv.Version, err error) {
	all := make([]happening, len(events))
	for i, e := range events {
		brings, err := r.open(e)
		if err != nil {
			return nil, nil, err
		}
		all[i] = happening{e, brings}
	}
	deeds, versions = make([]deed, 0, len(all)), make([]*kv.Version, 0, len(all))
	// What keys were made of by the deeds before. One revision of etcd's changes a key once.
	var fresh map[string]*kv.Version
	if n := len(events); n > 0 && events[0].GetKv().GetModRevision() != events[n-1].GetKv().GetModRevision() {
		fresh = make(map[string]*kv.Version, n)
	}
	was := func(key string) *kv.Version {
		if v, changed := fresh[key]; changed {
			return v
		}
		return r.current(key)
	}
	for {
		n := oneDeed(all)
		before := len(versions)
		d := r.deed(all[:n], was, &versions)
		d.versions = versions[before:len(versions):len(versions)]
		deeds = append(deeds, d)
		if all = all[n:]; len(all) == 0 {
			return deeds, versions, nil
		}
		if fresh == nil {
			continue
		}
		for _, v := range d.versions {
			fresh[v.Key] = v
			if v.Deleted {
				fresh[v.Key] = nil
			}
		}
	}
}

// oneDeed returns how many of the first events are of one commit: those of one revision of etcd's that nobody else
// signed. A deletion is not signed, and is of the commit that signs next: each that deletes signs last.
func oneDeed(all []happening) int {
	var by id
	n := 0
	for i, h := range all {
		if h.GetKv().GetModRevision() != all[0].GetKv().GetModRevision() {
			break
		}
		if h.id != (id{}) {
			if by != (id{}) && h.id != by {
				return n
			}
			by = h.id
		} else if by != (id{}) {
			continue
		}
		n = i + 1
	}
	return n
}

// deed returns the commit that events are of, and appends its versions to all, which may be none.
func (r *reader) deed(events []happening, was func(string) *kv.Version, all *[]*kv.Version) deed {
	d := deed{revision: r.in.ours(events[0].GetKv().GetModRevision())}
	var author unique.Handle[kv.Author]
	for _, h := range events {
		if h.id != (id{}) {
			d.id, d.revision, author = h.id, d.revision-kv.Revision(h.behind), r.author(h.author)
			r.last = max(r.last, h.time)
			break
		}
	}
	if d.id == (id{}) {
		author = unique.Make(Expirer)
		r.lapse(events, was)
	}
	for _, h := range events {
		name := r.in.out(h.GetKv().GetKey())
		if own(name) {
			continue
		}
		v := &kv.Version{Revision: d.revision, Time: r.last, Author: author}
		before := was(string(name))
		switch {
		case before != nil:
			v.Key, v.Created = before.Key, before.Created // versions of one key share it
		case h.GetKv().GetCreateRevision() != h.GetKv().GetModRevision():
			v.Created = r.in.ours(h.GetKv().GetCreateRevision()) - kv.Revision(h.born)
		}
		if v.Key == "" {
			v.Key = string(name)
		}
		if h.GetType() == mvccpb.Event_DELETE {
			v.Deleted = true
		} else {
			v.Value, v.Expires = h.value, h.expires
			if h.GetKv().GetCreateRevision() == h.GetKv().GetModRevision() {
				v.Created = d.revision
			}
		}
		*all = append(*all, v)
	}
	return d
}

// open returns the envelope that an event brings, an empty one if it brings none.
func (r *reader) open(e *mvccpb.Event) (envelope, error) {
	if e.GetType() == mvccpb.Event_DELETE {
		return envelope{}, r.uprooted(e.GetKv())
	}
	return r.envelope(e.GetKv())
}

// envelope returns what is under one key, an empty one if that is a later engine's own.
func (r *reader) envelope(have *mvccpb.KeyValue) (envelope, error) {
	name := r.in.out(have.GetKey())
	switch string(name) {
	case deletedKey, floorKey, roomKey, originKey:
		if err := r.uprooted(have); err != nil {
			return envelope{}, err
		}
		r.rooted = r.rooted || string(name) == originKey
	default:
		if own(name) {
			return envelope{}, nil
		}
		if problem := kv.CheckKey(string(name)); problem != "" {
			return envelope{}, &UnreadableError{string(have.GetKey()), fmt.Errorf("%s", problem)}
		}
	}
	e, err := decode(have.GetValue())
	if err != nil {
		return envelope{}, &UnreadableError{string(have.GetKey()), err}
	}
	if string(name) == floorKey {
		c := cursor{rest: e.value}
		if r.floor, r.moved = kv.Revision(c.uvarint()), true; c.short {
			return envelope{}, &UnreadableError{string(have.GetKey()), errShort}
		}
	}
	return e, nil
}

// lapse notes the time of deletions that nobody signed: a lease's, so their time has come.
func (r *reader) lapse(events []happening, was func(string) *kv.Version) {
	for _, e := range events {
		if v := was(string(r.in.out(e.GetKv().GetKey()))); v != nil {
			r.last = max(r.last, v.Expires)
		}
	}
}

// author returns the author that is written so.
func (r *reader) author(written []byte) unique.Handle[kv.Author] {
	if h, known := r.authors[string(written)]; known {
		return h
	}
	if r.authors == nil || len(r.authors) >= authorsMax {
		r.authors = map[string]unique.Handle[kv.Author]{}
	}
	h := unique.Make(decodeAuthor(written))
	r.authors[string(bytes.Clone(written))] = h
	return h
}

// version returns what a key holds that was read, and the commit that put it there; nil if the key is one of the engine's own.
func (r *reader) version(have *mvccpb.KeyValue) (*kv.Version, id, error) {
	e, err := r.envelope(have)
	if err != nil {
		return nil, id{}, err
	}
	r.last = max(r.last, e.time)
	name := r.in.out(have.GetKey())
	if own(name) {
		return nil, id{}, nil
	}
	rev := r.in.ours(have.GetModRevision()) - kv.Revision(e.behind)
	created := rev
	if have.GetCreateRevision() != have.GetModRevision() {
		created = r.in.ours(have.GetCreateRevision()) - kv.Revision(e.born)
	}
	return &kv.Version{
		Key: string(name), Value: e.value, Revision: rev, Created: created,
		Time: e.time, Expires: e.expires, Author: r.author(e.author),
	}, e.id, nil
}
