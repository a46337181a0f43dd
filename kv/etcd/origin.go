package etcd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

// An origin says of a store that it was made from a backup: how far its revisions are ahead of etcd's, and whether
// all of it is there. A restore writes it before anything else, and again when it has ended. A store that was begun
// empty has none.
type origin struct {
	id    id
	whole bool
	ahead kv.Revision
	at    int64 // etcd's revision at which it was written; never if there is none
}

// The states of a restore, as they are kept.
const (
	restoring = 1 + iota
	restored
)

// encode returns o as it is kept: in an envelope that no pawl opens which counts revisions in another way.
func (o origin) encode(now kv.Instant) []byte {
	state := uint64(restoring)
	if o.whole {
		state = restored
	}
	value := binary.AppendUvarint(binary.AppendUvarint(nil, state), uint64(o.ahead))
	return envelope{grouped: true, id: o.id, time: now, author: encodeAuthor(restorer), value: value}.encode()
}

// originOf reads what is kept under the key of an origin.
func originOf(kvs []*mvccpb.KeyValue) (origin, error) {
	if len(kvs) == 0 {
		return origin{}, nil
	}
	have := kvs[0]
	unreadable := func(why error) (origin, error) { return origin{}, &UnreadableError{string(have.GetKey()), why} }
	e, err := decode(have.GetValue())
	if err != nil {
		return unreadable(err)
	}
	c := cursor{rest: e.value}
	state, ahead := c.uvarint(), c.uvarint()
	switch {
	case c.short:
		return unreadable(errShort)
	case state != restoring && state != restored:
		return unreadable(fmt.Errorf("it tells of a restore in state %d, which this pawl does not know", state))
	}
	return origin{id: e.id, whole: state == restored, ahead: kv.Revision(ahead), at: have.GetModRevision()}, nil
}

// An UnfinishedError says that a restore under a prefix is under way, or was broken off.
type UnfinishedError struct{ Prefix string }

// Error names the prefix, and says what to do.
func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("a backup is being restored under %s, or that was broken off; %s", e.Prefix, e.Hint())
}

// Hint says what to do; the error's text ends with it.
func (e *UnfinishedError) Hint() string {
	return "wait for it; if nobody is at it any more, restore again, 15 seconds after that ended: it begins anew"
}

// settle finds out how the store began, and has the engine begin so. It asks until etcd answers or ctx ends.
func (e *Engine) settle(ctx context.Context) error {
	for {
		err := e.trySettle(ctx)
		var unfinished *UnfinishedError
		var unreadable *UnreadableError
		var occupied *OccupiedError
		if err == nil || errors.As(err, &unfinished) || errors.As(err, &unreadable) || errors.As(err, &occupied) || isDenied(err) {
			return err
		}
		e.health.failed(err)
		select {
		case <-time.After(againAfter):
		case <-ctx.Done():
			return err
		}
	}
}

func (e *Engine) trySettle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, questionMax)
	defer cancel()
	r, err := e.kv.Range(withLeader(ctx), &pb.RangeRequest{Key: e.in.in(originKey)}, patient, harmless)
	if err != nil {
		return e.named(err)
	}
	o, err := originOf(r.GetKvs())
	switch {
	case err != nil:
		return err
	case o.at != never && !o.whole:
		return &UnfinishedError{e.opts.Prefix}
	}
	if err := e.survey(ctx); err != nil {
		return err
	}
	if err := e.checkCluster(r.GetHeader()); err != nil {
		return err
	}
	e.in.ahead = o.ahead
	e.index = mvcc.New(e.opts.history(), mvcc.Base{Revision: e.in.ours(emptyRevision), Floor: e.in.first()})
	e.mark.move(e.in.ours(emptyRevision))
	f := &e.follows
	f.next = e.in.ours(emptyRevision) + 1
	f.reader.in, f.reader.origin, f.reader.settled = e.in, o.at, r.GetHeader().GetRevision()
	if o.at != never { // what the restore put there is a state, without a history
		f.next, f.load = e.in.ours(o.at), o.at
	}
	return nil
}

// survey finds out whether etcd lets this one write, by asking for what never is: nothing is written. One that may
// only read does that, and says so. The same answer says what is under the prefix besides a store: nothing may be where a
// store is to begin.
func (e *Engine) survey(ctx context.Context) error {
	ask := &pb.TxnRequest{Compare: []*pb.Compare{atRevision(e.in.in(roomKey), -1)}}
	for _, key := range [][]byte{e.in.in(roomKey), e.in.beside("once", ""), e.in.beside("leader", "")} {
		ask.Success = append(ask.Success, putting(&pb.PutRequest{Key: key}))
	}
	ours, others := e.in.parts()
	for _, span := range append(ours, others...) {
		ask.Failure = append(ask.Failure, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{
			RequestRange: &pb.RangeRequest{Key: span.from, RangeEnd: span.to, Limit: 1, KeysOnly: true}}})
	}
	r, err := e.kv.Txn(withLeader(ctx), ask, patient, harmless)
	switch why := e.named(err); {
	case isDenied(why):
		e.health.bar(why)
		return nil
	case says(err, errNoSpace):
		e.health.isFull()
		return nil
	case err != nil:
		return err
	}
	for i, found := range r.GetResponses() {
		switch there := found.GetResponseRange().GetKvs(); {
		case len(there) == 0:
		case i < len(ours):
			return nil
		default:
			return &OccupiedError{e.opts.Prefix, string(there[0].GetKey()), true}
		}
	}
	return nil
}

// uprooted returns an error if what was read says that the store no longer is the one that was opened. What was
// there before may have been restored, and removed again.
func (r *reader) uprooted(have *mvccpb.KeyValue) error {
	if string(r.in.out(have.GetKey())) != originKey || have.GetModRevision() <= r.settled {
		return nil
	}
	return &ReplacedError{"since it was opened a backup was restored under its prefix, or removed there"}
}
