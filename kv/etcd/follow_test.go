package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// A shelf is what an etcd holds, in the order of its revisions. Nothing is ever removed.
type shelf struct {
	mu  sync.Mutex // guards what follows
	all []*mvccpb.KeyValue
}

// A teller is a member of an etcd that answers at once, and says yes to all transactions.
type teller struct {
	*shelf
	first time.Duration // until a watch tells anything
	each  time.Duration // and then the next
	// What the n-th watch tells, from 1 on, that begins at a revision; nil means what the member holds, each revision for itself.
	tells  func(n int, from int64) []*pb.WatchResponse
	breaks int                                // watches that break when they have told all
	denies func(r *pb.RangeRequest) error     // nil means nothing
	forges func(have *mvccpb.KeyValue) []byte // what it shows as the value of what it holds; nil means the value

	lives   bool // watches go on with what is put later
	hangs   bool
	says    error // of transactions, which are done all the same, unless they are refused
	watches int
}

// held are keys, each put by a commit of its own, from revision 2 on; those in one text are put together.
func held(texts ...string) *shelf {
	s := &shelf{}
	for i, text := range texts {
		rev := int64(emptyRevision + 1 + i)
		for key := range strings.FieldsSeq(text) {
			value := envelope{grouped: true, id: id{1, uint64(rev)}, time: kv.InstantOf(time.Now()), author: encodeAuthor(kv.Author{})}.encode()
			s.put(newKeyspace(DefaultPrefix).in(space+key), value, rev)
		}
	}
	return s
}

func (s *shelf) put(key, value []byte, rev int64) {
	s.all = append(s.all, &mvccpb.KeyValue{Key: key, Value: value, ModRevision: rev, CreateRevision: rev, Version: 1})
}

func (s *shelf) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *shelf) head() *pb.ResponseHeader {
	rev := int64(emptyRevision)
	if n := len(s.all); n > 0 {
		rev = s.all[n-1].ModRevision
	}
	return &pb.ResponseHeader{ClusterId: 1, Revision: rev}
}

// many are n keys.
func many(n int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprintf("k%02d", i))
	}
	return texts
}

func (l *teller) Close() error                 { return nil }
func (l *teller) GetState() connectivity.State { return connectivity.Ready }

func (l *teller) Invoke(ctx context.Context, _ string, args, reply any, opts ...grpc.CallOption) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range opts {
		if at, ok := o.(grpc.PeerCallOption); ok {
			*at.PeerAddr = peer.Peer{Addr: addr{}}
		}
	}
	if l.hangs {
		l.mu.Unlock()
		<-ctx.Done()
		l.mu.Lock()
		return status.FromContextError(ctx.Err()).Err()
	}
	switch asked := args.(type) {
	case *pb.RangeRequest:
		if l.denies != nil {
			if err := l.denies(asked); err != nil {
				return err
			}
		}
		r := reply.(*pb.RangeResponse)
		r.Header = l.head()
		l.look(asked, r)
	case *pb.TxnRequest:
		r := reply.(*pb.TxnResponse)
		if r.Succeeded = !slices.ContainsFunc(asked.Compare, func(c *pb.Compare) bool { return c.GetModRevision() < 0 }); r.Succeeded {
			rev := l.head().Revision + 1
			for _, op := range asked.Success {
				l.put(op.GetRequestPut().Key, op.GetRequestPut().Value, rev)
			}
		}
		r.Header = l.head()
		return l.says
	}
	return nil
}

// look answers what is asked for of what is held.
func (l *teller) look(asked *pb.RangeRequest, r *pb.RangeResponse) {
	found := slices.SortedFunc(slices.Values(l.all), func(a, b *mvccpb.KeyValue) int { return strings.Compare(string(a.Key), string(b.Key)) })
	for _, have := range found {
		if key := string(have.Key); key < string(asked.Key) || key != string(asked.Key) && key >= string(asked.RangeEnd) {
			continue
		}
		if asked.Limit > 0 && int64(len(r.Kvs)) == asked.Limit {
			r.More = true
			return
		}
		shown := &mvccpb.KeyValue{Key: have.Key, Value: have.Value, ModRevision: have.ModRevision, CreateRevision: have.CreateRevision}
		if l.forges != nil {
			shown.Value = l.forges(have)
		}
		r.Kvs = append(r.Kvs, shown)
	}
}

