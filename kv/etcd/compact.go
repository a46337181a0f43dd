package etcd

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

// floorer is the author of what moves the floor.
var floorer = kv.Author{Manager: "pawl", Verb: "compact"}

// Compact implements [kv.Compactor]. It is etcd's history that is compacted, so that it does not come back; the other
// replicas forget it as soon as they are told. If etcd has no room to tell them, they notice later, and keep what is
// younger than [mvcc.MinHistory] until it is not.
func (e *Engine) Compact(ctx context.Context, rev kv.Revision) error {
	if e.isOver() {
		return e.failed(ctx, "compact", nil)
	}
	there, err := e.latest(ctx, "compact")
	switch {
	case err != nil:
		return err
	case rev > there:
		return &kv.Error{Op: "compact", Want: rev, Have: e.newest(), Kind: kv.ErrFuture}
	}
	bounded, cancel := context.WithTimeout(ctx, e.opts.Patience)
	defer cancel()
	rev = max(rev, e.in.first())
	_, untold := e.raise(bounded, rev)
	err = e.compact(bounded, rev)
	if untold == nil {
		err = e.unkept(err)
	}
	if err != nil {
		return e.uncompacted(ctx, e.named(err))
	}
	if untold != nil {
		e.opts.Logger.Warn("kv/etcd: history was compacted, and the other replicas are yet to notice", "before", rev, "error", untold)
	}
	e.forget(rev)
	return nil
}

// compact has etcd forget what is before rev, if it has not yet. Of several commits that are one revision of etcd's it forgets
// none: whoever is opened later reads what was before them, and is told of each.
func (e *Engine) compact(ctx context.Context, rev kv.Revision) error {
	at := e.in.theirs(rev)
	if e.in.behind(rev) > 0 {
		at = max(at-1, emptyRevision)
	}
	_, err := e.kv.Compact(withLeader(ctx), &pb.CompactionRequest{Revision: at}, patient, harmless)
	if says(err, errCompacted) {
		return nil
	}
	return err
}

// unkept returns what failed when etcd was to forget what all replicas were told to forget. That etcd does not let
// this one have it do that is no failure: what is told of the store is the same, and only etcd keeps more than it needs to.
func (e *Engine) unkept(err error) error {
	if !isDenied(e.named(err)) {
		return err
	}
	e.keeps.Do(func() {
		e.opts.Logger.Warn("kv/etcd: etcd keeps history that is forgotten, since it lets only its administrator compact: " +
			"have it compact by itself, with --auto-compaction-mode=periodic --auto-compaction-retention=1h")
	})
	return nil
}

// forget has the index forget what is before rev, up to which nothing is missing.
func (e *Engine) forget(rev kv.Revision) {
	e.publishing.Lock()
	defer e.publishing.Unlock()
	if rev > e.newest() { // nothing changed under the prefix since
		e.index.Publish(e.opts.Clock.Now(), rev, nil)
	}
	if err := e.index.Compact(e.ctx, rev); err != nil {
		e.opts.Logger.Warn("kv/etcd: history is to be forgotten that nobody has", "error", err)
	}
}

// uncompacted returns what is said of compacting that failed.
func (e *Engine) uncompacted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &kv.Error{Op: "compact", Kind: kv.ErrUnknown, Err: ctx.Err()}
	}
	return e.failed(ctx, "compact", err)
}

// raise moves the floor to rev, unless it is there. Of those who want to move it at the same time one does, and the
// others see that it was moved.
func (e *Engine) raise(ctx context.Context, rev kv.Revision) (moved bool, err error) {
	for {
		r, err := e.kv.Range(withLeader(ctx), &pb.RangeRequest{Key: e.in.in(floorKey)}, patient, harmless)
		if err != nil {
			return false, err
		}
		at, floor := int64(never), kv.Absent
		for _, have := range r.GetKvs() {
			was, err := decode(have.GetValue())
			if err != nil {
				return false, &UnreadableError{string(have.GetKey()), err}
			}
			c := cursor{rest: was.value}
			at, floor = have.GetModRevision(), kv.Revision(c.uvarint())
		}
		if floor >= rev {
			return false, e.reach(ctx, e.in.ours(r.GetHeader().GetRevision()))
		}
		said := e.aside(binary.AppendUvarint(nil, uint64(rev)))
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
		return true, e.reach(ctx, e.in.ours(set.GetHeader().GetRevision()))
	}
}

// aside returns the envelope of something that is no commit. Like theirs it is one that no pawl takes for its own which
// would call the revision in it by another number.
func (e *Engine) aside(value []byte) envelope {
	return envelope{grouped: true, id: id{e.replica, 0}, time: e.now(), author: encodeAuthor(floorer), value: value}
}

