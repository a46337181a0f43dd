package broken

import (
	"context"
	"iter"
	"sync"
	"unique"

	"github.com/pawl-dev/pawl/kv"
)

// reopened makes a fault of what is wrong with a store that has been opened again. What it
// remembers of it lies in M.
func reopened[M any](name string, before, after func(memory *M, good kv.Engine, bad *engine)) Fault {
	return Fault{name, func() func(kv.Engine) kv.Engine {
		memory, times := new(M), 0
		return func(good kv.Engine) kv.Engine {
			bad := &engine{Engine: good}
			if times++; times == 1 {
				before(memory, good, bad)
			} else {
				after(memory, good, bad)
			}
			return bad
		}
	}}
}

// nothing is wrong with an engine.
func nothing(*struct{}, kv.Engine, *engine) {}

// spoils makes a fault of what becomes in a restart of all versions that are read.
func spoils(name string, how func(*kv.Version)) Fault {
	return reopened(name, nothing, func(_ *struct{}, good kv.Engine, bad *engine) {
		bad.read = func(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
			s, err := good.Read(ctx, at)
			if err != nil {
				return nil, err
			}
			return &snapshot{Snapshot: s, ascend: func(prefix, from string) iter.Seq[*kv.Version] {
				all := collect(s.Ascend(prefix, from))
				for i, v := range all {
					all[i] = changed(v, how)
				}
				return each(all)
			}, get: func(key string) *kv.Version { return changed(s.Get(key), how) }}, nil
		}
	})
}

var restartFaults = []Fault{
	losesTheLast(),
	spoils("forgets in a restart who wrote", func(v *kv.Version) { v.Author = unique.Make(kv.Author{}) }),
	spoils("forgets in a restart when something was written", func(v *kv.Version) { v.Time = 0 }),
	spoils("forgets in a restart since when a key exists", func(v *kv.Version) { v.Created = v.Revision }),
	spoils("forgets in a restart what was before", func(v *kv.Version) { v.SetPrev(nil) }),
	reopened("begins anew with the revisions after a restart", nothing, func(_ *struct{}, good kv.Engine, bad *engine) {
		opened := newest(good) - 1
		bad.revisions = func() (oldest, newest kv.Revision) {
			_, newest = good.Revisions()
			return 1, newest - opened
		}
		bad.commit = func(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
			done, err := good.Commit(ctx, txn)
			done.Revision -= min(opened, done.Revision)
			return done, err
		}
	}),
	reopened("remembers after a restart what it had forgotten", func(floor *kv.Revision, good kv.Engine, bad *engine) {
		bad.compact = func(_ context.Context, rev kv.Revision) error {
			*floor = rev // and nothing on disk
			return nil
		}
		bad.read = func(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
			if rev, ok := at.Exactly(); ok && rev < *floor {
				return nil, &kv.Error{Op: "read", Want: rev, Have: *floor, Kind: kv.ErrCompacted}
			}
			return good.Read(ctx, at)
		}
	}, func(*kv.Revision, kv.Engine, *engine) {}),
	reopened("tells watches nothing from before a restart", nothing, func(_ *struct{}, good kv.Engine, bad *engine) {
		opened := newest(good)
		bad.watch = func(prefix string, after kv.Revision) (kv.Watch, error) {
			return good.Watch(prefix, max(after, opened))
		}
	}),
	reopened("reads the past as it is now after a restart", nothing, func(_ *struct{}, good kv.Engine, bad *engine) {
		opened := newest(good)
		bad.read = func(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
			if rev, ok := at.Exactly(); ok && rev < opened {
				at = kv.Exactly(opened)
			}
			return good.Read(ctx, at)
		}
	}),
	fault("forgets in a restart what is to expire", forgetsExpiries),
}

// losesTheLast shows after a restart nothing of the key that was put last.
func losesTheLast() Fault {
	type last struct {
		mu  sync.Mutex
		key string
	}
	remember := func(l *last, good kv.Engine, bad *engine) {
		bad.commit = func(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
			done, err := good.Commit(ctx, txn)
			l.mu.Lock()
			defer l.mu.Unlock()
			for _, v := range done.Versions {
				if v != nil && !v.Deleted {
					l.key = v.Key
				}
			}
			return done, err
		}
	}
	return reopened("loses in a restart what was put last", remember, func(l *last, good kv.Engine, bad *engine) {
		lost := l.key
		bad.read = func(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
			s, err := good.Read(ctx, at)
			if err != nil {
				return nil, err
			}
			return &snapshot{Snapshot: s, get: func(key string) *kv.Version {
				if key == lost {
					return nil
				}
				return s.Get(key)
			}, ascend: func(prefix, from string) iter.Seq[*kv.Version] {
				var kept []*kv.Version
				for v := range s.Ascend(prefix, from) {
					if v.Key != lost {
						kept = append(kept, v)
					}
				}
				return each(kept)
			}}, nil
		}
	})
}

// forgetsExpiries puts what is to expire again as it is closed, to stay.
func forgetsExpiries(good kv.Engine, bad *engine) {
	bad.close = func() error {
		if s, err := good.Read(context.Background(), kv.Latest); err == nil {
			for v := range s.Ascend("", "") {
				if !v.Expires.IsZero() {
					op := kv.Put(v.Key, v.Value)
					op.Expiry.Kind = kv.Forever
					good.Commit(context.Background(), kv.Txn{Author: v.By(), Ops: []kv.Op{op}})
				}
			}
		}
		return good.Close()
	}
}
