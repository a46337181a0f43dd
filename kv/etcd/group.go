package etcd

import (
	"context"
	"errors"
	"hash/maphash"
	"iter"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/pawl-dev/pawl/kv"
)

// What a group holds at most. The first fits into what is wide enough for all commits of one, and leaves etcd's limit on changes to each commit.
const (
	groupCommits = 32
	groupBytes   = 512 << 10
	groupChanges = 16 // and conditions, of one commit; a larger one goes alone
)

// slowAfter is after how long of its transaction a group no longer keeps the next waiting, and who was sent alone listens to the watch, too: etcd's
// member may hang, and another not.
const slowAfter = time.Second

// A grouper sends commits to etcd. What comes while one transaction is on its way waits for the next, which takes all that
// have nothing to do with each other as transactions within one: one request, one answer, one revision of
// etcd's for many commits. Each is judged by itself and, by its place there, has a revision of its own in the store. What has
// something to do with another, or is large, is sent alone and at once. What was not sent when its caller goes away never is.
type grouper struct {
	send     func(context.Context, *pb.TxnRequest, ...grpc.CallOption) (*pb.TxnResponse, error)
	answered func(h *pb.ResponseHeader, wrote bool) error // is told of each answer, and may refuse it
	ctx      context.Context                              // of what is sent for several
	run      func(func())                                 // in the background
	patience time.Duration                                // that a group has

	mu      sync.Mutex // guards what follows
	next    []*group   // that are gathered, to be sent one after another
	crowd   crowd      // the parts of them
	sending bool
}

// A group is commits that are sent together.
type group struct {
	parts []*part
	keys  []touch // that they look at or change
	size  int
}

// A part is one commit of a group.
type part struct {
	request *pb.TxnRequest
	size    int
	done    chan struct{}   // closed when the rest is there; not if it was written, for then it will be seen
	answer  *pb.TxnResponse // nil if it was seen
	sent    bool            // it left this process, as far as is known
	err     error
}

// errAlone is told to a part that has to be sent by itself: what etcd says against the group may be meant for another.
var errAlone = errors.New("etcd refused it together with others")

// errOver is why terms end before their time.
var errOver = errors.New("the engine was closed, or has stopped")

// txn has etcd judge and do one transaction of so many bytes. There is no answer if it was seen to be done. Sent
// says of an error whether the transaction left this process.
func (g *grouper) txn(w *wait, request *pb.TxnRequest, size int, seen <-chan struct{}) (answer *pb.TxnResponse, sent bool, err error) {
	p := &part{request: request, size: size, done: make(chan struct{})}
	if g.join(p) {
		select {
		case <-p.done:
		case <-seen:
			return nil, true, nil
		case <-w.caller.Done():
			return nil, !g.withdraw(p), w.err()
		case <-w.term.Done():
			return nil, !g.withdraw(p) || errors.Is(w.err(), errOver), w.err()
		}
		if !errors.Is(p.err, errAlone) {
			return p.answer, p.sent, p.err
		}
	}
	return g.unlessSeen(w.ctx(), request, seen)
}

// unlessSeen sends one transaction. It waits for no answer that is slow to come once the transaction is seen to be done; then there is none.
func (g *grouper) unlessSeen(ctx context.Context, request *pb.TxnRequest, seen <-chan struct{}) (*pb.TxnResponse, bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	slow := time.AfterFunc(slowAfter, func() {
		select {
		case <-seen:
			cancel()
		case <-ctx.Done():
		}
	})
	defer slow.Stop()
	answer, sent, err := g.alone(ctx, request)
	if err != nil {
		select {
		case <-seen:
			return nil, true, nil
		default:
		}
	}
	return answer, sent, err
}

// alone sends one transaction.
func (g *grouper) alone(ctx context.Context, request *pb.TxnRequest) (*pb.TxnResponse, bool, error) {
	var at peer.Peer
	answer, err := g.send(withLeader(ctx), request, patient, tersely, grpc.Peer(&at))
	if err == nil {
		err = g.answered(answer.GetHeader(), wrote(request, answer))
	}
	return answer, at.Addr != nil, err
}

// wrote says whether a transaction, or one within it, changed something.
func wrote(r *pb.TxnRequest, a *pb.TxnResponse) bool {
	if !a.GetSucceeded() {
		return false
	}
	for i, op := range r.Success {
		if txn := op.GetRequestTxn(); txn == nil || wrote(txn, a.GetResponses()[i].GetResponseTxn()) {
			return true
		}
	}
	return false
}

// join adds p to the last group that is gathered, and sees that it is sent. It reports whether p can be sent with others.
func (g *grouper) join(p *part) bool {
	if len(p.request.Compare) > groupChanges || len(p.request.Success) > groupChanges || p.size > groupBytes/groupChanges {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.next); n == 0 || !g.next[n-1].roomFor(p) {
		g.next = append(g.next, newGroup())
	}
	if !g.next[len(g.next)-1].add(p) {
		return false
	}
	g.crowd.come()
	if !g.sending {
		g.sending = true
		g.run(g.sendAll)
	}
	return true
}

// withdraw takes p from what is gathered. It reports false if p is under way, or answered.
func (g *grouper) withdraw(p *part) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, n := range g.next {
		at := slices.Index(n.parts, p)
		if at < 0 {
			continue
		}
		n.parts = slices.Delete(n.parts, at, at+1) // that others have to do with its keys is harmless
		n.size -= p.size
		if g.crowd.serve(1); len(n.parts) == 0 {
			g.next = slices.Delete(g.next, i, i+1)
		}
		return true
	}
	return false
}

