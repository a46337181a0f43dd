package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

// Times of leading.
const (
	leadLease = 15 // seconds that a leader which is gone stays leader
	leadEvery = 2 * time.Second
)

// Once returns what is kept under name beside the store, for all replicas the same. If there is nothing yet, what the
// first of them makes is kept.
func (e *Engine) Once(ctx context.Context, name string, produce func() ([]byte, error)) ([]byte, error) {
	key := e.in.beside("once", name)
	have, err := e.kv.Range(withLeader(ctx), &pb.RangeRequest{Key: key}, patient, harmless)
	switch {
	case err != nil:
		return nil, fmt.Errorf("kv/etcd: read %s: %w", key, e.named(err))
	case len(have.GetKvs()) > 0:
		return have.GetKvs()[0].GetValue(), nil
	}
	made, err := produce()
	if err != nil {
		return nil, err
	}
	return e.keepIf(ctx, atRevision(key, never), made, "came and went while it was made")
}

// Replace keeps another thing under name in place of what was kept there, and returns what is kept then: of those who
// replace the same thing at once one does, and all are returned that one's.
func (e *Engine) Replace(ctx context.Context, name string, was, by []byte) ([]byte, error) {
	key := e.in.beside("once", name)
	holds := &pb.Compare{Key: key, Target: pb.Compare_VALUE, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_Value{Value: was}}
	return e.keepIf(ctx, holds, by, "is gone")
}

// keepIf keeps value under the key of a condition if that holds, and returns what is kept then. If nothing is, it is said
// what became of it.
func (e *Engine) keepIf(ctx context.Context, holds *pb.Compare, value []byte, gone string) ([]byte, error) {
	key := holds.Key
	set, err := e.kv.Txn(withLeader(ctx), &pb.TxnRequest{
		Compare: []*pb.Compare{holds},
		Success: []*pb.RequestOp{putting(&pb.PutRequest{Key: key, Value: value})},
		Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}},
	}, patient, harmless) // done again it tells what is kept
	switch {
	case err != nil:
		return nil, fmt.Errorf("kv/etcd: write %s: %w", key, e.named(err))
	case set.GetSucceeded():
		return value, nil
	}
	kvs := set.GetResponses()[0].GetResponseRange().GetKvs()
	if len(kvs) == 0 {
		return nil, fmt.Errorf("kv/etcd: %s %s: start again", key, gone)
	}
	return kvs[0].GetValue(), nil
}

// Lead calls run whenever this replica is the one that leads what is called name, until ctx ends. Run's context ends
// when it no longer does; if etcd cannot be reached another may lead already by then, for a moment, so what run
// does must not harm if it is done twice. If run returns, somebody else may lead, or this one again.
func (e *Engine) Lead(ctx context.Context, name string, run func(context.Context)) {
	for ctx.Err() == nil && !e.isOver() {
		if err := e.lead(ctx, name, run); err != nil && ctx.Err() == nil {
			e.opts.Logger.Debug("kv/etcd: nobody knows who leads, and it is tried again", "name", name, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-e.over:
		case <-time.After(leadEvery):
		}
	}
}

// lead leads until it no longer does, or not at all if another does.
func (e *Engine) lead(ctx context.Context, name string, run func(context.Context)) error {
	key := e.in.beside("leader", name)
	have, err := e.kv.Range(withLeader(ctx), &pb.RangeRequest{Key: key, CountOnly: true}, patient, harmless)
	if err != nil || have.GetCount() > 0 {
		return err
	}
	lease, _, err := e.grant(ctx, leadLease)
	if err != nil {
		return err
	}
	defer e.giveUp(lease)
	set, err := e.kv.Txn(withLeader(ctx), &pb.TxnRequest{
		Compare: []*pb.Compare{atRevision(key, never)},
		Success: []*pb.RequestOp{putting(&pb.PutRequest{Key: key, Value: fmt.Appendf(nil, "%x", e.replica), Lease: lease})},
	}, patient)
	if err != nil || !set.GetSucceeded() {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.opts.Logger.Info("kv/etcd: this replica leads", "name", name)
	defer e.opts.Logger.Info("kv/etcd: this replica no longer leads", "name", name)
	go func() {
		defer cancel()
		keep(ctx, e.lease, lease, leadLease*time.Second)
	}()
	run(ctx)
	return context.Cause(ctx)
}

// giveUp lets another lead at once.
func (e *Engine) giveUp(lease int64) {
	ctx, cancel := context.WithTimeout(context.Background(), questionMax)
	defer cancel()
	if _, err := e.lease.LeaseRevoke(ctx, &pb.LeaseRevokeRequest{ID: lease}, patient, harmless); err != nil && !errors.Is(err, context.Canceled) {
		e.opts.Logger.Debug("kv/etcd: another leads once the lease has ended", "error", err)
	}
}

// Measure returns how much is held in memory.
func (e *Engine) Measure() mvcc.Measures { return e.index.Measure() }

// NewestAt returns the revision that was the newest at a time, as far as history tells; see [mvcc.Index.NewestAt].
func (e *Engine) NewestAt(at time.Time) kv.Revision { return e.index.NewestAt(at) }
