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
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

// A post is an etcd that takes half a second for each request, or as long as it is told to, writes down what it was asked, and says what it is told to.
type post struct {
	says  func(r *pb.TxnRequest) error
	takes func(r *pb.TxnRequest) time.Duration

	mu  sync.Mutex
	log []string
}

// asked returns what it was asked; what at the same time, in the order of the letters.
func (p *post) asked() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(p.log)
	told := make([]string, len(p.log))
	for i, line := range p.log {
		_, told[i], _ = strings.Cut(line, "; ")
	}
	return told
}

func (p *post) send(ctx context.Context, r *pb.TxnRequest, opts ...grpc.CallOption) (*pb.TxnResponse, error) {
	for _, o := range opts {
		if at, ok := o.(grpc.PeerCallOption); ok {
			at.PeerAddr.Addr = addr{}
		}
		if o == harmless {
			return nil, errors.New("it may not be done twice")
		}
	}
	p.mu.Lock()
	p.log = append(p.log, fmt.Sprint(time.Now().Format("15:04:05.000;"), " ", asked(r)))
	rev := int64(len(p.log))
	p.mu.Unlock()
	takes := time.Second / 2
	if p.takes != nil {
		takes = p.takes(r)
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p.says != nil {
		if err := p.says(r); err != nil {
			return nil, err
		}
	}
	return answerTo(r, rev), nil
}

// later is closed when a commit is seen long ago.
func later() <-chan struct{} {
	seen := make(chan struct{})
	time.AfterFunc(20*time.Second, func() { close(seen) })
	return seen
}

type addr struct{}

func (addr) Network() string { return "none" }
func (addr) String() string  { return "nobody" }

// answerTo says that conditions hold which are on an even revision.
func answerTo(r *pb.TxnRequest, rev int64) *pb.TxnResponse {
	a := &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: rev}, Succeeded: true}
	for _, c := range r.Compare {
		a.Succeeded = a.Succeeded && c.GetModRevision()%2 == 0
	}
	for _, op := range r.Success {
		one := &pb.ResponseOp{}
		if txn := op.GetRequestTxn(); txn != nil {
			one.Response = &pb.ResponseOp_ResponseTxn{ResponseTxn: answerTo(txn, 0)}
		}
		a.Responses = append(a.Responses, one)
	}
	return a
}

// asked tells a request in words: what is put, and how many commits are behind it.
func asked(r *pb.TxnRequest) string {
	var words []string
	for _, op := range r.Success {
		if txn := op.GetRequestTxn(); txn != nil {
			words = append(words, asked(txn))
		} else if put := op.GetRequestPut(); put != nil {
			words = append(words, fmt.Sprintf("%s-%d", put.Key, put.Value[behindAt]))
		}
	}
	return strings.Join(words, " ")
}

// putting a key on the condition that others are at revisions.
func request(key string, conditions ...*pb.Compare) *pb.TxnRequest {
	return &pb.TxnRequest{Compare: conditions, Success: []*pb.RequestOp{putting(&pb.PutRequest{Key: []byte(key), Value: envelope{grouped: true}.encode()})}}
}

func sees(key string, rev int64) *pb.Compare { return atRevision([]byte(key), rev) }