// take returns the group that is to be sent now, nil if there is none.
func (g *grouper) take() *group {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.next) == 0 {
		g.sending = false
		return nil
	}
	now := g.next[0]
	g.next = slices.Delete(g.next, 0, 1)
	g.crowd.serve(len(now.parts))
	return now
}

// sendAll sends what is gathered until nothing is. While one group takes long, another goroutine goes on with the next.
func (g *grouper) sendAll() {
	for now := g.take(); now != nil; now = g.take() {
		began, replaced := time.Now(), make(chan struct{})
		slow := time.AfterFunc(slowAfter, func() {
			g.run(g.sendAll)
			close(replaced)
		})
		now.send(g)
		if !slow.Stop() {
			<-replaced // so that somebody runs at all times
			return
		}
		g.crowd.gather(&g.mu, len(now.parts), groupCommits, time.Since(began))
	}
}

// A touch is a key that a commit looks at or changes. What has the same hash is taken to be the same key: at worst, one is
// sent alone that need not be.
type touch struct {
	hash    uint64
	changes bool
}

var touchSeed = maphash.MakeSeed()

func newGroup() *group {
	return &group{parts: make([]*part, 0, groupCommits/2), keys: make([]touch, 0, groupCommits)}
}

func (n *group) roomFor(p *part) bool {
	return len(n.parts) < groupCommits && n.size+p.size <= groupBytes
}

// add makes p a part of the group unless it has something to do with another part: one changes
// what the other looks at or changes.
func (n *group) add(p *part) bool {
	before := len(n.keys)
	for key, changes := range touched(p.request) {
		t := touch{maphash.Bytes(touchSeed, key), changes}
		for _, o := range n.keys[:before] {
			if o.hash == t.hash && (o.changes || t.changes) {
				n.keys = n.keys[:before]
				return false
			}
		}
		n.keys = append(n.keys, t)
	}
	n.parts = append(n.parts, p)
	n.size += p.size
	return true
}

// touched yields the keys that a transaction changes, with true, and those that it looks at.
func touched(r *pb.TxnRequest) iter.Seq2[[]byte, bool] {
	return func(yield func([]byte, bool) bool) {
		for _, op := range r.Success {
			key := op.GetRequestDeleteRange().GetKey()
			if put := op.GetRequestPut(); put != nil {
				key = put.Key
			}
			if !yield(key, true) {
				return
			}
		}
		for _, c := range r.Compare {
			if !yield(c.Key, false) {
				return
			}
		}
	}
}

// before writes into what a transaction puts how many commits are behind it.
func before(r *pb.TxnRequest, others int) {
	for _, op := range r.Success {
		if put := op.GetRequestPut(); put != nil {
			put.Value[behindAt] = uint8(others)
		}
	}
}

// send sends the group, and tells its parts what became of them.
func (n *group) send(g *grouper) {
	ctx, cancel := context.WithTimeout(g.ctx, g.patience)
	defer cancel()
	if len(n.parts) == 1 {
		p := n.parts[0]
		p.answer, p.sent, p.err = g.alone(ctx, p.request)
	} else {
		n.sendTogether(ctx, g)
	}
	for _, p := range n.parts {
		if p.err != nil || !wrote(p.request, p.answer) {
			close(p.done)
		}
	}
}

func (n *group) sendTogether(ctx context.Context, g *grouper) {
	request := &pb.TxnRequest{Success: make([]*pb.RequestOp, len(n.parts))}
	ops := make([]struct {
		op pb.RequestOp
		of pb.RequestOp_RequestTxn
	}, len(n.parts))
	for i, p := range n.parts {
		before(p.request, len(n.parts)-1-i)
		ops[i].of.RequestTxn, ops[i].op.Request = p.request, &ops[i].of
		request.Success[i] = &ops[i].op
	}
	answer, sent, err := g.alone(ctx, request)
	if err != nil {
		switch judge(err, sent) {
		case noLease, tooMuch, refused:
			err = errAlone // it was not done
		}
	}
	for i, p := range n.parts {
		p.sent, p.err = sent, err
		if err == nil {
			one := answer.GetResponses()[i].GetResponseTxn()
			p.answer = &pb.TxnResponse{Header: answer.GetHeader(), Succeeded: one.GetSucceeded(), Responses: one.GetResponses()}
		}
		if errors.Is(err, errAlone) {
			before(p.request, 0)
		}
	}
}

// revisionAt returns the revision at which a key was that etcd had at one of its own, once the index shows all of that. It
// is not known any more if the key has changed since, and history is forgotten.
func (e *Engine) revisionAt(key string, rev int64) (at kv.Revision, known bool) {
	newest := e.index.Newest()
	if v := newest.Get(key); v != nil && e.in.theirs(v.Revision) == rev {
		return v.Revision, true
	}
	then, err := e.index.Read(e.ctx, kv.Exactly(min(e.in.ours(rev), newest.Revision())))
	if err != nil {
		return kv.Absent, false
	}
	v := then.Get(key)
	if v == nil || e.in.theirs(v.Revision) != rev {
		return kv.Absent, false
	}
	return v.Revision, true
}
