package broken

import (
	"context"
	"errors"
	"slices"
	"time"
	"unique"

	"github.com/pawl-dev/pawl/kv"
)

// commits makes a fault of another way to commit.
func commits(name string, commit func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error)) Fault {
	return fault(name, func(good kv.Engine, bad *engine) {
		bad.commit = func(ctx context.Context, txn kv.Txn) (kv.Committed, error) { return commit(ctx, good, txn) }
	})
}

// sometimes makes a fault of another way to commit, which is taken once in so many commits.
func sometimes(name string, in int64, commit func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error)) Fault {
	return fault(name, func(good kv.Engine, bad *engine) {
		var t turn
		bad.commit = func(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
			if !t.now(in) {
				return good.Commit(ctx, txn)
			}
			return commit(ctx, good, txn)
		}
	})
}

var commitFaults = []Fault{
	commits("commits whatever the conditions are", func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		txn.Conditions = nil
		return good.Commit(ctx, txn)
	}),
	commits("judges only the first condition", func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		txn.Conditions = txn.Conditions[:min(1, len(txn.Conditions))]
		return good.Commit(ctx, txn)
	}),
	commits("takes what exists for absent if it must be", func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		txn.Conditions = slices.DeleteFunc(slices.Clone(txn.Conditions), func(c kv.Condition) bool { return c.At == kv.Absent })
		return good.Commit(ctx, txn)
	}),
	commits("takes what was deleted for what it was", func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		done, err := good.Commit(ctx, txn)
		if e := conflict(err); e != nil && e.Have == kv.Absent {
			txn.Conditions = nil
			return good.Commit(ctx, txn)
		}
		return done, err
	}),
	commits("refuses what holds", func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		if len(txn.Conditions) > 0 {
			c := txn.Conditions[0]
			return kv.Committed{}, &kv.Error{Op: "commit", Key: c.Key, Want: c.At, Have: c.At + 1, Kind: kv.ErrConflict}
		}
		return good.Commit(ctx, txn)
	}),
	commits("names the last key in a conflict", func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		done, err := good.Commit(ctx, txn)
		now, unread := good.Read(ctx, kv.Any)
		if conflict(err) == nil || unread != nil {
			return done, err
		}
		for _, c := range slices.Backward(txn.Conditions) {
			if have := at(now, c.Key); have != c.At {
				return done, &kv.Error{Op: "commit", Key: c.Key, Want: c.At, Have: have, Kind: kv.ErrConflict}
			}
		}
		return done, err
	}),
	commits("makes what it refuses", func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		done, err := good.Commit(ctx, txn)
		if conflict(err) != nil {
			txn.Conditions = nil
			good.Commit(ctx, txn)
		}
		return done, err
	}),
	commits("refuses in words of its own", func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		done, err := good.Commit(ctx, txn)
		if err != nil {
			err = errors.New(err.Error())
		}
		return done, err
	}),
	commits("judges nothing if nothing is to change", func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		if len(txn.Ops) == 0 {
			return kv.Committed{Revision: newest(good)}, nil
		}
		return good.Commit(ctx, txn)
	}),
	commits("answers with no revision if nothing is asked", func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		done, err := good.Commit(ctx, txn)
		if len(txn.Ops)+len(txn.Conditions) == 0 {
			done.Revision = 0
		}
		return done, err
	}),
	commits("makes half of a transaction", func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		return half(ctx, good, txn, true)
	}),
	commits("makes a transaction in two steps", func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		return half(ctx, good, txn, false)
	}),
	commits("makes half of what it says is unknown", func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		if ctx.Done() == nil || len(txn.Ops) < 2 {
			return good.Commit(ctx, txn)
		}
		txn.Ops = txn.Ops[:1]
		if _, err := good.Commit(context.WithoutCancel(ctx), txn); err != nil {
			return kv.Committed{}, err
		}
		return kv.Committed{}, &kv.Error{Op: "commit", Kind: kv.ErrUnknown, Err: context.Canceled}
	}),
	commits("takes a cancelled context for a refusal", func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		done, err := good.Commit(ctx, txn)
		if errors.Is(err, kv.ErrUnknown) {
			err = &kv.Error{Op: "commit", Kind: kv.ErrReadOnly, Err: ctx.Err()}
		}
		return done, err
	}),
	sometimes("acknowledges what it does not make", 5, func(_ context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		return pretend(good, txn), nil
	}),
	sometimes("refuses what it makes", 5, func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		done, err := good.Commit(ctx, txn)
		if err == nil && len(txn.Conditions) > 0 {
			c := txn.Conditions[0]
			return kv.Committed{}, &kv.Error{Op: "commit", Key: c.Key, Want: c.At, Have: done.Revision, Kind: kv.ErrConflict}
		}
		return done, err
	}),
	sometimes("makes a commit twice", 5, func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		done, err := good.Commit(ctx, txn)
		if err == nil {
			txn.Conditions = nil
			good.Commit(ctx, txn)
		}
		return done, err
	}),
	sometimes("answers with an earlier revision", 3, func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		done, err := good.Commit(ctx, txn)
		done.Revision = max(done.Revision, 1) - 1
		return done, err
	}),
	commits("answers before what it did can be read", early),
	commits("answers a refusal before what it lost to can be read", func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		done, err := good.Commit(ctx, txn)
		if e := conflict(err); e != nil {
			err = &kv.Error{Op: e.Op, Key: e.Key, Want: e.Want, Have: newest(good) + 1, Kind: e.Kind}
		}
		return done, err
	}),
	commits("says that it deletes what is absent", func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		done, err := good.Commit(ctx, txn)
		for i, v := range done.Versions {
			if v == nil {
				done.Versions[i] = &kv.Version{Key: txn.Ops[i].Key, Revision: done.Revision, Deleted: true}
			}
		}
		return done, err
	}),
	commits("takes what breaks the rules", func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		done, err := good.Commit(ctx, txn)
		if errors.Is(err, kv.ErrInvalid) {
			return pretend(good, txn), nil
		}
		return done, err
	}),
	commits("refuses what is large", func(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
		for _, op := range txn.Ops {
			if len(op.Key) == kv.MaxKeyBytes || len(op.Value) == kv.MaxValueBytes {
				return kv.Committed{}, &kv.Error{Op: "commit", Key: op.Key, Kind: kv.ErrInvalid, Err: errors.New("too large")}
			}
		}
		return good.Commit(ctx, txn)
	}),
}