func TestCommitsAreSentTogether(t *testing.T) {
	large := request("large")
	for range groupChanges {
		large.Success = append(large.Success, request(fmt.Sprint("large", len(large.Success))).Success...)
	}
	many := make([]*pb.TxnRequest, groupCommits+2)
	log := []string{"first-0"}
	var rest []string
	for i := range many {
		many[i] = request(fmt.Sprintf("k%02d", i))
		if i < groupCommits {
			rest = append(rest, fmt.Sprintf("k%02d-%d", i, groupCommits-1-i))
		}
	}
	log = append(log, strings.Join(rest, " "), fmt.Sprintf("k%d-1 k%d-0", groupCommits, groupCommits+1))
	for _, c := range []struct {
		name  string
		while []*pb.TxnRequest // come while the first is away
		says  error            // to groups
		want  []string         // is asked, in this order
		errs  string           // of those that came
	}{
		{"one waits for the one before", []*pb.TxnRequest{request("a")}, nil, []string{"first-0", "a-0"}, ""},
		{"several that have nothing to do with each other go together", []*pb.TxnRequest{request("a"), request("b"), request("c")}, nil,
			[]string{"first-0", "a-2 b-1 c-0"}, ""},
		{"as many as one takes", many, nil, log, ""},
		{"two may look at one key", []*pb.TxnRequest{request("a", sees("x", 2)), request("b", sees("x", 2))}, nil, []string{"first-0", "a-1 b-0"}, ""},
		{"who writes what another writes goes alone, at once", []*pb.TxnRequest{request("a"), request("a"), request("b")}, nil, []string{"a-0", "first-0", "a-1 b-0"}, ""},
		{"so does who looks at what another writes", []*pb.TxnRequest{request("a"), request("b", sees("a", 2))}, nil, []string{"b-0", "first-0", "a-0"}, ""},
		{"and who writes what another looks at", []*pb.TxnRequest{request("b", sees("a", 2)), request("a")}, nil, []string{"a-0", "first-0", "b-0"}, ""},
		{"and what is large", []*pb.TxnRequest{request("a"), large}, nil, []string{"first-0", asked(large), "a-0"}, ""},
		{"each is judged by itself", []*pb.TxnRequest{request("a"), request("b", sees("x", 3)), request("c")}, nil, []string{"first-0", "a-2 b-1 c-0"}, "b lost"},
		{"what may be meant for one of them is asked again of each", []*pb.TxnRequest{request("a"), request("b")}, rpctypes.ErrGRPCLeaseNotFound,
			[]string{"first-0", "a-1 b-0", "a-0", "b-0"}, ""},
		{"so is what one may not", []*pb.TxnRequest{request("a"), request("b")}, rpctypes.ErrGRPCPermissionDenied, []string{"first-0", "a-1 b-0", "a-0", "b-0"}, ""},
		{"what nobody knows of is told to all", []*pb.TxnRequest{request("a"), request("b")}, rpctypes.ErrGRPCTimeout,
			[]string{"first-0", "a-1 b-0"}, "a etcdserver: request timed out, b etcdserver: request timed out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &post{says: func(r *pb.TxnRequest) error {
					if len(r.Success) > 0 && r.Success[0].GetRequestTxn() != nil {
						return c.says
					}
					return nil
				}}
				g := grouperOf(t, p)
				go g.txn(waits(t.Context()), request("first"), 0, later())
				synctest.Wait()
				errs := make([]string, len(c.while))
				for i, r := range c.while {
					go func() {
						answer, _, err := g.txn(waits(t.Context()), r, 0, later())
						name := string(r.Success[0].GetRequestPut().GetKey())
						switch {
						case err == nil && answer == nil: // it was seen
						case err != nil:
							errs[i] = name + " " + rpctypes.Error(err).Error()
						case !answer.GetSucceeded():
							errs[i] = name + " lost"
						case answer.GetHeader().GetRevision() == 0:
							errs[i] = name + " of no revision"
						}
					}()
					synctest.Wait()
				}
				time.Sleep(time.Minute / 2)
				if got := p.asked(); !slices.Equal(got, c.want) {
					t.Errorf("it was asked %q, want %q", got, c.want)
				}
				if got := strings.Join(slices.DeleteFunc(errs, func(s string) bool { return s == "" }), ", "); got != c.errs {
					t.Errorf("told %q, want %q", got, c.errs)
				}
				if g.mu.Lock(); g.sending || len(g.next) > 0 {
					t.Error("it is not done")
				}
			})
		})
	}
}

// grouperOf returns one that sends to p.
func grouperOf(t *testing.T, p *post) *grouper {
	return &grouper{send: p.send, ctx: t.Context(), run: func(f func()) { go f() }, patience: time.Minute, answered: func(*pb.ResponseHeader, bool) error { return nil }}
}

// waits is a wait of an hour, or until ctx ends.
func waits(ctx context.Context) *wait {
	return &wait{caller: ctx, term: (&patience{of: time.Hour, ctx: context.Background()}).term()}
}

// Who goes away is never sent if it was not yet: etcd may be asked much later. Of what was sent nobody knows.
func TestWhoLeavesAGroup(t *testing.T) {
	for _, c := range []struct {
		name   string
		leaves time.Duration // after the first is sent, which takes half a second
		want   []string      // is asked
		sent   bool
	}{
		{"one of several before they are sent", time.Second / 4, []string{"first-0", "b-0"}, false},
		{"one of several while they are asked about", time.Second * 3 / 4, []string{"first-0", "b-1 a-0"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &post{}
				g := grouperOf(t, p)
				go g.txn(waits(t.Context()), request("first"), 0, later())
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), c.leaves)
				defer cancel()
				go g.txn(waits(t.Context()), request("b"), 0, later())
				synctest.Wait()
				_, sent, err := g.txn(waits(ctx), request("a"), 0, nil)
				if sent != c.sent || !errors.Is(err, context.DeadlineExceeded) || (judge(err, sent) == unknown) != c.sent {
					t.Errorf("it is told %v, sent %v", err, sent)
				}
				time.Sleep(time.Minute / 2)
				if got := p.asked(); !slices.Equal(got, c.want) {
					t.Errorf("it was asked %q, want %q", got, c.want)
				}
			})
		})
	}
}

