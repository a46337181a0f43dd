package broken

import (
	"context"
	"time"
	"unique"

	"github.com/pawl-dev/pawl/kv"
)

// expiries makes a fault of what becomes of the expiry that a put asks for.
func expiries(name string, ask func(kv.Expiry) kv.Expiry) Fault {
	return commits(name, func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		asked := make([]kv.Op, len(txn.Ops))
		for i, op := range txn.Ops {
			if !op.Delete {
				op.Expiry = ask(op.Expiry)
			}
			asked[i] = op
		}
		txn.Ops = asked
		return good.Commit(ctx, txn)
	})
}

// stretch makes the time that a key is given longer or shorter.
func stretch(by float64) func(kv.Expiry) kv.Expiry {
	return func(x kv.Expiry) kv.Expiry {
		x.For = time.Duration(float64(x.For) * by)
		return x
	}
}

var expiryFaults = []Fault{
	expiries("forgets an expiry", func(x kv.Expiry) kv.Expiry {
		if x.Kind == kv.After {
			x = kv.Expiry{Kind: kv.Forever}
		}
		return x
	}),
	expiries("keeps an expiry that is dropped", func(x kv.Expiry) kv.Expiry {
		if x.Kind == kv.Forever {
			x.Kind = kv.Keep
		}
		return x
	}),
	expiries("drops an expiry that is to be kept", func(x kv.Expiry) kv.Expiry {
		if x.Kind == kv.Keep {
			x.Kind = kv.Forever
		}
		return x
	}),
	expiries("lets keys go too early", stretch(0.9)),
	expiries("lets keys go too late", stretch(1.2)),
	fault("lets only some keys go", func(good kv.Engine, bad *engine) {
		var t turn
		bad.commit = func(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
			asked := make([]kv.Op, len(txn.Ops))
			for i, op := range txn.Ops {
				if op.Expiry.Kind == kv.After && t.now(1000) {
					op.Expiry = kv.Expiry{}
				}
				asked[i] = op
			}
			txn.Ops = asked
			return good.Commit(ctx, txn)
		}
	}),
	fault("takes the expiry of a deleted key for the next one's", func(good kv.Engine, bad *engine) {
		last := map[string]kv.Expiry{}
		bad.commit = func(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
			asked := make([]kv.Op, len(txn.Ops))
			for i, op := range txn.Ops {
				if op.Expiry.Kind == kv.After {
					last[op.Key] = op.Expiry
				}
				if op.Expiry.Kind == kv.Keep && !op.Delete && last[op.Key].For > 0 {
					op.Expiry = last[op.Key]
				}
				asked[i] = op
			}
			txn.Ops = asked
			return good.Commit(ctx, txn)
		}
	}),
	tells("does not say that it was time that deleted a key", func(e kv.Event) kv.Event {
		if e.Version.By().Verb == "expire" {
			e.Version = changed(e.Version, func(v *kv.Version) { v.Author = unique.Make(kv.Author{}) })
		}
		return e
	}),
}