// notice forgets what etcd has forgotten, except what is younger than any history may be that is forgotten unasked.
func (e *Engine) notice(now time.Time) {
	ctx, cancel := context.WithTimeout(e.ctx, questionMax)
	defer cancel()
	oldest, _ := e.index.Revisions()
	young := e.index.NewestAt(now.Add(-mvcc.MinHistory))
	if young <= oldest {
		return
	}
	_, err := e.kv.Range(withLeader(ctx), &pb.RangeRequest{Key: e.in.in(floorKey), CountOnly: true, Revision: e.in.theirs(oldest)}, patient, harmless)
	if !says(err, errCompacted) {
		return
	}
	if rev, err := e.oldestThere(ctx, oldest); err == nil && min(rev, young) > oldest {
		e.forget(min(rev, young))
	}
}

// oldestThere asks from which revision on etcd has history, which is after one that it does not have. Only a watch is told.
func (e *Engine) oldestThere(ctx context.Context, gone kv.Revision) (kv.Revision, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := e.watch.Watch(withLeader(ctx), patient)
	if err != nil {
		return 0, err
	}
	err = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: e.in.in(floorKey), StartRevision: e.in.theirs(gone),
	}}})
	for err == nil {
		var r *pb.WatchResponse
		if r, err = stream.Recv(); err == nil && r.GetCompactRevision() != 0 {
			return e.in.ours(r.GetCompactRevision()), nil
		}
	}
	return 0, err
}

// look does, now and then, what nobody asks for: it notices that etcd is away, or has room again, keeps up with
// revisions of other prefixes, and forgets what is too old.
func (e *Engine) look() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	compacted, noticed := time.Now(), time.Now()
	var seen trail
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
		if e.health.barredNow() {
			e.tryRoom()
		}
		now := e.opts.Clock.Now()
		e.index.Trim(now)
		if time.Since(noticed) > noticeEvery {
			noticed = time.Now()
			e.notice(now)
			e.heed()
			seen.note(noticed, e.opts.history().Duration, e.newest())
		}
		if e.opts.CompactEvery > 0 && time.Since(compacted) > e.opts.CompactEvery {
			compacted = time.Now()
			e.cut(max(e.index.NewestAt(now.Add(-e.opts.history().Duration)), seen.old))
		}
	}
}

// A trail is what was the newest revision at times, by this machine's monotonic clock. The times of commits do not tell that
// while they stand still: those behind one whose writer's clock was ahead are all of its time.
type trail struct {
	old   kv.Revision // the newest of those that have aged
	steps []step      // that have not, in order
}

type step struct {
	at  time.Time
	rev kv.Revision
}

// note adds what is the newest now, and moves on to what was that for longer than age.
func (t *trail) note(now time.Time, age time.Duration, newest kv.Revision) {
	t.steps = append(t.steps, step{now, newest})
	n := 0
	for n < len(t.steps) && now.Sub(t.steps[n].at) > age {
		t.old = t.steps[n].rev
		n++
	}
	t.steps = slices.Delete(t.steps, 0, n)
}

// heed finds out whether etcd has raised the alarm that there is no room, which otherwise only those are told who write.
func (e *Engine) heed() {
	ctx, cancel := context.WithTimeout(e.ctx, questionMax)
	defer cancel()
	raised, err := pb.NewMaintenanceClient(e.members).Alarm(withLeader(ctx), &pb.AlarmRequest{Action: pb.AlarmRequest_GET}, patient, harmless)
	if err != nil {
		return // who may not ask finds out by writing
	}
	for _, a := range raised.Alarms {
		if a.GetAlarm() == pb.AlarmType_NOSPACE {
			e.health.isFull()
		}
	}
}

// tryRoom writes something small, to find out whether there is room, and whether that is let.
func (e *Engine) tryRoom() {
	ctx, cancel := context.WithTimeout(e.ctx, questionMax)
	defer cancel()
	said := e.aside(nil)
	_, err := e.kv.Put(withLeader(ctx), &pb.PutRequest{Key: e.in.in(roomKey), Value: said.encode()}, patient, harmless)
	switch why := e.named(err); {
	case err == nil:
		e.health.wrote(true)
	case isDenied(why):
		e.health.bar(why)
	}
}

// cut has etcd forget what is before rev, which is older than history is to be, unless another has done so.
func (e *Engine) cut(rev kv.Revision) {
	ctx, cancel := context.WithTimeout(e.ctx, e.opts.Patience)
	defer cancel()
	if oldest, _ := e.index.Revisions(); rev <= e.cutTo || rev < oldest {
		return
	}
	e.cutTo = rev
	moved, err := e.raise(ctx, rev)
	if err == nil && moved {
		err = e.unkept(e.compact(ctx, rev))
	}
	if err != nil {
		e.opts.Logger.Warn("kv/etcd: history could not be cut, and will be later", "error", err)
	} else if moved {
		e.opts.Logger.Debug("kv/etcd: history was cut", "before", rev)
	}
}