// What another etcd answers than the one that was asked before is no answer.
func TestAnAnswerThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		another := errors.New("another")
		g := grouperOf(t, &post{})
		g.answered = func(*pb.ResponseHeader, bool) error { return another }
		answers := make(chan error)
		for _, key := range []string{"first", "a", "b"} { // the last two go together
			go func() {
				_, sent, err := g.txn(waits(t.Context()), request(key), 0, nil)
				if judge(err, sent) != unknown {
					t.Errorf("%s: %v, sent %v", key, err, sent)
				}
				answers <- err
			}()
			synctest.Wait()
		}
		for range 3 {
			if err := <-answers; err != another {
				t.Errorf("got %v", err)
			}
		}
		time.Sleep(time.Second) // for who waits for more
	})
}

// Who waits when the engine ends is told that nobody knows, and is sent nowhere any more.
func TestWhoWaitsInAGroupWhenTheEngineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &post{takes: func(*pb.TxnRequest) time.Duration { return time.Hour }}
		g := grouperOf(t, p)
		over, end := context.WithCancelCause(context.Background())
		go g.txn(waits(t.Context()), request("first"), 0, nil)
		synctest.Wait()
		time.AfterFunc(time.Second/4, func() { end(errOver) })
		w := &wait{caller: context.Background(), term: (&patience{of: time.Hour, ctx: over}).term()}
		_, sent, err := g.txn(w, request("a"), 0, nil)
		if judge(err, sent) != unknown || !errors.Is(err, errOver) {
			t.Errorf("it is told %v, sent %v", err, sent)
		}
		time.Sleep(2 * time.Minute) // the first loses patience
		if got := p.asked(); !slices.Equal(got, []string{"first-0"}) {
			t.Errorf("it was asked %q", got)
		}
	})
}

// Of many who wait for an etcd that does not answer, those who have lost patience are not sent when it does.
func TestWhoLeavesALongQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := make(chan struct{})
		p := &post{takes: func(*pb.TxnRequest) time.Duration { <-away; return 0 }}
		g := grouperOf(t, p)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		unsent := 0
		var mu sync.Mutex
		for i := range 2000 {
			go func() {
				if _, sent, _ := g.txn(waits(ctx), request(fmt.Sprint("k", i)), 0, nil); !sent {
					mu.Lock()
					unsent++
					mu.Unlock()
				}
			}()
		}
		time.Sleep(11 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if g.mu.Lock(); g.crowd.here != 0 || len(g.next) != 0 {
			t.Errorf("%d are still to be sent, in %d groups", g.crowd.here, len(g.next))
		}
		g.mu.Unlock()
		asked := len(p.asked())
		if sent := 2000 - unsent; sent > asked*groupCommits || asked > 11 {
			t.Errorf("%d were sent, in %d requests", sent, asked)
		}
		close(away)
		time.Sleep(time.Minute)
		if now := len(p.asked()); now != asked || g.sending {
			t.Errorf("%d requests after they had left", now-asked)
		}
	})
}

// A member of etcd that hangs keeps only those waiting who were sent to it.
func TestAGroupThatHangsKeepsNobodyElseWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &post{takes: func(r *pb.TxnRequest) time.Duration {
			if strings.Contains(asked(r), "first") {
				return time.Hour
			}
			return time.Millisecond
		}}
		g := grouperOf(t, p)
		go g.txn(waits(t.Context()), request("first"), 0, nil)
		synctest.Wait()
		began := time.Now()
		for i := range 3 {
			seen := make(chan struct{})
			time.AfterFunc(slowAfter+time.Second, func() { close(seen) })
			if _, _, err := g.txn(waits(t.Context()), request(fmt.Sprint("k", i)), 0, seen); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > 10*time.Second || len(p.asked()) != 4 {
			t.Errorf("it took %v, and %q", took, p.asked())
		}
		time.Sleep(2 * time.Minute) // the first loses patience
	})
}

// Who is sent alone to a member that hangs learns from the watch of another that it was done.
func TestWhoIsSentAloneIsSeen(t *testing.T) {
	for _, c := range []struct {
		name       string
		takes      time.Duration
		seen, want time.Duration
		answered   bool
	}{
		{"the answer is waited for, if it comes soon", slowAfter / 2, slowAfter / 4, slowAfter / 2, true},
		{"it does not come", time.Hour, 3 * slowAfter, 3 * slowAfter, false},
		{"it does not come to what was seen long before", time.Hour, slowAfter / 4, slowAfter, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := grouperOf(t, &post{takes: func(*pb.TxnRequest) time.Duration { return c.takes }})
				seen := make(chan struct{})
				time.AfterFunc(c.seen, func() { close(seen) })
				began := time.Now()
				answer, _, err := g.txn(waits(t.Context()), request("large"), groupBytes, seen)
				if took := time.Since(began); err != nil || (answer != nil) != c.answered || took != c.want {
					t.Errorf("after %v: %v, %v", took, answer, err)
				}
			})
		})
	}
}

