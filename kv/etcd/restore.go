package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/pawl-dev/pawl/kv"
)

// restorer is the author of the mark that a restore leaves.
var restorer = kv.Author{Manager: "pawl", Verb: "restore"}

// restoreName is the name by which a restore leads.
const restoreName = "restore"

// How a restore cleans up.
const (
	sweepKeys = 2000        // removed at a time
	sweepMax  = time.Minute // in all
)

// Restore makes a store under the prefix that opts name, where nothing may be, of the versions that some store had,
// and has [Engine.Once] return what is given to be kept beside it. It returns the revision that the store begins at,
// which is after the one given: etcd counts revisions as it does, and the store calls them by numbers that are far ahead of
// etcd's. So whoever has seen revisions of the store that the versions are from is told [kv.ErrCompacted]
// when it goes on from one of them, and no revision is given twice.
//
// Every version is put anew, so its revision is a new one; its author and the time of its commit are what they were. A key
// that expires goes when it was to go, and one whose time has come is left out. Versions are written as they come,
// in commits of [MaxOps] and [MaxBytes]; no more of them is held in memory.
//
// If it fails, everything is removed that it had written. Where that fails too, or nobody was there to do it, the prefix holds
// no store: [Open] returns an [UnfinishedError], and Restore begins anew.
func Restore(ctx context.Context, opts Options, after kv.Revision, versions iter.Seq2[*kv.Version, error], beside map[string][]byte) (kv.Revision, error) {
	opts = opts.complete()
	replica, err := newReplica(opts.Entropy)
	if err != nil {
		return kv.Absent, err
	}
	bounded, cancel := context.WithTimeout(ctx, opts.Patience)
	members, err := connect(bounded, opts, replica)
	cancel()
	if err != nil {
		return kv.Absent, err
	}
	defer members.close()
	conn := inTheNameOf(opts, members)
	ctx, cancel = context.WithCancel(ctx)
	defer cancel()
	r := &restore{
		opts: opts, in: newKeyspace(opts.Prefix), kv: pb.NewKVClient(conn), lease: pb.NewLeaseClient(conn),
		origin: origin{id: id{replica: replica}},
	}
	r.leases = newLeases(time.Now, r.grant)
	rev, err := r.run(ctx, after, versions, beside)
	if err != nil {
		return kv.Absent, fmt.Errorf("kv/etcd: restore: %w", err)
	}
	return rev, nil
}

// An OccupiedError says that there is something under a prefix where nothing may be.
type OccupiedError struct {
	Prefix, Key string
	Foreign     bool // it is none of pawl's
}

// Error names the prefix and a key under it.
func (e *OccupiedError) Error() string {
	return fmt.Sprintf("there is something under %s in etcd (%s is); %s", e.Prefix, e.Key, e.Hint())
}

// Hint says what to do; the error's text ends with it.
func (e *OccupiedError) Hint() string {
	if e.Foreign {
		return "name a prefix that no other program uses"
	}
	return "name another prefix, or remove what is under this one"
}

// errOvertaken is why a restore gives up, and leaves what it wrote to another.
var errOvertaken = errors.New("what it wrote was taken away while it wrote, by another restore or by hand")

// A restore is one under way. Everything that it writes is on the condition that its mark is as it left it.
type restore struct {
	opts   Options
	in     keyspace
	kv     pb.KVClient
	lease  pb.LeaseClient
	leases *leases

	origin  origin // the mark, with its revision
	batches uint64
	written int64 // keys
}

func (r *restore) run(ctx context.Context, after kv.Revision, versions iter.Seq2[*kv.Version, error], beside map[string][]byte) (kv.Revision, error) {
	if err := r.begin(ctx, after); err != nil {
		return kv.Absent, err
	}
	err := r.fill(ctx, versions)
	if err == nil {
		var rev kv.Revision
		if rev, err = r.finish(ctx, beside); err == nil {
			return rev, nil
		}
	}
	if errors.Is(err, errOvertaken) {
		return kv.Absent, err
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepMax)
	defer cancel()
	if failed := r.undo(bounded); failed != nil && !errors.Is(failed, errOvertaken) {
		return kv.Absent, fmt.Errorf("%w; what was written is still there, since it could not be removed (%w): restore again, which begins anew", err, failed)
	}
	return kv.Absent, err
}

