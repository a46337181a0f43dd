package etcd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/pawl-dev/pawl/kv"
)

// A quorum is what the members of an etcd agree on: all that was ever put or deleted.
type quorum struct {
	chance *rand.Rand

	mu  sync.Mutex // guards what follows, and chance
	now map[string]*mvccpb.KeyValue
	log []*mvccpb.Event
	at  []time.Time // each revision was made, from emptyRevision on
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
func (q *quorum) do(args, reply any) {
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
			return
		}
		r.Header, r.Kvs = q.head(), nil
		if asked.Revision == 0 {
			if have := q.now[string(asked.Key)]; have != nil {
				r.Kvs = append(r.Kvs, have)
			}
			return
		}
		for _, e := range slices.Backward(q.log) {
			if string(e.Kv.Key) == string(asked.Key) && e.Kv.ModRevision <= asked.Revision {
				if e.Type == mvccpb.Event_PUT {
					r.Kvs = append(r.Kvs, e.Kv)
				}
				return
			}
		}
	}
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
	v.do(args, reply)
	return v.speak(ctx)
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
	if len(r.Events) > 0 {
		return true
	}
	asks := g.asks
	g.asks = false
	return asks
}

// Whatever is the matter with members, nobody is told what is not so, and when all is well again everything goes on.
func TestTroubleMakesNobodyLie(t *testing.T) {
	runs := 2
	if os.Getenv("PAWL_HEAVY") != "" {
		runs = 50
	}
	for range runs {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { trouble(t, seed) })
		})
	}
}

func trouble(t *testing.T, seed uint64) {
	q := &quorum{chance: rand.New(rand.NewPCG(seed, 1)), now: map[string]*mvccpb.KeyValue{}, at: []time.Time{time.Now()}}
	var voters []*voter
	var links []link
	for range 1 + 2*min(q.chance.IntN(4), 1) {
		voters = append(voters, &voter{quorum: q, healed: make(chan struct{})})
		links = append(links, voters[len(voters)-1])
	}
	probe := func(ctx context.Context, conn grpc.ClientConnInterface) error {
		return conn.Invoke(ctx, "probe", &pb.RangeRequest{}, &pb.RangeResponse{})
	}
	var engines []*Engine
	var watches []kv.Watch
	for i := range uint64(2) {
		e := newEngine(Options{CompactEvery: -1, Patience: 3 * time.Second}.complete(), newMembers(&chair{}, links, seed+i, probe), 7+i)
		defer e.Close()
		if err := e.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		w, err := e.Watch(space, e.in.ours(emptyRevision))
		if err != nil {
			t.Fatal(err)
		}
		engines, watches = append(engines, e), append(watches, w)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute/2)
	defer cancel()
	var wg sync.WaitGroup
	all := claims{of: map[string]claim{}}
	for i := range 12 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				time.Sleep(q.some(100 * time.Millisecond))
				all.make(t, q, engines[q.some(2)-1], fmt.Sprint(i, "-", n))
			}
		})
	}
	for ctx.Err() == nil {
		time.Sleep(q.some(2 * time.Second))
		voters[q.some(time.Duration(len(voters)))-1].turn(ailment(q.some(time.Duration(ailments)) - 1))
	}
	for _, v := range voters {
		v.turn(fine)
	}
	wg.Wait()
	time.Sleep(time.Minute) // until all that was on its way has arrived
	for i, e := range engines {
		if _, err := e.Read(t.Context(), kv.Latest); err != nil || e.Err() != nil {
			t.Fatalf("it does not go on: %v, %v", err, e.Err())
		}
		q.audit(t, e, watches[i], all.of)
	}
}

// A claim is what a writer was told of a commit.
type claim struct {
	done kv.Committed
	err  error
}

// claims are those of all writers.
type claims struct {
	mu     sync.Mutex       // guards what follows
	of     map[string]claim // by the value that was written
	newest kv.Revision      // that was acknowledged
}

// make reads what is latest, and writes a value, in one way or another.
func (c *claims) make(t *testing.T, q *quorum, e *Engine, value string) {
	c.mu.Lock()
	least := c.newest
	c.mu.Unlock()
	snap, err := e.Read(context.Background(), kv.Latest)
	switch {
	case err != nil:
		snap = e.index.Newest()
	case snap.Revision() < least:
		t.Errorf("the latest is %d after %d was acknowledged", snap.Revision(), least)
	}
	key := fmt.Sprint(space, int(q.some(8)))
	txn := kv.Txn{Ops: []kv.Op{kv.Put(key, []byte(value))}}
	if q.dice(2) {
		txn.Conditions = []kv.Condition{{Key: key, At: revisionOf(snap.Get(key))}}
	}
	if q.dice(4) {
		txn.Ops = append(txn.Ops, kv.Delete(fmt.Sprint(space, "x", int(q.some(8)))))
	}
	if q.dice(4) {
		txn.Ops = append(txn.Ops, kv.Put(fmt.Sprint(space, "x", 10+q.some(8)), []byte(value)))
	}
	ctx := context.Background()
	if q.dice(4) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.some(2*time.Second))
		defer cancel()
	}
	done, err := e.Commit(ctx, txn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[value] = (claim{done, err}); err == nil {
		c.newest = max(c.newest, done.Revision)
	}
}

// audit compares what an engine told, and writers were told, with what there is.
func (q *quorum) audit(t *testing.T, e *Engine, w kv.Watch, claims map[string]claim) {
	made, by := map[string][]kv.Revision{}, map[kv.Revision]string{} // revisions by values, of which each commit has one, and these by revisions
	var want, got []string
	for _, h := range q.log {
		name := string(e.in.out(h.Kv.Key))
		if own([]byte(name)) {
			continue
		}
		want = append(want, fmt.Sprint(name, " ", h.Type == mvccpb.Event_DELETE, " ", h.Kv.ModRevision))
		if h.Type == mvccpb.Event_PUT {
			said, err := decode(h.Kv.Value)
			if err != nil {
				t.Fatal(err)
			}
			at := e.in.ours(h.Kv.ModRevision) - kv.Revision(said.behind)
			v := string(said.value)
			if !slices.Contains(made[v], at) {
				made[v] = append(made[v], at)
			}
			if other, is := by[at]; is && other != v {
				t.Errorf("%s and %s are both of revision %d", v, other, at)
			}
			by[at] = v
		}
	}
	for {
		event, ok, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		got = append(got, fmt.Sprint(event.Version.Key, " ", event.Version.Deleted, " ", e.in.theirs(event.Version.Revision)))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d events were told of %d", len(got), len(want))
	}
	kinds := map[string]int{}
	for _, value := range slices.Sorted(maps.Keys(claims)) {
		c, at := claims[value], made[value]
		switch {
		case len(at) > 1:
			t.Errorf("%s was made %d times, and told %v", value, len(at), c.err)
		case c.err == nil:
			kinds["done"]++
			if !slices.Equal(at, []kv.Revision{c.done.Revision}) {
				t.Errorf("%s was acknowledged at %d, and is at %d", value, c.done.Revision, at)
			}
		case errors.Is(c.err, kv.ErrUnknown):
			kinds["unknown"]++
		default:
			kinds["refused"]++
			if len(at) > 0 {
				t.Errorf("%s was refused, and is at %d: %v", value, at, c.err)
			}
		}
	}
	t.Log(kinds)
}