func TestTheRevisionsOfAStoreAreSeveralOfEtcds(t *testing.T) {
	for _, c := range []struct {
		ahead  kv.Revision
		theirs int64
		ours   kv.Revision // the last
	}{
		{0, 1, 255}, {0, 2, 383}, {0, 100, 12927}, {1000, 1, 1255}, {1 << 50, 1 << 40, 1<<50 + 1<<47 + 127},
	} {
		k := newKeyspace("/p")
		k.ahead = c.ahead
		if got := k.ours(c.theirs); got != c.ours {
			t.Errorf("%d, %d ahead, is %d, want %d", c.theirs, c.ahead, got, c.ours)
		}
		for _, behind := range []uint8{0, 1, groupCommits - 1, 127} {
			rev := c.ours - kv.Revision(behind)
			if k.theirs(rev) != c.theirs || k.behind(rev) != behind {
				t.Errorf("%d is of %d, %d behind it", rev, k.theirs(rev), k.behind(rev))
			}
		}
		if next := k.theirs(c.ours + 1); next != c.theirs+1 {
			t.Errorf("after %d it is %d", c.theirs, next)
		}
	}
	k := newKeyspace("/p")
	if k.ours(never) != kv.Absent || k.theirs(kv.Absent) != never || k.theirs(1) != emptyRevision || k.behind(kv.Absent) != 0 {
		t.Error("what is not there has a revision, or what is before all has none")
	}
}

// What a commit lost to is named by its own revision, however the key went on since.
func TestWhatACommitLostTo(t *testing.T) {
	in := newKeyspace("/p")
	e := &Engine{in: in, ctx: t.Context(), index: mvcc.New(mvcc.Options{}, mvcc.Base{Revision: in.ours(1), Floor: in.ours(1)})}
	now := time.Unix(1, 0)
	put := func(key string, rev kv.Revision) *kv.Version {
		return &kv.Version{Key: key, Revision: rev, Created: rev, Value: []byte("x")}
	}
	gone := func(key string, rev kv.Revision) *kv.Version {
		return &kv.Version{Key: key, Revision: rev, Created: in.ours(2), Deleted: true}
	}
	e.index.Publish(now, in.ours(2)-1, []*kv.Version{put(a, in.ours(2)-2), put(b, in.ours(2)-1)}) // the last of three lost
	expect := func(name, key string, rev int64, want kv.Revision, wantKnown bool) {
		t.Helper()
		if got, known := e.revisionAt(key, rev); got != want || known != wantKnown {
			t.Errorf("%s: got %d, %v, want %d, %v", name, got, known, want, wantKnown)
		}
	}
	expect("what is there", a, 2, in.ours(2)-2, true)
	e.index.Publish(now, in.ours(4), []*kv.Version{gone(a, in.ours(3)), put(b, in.ours(4))})
	expect("what was deleted since", a, 2, in.ours(2)-2, true)
	expect("what was put anew since", b, 2, in.ours(2)-1, true)
	expect("what was put last", b, 4, in.ours(4), true)
	if err := e.index.Compact(t.Context(), in.ours(4)); err != nil {
		t.Fatal(err)
	}
	expect("what is forgotten", a, 2, kv.Absent, false)
	expect("what is there all the same", b, 4, in.ours(4), true)
}

// Before commits came in groups a revision of etcd's was one of the store's. A pawl of that time does not know flag bit 1,
// and stops where it meets it: so whatever tells a revision has it.
func TestWhoCountsOtherwiseRefusesWhatTellsARevision(t *testing.T) {
	e := &Engine{opts: Options{}.complete(), replica: 7}
	for name, b := range map[string][]byte{
		"the floor":           e.aside([]byte{9}).encode(),
		"an origin":           origin{ahead: 9, whole: true}.encode(1),
		"a restore under way": origin{ahead: 9}.encode(1),
		"a commit":            change{op: kv.Put(a, nil)}.put(e.in, signature{author: encodeAuthor(floorer)}).GetRequestPut().Value,
	} {
		if flags := b[1]; flags&hasBehind == 0 {
			t.Errorf("%s has flags %#x", name, flags)
		}
		if _, err := decode(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