// begun returns how many watches were begun at the member.
func (l *teller) begun() (n int) {
	l.set(func() { n = l.watches })
	return n
}

func (l *teller) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watches++
	return &tale{ctx: ctx, of: l, n: l.watches, begun: make(chan int64, 1)}, nil
}

// A tale is what one watch tells.
type tale struct {
	grpc.ClientStream
	ctx   context.Context
	of    *teller
	n     int
	begun chan int64
	next  int64
	rest  []*pb.WatchResponse
	ready bool
}

func (s *tale) SendMsg(m any) error {
	if r := m.(*pb.WatchRequest).GetCreateRequest(); r != nil {
		select {
		case s.begun <- r.StartRevision:
		default: // another of the same stream
		}
	}
	return s.ctx.Err()
}

func (s *tale) RecvMsg(into any) error {
	pause := s.of.each
	if !s.ready {
		s.ready, pause = true, s.of.first
		from := <-s.begun
		s.of.set(func() {
			if s.of.tells != nil {
				s.rest = s.of.tells(s.n, from)
			} else {
				s.rest, s.next = s.of.from(from), max(from, s.of.head().Revision+1)
			}
		})
	}
	for s.of.tells == nil && s.of.lives && len(s.rest) == 0 && s.ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
		s.of.set(func() { s.rest, s.next = s.of.from(s.next), s.of.head().Revision+1 })
	}
	switch {
	case len(s.rest) > 0:
	case s.n <= s.of.breaks:
		return status.Error(codes.Unavailable, "it broke")
	default:
		<-s.ctx.Done()
		return s.ctx.Err()
	}
	select {
	case <-time.After(pause):
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
	now, r := s.rest[0], into.(*pb.WatchResponse)
	s.rest = s.rest[1:]
	r.Header, r.Events, r.Fragment = now.Header, now.Events, now.Fragment
	return nil
}

// from returns what is told by a watch from a revision on, each revision for itself.
func (l *teller) from(rev int64) (all []*pb.WatchResponse) {
	for _, have := range l.all {
		if have.ModRevision < rev {
			continue
		}
		if n := len(all); n == 0 || all[n-1].Events[0].Kv.ModRevision != have.ModRevision {
			all = append(all, &pb.WatchResponse{Header: &pb.ResponseHeader{ClusterId: 1, Revision: have.ModRevision}})
		}
		last := all[len(all)-1]
		last.Events = append(last.Events, &mvccpb.Event{Type: mvccpb.Event_PUT, Kv: have})
	}
	return all
}

// parts returns what is told in one response, an event in each of its fragments.
func (l *teller) parts() (all []*pb.WatchResponse) {
	for i, have := range l.all {
		all = append(all, &pb.WatchResponse{Header: l.head(), Fragment: i < len(l.all)-1, Events: []*mvccpb.Event{{Type: mvccpb.Event_PUT, Kv: have}}})
	}
	return all
}

// engineOn returns an engine on members, who prefers the first. Nothing runs yet.
func engineOn(t *testing.T, all ...*teller) *Engine {
	links := make([]link, len(all))
	for i, l := range all {
		links[i] = l
	}
	probe := func(ctx context.Context, conn grpc.ClientConnInterface) error {
		return conn.Invoke(ctx, "probe", nil, nil)
	}
	e := newEngine(Options{CompactEvery: -1}.complete(), newMembers(&chair{}, links, 0, probe), 7)
	t.Cleanup(func() { e.Close() })
	return e
}

// begun is an engine that has begun within a time.
func begun(t *testing.T, within time.Duration, all ...*teller) *Engine {
	t.Helper()
	e := engineOn(t, all...)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	if err := e.begin(ctx); err != nil {
		t.Fatal(err)
	}
	return e
}

