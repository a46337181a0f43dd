package broken

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"

	"github.com/pawl-dev/pawl/kv"
)

// reads makes a fault of another way to read.
func reads(name string, read func(ctx context.Context, good kv.Engine, at kv.Freshness) (kv.Snapshot, error)) Fault {
	return fault(name, func(good kv.Engine, bad *engine) {
		bad.read = func(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) { return read(ctx, good, at) }
	})
}

// shows makes a fault of another way to look at every snapshot.
func shows(name string, how func(good kv.Engine, s kv.Snapshot) kv.Snapshot) Fault {
	return reads(name, func(ctx context.Context, good kv.Engine, at kv.Freshness) (kv.Snapshot, error) {
		s, err := good.Read(ctx, at)
		if err != nil {
			return nil, err
		}
		return how(good, s), nil
	})
}

// snapshot is a snapshot of which some methods have been replaced.
type snapshot struct {
	kv.Snapshot
	get    func(key string) *kv.Version
	ascend func(prefix, from string) iter.Seq[*kv.Version]
}

func (s *snapshot) Get(key string) *kv.Version {
	if s.get != nil {
		return s.get(key)
	}
	return s.Snapshot.Get(key)
}

func (s *snapshot) Ascend(prefix, from string) iter.Seq[*kv.Version] {
	if s.ascend != nil {
		return s.ascend(prefix, from)
	}
	return s.Snapshot.Ascend(prefix, from)
}

// lists makes a fault of what a list of a snapshot is turned into.
func lists(name string, list func(s kv.Snapshot, prefix, from string) []*kv.Version) Fault {
	return shows(name, func(_ kv.Engine, s kv.Snapshot) kv.Snapshot {
		return &snapshot{Snapshot: s, ascend: func(prefix, from string) iter.Seq[*kv.Version] {
			return each(list(s, prefix, from))
		}}
	})
}

func each(all []*kv.Version) iter.Seq[*kv.Version] {
	return func(yield func(*kv.Version) bool) {
		for _, v := range all {
			if !yield(v) {
				return
			}
		}
	}
}

func collect(seq iter.Seq[*kv.Version]) (all []*kv.Version) {
	for v := range seq {
		all = append(all, v)
	}
	return all
}

// stale reads the state before the newest once in so many reads of a kind.
func stale(in int64, which func(kv.Freshness) bool) func(good kv.Engine, bad *engine) {
	return func(good kv.Engine, bad *engine) {
		var t turn
		bad.read = func(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
			if which(at) && t.now(in) {
				if s, err := good.Read(ctx, kv.Exactly(newest(good)-1)); err == nil {
					return s, nil
				}
			}
			return good.Read(ctx, at)
		}
	}
}

