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

// deeds returns the commits that events are of: the events of one revision are one commit.
func (r *reader) deeds(events []*mvccpb.Event) ([]deed, error) {
	var all []deed
	var fresh map[string]*kv.Version // what keys were made of by the deeds before
	was := func(key string) *kv.Version {
		if v, changed := fresh[key]; changed {
			return v
		}
		return r.current(key)
	}
	for len(events) > 0 {
		n := 1
		for n < len(events) && events[n].GetKv().GetModRevision() == events[0].GetKv().GetModRevision() {
			n++
		}
		d, err := r.deed(events[:n], was)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
		if events = events[n:]; len(events) == 0 {
			break
		}
		if fresh == nil {
			fresh = map[string]*kv.Version{}
		}
		for _, v := range d.versions {
			fresh[v.Key] = v
			if v.Deleted {
				fresh[v.Key] = nil
			}
		}
	}
	return all, nil
}

// deed returns the commit that events are of, which may be without versions.
func (r *reader) deed(events []*mvccpb.Event, was func(string) *kv.Version) (deed, error) {
	d := deed{revision: r.in.ours(events[0].GetKv().GetModRevision())}
	author := unique.Make(Expirer)
	puts := make([]envelope, len(events))
	for i, e := range events {
		var err error
		if puts[i], err = r.open(e); err != nil {
			return deed{}, err
		}
		if p := puts[i]; p.id != (id{}) && d.id == (id{}) {
			d.id, author = p.id, r.author(p.author)
			r.last = max(r.last, p.time)
		}
	}
	if d.id == (id{}) {
		r.lapse(events, was)
	}
	d.versions = make([]*kv.Version, 0, len(events))
	for i, e := range events {
		name := r.in.out(e.GetKv().GetKey())
		if own(name) {
			continue
		}
		v := &kv.Version{Revision: d.revision, Time: r.last, Author: author}
		before := was(string(name))
		if before != nil {
			v.Key = before.Key // so that versions of one key share it
		} else {
			v.Key = string(name)
		}
		if e.GetType() == mvccpb.Event_DELETE {
			v.Deleted = true
			if before != nil {
				v.Created = before.Created
			}
		} else {
			v.Created = r.in.ours(e.GetKv().GetCreateRevision())
			v.Value, v.Expires = puts[i].value, puts[i].expires
		}
		d.versions = append(d.versions, v)
	}
	return d, nil
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
func (r *reader) lapse(events []*mvccpb.Event, was func(string) *kv.Version) {
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

// version returns what a key holds that was read, nil if it is one of the engine's own.
func (r *reader) version(have *mvccpb.KeyValue) (*kv.Version, error) {
	e, err := r.envelope(have)
	if err != nil {
		return nil, err
	}
	r.last = max(r.last, e.time)
	name := r.in.out(have.GetKey())
	if own(name) {
		return nil, nil
	}
	return &kv.Version{
		Key: string(name), Value: e.value,
		Revision: r.in.ours(have.GetModRevision()), Created: r.in.ours(have.GetCreateRevision()),
		Time: e.time, Expires: e.expires, Author: r.author(e.author),
	}, nil
}