// begin leaves a mark that says that a restore is under way, if there is nothing, or what a restore left that was broken off.
func (r *restore) begin(ctx context.Context, after kv.Revision) error {
	lease := int64(0)
	for {
		was, rev, err := r.look(ctx)
		if err != nil {
			return err
		}
		if lease == 0 {
			if lease, err = r.live(ctx); err != nil {
				return err
			}
		}
		r.origin.ahead = after - min(after, r.in.ours(rev))
		from, to := r.in.whole()
		vacant := &pb.Compare{Key: from, RangeEnd: to, Target: pb.Compare_VERSION, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_Version{Version: 0}}
		conditions := []*pb.Compare{vacant} // of no keys it is as of one that is not there
		if was.at != never {
			conditions = []*pb.Compare{atRevision(r.mark(), was.at), atRevision(r.leader(), never)}
		}
		done, err := r.txn(ctx, &pb.TxnRequest{Compare: conditions, Success: []*pb.RequestOp{
			putting(&pb.PutRequest{Key: r.mark(), Value: r.origin.encode(r.now())}),
			putting(&pb.PutRequest{Key: r.leader(), Value: fmt.Appendf(nil, "%x", r.origin.id.replica), Lease: lease}),
		}})
		if err != nil {
			return err
		}
		r.origin.at = done.GetHeader().GetRevision()
		if !done.GetSucceeded() {
			mine, _, err := r.look(ctx)
			if err != nil {
				return err
			}
			if mine.id != r.origin.id {
				continue // somebody was quicker, and is gone already
			}
			r.origin.at = mine.at // by an attempt that was not answered
		}
		if was.at == never {
			return nil
		}
		return r.sweep(ctx)
	}
}

// live returns a lease that lasts as long as this process, and a little longer.
func (r *restore) live(ctx context.Context) (int64, error) {
	number, _, err := r.grant(ctx, leadLease)
	if err != nil {
		return 0, err
	}
	go keep(ctx, r.lease, number, leadLease*time.Second)
	return number, nil
}

// look returns the mark of a restore that may be gone on with, one without a revision if there is nothing at all, and
// etcd's revision. It is an error if there is something else.
func (r *restore) look(ctx context.Context) (origin, int64, error) {
	from, to := r.in.whole()
	all := func(key []byte) *pb.RequestOp {
		return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}
	}
	first := &pb.RangeRequest{Key: from, RangeEnd: to, Limit: 1, KeysOnly: true}
	done, err := r.txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{
		all(r.mark()), all(r.leader()), {Request: &pb.RequestOp_RequestRange{RequestRange: first}},
	}})
	if err != nil {
		return origin{}, 0, err
	}
	found := func(i int) *pb.RangeResponse { return done.GetResponses()[i].GetResponseRange() }
	was, err := originOf(found(0).GetKvs())
	rev := done.GetHeader().GetRevision()
	switch anything := found(2).GetKvs(); {
	case err != nil:
		return origin{}, 0, err
	case was.id == r.origin.id && was.at != never:
		return was, rev, nil
	case was.at == never && len(anything) == 0:
		return origin{}, rev, nil
	case was.at == never || was.whole:
		return origin{}, 0, &OccupiedError{Prefix: r.opts.Prefix, Key: string(anything[0].GetKey())}
	case len(found(1).GetKvs()) > 0:
		return origin{}, 0, &UnfinishedError{r.opts.Prefix}
	}
	return was, rev, nil
}

func (r *restore) mark() []byte   { return r.in.in(originKey) }
func (r *restore) leader() []byte { return r.in.beside("leader", restoreName) }

func (r *restore) now() kv.Instant { return kv.InstantOf(r.opts.Clock.Now()) }

// fence is the condition that nobody has taken over.
func (r *restore) fence() *pb.Compare { return atRevision(r.mark(), r.origin.at) }

