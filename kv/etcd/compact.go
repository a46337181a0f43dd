package etcd

import (
	"context"
	"encoding/binary"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/pawl-dev/pawl/kv"
)

// floorer is the author of what moves the floor.
var floorer = kv.Author{Manager: "pawl", Verb: "compact"}

// Compact implements [kv.Compactor]. All replicas forget, and etcd does.
func (e *Engine) Compact(ctx context.Context, rev kv.Revision) error {
	if e.isOver() {
		return e.failed(ctx, "compact", nil)
	}
	newest, err := e.latest(ctx, "compact")
	switch {
	case err != nil:
		return err
	case rev > newest:
		return &kv.Error{Op: "compact", Want: rev, Have: newest, Kind: kv.ErrFuture}
	}
	bounded, cancel := context.WithTimeout(ctx, e.opts.Patience)
	defer cancel()
	_, err = e.raise(bounded, max(rev, emptyRevision))
	return e.compacted(ctx, err)
}

// compacted returns what is said of compacting that ended so.
func (e *Engine) compacted(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case says(err, errNoSpace):
		e.health.isFull()
		return &kv.Error{Op: "compact", Kind: kv.ErrReadOnly, Err: errFull}
	case ctx.Err() != nil:
		return &kv.Error{Op: "compact", Kind: kv.ErrUnknown, Err: ctx.Err()}
	}
	return e.failed(ctx, "compact", err)
}

// raise moves the floor to rev, unless it is there, and has etcd forget what is below. Of those who
// want to move it at the same time one does, and the others see that it was moved.
func (e *Engine) raise(ctx context.Context, rev kv.Revision) (moved bool, err error) {
	for {
		r, err := e.kv.Range(withLeader(ctx), &pb.RangeRequest{Key: e.in.in(floorKey)}, patient)
		if err != nil {
			return false, err
		}
		var at, floor kv.Revision
		for _, have := range r.GetKvs() {
			was, err := decode(have.GetValue())
			if err != nil {
				return false, &UnreadableError{string(have.GetKey()), err}
			}
			c := cursor{rest: was.value}
			at, floor = kv.Revision(have.GetModRevision()), kv.Revision(c.uvarint())
		}
		if floor >= rev {
			return false, e.reach(ctx, kv.Revision(r.GetHeader().GetRevision()))
		}
		said := envelope{id: id{e.replica, 0}, time: e.now(), author: encodeAuthor(floorer), value: binary.AppendUvarint(nil, uint64(rev))}
		set, err := e.kv.Txn(withLeader(ctx), &pb.TxnRequest{
			Compare: []*pb.Compare{atRevision(e.in.in(floorKey), at)},
			Success: []*pb.RequestOp{putting(&pb.PutRequest{Key: e.in.in(floorKey), Value: said.encode()})},
		}, patient)
		if err != nil {
			return false, err
		}
		if !set.GetSucceeded() {
			continue
		}
		if err := e.reach(ctx, kv.Revision(set.GetHeader().GetRevision())); err != nil {
			return true, err
		}
		_, err = e.kv.Compact(withLeader(ctx), &pb.CompactionRequest{Revision: int64(rev)}, patient)
		if says(err, errCompacted) {
			err = nil // somebody else has, and further
		}
		return true, err
	}
}

// look does, now and then, what nobody asks for: it notices that etcd is away, or has room again, keeps up with
// revisions of other prefixes, and forgets what is too old.
func (e *Engine) look() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	compacted := time.Now()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-tick.C:
		}
		if e.health.idle() > lookEvery {
			if rev, err := e.asker.revision(e.ctx); err == nil {
				e.want(rev)
			}
		}
		if e.health.fullNow() {
			e.tryRoom()
		}
		now := e.opts.Clock.Now()
		e.index.Trim(now)
		if e.opts.CompactEvery > 0 && time.Since(compacted) > e.opts.CompactEvery {
			compacted = time.Now()
			e.cut(now)
		}
	}
}

// tryRoom writes something small, to find out whether there is room.
func (e *Engine) tryRoom() {
	ctx, cancel := context.WithTimeout(e.ctx, questionMax)
	defer cancel()
	said := envelope{id: id{e.replica, 0}, time: e.now(), author: encodeAuthor(floorer)}
	_, err := e.kv.Put(withLeader(ctx), &pb.PutRequest{Key: e.in.in(roomKey), Value: said.encode()}, patient)
	if err == nil {
		e.health.wrote(true)
	}
}

// cut has etcd forget what is older than history is to be, unless another has done so.
func (e *Engine) cut(now time.Time) {
	ctx, cancel := context.WithTimeout(e.ctx, e.opts.Patience)
	defer cancel()
	oldest, _ := e.index.Revisions()
	rev := e.index.NewestAt(now.Add(-e.opts.history().Duration))
	if rev <= e.cutTo || rev < oldest {
		return
	}
	e.cutTo = rev
	if moved, err := e.raise(ctx, rev); err != nil {
		e.opts.Logger.Warn("kv/etcd: history could not be cut, and will be later", "error", err)
	} else if moved {
		e.opts.Logger.Debug("kv/etcd: history was cut", "before", rev)
	}
}
