// Package broken holds engines that each break one promise of package kv, and keep all
// others as well as they can. Tests of engines are tested with them: what does not notice a
// broken engine is no test.
//
// A [Fault] is put around an engine that works. Some show at every call, others only now
// and then, as real ones do.
package broken

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/pawl-dev/pawl/kv"
)

// A Fault is one way to break an engine.
type Fault struct {
	Name string // what a broken engine does, as a sentence without its subject
	make func() func(kv.Engine) kv.Engine
}

// Break returns what breaks the engine of one store: each one that is opened on it, one
// after the other.
func (f Fault) Break() func(kv.Engine) kv.Engine { return f.make() }

// Faults returns every fault.
func Faults() []Fault {
	return slices.Concat(commitFaults, versionFaults, readFaults, watchFaults, historyFaults, expiryFaults, endFaults, restartFaults)
}

// Nothing is a fault that breaks nothing.
func Nothing() Fault { return fault("is whole", func(kv.Engine, *engine) {}) }

// engine is an engine of which some methods have been replaced.
type engine struct {
	kv.Engine
	commit    func(context.Context, kv.Txn) (kv.Committed, error)
	read      func(context.Context, kv.Freshness) (kv.Snapshot, error)
	watch     func(string, kv.Revision) (kv.Watch, error)
	revisions func() (oldest, newest kv.Revision)
	err       func() error
	close     func() error
	compact   func(context.Context, kv.Revision) error
}

func (e *engine) Commit(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
	if e.commit != nil {
		return e.commit(ctx, txn)
	}
	return e.Engine.Commit(ctx, txn)
}

func (e *engine) Read(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
	if e.read != nil {
		return e.read(ctx, at)
	}
	return e.Engine.Read(ctx, at)
}

func (e *engine) Watch(prefix string, after kv.Revision) (kv.Watch, error) {
	if e.watch != nil {
		return e.watch(prefix, after)
	}
	return e.Engine.Watch(prefix, after)
}

func (e *engine) Revisions() (oldest, newest kv.Revision) {
	if e.revisions != nil {
		return e.revisions()
	}
	return e.Engine.Revisions()
}

func (e *engine) Err() error {
	if e.err != nil {
		return e.err()
	}
	return e.Engine.Err()
}

func (e *engine) Close() error {
	if e.close != nil {
		return e.close()
	}
	return e.Engine.Close()
}

// Compact implements [kv.Compactor].
func (e *engine) Compact(ctx context.Context, rev kv.Revision) error {
	if e.compact != nil {
		return e.compact(ctx, rev)
	}
	return e.Engine.(kv.Compactor).Compact(ctx, rev)
}

// fault makes a fault of what replaces methods of an engine. The engine it is given is the
// one that works.
func fault(name string, replace func(good kv.Engine, bad *engine)) Fault {
	return Fault{name, func() func(kv.Engine) kv.Engine {
		return func(good kv.Engine) kv.Engine {
			bad := &engine{Engine: good}
			replace(good, bad)
			return bad
		}
	}}
}

// newest is the newest revision of e.
func newest(e kv.Engine) kv.Revision {
	_, rev := e.Revisions()
	return rev
}

// A turn counts.
type turn struct{ n atomic.Int64 }

// now is true once in so many calls.
func (t *turn) now(in int64) bool { return t.n.Add(1)%in == 0 }

// changed copies a version and changes the copy.
func changed(v *kv.Version, how func(*kv.Version)) *kv.Version {
	if v == nil {
		return nil
	}
	c := &kv.Version{
		Key: v.Key, Value: v.Value, Revision: v.Revision, Created: v.Created, Time: v.Time,
		Author: v.Author, Deleted: v.Deleted, Expires: v.Expires,
	}
	c.SetPrev(v.Prev())
	if slot := v.Slot.Load(); slot != nil {
		c.Slot.Store(slot)
	}
	how(c)
	return c
}
