package etcd

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// A quorum is what the members of an etcd agree on: all that was ever put or deleted.
type quorum struct {
	chance *rand.Rand

	mu  sync.Mutex // guards what follows, and chance
	now map[string]*mvccpb.KeyValue
	log []*mvccpb.Event
	at  []time.Time // each revision was made, from emptyRevision on

	oldest int64 // revision that is not compacted
}

func (q *quorum) head() *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: 1, Revision: int64(len(q.at))}
}

// judge makes what a transaction makes, at the next revision, and answers.
func (q *quorum) judge(r *pb.TxnRequest) *pb.TxnResponse {
	before := len(q.log)
	a := q.part(r, int64(len(q.at)+1))
	if len(q.log) > before {
		q.at = append(q.at, time.Now())
	}
	a.Header = q.head()
	return a
}

func (q *quorum) part(r *pb.TxnRequest, rev int64) *pb.TxnResponse {
	a := &pb.TxnResponse{Succeeded: true}
	for _, c := range r.Compare {
		have := q.now[string(c.Key)]
		want, is := c.GetModRevision(), have.GetModRevision()
		if c.Target == pb.Compare_CREATE {
			want, is = c.GetCreateRevision(), have.GetCreateRevision()
		}
		a.Succeeded = a.Succeeded && want == is
	}
	ops := r.Success
	if !a.Succeeded {
		ops = r.Failure
	}
	for _, op := range ops {
		one := &pb.ResponseOp{}
		switch {
		case op.GetRequestTxn() != nil:
			one.Response = &pb.ResponseOp_ResponseTxn{ResponseTxn: q.part(op.GetRequestTxn(), rev)}
		case op.GetRequestPut() != nil:
			put := op.GetRequestPut()
			made := rev
			if was := q.now[string(put.Key)]; was != nil {
				made = was.CreateRevision
			}
			q.happen(mvccpb.Event_PUT, &mvccpb.KeyValue{Key: put.Key, Value: slices.Clone(put.Value), ModRevision: rev, CreateRevision: made})
		case op.GetRequestDeleteRange() != nil:
			if key := op.GetRequestDeleteRange().Key; q.now[string(key)] != nil {
				q.happen(mvccpb.Event_DELETE, &mvccpb.KeyValue{Key: key, ModRevision: rev})
			}
		default:
			found := &pb.RangeResponse{}
			if have := q.now[string(op.GetRequestRange().Key)]; have != nil {
				found.Kvs = append(found.Kvs, have)
			}
			one.Response = &pb.ResponseOp_ResponseRange{ResponseRange: found}
		}
		a.Responses = append(a.Responses, one)
	}
	return a
}

func (q *quorum) happen(what mvccpb.Event_EventType, to *mvccpb.KeyValue) {
	q.log = append(q.log, &mvccpb.Event{Type: what, Kv: to})
	if q.now[string(to.Key)] = to; what == mvccpb.Event_DELETE {
		delete(q.now, string(to.Key))
	}
}

// do does what one is asked for.
func (q *quorum) do(args, reply any) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch asked := args.(type) {
	case *pb.TxnRequest:
		a := q.judge(asked)
		if r, ok := reply.(*pb.TxnResponse); ok {
			r.Header, r.Succeeded, r.Responses = a.Header, a.Succeeded, a.Responses
		}
	case *pb.RangeRequest:
		r, ok := reply.(*pb.RangeResponse)
		if !ok {
			return nil
		}
		r.Header, r.Kvs, r.More = q.head(), nil, false
		if asked.Revision != 0 && asked.Revision < q.oldest {
			return rpctypes.ErrGRPCCompacted
		}
		q.look(asked, r)
	}
	return nil
}

// look answers what is asked for of what there is, or was.
func (q *quorum) look(asked *pb.RangeRequest, r *pb.RangeResponse) {
	then := q.now
	if asked.Revision != 0 {
		then = q.then(asked.Revision)
	}
	if have := then[string(asked.Key)]; asked.RangeEnd == nil {
		if have != nil {
			r.Kvs = append(r.Kvs, have)
		}
		return
	}
	for _, key := range slices.Sorted(maps.Keys(then)) {
		if key < string(asked.Key) || key >= string(asked.RangeEnd) {
			continue
		}
		if r.More = int64(len(r.Kvs)) == min(asked.Limit, 5); r.More { // so that there are several pages
			return
		}
		r.Kvs = append(r.Kvs, then[key])
	}
}

// then is what there was at a revision.
func (q *quorum) then(rev int64) map[string]*mvccpb.KeyValue {
	was := &quorum{now: map[string]*mvccpb.KeyValue{}}
	for _, e := range q.log {
		if e.Kv.ModRevision <= rev {
			was.happen(e.Type, e.Kv)
		}
	}
	return was.now
}

// compact forgets all that is older than the newest revision.
func (q *quorum) compact() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.oldest = int64(len(q.at))
}