// txn asks etcd for something that may be done twice, until it answers.
func (r *restore) txn(ctx context.Context, request *pb.TxnRequest) (*pb.TxnResponse, error) {
	bounded, cancel := context.WithTimeout(ctx, r.opts.Patience)
	defer cancel()
	for {
		done, err := r.kv.Txn(withLeader(bounded), request, patient, harmless)
		if err == nil {
			return done, nil
		}
		if why := denied(r.opts.Prefix, err); isDenied(why) {
			return nil, why
		}
		switch judge(err, true) {
		case tooMuch, refused, noLease:
			return nil, err
		case full:
			return nil, errFull
		}
		select {
		case <-time.After(againAfter):
		case <-bounded.Done():
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("etcd at %s does not answer: %w", strings.Join(r.opts.Endpoints, ","), rpctypes.Error(err))
		}
	}
}

// fenced asks etcd for something on the condition that nobody has taken over.
func (r *restore) fenced(ctx context.Context, ops ...*pb.RequestOp) (*pb.TxnResponse, error) {
	done, err := r.txn(ctx, &pb.TxnRequest{Compare: []*pb.Compare{r.fence()}, Success: ops})
	if err == nil && !done.GetSucceeded() {
		return nil, errOvertaken
	}
	return done, err
}

// A batch is what is put by one commit.
type batch struct {
	puts    []*pb.PutRequest
	expires []kv.Instant
	size    int
}

// fill puts the versions.
func (r *restore) fill(ctx context.Context, versions iter.Seq2[*kv.Version, error]) error {
	overhead := reserved + 2*(len(r.mark())+framing)
	b := batch{size: overhead}
	for v, err := range versions {
		if err != nil {
			return err
		}
		put, size := r.put(v)
		if overhead+size > MaxBytes {
			return &kv.Error{Op: "restore", Key: v.Key, Kind: kv.ErrTooLarge, Err: fmt.Errorf(
				"it has %d bytes, and etcd takes at most %d: make it smaller where it is, and back up again", len(v.Value), MaxBytes)}
		}
		if len(b.puts) == MaxOps || b.size+size > MaxBytes {
			if err := r.send(ctx, b); err != nil {
				return err
			}
			b = batch{size: overhead}
			put.Value = r.envelope(v)
		}
		b.puts, b.expires, b.size = append(b.puts, put), append(b.expires, v.Expires), b.size+size
	}
	return r.send(ctx, b)
}

// put returns what puts a version, but for its lease, and how much of a request that takes.
func (r *restore) put(v *kv.Version) (*pb.PutRequest, int) {
	put := &pb.PutRequest{Key: r.in.in(v.Key), Value: r.envelope(v)}
	return put, len(put.Key) + len(put.Value) + framing
}

func (r *restore) envelope(v *kv.Version) []byte {
	e := envelope{id: id{r.origin.id.replica, r.batches + 1}, time: v.Time, expires: v.Expires, author: encodeAuthor(v.By()), value: v.Value}
	return e.encode()
}

// send puts what is in a batch and has not expired.
func (r *restore) send(ctx context.Context, b batch) error {
	for {
		ops, err := r.leased(ctx, b)
		if err != nil || len(ops) == 0 {
			return err
		}
		_, err = r.fenced(ctx, ops...)
		if err != nil && judge(err, true) == noLease { // it was so short that it has ended
			r.leases.drop(ctx)
			continue
		}
		r.batches++
		r.written += int64(len(ops))
		return err
	}
}

// leased returns the puts of a batch with leases that last until their keys expire.
func (r *restore) leased(ctx context.Context, b batch) ([]*pb.RequestOp, error) {
	var ops []*pb.RequestOp
	for i, put := range b.puts {
		if at := b.expires[i]; !at.IsZero() {
			left := at.Time().Sub(r.opts.Clock.Now())
			if left <= 0 {
				continue
			}
			lease, err := r.leases.get(ctx, left, 1)
			if err != nil {
				return nil, err
			}
			put.Lease = lease
		}
		ops = append(ops, putting(put))
	}
	return ops, nil
}

func (r *restore) grant(ctx context.Context, seconds int64) (number, granted int64, err error) {
	bounded, cancel := context.WithTimeout(ctx, r.opts.Patience)
	defer cancel()
	done, err := r.lease.LeaseGrant(withLeader(bounded), &pb.LeaseGrantRequest{TTL: seconds}, patient, harmless)
	if err != nil {
		return 0, 0, denied(r.opts.Prefix, err)
	}
	return done.GetID(), done.GetTTL(), nil
}

