package broken

import (
	"context"
	"time"
	"unique"

	"github.com/pawl-dev/pawl/kv"
)

// versions makes a fault of what is done to each version of a commit before its writer is
// answered; i counts them.
func versions(name string, spoil func(i int64, op kv.Op, v *kv.Version)) Fault {
	return fault(name, func(good kv.Engine, bad *engine) {
		var t turn
		bad.commit = func(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
			done, err := good.Commit(ctx, txn)
			for i, v := range done.Versions {
				if v != nil {
					spoil(t.n.Add(1), txn.Ops[i], v)
				}
			}
			return done, err
		}
	})
}

var versionFaults = []Fault{
	versions("keeps the caller's slice", func(_ int64, op kv.Op, v *kv.Version) { v.Value = op.Value }),
	versions("takes an empty value for none", func(_ int64, _ kv.Op, v *kv.Version) {
		if len(v.Value) == 0 {
			v.Value = nil
		}
	}),
	versions("forgets who wrote", func(_ int64, _ kv.Op, v *kv.Version) { v.Author = unique.Make(kv.Author{}) }),
	versions("takes every version for the first", func(_ int64, _ kv.Op, v *kv.Version) { v.Created = v.Revision }),
	versions("forgets that a key was deleted", func(_ int64, _ kv.Op, v *kv.Version) {
		if p := v.Prev(); p != nil && p.Deleted {
			v.SetPrev(nil)
			v.Created = p.Created
		}
	}),
	versions("forgets what was before", func(_ int64, _ kv.Op, v *kv.Version) { v.SetPrev(nil) }),
	versions("goes by a clock that runs backwards", func(i int64, _ kv.Op, v *kv.Version) {
		v.Time = v.Time.Add(time.Duration(-i) * time.Hour)
	}),
	versions("loses the slot of what was just written", func(_ int64, op kv.Op, v *kv.Version) {
		if op.Slot != nil {
			v.Slot.Store("somebody else's")
		}
	}),
	fault("counts the operations and not the commits", func(good kv.Engine, bad *engine) {
		bad.commit = func(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
			done, err := good.Commit(ctx, txn)
			for i, v := range done.Versions {
				if v != nil {
					done.Versions[i] = changed(v, func(c *kv.Version) { c.Revision += kv.Revision(i) })
				}
			}
			return done, err
		}
	}),
}