// dice says yes once in so many times.
func (q *quorum) dice(n int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.chance.IntN(n) == 0
}

// some is a time up to d.
func (q *quorum) some(d time.Duration) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return 1 + time.Duration(q.chance.Int64N(int64(d)))
}

// A voter is a member that something is the matter with most of the time.
type voter struct {
	*quorum

	mood   sync.Mutex // guards what follows
	ails   ailment
	healed chan struct{} // closed when it changes
}

// An ailment is what is the matter with a member.
type ailment uint8

const (
	fine       ailment = iota
	mute               // it hangs
	away               // there is no connection
	leaderless         // it has no leader
	late               // its watches are five seconds late
	shaky              // its connections break
	ailments
)

func (v *voter) is() (ailment, chan struct{}) {
	v.mood.Lock()
	defer v.mood.Unlock()
	return v.ails, v.healed
}

func (v *voter) turn(to ailment) {
	v.mood.Lock()
	defer v.mood.Unlock()
	v.ails = to
	close(v.healed)
	v.healed = make(chan struct{})
}

func (v *voter) Close() error { return nil }

func (v *voter) GetState() connectivity.State {
	if is, _ := v.is(); is == away {
		return connectivity.TransientFailure
	}
	return connectivity.Ready
}

// speak returns once the member can say something, or why it cannot.
func (v *voter) speak(ctx context.Context) error {
	pause := time.After(v.some(4 * time.Millisecond))
	for {
		is, healed := v.is()
		switch {
		case is == away, is == shaky && v.dice(8):
			return status.Error(codes.Unavailable, "it broke")
		case is == mute:
			select {
			case <-healed:
				continue
			case <-ctx.Done():
				return status.FromContextError(ctx.Err()).Err()
			}
		}
		select {
		case <-pause:
			return nil
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		}
	}
}

func (v *voter) Invoke(ctx context.Context, _ string, args, reply any, opts ...grpc.CallOption) error {
	is, _ := v.is()
	if is == away || ctx.Err() != nil {
		return status.Error(codes.Unavailable, "connection refused")
	}
	for _, o := range opts {
		if at, ok := o.(grpc.PeerCallOption); ok {
			*at.PeerAddr = peer.Peer{Addr: addr{}}
		}
	}
	if is == leaderless {
		return rpctypes.ErrGRPCNoLeader
	}
	if err := v.speak(ctx); err != nil {
		if v.dice(2) { // it was on its way
			time.AfterFunc(v.some(5*time.Second), func() { v.do(args, nil) })
		}
		return err
	}
	said := v.do(args, reply)
	if err := v.speak(ctx); err != nil {
		return err
	}
	return said
}

func (v *voter) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return &gossip{ctx: ctx, of: v, begun: make(chan int64, 1)}, nil
}

// A gossip is a watch at a voter.
type gossip struct {
	grpc.ClientStream
	ctx   context.Context
	of    *voter
	begun chan int64

	mu   sync.Mutex // guards what follows
	from int64
	told int  // events of the log
	asks bool // for progress
}

func (g *gossip) SendMsg(m any) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := m.(*pb.WatchRequest).GetCreateRequest(); r != nil {
		g.from = r.StartRevision
	} else {
		g.asks = true
	}
	return g.ctx.Err()
}

func (g *gossip) RecvMsg(into any) error {
	r := into.(*pb.WatchResponse)
	for {
		if err := g.of.speak(g.ctx); err != nil {
			return err
		}
		if g.next(r) {
			return nil
		}
	}
}

// next tells some of what is to be told.
func (g *gossip) next(r *pb.WatchResponse) bool {
	q := g.of.quorum
	sees := time.Now().Add(-q.some(3 * time.Millisecond))
	if is, _ := g.of.is(); is == late {
		sees = sees.Add(-5 * time.Second)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	rev := int64(max(sort.Search(len(q.at), func(i int) bool { return q.at[i].After(sees) }), emptyRevision))
	if g.from < q.oldest {
		r.Header, r.CompactRevision, r.Canceled = q.head(), q.oldest, true
		return true
	}
	if g.told == 0 {
		g.told = sort.Search(len(q.log), func(i int) bool { return q.log[i].Kv.ModRevision >= g.from })
	}
	most := q.chance.Int64N(20)
	for ; g.told < len(q.log) && q.log[g.told].Kv.ModRevision <= rev; g.told++ {
		e := q.log[g.told]
		if n := len(r.Events); n > 0 && r.Events[0].Kv.ModRevision+most < e.Kv.ModRevision {
			break
		}
		r.Events = append(r.Events, e)
	}
	r.Header = &pb.ResponseHeader{ClusterId: 1, Revision: rev}
	if n := len(r.Events); n > 0 {
		g.from = r.Events[n-1].Kv.ModRevision + 1
		return true
	}
	asks := g.asks
	g.asks = false
	return asks
}
