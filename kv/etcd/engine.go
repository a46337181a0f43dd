package etcd

import (
	"context"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

// An Engine is one of those that share a store in etcd.
type Engine struct {
	opts     Options
	in       keyspace
	index    *mvcc.Index
	leases   *leases
	asker    asker
	groups   grouper
	patience patience
	health   health
	keeps    sync.Once // it is said that etcd keeps its history

	members *members
	kv      pb.KVClient
	lease   pb.LeaseClient
	watch   pb.WatchClient

	ctx    context.Context // of everything that runs for the engine
	cancel context.CancelFunc
	runs   sync.WaitGroup

	replica uint64
	follows follower
	mark    mark

	publishing sync.Mutex  // held while the index is written to
	cutTo      kv.Revision // where look has cut history last

	over     chan struct{}           // closed when the engine has been closed, or has stopped
	endTerms context.CancelCauseFunc // called then, too
	released chan struct{}           // closed when Close is done

	mu      sync.Mutex // guards what follows
	closed  bool
	stopped error // why nothing more can be told
	number  uint64
	tickets map[uint64]*ticket
	commits sync.WaitGroup // under way
	cluster uint64         // etcd's id; 0 until it is known
}

var (
	_ kv.Engine    = (*Engine)(nil)
	_ kv.Compactor = (*Engine)(nil)
)

// Read implements [kv.Engine].
func (e *Engine) Read(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
	if e.isOver() {
		return nil, e.failed(ctx, "read", nil)
	}
	if exact, ok := at.Exactly(); ok {
		return e.exactly(ctx, exact, at)
	}
	if at.IsLatest() {
		if _, err := e.latest(ctx, "read"); err != nil {
			return nil, err
		}
	}
	if rev := at.AtLeast(); rev > e.newest() {
		return e.atLeast(ctx, rev, at)
	}
	return e.index.Read(ctx, at)
}

// newest returns the newest revision that the index shows.
func (e *Engine) newest() kv.Revision { return e.index.Newest().Revision() }

// latest waits until everything can be read that was answered before it was called, and returns etcd's
// revision at some time since.
func (e *Engine) latest(ctx context.Context, op string) (kv.Revision, error) {
	bounded, cancel := context.WithTimeout(ctx, e.opts.Patience)
	defer cancel()
	rev, err := e.ask(bounded)
	if err == nil {
		err = e.reach(bounded, rev)
	}
	if err == nil {
		return rev, nil
	}
	return 0, e.failed(ctx, op, err)
}

// failed returns what is said of something that came to nothing, and changed nothing.
func (e *Engine) failed(ctx context.Context, op string, err error) error {
	select {
	case <-e.over:
		return &kv.Error{Op: op, Kind: kv.ErrClosed, Err: e.why()}
	default:
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return &kv.Error{Op: op, Kind: kv.ErrAway, Err: e.health.explain(err)}
}

// atLeast reads once a revision can be read that the index has not seen. Another replica may have handed it
// out, or nobody yet.
func (e *Engine) atLeast(ctx context.Context, rev kv.Revision, at kv.Freshness) (kv.Snapshot, error) {
	for {
		wait, cancel := context.WithTimeout(ctx, futureEvery)
		if there, err := e.ask(wait); err == nil && rev <= there && e.reach(wait, rev) == nil {
			e.show(rev)
		}
		snap, err := e.index.Read(wait, at)
		cancel()
		if err == nil || ctx.Err() != nil || e.isOver() {
			return snap, err
		}
	}
}

// exactly reads at one revision, which another replica may have handed out.
func (e *Engine) exactly(ctx context.Context, rev kv.Revision, at kv.Freshness) (kv.Snapshot, error) {
	if rev > e.newest() && !e.isOver() {
		there, err := e.latest(ctx, "read")
		if err != nil {
			return nil, err
		}
		if rev <= there {
			e.show(rev)
		}
	}
	return e.index.Read(ctx, at)
}

// show has the index show a revision up to which nothing is missing. Without need it shows none at which nothing
// changed: a list of what is quiet is of the same revision each time, whatever else etcd holds.
func (e *Engine) show(rev kv.Revision) {
	e.publishing.Lock()
	defer e.publishing.Unlock()
	if rev > e.newest() && rev <= e.mark.revision() {
		e.index.Publish(e.opts.Clock.Now(), rev, nil)
	}
}

// ask returns a revision that holds all that was answered before it was called, asking etcd until it answers.
func (e *Engine) ask(ctx context.Context) (kv.Revision, error) {
	for {
		rev, err := e.asker.revision(ctx)
		if err == nil || ctx.Err() != nil || e.isOver() || judge(err, true) == refused {
			return rev, err
		}
		select {
		case <-time.After(againAfter):
		case <-ctx.Done():
			return 0, err
		case <-e.over:
			return 0, err
		}
	}
}

// reach waits until everything up to rev, which etcd has, can be read.
func (e *Engine) reach(ctx context.Context, rev kv.Revision) error {
	if rev <= e.mark.revision() {
		return nil
	}
	e.want(rev)
	return e.mark.await(ctx, rev, e.over)
}

// question is how the asker asks.
func (e *Engine) question() (kv.Revision, error) {
	ctx, cancel := context.WithTimeout(e.ctx, questionMax)
	defer cancel()
	known := e.mark.revision()
	r, err := e.kv.Range(withLeader(ctx), &pb.RangeRequest{Key: e.in.in(floorKey), CountOnly: true}, patient, harmless)
	if err != nil {
		err = e.named(err)
		e.health.failed(err)
		if isDenied(err) {
			e.introduce(ctx)
		}
		return 0, err
	}
	if err := e.check(r.GetHeader(), known); err != nil {
		e.stop(err)
		return 0, err
	}
	e.health.answered()
	return e.in.ours(r.GetHeader().GetRevision()), nil
}

// Watch implements [kv.Engine].
func (e *Engine) Watch(prefix string, after kv.Revision) (kv.Watch, error) {
	if err := e.why(); err != nil {
		return nil, &kv.Error{Op: "watch", Key: prefix, Kind: kv.ErrClosed, Err: err}
	}
	return e.index.Watch(prefix, after)
}

// Revisions implements [kv.Engine].
func (e *Engine) Revisions() (oldest, newest kv.Revision) { return e.index.Revisions() }

// Err implements [kv.Engine].
func (e *Engine) Err() error {
	if err := e.why(); err != nil {
		return err
	}
	if e.isOver() {
		return &kv.Error{Op: "commit", Kind: kv.ErrClosed}
	}
	return e.health.err()
}

func (e *Engine) isOver() bool {
	select {
	case <-e.over:
		return true
	default:
		return false
	}
}

// why returns why the engine has stopped, nil if it has not.
func (e *Engine) why() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stopped
}

// stop ends the engine, because something can never be told.
func (e *Engine) stop(why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped != nil || e.closed {
		return
	}
	e.opts.Logger.Error("kv/etcd: the engine has stopped: restart it once this is understood", "error", why)
	e.stopped = why
	close(e.over)
	e.endTerms(errOver)
	e.index.Close()
}

// Close implements [kv.Engine].
func (e *Engine) Close() error {
	e.mu.Lock()
	first := !e.closed
	e.closed = true
	e.mu.Unlock()
	if !first {
		<-e.released
		return nil
	}
	e.drain()
	e.mu.Lock()
	if e.stopped == nil {
		close(e.over)
		e.endTerms(errOver)
	}
	e.mu.Unlock()
	e.cancel()
	e.members.close()
	e.commits.Wait() // what was still on its way is answered now, as unknown
	e.index.Close()
	e.runs.Wait()
	close(e.released)
	return nil
}

// drain waits for commits under way, as long as etcd answers.
func (e *Engine) drain() {
	done := make(chan struct{})
	go func() {
		e.commits.Wait()
		close(done)
	}()
	for {
		select {
		case <-done:
			return
		case <-e.over:
			return
		case <-time.After(drainEvery):
		}
		ctx, cancel := context.WithTimeout(e.ctx, drainMax)
		_, err := e.asker.revision(ctx)
		cancel()
		if err != nil {
			return
		}
	}
}
