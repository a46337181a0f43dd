package broken

import (
	"context"
	"errors"

	"github.com/pawl-dev/pawl/kv"
)

// compacts makes a fault of another way to compact.
func compacts(name string, compact func(ctx context.Context, good kv.Engine, rev kv.Revision) error) Fault {
	return fault(name, func(good kv.Engine, bad *engine) {
		bad.compact = func(ctx context.Context, rev kv.Revision) error { return compact(ctx, good, rev) }
	})
}

func compact(good kv.Engine, rev kv.Revision) error {
	return good.(kv.Compactor).Compact(context.Background(), rev)
}

var historyFaults = []Fault{
	compacts("forgets nothing", func(_ context.Context, good kv.Engine, rev kv.Revision) error {
		if rev > newest(good) {
			return compact(good, rev)
		}
		return nil
	}),
	compacts("forgets one revision too many", func(_ context.Context, good kv.Engine, rev kv.Revision) error {
		if err := compact(good, rev); err != nil {
			return err
		}
		return compact(good, min(rev+1, newest(good)))
	}),
	compacts("forgets what is to come", func(_ context.Context, good kv.Engine, rev kv.Revision) error {
		return compact(good, min(rev, newest(good)))
	}),
	compacts("does not forget twice", func(_ context.Context, good kv.Engine, rev kv.Revision) error {
		if oldest, _ := good.Revisions(); rev <= oldest && rev > 2 {
			return &kv.Error{Op: "compact", Kind: kv.ErrCompacted, Want: rev, Have: oldest}
		}
		return compact(good, rev)
	}),
	fault("forgets what is young", func(good kv.Engine, bad *engine) {
		var t turn
		bad.commit = func(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
			done, err := good.Commit(ctx, txn)
			if t.now(5) {
				compact(good, newest(good)-1)
			}
			return done, err
		}
	}),
	fault("ends every watch when it forgets", func(good kv.Engine, bad *engine) {
		var floor kv.Revision
		bad.compact = func(_ context.Context, rev kv.Revision) error {
			err := compact(good, rev)
			floor = max(floor, rev)
			return err
		}
		bad.watch = func(prefix string, after kv.Revision) (kv.Watch, error) {
			w, err := good.Watch(prefix, after)
			if err != nil {
				return nil, err
			}
			began := floor
			return &watch{Watch: w, next: func() (kv.Event, bool, error) {
				if floor > began {
					return kv.Event{}, false, &kv.Error{Op: "watch", Key: prefix, Kind: kv.ErrCompacted}
				}
				return w.Next()
			}}, nil
		}
	}),
	watches("skips what was forgotten before it was told", func(_ kv.Engine, w kv.Watch, bad *watch) {
		bad.next = func() (kv.Event, bool, error) {
			e, ok, err := w.Next()
			if errors.Is(err, kv.ErrCompacted) {
				return kv.Event{}, false, nil
			}
			return e, ok, err
		}
	}),
	joins("joins a watch after what is forgotten", func(good kv.Engine, prefix string, after kv.Revision) (kv.Watch, error) {
		w, err := good.Watch(prefix, after)
		if errors.Is(err, kv.ErrCompacted) {
			oldest, _ := good.Revisions()
			return good.Watch(prefix, oldest)
		}
		return w, err
	}),
	reads("reads the oldest state in place of what is forgotten", func(ctx context.Context, good kv.Engine, at kv.Freshness) (kv.Snapshot, error) {
		s, err := good.Read(ctx, at)
		if errors.Is(err, kv.ErrCompacted) {
			oldest, _ := good.Revisions()
			return good.Read(ctx, kv.Exactly(oldest))
		}
		return s, err
	}),
	fault("remembers a deletion as something that was", func(good kv.Engine, bad *engine) {
		dead := map[string]*kv.Version{}
		bad.commit = func(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
			done, err := good.Commit(ctx, txn)
			for _, v := range done.Versions {
				switch {
				case v == nil:
				case v.Deleted:
					dead[v.Key] = v.Prev()
				case dead[v.Key] != nil && v.Prev() == nil:
					v.SetPrev(dead[v.Key])
					v.Created = dead[v.Key].Created
				}
			}
			return done, err
		}
	}),
	fault("begins at revision 0", func(good kv.Engine, bad *engine) {
		bad.revisions = func() (oldest, newest kv.Revision) {
			if oldest, newest = good.Revisions(); newest == 1 {
				return 0, 0
			}
			return oldest, newest
		}
	}),
}