// What a watch has to tell may be more than etcd reads, or the network carries, in the time that one may tell nothing.
func TestAWatchThatIsSlowIsLetFinish(t *testing.T) {
	for _, c := range []struct {
		name    string
		of      *teller
		parts   bool // all of it is one response
		watches int
	}{
		{"each response tells something", &teller{shelf: held(many(20)...), each: 3 * time.Second}, false, 1},
		{"one response comes in many fragments", &teller{shelf: held(many(20)...), each: 3 * time.Second}, true, 1},
		{"it is long until it tells anything, after two watches that were ended too early", &teller{shelf: held("k"), first: 17 * time.Second}, false, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := c.of
				if c.parts {
					l.tells = func(int, int64) []*pb.WatchResponse { return l.parts() }
				}
				e := begun(t, 80*time.Second, l)
				if n := kv.Count(e.index.Newest(), space, ""); n != len(l.all) || l.begun() != c.watches {
					t.Errorf("%d watches told of %d keys, want %d and %d", l.begun(), n, c.watches, len(l.all))
				}
			})
		})
	}
}

// Whatever watches tell, and how, each event is told once, with all that are of its commit.
func TestWhatWatchesTell(t *testing.T) {
	for _, c := range []struct {
		name   string
		of     *teller
		tells  func(l *teller, n int, from int64) []*pb.WatchResponse
		events string // by etcd's revisions
	}{
		{"one revision after the other", &teller{shelf: held("a", "b c", "d")}, nil, "a 2, b 3, c 3, d 4"},
		{"a commit in parts", &teller{shelf: held("a b c")}, func(l *teller, _ int, _ int64) []*pb.WatchResponse { return l.parts() }, "a 2, b 2, c 2"},
		{"several in one response", &teller{shelf: held("a", "b", "a")}, func(l *teller, _ int, _ int64) []*pb.WatchResponse {
			all := &pb.WatchResponse{Header: l.head()}
			for _, one := range l.from(0) {
				all.Events = append(all.Events, one.Events...)
			}
			return []*pb.WatchResponse{all}
		}, "a 2, b 3, a 4"},
		{"what was told before it broke", &teller{shelf: held("a", "b"), breaks: 2}, func(l *teller, n int, _ int64) []*pb.WatchResponse { return l.from(0)[:min(n, 2)] }, "a 2, b 3"},
		{"that a member is behind", &teller{shelf: held("a", "b"), breaks: 1}, func(l *teller, n int, from int64) []*pb.WatchResponse {
			return append(l.from(from), &pb.WatchResponse{Header: &pb.ResponseHeader{ClusterId: 1, Revision: emptyRevision}})
		}, "a 2, b 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := c.of
				if c.tells != nil {
					l.tells = func(n int, from int64) []*pb.WatchResponse { return c.tells(l, n, from) }
				}
				e := begun(t, time.Minute, l)
				w, err := e.Watch(space, e.in.ours(emptyRevision))
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute) // whatever breaks has broken
				var got []string
				for {
					event, ok, err := w.Next()
					if err != nil {
						t.Fatal(err)
					}
					if !ok {
						break
					}
					got = append(got, fmt.Sprint(strings.TrimPrefix(event.Version.Key, space), " ", e.in.theirs(event.Version.Revision)))
				}
				if got := strings.Join(got, ", "); got != c.events {
					t.Errorf("it was told %s, want %s", got, c.events)
				}
				if e.mark.revision() != e.in.ours(l.head().Revision) || e.Err() != nil {
					t.Errorf("it is at %d, and %v", e.mark.revision(), e.Err())
				}
			})
		})
	}
}

