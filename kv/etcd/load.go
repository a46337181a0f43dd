package etcd

import (
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

// Pages are read that are about as large as this.
const (
	pageBytes = 4 << 20
	pageFirst = 100 // keys of the first
	pageMax   = 10_000
)

// load reads the state at a revision, the oldest that etcd can tell, in place of all that was known, and answers commits that are seen
// in it. The watch goes on behind it.
func (e *Engine) load(ctx context.Context, at int64) error {
	f := &e.follows
	if _, newest := e.index.Revisions(); newest > e.in.ours(emptyRevision) {
		e.opts.Logger.Warn("kv/etcd: etcd has forgotten what is still needed: everything is read anew, and watches end", "from", newest, "to", e.in.ours(at))
	}
	var all []*kv.Version
	found := map[*ticket][]*kv.Version{} // of commits of this engine's that somebody waits for
	f.reader.rooted = f.reader.origin == never
	err := e.pages(ctx, at, func(have *mvccpb.KeyValue) error {
		v, by, err := f.reader.version(have)
		if v == nil {
			return err
		}
		all = append(all, v)
		if t := e.ticketOf(by); t != nil {
			found[t] = append(found[t], v)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !f.reader.rooted {
		return &ReplacedError{"the mark of the backup that it was restored from is gone"}
	}
	neverBack(all, e.in.ours(f.reader.origin))
	shown := e.in.ours(at)
	e.publishing.Lock()
	e.index.Restart(mvcc.Base{Revision: shown, Floor: shown, Versions: slices.Values(all)})
	e.publishing.Unlock()
	f.next = shown + 1
	f.last.Store(int64(f.reader.last))
	f.witness = witness{}
	e.obeyFloor()
	for t, versions := range found {
		if t.left(versions) {
			t.match(deed{revision: versions[0].Revision, versions: versions})
			close(t.done)
		}
	}
	f.loads.Add(1)
	e.mark.move(shown) // last, as where one is published
	return nil
}

// left says whether a state that holds these versions of a commit holds all that it was to leave. Of one that deletes, or that others have
// written over since, not everything can be told any more.
func (t *ticket) left(versions []*kv.Version) bool {
	return len(versions) == len(t.ops) && !slices.ContainsFunc(t.ops, func(op kv.Op) bool { return op.Delete })
}

// neverBack makes no version older than one before it; see reader. Those that were restored, up to a revision, keep the
// times that they had: they are in no order.
func neverBack(all []*kv.Version, restored kv.Revision) {
	byRevision := slices.Clone(all)
	slices.SortFunc(byRevision, func(a, b *kv.Version) int { return int(int64(a.Revision) - int64(b.Revision)) })
	var last kv.Instant
	for _, v := range byRevision {
		last = max(last, v.Time)
		if v.Revision > restored {
			v.Time = last
		}
	}
}

// pages calls f with every key at a revision, in order.
func (e *Engine) pages(ctx context.Context, at int64, f func(*mvccpb.KeyValue) error) error {
	from, limit := []byte(e.in.root), int64(pageFirst)
	for {
		r, err := e.kv.Range(withLeader(ctx), &pb.RangeRequest{Key: from, RangeEnd: []byte(e.in.end), Revision: at, Limit: limit}, patient, harmless)
		if err != nil {
			return err
		}
		if err := e.checkCluster(r.GetHeader()); err != nil {
			return err
		}
		size := int64(1)
		for _, have := range r.GetKvs() {
			size += int64(len(have.GetKey()) + len(have.GetValue()))
			if err := f(have); err != nil {
				return err
			}
		}
		if !r.GetMore() {
			return nil
		}
		n := len(r.GetKvs())
		from = append(slices.Clone(r.GetKvs()[n-1].GetKey()), 0)
		limit = min(max(int64(n)*pageBytes/size, 1), pageMax)
	}
}
