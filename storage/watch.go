package storage

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/pawl-dev/pawl/kv"
)

// WatchOptions say which changes a watch tells.
type WatchOptions struct {
	Namespace string // "" for all
	Name      string // one object alone (rule S125)
	Selector  Selector
	From      WatchFrom // nil is State{At: kv.Any}
}

// A Watch is a place in the list of changes to a table. One goroutine at a time may use it.
type Watch struct {
	table    *Table
	pick     *sieve
	changes  kv.Watch
	state    func() (*kv.Version, bool) // nil once the state has been told
	stop     func()
	mark     bool        // the end of the state is to be marked
	revision kv.Revision // of the state
	err      error       // why the watch is over
}

// An EventType is one of Added, Modified and Deleted.
type EventType string

// The types of an [Event], as they are on the wire (rule H106).
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
)

// An Event is a change as a selector sees it (rules K76, K77).
type Event struct {
	Type EventType
	// Version is what the object became; with Deleted what it last was, at the revision of
	// the change that removed it or took it out of the selection.
	Version Version
}

// Watch begins a watch. The error is [TooNew] if the state asked for does not exist,
// [Expired] if the changes asked for are no longer kept.
func (t *Table) Watch(ctx context.Context, o WatchOptions) (*Watch, error) {
	w := &Watch{table: t, pick: o.Selector.sieve(), stop: func() {}}
	prefix := t.scope(o.Namespace)
	if o.Name != "" {
		prefix = t.Key(o.Namespace, o.Name)
	}
	after, err := t.begin(ctx, w, o, prefix)
	if err != nil {
		return nil, err
	}
	changes, err := t.engine.Watch(prefix, after)
	if err != nil {
		w.stop()
		return nil, watchError(err)
	}
	w.changes = changes
	return w, nil
}

// begin reads the state that a watch begins with, and returns the revision after which its changes
// are.
func (t *Table) begin(ctx context.Context, w *Watch, o WatchOptions, prefix string) (kv.Revision, error) {
	at, tell := kv.Any, true
	switch from := o.From.(type) {
	case After:
		return from.Revision, nil
	case State:
		at, w.mark = from.At, from.Mark
	case AfterState:
		at, tell = from.At, false
	}
	snap, err := t.read(ctx, at)
	if err != nil {
		return 0, err
	}
	w.revision = snap.Revision()
	if tell {
		w.state, w.stop = iter.Pull(stateUnder(snap, prefix, o.Name != ""))
	}
	return w.revision, nil
}

func watchError(err error) error {
	e := engineError(nil, err)
	if e.Kind == Expired {
		e.Err = fmt.Errorf("too old resource version: %d (%d)", e.Want, e.Have)
	}
	return e
}

func stateUnder(snap kv.Snapshot, prefix string, single bool) iter.Seq[*kv.Version] {
	if !single {
		return snap.Ascend(prefix, "")
	}
	return func(yield func(*kv.Version) bool) {
		if v := snap.Get(prefix); v != nil {
			yield(v)
		}
	}
}

// Next returns the next event, or false if there is none yet. If the end of the state is to be
// marked it returns false there once, before any change: a mark that came after one would have an
// older revision than what was told before it (rule K90).
//
// After an error the watch is over (rule K82): [Expired] if it fell behind, [Unavailable] if the
// engine closed or the watch was stopped, [Corrupt] if an object that a selector has to look at
// cannot be read; then the event is [Deleted] if that object was removed (rule K85), and nothing
// else.
func (w *Watch) Next() (Event, bool, error) {
	if w.err != nil {
		return Event{}, false, w.err
	}
	e, ok, err := w.next()
	w.err = err
	return e, ok, err
}

func (w *Watch) next() (Event, bool, error) {
	for w.state != nil {
		kvv, ok := w.state()
		if !ok {
			w.state = nil
			if w.mark {
				return Event{}, false, nil
			}
			break
		}
		match, err := w.matches(kvv)
		if err != nil {
			return Event{}, false, err
		}
		if match {
			return Event{Added, w.table.at(kvv)}, true, nil
		}
	}
	for {
		change, ok, err := w.changes.Next()
		if err != nil {
			return Event{}, false, watchError(err)
		}
		if !ok {
			return Event{}, false, nil
		}
		e, ok, err := w.see(change)
		if err != nil || ok {
			return e, ok, err
		}
	}
}

// see says what a change is to the watch's selector, false if nothing (rule K76).
func (w *Watch) see(change kv.Event) (Event, bool, error) {
	was, err := w.matches(change.Prev)
	if err != nil && change.Version.Deleted {
		return Event{Type: Deleted}, false, err
	}
	if err != nil {
		return Event{}, false, err
	}
	is, err := w.matches(change.Version)
	if err != nil {
		return Event{}, false, err
	}
	switch {
	case is && !was:
		return Event{Added, w.table.at(change.Version)}, true, nil
	case is && was:
		return Event{Modified, w.table.at(change.Version)}, true, nil
	case was:
		return Event{Deleted, Version{table: w.table, kv: change.Prev, rev: change.Version.Revision}}, true, nil
	}
	return Event{}, false, nil
}

// matches reports whether the watch's selector picks v. An object whose fields cannot be
// worked out is not picked (rule K79); one that cannot be read at all is an error.
func (w *Watch) matches(v *kv.Version) (bool, error) {
	if v == nil || v.Deleted {
		return false, nil
	}
	ok, err := w.pick.matches(w.table.at(v))
	if err != nil && !IsKind(err, Corrupt) {
		return false, nil
	}
	return ok, err
}

// StateRevision returns the revision of the state that the watch tells first, once all of
// it has been told.
func (w *Watch) StateRevision() (kv.Revision, bool) { return w.revision, w.state == nil }

// Wait returns a channel that is closed once Next has something to say.
func (w *Watch) Wait() <-chan struct{} {
	if w.state != nil || w.err != nil {
		return closed
	}
	return w.changes.Wait()
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Progress returns a revision up to which nothing is missing from what Next has told,
// false if Next has more to tell.
func (w *Watch) Progress() (kv.Revision, bool) {
	if w.state != nil || w.err != nil {
		return 0, false
	}
	return w.changes.Progress()
}

// Stop ends the watch. It may be called more than once.
func (w *Watch) Stop() {
	w.stop()
	w.changes.Stop()
}

// IsClosed reports whether a watch's error says that the engine was closed.
func IsClosed(err error) bool { return errors.Is(err, kv.ErrClosed) }