// finish says that all is there, if nobody else has written under the prefix.
func (r *restore) finish(ctx context.Context, beside map[string][]byte) (kv.Revision, error) {
	if err := r.alone(ctx); err != nil {
		return kv.Absent, err
	}
	whole := r.origin
	whole.whole = true
	ops := []*pb.RequestOp{
		putting(&pb.PutRequest{Key: r.mark(), Value: whole.encode(r.now())}),
		{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: r.leader()}}},
	}
	for _, name := range slices.Sorted(maps.Keys(beside)) {
		ops = append(ops, putting(&pb.PutRequest{Key: r.in.beside("once", name), Value: beside[name]}))
	}
	done, err := r.fenced(ctx, ops...)
	r.in.ahead = r.origin.ahead
	if err == nil {
		return r.in.ours(done.GetHeader().GetRevision()), nil
	}
	// It may have been done by an attempt that was not answered.
	if is, _, failed := r.look(ctx); failed == nil && is.id == r.origin.id && is.whole {
		return r.in.ours(is.at), nil
	}
	return kv.Absent, err
}

// alone returns an error if somebody else wrote under the prefix.
func (r *restore) alone(ctx context.Context) error {
	count := func(from, to []byte) *pb.RequestOp {
		return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: from, RangeEnd: to, CountOnly: true}}}
	}
	counted, err := r.fenced(ctx, count(r.in.whole()), count([]byte(r.in.root), []byte(r.in.end)))
	if err != nil {
		return err
	}
	n := func(i int) int64 { return counted.GetResponses()[i].GetResponseRange().GetCount() }
	const marks, leaders = 1, 1
	// Of the store's keys some may have expired. What is kept beside it, as every server keeps its keys, does not.
	if others := max(n(1)-r.written-marks, n(0)-n(1)-leaders); others > 0 {
		return fmt.Errorf("somebody else wrote under %s meanwhile (%d keys or more): stop the servers that use it, and restore again", r.opts.Prefix, others)
	}
	return nil
}

// sweep removes everything of a store but the mark and who leads. What else is under the prefix is somebody else's.
func (r *restore) sweep(ctx context.Context) error {
	ours, _ := r.in.parts()
	for _, part := range ours {
		if err := r.sweepPart(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

func (r *restore) sweepPart(ctx context.Context, part span) error {
	from := part.from
	for {
		page := &pb.RangeRequest{Key: from, RangeEnd: part.to, Limit: sweepKeys, KeysOnly: true}
		have, err := r.fenced(ctx, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: page}})
		if err != nil {
			return err
		}
		found := have.GetResponses()[0].GetResponseRange()
		var ops []*pb.RequestOp
		for _, run := range r.runs(found) {
			ops = append(ops, &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: run}})
		}
		if len(ops) > 0 {
			if _, err := r.fenced(ctx, ops...); err != nil {
				return err
			}
		}
		if !found.GetMore() {
			return nil
		}
		from = next(found.GetKvs()[len(found.GetKvs())-1].GetKey())
	}
}

// runs returns the ranges of the keys that were found, without those that a sweep leaves.
func (r *restore) runs(found *pb.RangeResponse) []*pb.DeleteRangeRequest {
	var runs []*pb.DeleteRangeRequest
	begin := true
	for _, have := range found.GetKvs() {
		key := have.GetKey()
		switch {
		case bytes.Equal(key, r.mark()), bytes.Equal(key, r.leader()):
			begin = true
			continue
		case begin:
			runs = append(runs, &pb.DeleteRangeRequest{Key: key})
			begin = false
		}
		runs[len(runs)-1].RangeEnd = next(key)
	}
	return runs
}

// next returns the key that comes next after key.
func next(key []byte) []byte { return append(slices.Clone(key), 0) }

// undo removes everything that was written.
func (r *restore) undo(ctx context.Context) error {
	if err := r.sweep(ctx); err != nil {
		return err
	}
	remove := func(key []byte) *pb.RequestOp {
		return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: key}}}
	}
	_, err := r.fenced(ctx, remove(r.mark()), remove(r.leader()))
	return err
}