var readFaults = []Fault{
	fault("sometimes reads a state that is not the latest", stale(4, kv.Freshness.IsLatest)),
	fault("sometimes shows its writers a state from before", stale(2, func(at kv.Freshness) bool { return at == kv.Any })),
	reads("does not wait for a revision", func(ctx context.Context, good kv.Engine, at kv.Freshness) (kv.Snapshot, error) {
		if at.AtLeast() != kv.Absent {
			at = kv.Any
		}
		return good.Read(ctx, at)
	}),
	reads("says what it likes of a revision that does not come", func(ctx context.Context, good kv.Engine, at kv.Freshness) (kv.Snapshot, error) {
		s, err := good.Read(ctx, at)
		if errors.Is(err, kv.ErrFuture) {
			err = &kv.Error{Op: "read", Kind: kv.ErrFuture}
		}
		return s, err
	}),
	reads("never tires of waiting", func(ctx context.Context, good kv.Engine, at kv.Freshness) (kv.Snapshot, error) {
		return good.Read(context.WithoutCancel(ctx), at)
	}),
	reads("takes the newest state for any of the past", func(ctx context.Context, good kv.Engine, at kv.Freshness) (kv.Snapshot, error) {
		if rev, ok := at.Exactly(); ok && rev > 0 && rev < newest(good) {
			at = kv.Latest
		}
		return good.Read(ctx, at)
	}),
	reads("shows the future", func(ctx context.Context, good kv.Engine, at kv.Freshness) (kv.Snapshot, error) {
		if rev, ok := at.Exactly(); ok && rev > newest(good) {
			at = kv.Latest
		}
		return good.Read(ctx, at)
	}),
	reads("has the state before in place of an older one", func(ctx context.Context, good kv.Engine, at kv.Freshness) (kv.Snapshot, error) {
		s, err := good.Read(ctx, at)
		rev, ok := at.Exactly()
		if err != nil || !ok || rev >= newest(good) {
			return s, err
		}
		if before, err := good.Read(ctx, kv.Exactly(rev-1)); err == nil {
			return &snapshot{Snapshot: s, get: before.Get, ascend: before.Ascend}, nil
		}
		return s, nil
	}),
	reads("forgets in the past what has been deleted since", func(ctx context.Context, good kv.Engine, at kv.Freshness) (kv.Snapshot, error) {
		s, err := good.Read(ctx, at)
		if _, ok := at.Exactly(); !ok || err != nil {
			return s, err
		}
		now, err := good.Read(ctx, kv.Latest)
		return &snapshot{Snapshot: s, ascend: func(prefix, from string) iter.Seq[*kv.Version] {
			var kept []*kv.Version
			for v := range s.Ascend(prefix, from) {
				if now.Get(v.Key) != nil {
					kept = append(kept, v)
				}
			}
			return each(kept)
		}}, err
	}),
	shows("shows snapshots that change", func(good kv.Engine, s kv.Snapshot) kv.Snapshot {
		now := func() kv.Snapshot {
			if n, err := good.Read(context.Background(), kv.Latest); err == nil {
				return n
			}
			return s
		}
		return &snapshot{Snapshot: s,
			get:    func(key string) *kv.Version { return now().Get(key) },
			ascend: func(prefix, from string) iter.Seq[*kv.Version] { return now().Ascend(prefix, from) },
		}
	}),
	fault("loses snapshots of what it has forgotten", losesSnapshots),
	lists("lists in another order", func(s kv.Snapshot, prefix, from string) []*kv.Version {
		all := collect(s.Ascend(prefix, from))
		if len(all) > 1 {
			all[0], all[1] = all[1], all[0]
		}
		return all
	}),
	lists("lists the neighbours too", func(s kv.Snapshot, prefix, from string) (all []*kv.Version) {
		for v := range s.Ascend("", from) {
			if strings.HasPrefix(v.Key, strings.TrimSuffix(prefix, "/")) {
				all = append(all, v)
			}
		}
		return all
	}),
	lists("leaves out the last of a list", func(s kv.Snapshot, prefix, from string) []*kv.Version {
		all := collect(s.Ascend(prefix, from))
		if len(all) > 2 {
			return all[:len(all)-1]
		}
		return all
	}),
	lists("begins a list after the key that is named", func(s kv.Snapshot, prefix, from string) []*kv.Version {
		all := collect(s.Ascend(prefix, from))
		if len(all) > 0 && all[0].Key == from {
			return all[1:]
		}
		return all
	}),
}

func losesSnapshots(good kv.Engine, bad *engine) {
	var floor atomic.Uint64
	bad.compact = func(ctx context.Context, rev kv.Revision) error {
		floor.Store(max(floor.Load(), uint64(rev)))
		return good.(kv.Compactor).Compact(ctx, rev)
	}
	bad.read = func(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
		s, err := good.Read(ctx, at)
		if err != nil {
			return nil, err
		}
		gone := func() bool { return s.Revision() < kv.Revision(floor.Load()) }
		return &snapshot{Snapshot: s,
			get: func(key string) *kv.Version {
				if gone() {
					return nil
				}
				return s.Get(key)
			},
			ascend: func(prefix, from string) iter.Seq[*kv.Version] {
				if gone() {
					return each(nil)
				}
				return s.Ascend(prefix, from)
			},
		}, nil
	}
}