// at returns the revision of a key in a snapshot.
func at(s kv.Snapshot, key string) kv.Revision {
	if v := s.Get(key); v != nil {
		return v.Revision
	}
	return kv.Absent
}

// conflict returns err if it says that a condition does not hold.
func conflict(err error) *kv.Error {
	var e *kv.Error
	if errors.As(err, &e) && e.Kind == kv.ErrConflict {
		return e
	}
	return nil
}

// pretend is the answer to a commit that is not made.
func pretend(good kv.Engine, txn kv.Txn) kv.Committed {
	done := kv.Committed{Revision: newest(good) + 1}
	for _, op := range txn.Ops {
		done.Versions = append(done.Versions, &kv.Version{
			Key: op.Key, Value: op.Value, Revision: done.Revision, Created: done.Revision,
			Time: kv.InstantOf(time.Now()), Author: unique.Make(txn.Author), Deleted: op.Delete,
		})
	}
	return done
}

// half makes all changes but the last, and the last one never or later.
func half(ctx context.Context, good kv.Engine, txn kv.Txn, never bool) (kv.Committed, error) {
	n := len(txn.Ops) - 1
	if n < 1 {
		return good.Commit(ctx, txn)
	}
	last := kv.Txn{Author: txn.Author, Ops: txn.Ops[n:]}
	txn.Ops = txn.Ops[:n]
	first, err := good.Commit(ctx, txn)
	if err != nil {
		return first, err
	}
	if never {
		first.Versions = append(first.Versions, pretend(good, last).Versions...)
		return first, nil
	}
	second, err := good.Commit(ctx, last)
	second.Versions = append(first.Versions, second.Versions...)
	return second, err
}

// early answers at once and commits then.
func early(ctx context.Context, good kv.Engine, txn kv.Txn) (kv.Committed, error) {
	if len(txn.Conditions) > 0 {
		return good.Commit(ctx, txn)
	}
	go func() {
		time.Sleep(time.Millisecond)
		good.Commit(context.WithoutCancel(ctx), txn)
	}()
	return pretend(good, txn), nil
}
