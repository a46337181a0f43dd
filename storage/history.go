package storage

import (
	"context"
	"errors"

	"github.com/pawl-dev/pawl/kv"
)

// Last returns the newest version of an object, be it the mark that its removal left: see
// [Version.Removed]. From there [Version.Prev] goes back through all that is kept. The error is
// [NotFound] if nothing is kept of any object of that name. To find what was removed takes a walk through the
// changes of the table that are kept.
func (t *Table) Last(ctx context.Context, namespace, name string) (Version, error) {
	snap, err := t.read(ctx, kv.Latest)
	if err != nil {
		return Version{}, err
	}
	key := t.Key(namespace, name)
	v := snap.Get(key)
	for v == nil {
		oldest, _ := t.engine.Revisions()
		v, err = t.removed(ctx, key, oldest, snap.Revision())
		switch {
		case errors.Is(err, kv.ErrCompacted):
			continue // what comes after oldest was forgotten just now
		case err != nil:
			return Version{}, engineError(ctx.Err(), err)
		case v == nil:
			return Version{}, &Error{Kind: NotFound, Namespace: namespace, Name: name}
		}
	}
	return Version{table: t, kv: v, rev: v.Revision}, nil
}

// removed returns the last change of key after one revision and up to another, nil if there is none.
func (t *Table) removed(ctx context.Context, key string, after, upTo kv.Revision) (*kv.Version, error) {
	w, err := t.engine.Watch(t.prefix, after)
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	var last *kv.Version
	for n := 1; ; n++ {
		if n%cancelEvery == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		e, ok, err := w.Next()
		if err != nil || !ok || e.Version.Revision > upTo {
			return last, err
		}
		if e.Version.Key == key {
			last = e.Version
		}
	}
}
