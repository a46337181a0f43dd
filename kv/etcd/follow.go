package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"

	"github.com/pawl-dev/pawl/kv"
)

// A follower is the place of an engine in etcd's history.
type follower struct {
	wanted atomic.Uint64 // the newest revision that somebody waits for, and etcd has
	kick   chan struct{} // there is a newer one
	made   atomic.Uint64 // the newest revision that etcd has answered to this engine's writers
	last   atomic.Int64  // the time of the last commit, a kv.Instant
	loads  atomic.Int64  // how often everything was read, in which not every commit is seen
	heard  atomic.Uint64 // what its watches have told so far that was new: responses, and parts of them

	// Only follow uses these.
	reader  reader
	next    kv.Revision // that is to be told
	load    int64       // etcd's revision at which everything is to be read before that; never if nothing is
	witness witness
	vain    int     // watches that were ended because they told nothing, one after the other
	shun    *member // where the last of them was; nil if there is none
}

// A witness is a commit that was seen. If etcd tells it differently later, it tells another history.
type witness struct {
	key      []byte // that it put; nil if none was seen yet
	revision int64  // etcd's
	id       id
}

// want notes that somebody waits for a revision that etcd has.
func (e *Engine) want(rev kv.Revision) {
	raise(&e.follows.wanted, rev)
	select {
	case e.follows.kick <- struct{}{}:
	default:
	}
}

// raise makes at no less than rev.
func raise(at *atomic.Uint64, rev kv.Revision) {
	for was := at.Load(); was < uint64(rev); was = at.Load() {
		if at.CompareAndSwap(was, uint64(rev)) {
			return
		}
	}
}

// waiting says whether somebody waits for a revision that cannot be read yet.
func (e *Engine) waiting() bool { return kv.Revision(e.follows.wanted.Load()) > e.mark.revision() }

// A compactedError says that the watch needs history that is gone.
type compactedError struct{ oldest int64 }

func (e *compactedError) Error() string {
	return fmt.Sprintf("its history before revision %d is gone", e.oldest)
}

// follow keeps the index in step with etcd for as long as the engine lives.
func (e *Engine) follow() {
	for !e.isOver() {
		err := e.advance(e.ctx)
		var gone *compactedError
		var unreadable *UnreadableError
		var replaced *ReplacedError
		switch {
		case e.ctx.Err() != nil:
			return
		case errors.As(err, &unreadable), errors.As(err, &replaced):
			e.stop(err)
			return
		case errors.As(err, &gone):
			e.follows.load = gone.oldest
			continue
		case err == nil:
			continue
		}
		e.opts.Logger.Debug("kv/etcd: the watch broke, and goes on", "at", e.follows.next, "error", err)
		select {
		case <-time.After(againAfter):
		case <-e.ctx.Done():
		}
	}
}

// advance reads everything, if there is need to, or else what happens since.
func (e *Engine) advance(ctx context.Context) error {
	f := &e.follows
	if f.load == never {
		return e.tail(ctx)
	}
	err := e.load(ctx, f.load)
	if err == nil || says(err, errCompacted) { // then a watch says what can be read
		f.load = never
		return nil
	}
	return err
}

// tail publishes what one watch tells, until that ends.
func (e *Engine) tail(ctx context.Context) error {
	if err := e.confirm(ctx); err != nil {
		return err
	}
	f := &e.follows
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m, err := e.members.another(ctx, f.shun)
	if err != nil {
		return err
	}
	known, may := e.mark.revision(), stallFor(e.members, f.vain)
	e.runs.Go(func() { e.guard(ctx, cancel, m, may) })
	if err = e.hasten(ctx, m); err == nil {
		err = e.watchAt(ctx, m)
	}
	if e.mark.revision() > known {
		f.vain, f.shun = 0, nil
	}
	why := context.Cause(ctx)
	var stalled *stalledError
	if errors.As(why, &stalled) {
		f.vain, f.shun = f.vain+1, m
	}
	if why != nil {
		return why
	}
	return err
}

// watchAt publishes what a watch at a member tells, until that ends.
func (e *Engine) watchAt(ctx context.Context, m *member) error {
	stream, err := pb.NewWatchClient(m.link).Watch(withLeader(ctx), grpc.WaitForReady(e.members.alone()))
	if err != nil {
		return err
	}
	if err := stream.Send(e.watchFrom(e.in.theirs(e.follows.next), 0)); err != nil {
		return err
	}
	e.runs.Go(func() { e.urge(ctx, stream) })
	return e.receive(stream)
}

// watchFrom asks for a watch of the store from a revision of etcd's on. It has that number on its stream; 0 lets etcd choose.
func (e *Engine) watchFrom(rev, number int64) *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: []byte(e.in.root), RangeEnd: []byte(e.in.end), StartRevision: rev, Fragment: true, WatchId: number,
	}}}
}

// receive publishes what stream tells until it ends.
func (e *Engine) receive(stream grpc.BidiStreamingClient[pb.WatchRequest, pb.WatchResponse]) error {
	var events []*mvccpb.Event // of a response that comes in fragments
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := e.checkCluster(r.GetHeader()); err != nil {
			return err
		}
		switch {
		case r.GetCompactRevision() != 0:
			return &compactedError{r.GetCompactRevision()}
		case r.GetCanceled():
			return fmt.Errorf("etcd ended the watch: %s", r.GetCancelReason())
		case r.GetCreated():
			continue
		case len(r.GetEvents()) == 0:
			e.progress(e.in.ours(r.GetHeader().GetRevision()))
			continue
		}
		e.follows.heard.Add(1)
		if events = append(events, r.GetEvents()...); r.GetFragment() {
			continue
		}
		if err := e.publish(events); err != nil {
			return err
		}
		events = nil
	}
}

