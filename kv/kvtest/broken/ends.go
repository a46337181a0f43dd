package broken

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"

	"github.com/pawl-dev/pawl/kv"
)

var endFaults = []Fault{
	fault("commits after it was closed, it says", func(good kv.Engine, bad *engine) {
		bad.commit = func(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
			done, err := good.Commit(ctx, txn)
			if errors.Is(err, kv.ErrClosed) {
				return pretend(good, txn), nil
			}
			return done, err
		}
	}),
	fault("takes writes, it says, after it was closed", func(_ kv.Engine, bad *engine) { bad.err = func() error { return nil } }),
	fault("takes no writes, it says, from the beginning", func(_ kv.Engine, bad *engine) {
		bad.err = func() error { return kv.ErrReadOnly }
	}),
	fault("cannot be closed twice", func(good kv.Engine, bad *engine) {
		var closed atomic.Bool
		bad.close = func() error {
			if closed.Swap(true) {
				return kv.ErrClosed
			}
			return good.Close()
		}
	}),
	fault("forgets history after it was closed", func(good kv.Engine, bad *engine) {
		bad.compact = func(_ context.Context, rev kv.Revision) error {
			if err := compact(good, rev); !errors.Is(err, kv.ErrClosed) {
				return err
			}
			return nil
		}
	}),
	fault("reads after it was closed", func(good kv.Engine, bad *engine) {
		last, _ := good.Read(context.Background(), kv.Latest)
		bad.read = func(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
			s, err := good.Read(ctx, at)
			if errors.Is(err, kv.ErrClosed) {
				return last, nil
			}
			return s, err
		}
	}),
	fault("watches after it was closed", func(good kv.Engine, bad *engine) {
		var closed atomic.Bool
		bad.close = func() error {
			closed.Store(true)
			return good.Close()
		}
		bad.watch = func(prefix string, after kv.Revision) (kv.Watch, error) {
			w, err := good.Watch(prefix, after)
			if err != nil {
				return nil, err
			}
			return &watch{Watch: w, next: func() (kv.Event, bool, error) {
				e, ok, err := w.Next()
				if closed.Load() {
					return kv.Event{}, false, nil
				}
				return e, ok, err
			}}, nil
		}
	}),
	fault("lets reads wait on when it is closed", func(good kv.Engine, bad *engine) {
		bad.read = func(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
			s, err := good.Read(ctx, at)
			if errors.Is(err, kv.ErrClosed) && at.AtLeast() > newest(good) {
				<-ctx.Done()
			}
			return s, err
		}
	}),
	fault("cuts off the commits under way when it is closed", func(good kv.Engine, bad *engine) {
		var closed, cut atomic.Bool
		bad.close = func() error {
			closed.Store(true)
			for range 100_000 { // for there to be one under way
				if cut.Load() {
					break
				}
				runtime.Gosched()
			}
			return good.Close()
		}
		bad.commit = func(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
			done, err := good.Commit(ctx, txn)
			if closed.Load() {
				cut.Store(true)
				err = &kv.Error{Op: "commit", Kind: kv.ErrUnknown, Err: err}
			}
			return done, err
		}
	}),
}