// An etcd that tells what was seen of it differently, when a watch begins anew, is another.
func TestAnEtcdThatTellsAnotherHistory(t *testing.T) {
	for _, c := range []struct {
		name string
		of   *teller
		want string // why the engine stops; "" if it does not
	}{
		{"the same is gone on with", &teller{}, ""},
		{"so is what is compacted", &teller{denies: func(r *pb.RangeRequest) error {
			if r.Revision > 0 {
				return rpctypes.ErrGRPCCompacted
			}
			return nil
		}}, ""},
		{"another commit is another history", &teller{forges: func(*mvccpb.KeyValue) []byte {
			return envelope{id: id{9, 9}, author: encodeAuthor(kv.Author{})}.encode()
		}}, "it tells revision 2 differently"},
		{"one that is not there yet is, too", &teller{denies: func(r *pb.RangeRequest) error {
			if r.Revision > 0 {
				return rpctypes.ErrGRPCFutureRev
			}
			return nil
		}}, "it does not know revision 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := c.of
				l.shelf, l.breaks = held("a"), 1
				e := begun(t, time.Minute, l)
				time.Sleep(time.Minute)
				var replaced *ReplacedError
				switch err := e.Err(); {
				case c.want == "" && (err != nil || l.begun() != 2):
					t.Errorf("after %d watches: %v", l.begun(), err)
				case c.want != "" && (!errors.As(err, &replaced) || replaced.What != c.want):
					t.Errorf("got %v, want %q", err, c.want)
				}
			})
		})
	}
}

// A member that is far behind, and says so whenever it is asked, tells nothing either.
func TestAMemberThatStaysBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := make([]*pb.WatchResponse, 1000)
		for i := range behind {
			behind[i] = &pb.WatchResponse{Header: &pb.ResponseHeader{ClusterId: 1, Revision: emptyRevision}}
		}
		l := &teller{shelf: held(many(partsMin * partSize)...), each: urgeMax, tells: func(int, int64) []*pb.WatchResponse { return behind }}
		ctx, cancel := context.WithTimeout(t.Context(), 4*stallAlone)
		defer cancel()
		if err := engineOn(t, l).begin(ctx); !errors.Is(err, context.DeadlineExceeded) || l.begun() < 2 {
			t.Errorf("after %d watches: %v", l.begun(), err)
		}
	})
}

// An etcd whose revision goes back, though no watch broke, is another, too.
func TestAnEtcdThatGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &teller{shelf: held("a", "b")}
		e := begun(t, time.Minute, l)
		l.set(func() { l.all = held("a").all })
		time.Sleep(time.Minute)
		var replaced *ReplacedError
		if err := e.Err(); !errors.As(err, &replaced) {
			t.Errorf("got %v", err)
		}
	})
}

// A watch that tells nothing though there is something to tell is given up for one at another member.
func TestAWatchThatTellsNothing(t *testing.T) {
	for _, c := range []struct {
		name   string
		hangs  bool // the first member, altogether
		do     func(e *Engine) error
		within time.Duration
	}{
		{"as who reads what is latest knows", false, func(e *Engine) error {
			_, err := e.Read(context.Background(), kv.Latest)
			return err
		}, stallMin + 2*stallEvery + againAfter},
		{"as who has written knows", false, func(e *Engine) error {
			_, err := e.Commit(context.Background(), kv.Txn{Ops: []kv.Op{kv.Put(b, []byte{})}})
			return err
		}, stallMin + 2*stallEvery + againAfter},
		{"sooner, if its member answers nothing at all", true, func(e *Engine) error {
			_, err := e.Read(context.Background(), kv.Latest)
			return err
		}, owesAfter + stallOwing + 2*stallEvery + againAfter},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := held()
				first, second, third := &teller{shelf: all}, &teller{shelf: all}, &teller{shelf: all}
				e := begun(t, time.Minute, first, second, third)
				time.Sleep(10 * time.Second)
				if first.begun() != 1 {
					t.Fatalf("%d watches at the first, though nothing is to be told", first.begun())
				}
				all.set(func() { // the watch that there is has been told what it tells
					all.all = held("a").all
					first.hangs = c.hangs
				})
				began := time.Now()
				if err := c.do(e); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took > c.within || first.begun() != 1 || second.begun()+third.begun() != 1 {
					t.Errorf("after %v, with %d, %d and %d watches", took, first.begun(), second.begun(), third.begun())
				}
				e.Close()
				if f := &e.follows; f.vain != 0 || f.shun != nil {
					t.Errorf("of a watch that told something it is held that %d told nothing", f.vain)
				}
			})
		})
	}
}