// publish makes what events tell readable, and answers whose commits they are.
func (e *Engine) publish(events []*mvccpb.Event) error {
	f := &e.follows
	for len(events) > 0 && e.in.ours(events[0].GetKv().GetModRevision()) < f.next {
		events = events[1:] // told before
	}
	if len(events) == 0 {
		return nil
	}
	deeds, versions, err := f.reader.deeds(events)
	if err != nil {
		return err
	}
	tickets := make([]*ticket, len(deeds))
	for i, d := range deeds {
		if tickets[i] = e.ticketOf(d.id); tickets[i] != nil {
			tickets[i].match(d)
		}
	}
	f.last.Store(int64(f.reader.last))
	newest := e.in.ours(events[len(events)-1].GetKv().GetModRevision())
	e.publishing.Lock()
	if len(versions) > 0 {
		e.index.Publish(e.opts.Clock.Now(), max(versions[len(versions)-1].Revision, e.newest()), versions)
	}
	e.publishing.Unlock()
	f.next = newest + 1
	e.testify(events, deeds[len(deeds)-1])
	e.obeyFloor()
	for _, t := range tickets {
		if t != nil {
			close(t.done)
		}
	}
	e.mark.move(newest) // last: who sees that and not its commit takes it for not made
	return nil
}

// obeyFloor forgets what all agreed to forget.
func (e *Engine) obeyFloor() {
	r := &e.follows.reader
	if !r.moved {
		return
	}
	r.moved = false
	e.forget(r.floor)
}

// progress notes that the watch has told everything up to rev.
func (e *Engine) progress(rev kv.Revision) {
	if rev < e.follows.next {
		return
	}
	e.follows.next = rev + 1
	e.mark.move(rev)
	e.follows.heard.Add(1)
}

// testify remembers the last put of the last deed.
func (e *Engine) testify(events []*mvccpb.Event, d deed) {
	last := events[len(events)-1]
	if d.id != (id{}) && last.GetType() == mvccpb.Event_PUT {
		e.follows.witness = witness{last.GetKv().GetKey(), last.GetKv().GetModRevision(), d.id}
	}
}

// confirm asks whether etcd goes on from what was seen of it. It is asked before every watch, since
// one that begins in a future that is lost would be told nothing.
func (e *Engine) confirm(ctx context.Context) error {
	w := e.follows.witness
	if w.key == nil {
		_, err := e.question()
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, questionMax)
	defer cancel()
	known := e.mark.revision()
	r, err := e.kv.Range(withLeader(ctx), &pb.RangeRequest{Key: w.key, Revision: w.revision}, patient, harmless)
	switch {
	case says(err, errCompacted):
		_, err := e.question()
		return err
	case says(err, errFutureRevision):
		return &ReplacedError{fmt.Sprintf("it does not know revision %d", w.revision)}
	case err != nil:
		err = e.named(err)
		e.health.failed(err)
		return err
	}
	if err := e.check(r.GetHeader(), known); err != nil {
		return err
	}
	if len(r.GetKvs()) == 1 && r.GetKvs()[0].GetModRevision() == w.revision {
		if have, err := decode(r.GetKvs()[0].GetValue()); err == nil && have.id == w.id {
			return nil
		}
	}
	return &ReplacedError{fmt.Sprintf("it tells revision %d differently", w.revision)}
}

// urge asks for progress on the watch's own stream for as long as somebody waits. It is answered only once the
// watch has told all there is, by a member that may be behind another, and so is asked again.
func (e *Engine) urge(ctx context.Context, stream grpc.BidiStreamingClient[pb.WatchRequest, pb.WatchResponse]) {
	pause := urgeMin
	again := time.NewTimer(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.follows.kick:
			pause = urgeMin
		case <-again.C:
		}
		if !e.waiting() {
			continue
		}
		err := stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
		if err != nil {
			return // the receiver is told why
		}
		again.Reset(pause)
		pause = min(2*pause, urgeMax)
	}
}

// A stalledError says that a watch told nothing while there was something to tell.
type stalledError struct {
	took time.Duration
	rev  kv.Revision
}

func (e *stalledError) Error() string {
	return fmt.Sprintf("the watch has told nothing for %v, though etcd is at revision %d", e.took.Round(time.Millisecond), e.rev)
}

// stallFor is how long a watch may tell nothing though there is something to tell, after so many that did: where there is another
// member to watch at not long; but longer each time, since etcd may have much to read, or the network to carry, before it tells anything.
func stallFor(ms *members, vain int) time.Duration {
	first := stallMin
	if ms.alone() {
		first = stallAlone
	}
	return min(first<<min(vain, 8), stallMax)
}

// guard ends the watch at m if it tells nothing for as long as may be, or a shorter time if m owes other answers, too.
func (e *Engine) guard(ctx context.Context, cancel context.CancelCauseFunc, m *member, may time.Duration) {
	tick := time.NewTicker(stallEvery)
	defer tick.Stop()
	var since time.Time // there has been something to tell
	var seen uint64
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		there, heard := kv.Revision(max(e.follows.wanted.Load(), e.follows.made.Load())), e.follows.heard.Load()
		switch {
		case there <= e.mark.revision():
			since = time.Time{}
			continue
		case since.IsZero() || heard != seen:
			since, seen = time.Now(), heard
		}
		took := time.Since(since)
		if took > may || took > stallOwing && e.members.owing(m) {
			cancel(&stalledError{took, there})
			return
		}
	}
}
