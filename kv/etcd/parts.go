package etcd

import (
	"context"
	"fmt"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
)

// etcd tells a watch that is far behind its history a thousand revisions at a time, ten times a second at most, and reads for each
// thousand all that there is from there on, while nobody writes. So a long history is read by many watches at once, of a part each:
// what etcd reads once goes to all of them.
const (
	partSize = 1000 // of etcd's revisions: as many as it tells a watch at once
	partsMin = 4    // fewer are quicker read by one watch
	partsMax = 16   // at once: the more, the longer etcd keeps writers waiting for each
)

// parts are revisions of etcd's that are told by several watches, each of a part, in whatever order.
type parts struct {
	start  int64
	events [][]*mvccpb.Event // of a part, as far as they were told
	whole  []bool            // a part was told
	done   int               // so many, from the first, are whole, and were handed on
}

// partsOf returns in how many parts what is from start to end, inclusive, is read. What is left over the next watch tells; it may be all.
func partsOf(start, end int64) *parts {
	n := min((end-start+1)/partSize, partsMax)
	if n < partsMin {
		n = 0
	}
	return &parts{start: start, events: make([][]*mvccpb.Event, n), whole: make([]bool, n)}
}

// begins returns the first revision of part i, and that after the last of the one before.
func (p *parts) begins(i int) int64 { return p.start + int64(i)*partSize }

// tell notes what a response tells of a part, and says whether the part is whole by it for the first time. What etcd tells at once is
// all that there is up to the revision that it names, or a thousand revisions: a whole part either way, once that revision is not in it.
func (p *parts) tell(i int, r *pb.WatchResponse) bool {
	if p.whole[i] {
		return false
	}
	for _, e := range r.GetEvents() {
		if e.GetKv().GetModRevision() < p.begins(i+1) {
			p.events[i] = append(p.events[i], e)
		}
	}
	p.whole[i] = !r.GetFragment() && r.GetHeader().GetRevision() >= p.begins(i+1)-1
	return p.whole[i]
}

// tellAll notes that everything was told up to a revision.
func (p *parts) tellAll(rev int64) {
	for i := range p.whole {
		p.whole[i] = p.whole[i] || rev >= p.begins(i+1)-1
	}
}

// next returns what is to be handed on next, and the last revision of it, if that is whole.
func (p *parts) next() (events []*mvccpb.Event, last int64, ok bool) {
	if p.over() || !p.whole[p.done] {
		return nil, 0, false
	}
	events, p.events[p.done] = p.events[p.done], nil
	p.done++
	return events, p.begins(p.done) - 1, true
}

func (p *parts) over() bool { return p.done == len(p.whole) }

// A sharedStream is one on which several may send.
type sharedStream struct {
	grpc.BidiStreamingClient[pb.WatchRequest, pb.WatchResponse]
	sending sync.Mutex
}

func (s *sharedStream) Send(r *pb.WatchRequest) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	return s.BidiStreamingClient.Send(r)
}

// hasten publishes what a member has to tell, in parts, until so little is left that one watch tells it as quickly.
func (e *Engine) hasten(ctx context.Context, m *member) error {
	for {
		there, err := e.question()
		if err != nil {
			return err
		}
		p := partsOf(e.in.theirs(e.follows.next), e.in.theirs(there))
		if p.over() {
			return nil
		}
		e.want(there)
		if err := e.readParts(ctx, m, p); err != nil {
			return err
		}
	}
}

// readParts publishes what watches at a member tell of parts, in order.
func (e *Engine) readParts(ctx context.Context, m *member, p *parts) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opened, err := pb.NewWatchClient(m.link).Watch(withLeader(ctx), grpc.WaitForReady(e.members.alone()))
	if err != nil {
		return err
	}
	stream := &sharedStream{BidiStreamingClient: opened}
	for i := range p.whole {
		if err := stream.Send(e.watchFrom(p.begins(i), int64(i)+1)); err != nil {
			return err
		}
	}
	e.runs.Go(func() { e.urge(ctx, stream) })
	for !p.over() {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := e.checkCluster(r.GetHeader()); err != nil {
			return err
		}
		switch i := int(r.GetWatchId()) - 1; {
		case r.GetCompactRevision() != 0:
			return &compactedError{r.GetCompactRevision()}
		case r.GetCreated():
			continue
		case i < 0: // progress, of all of them
			p.tellAll(r.GetHeader().GetRevision())
		case i >= len(p.whole) || r.GetCanceled() && !p.whole[i]:
			return fmt.Errorf("etcd ended the watch: %s", r.GetCancelReason())
		case p.tell(i, r):
			err := stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: r.GetWatchId()}}})
			if err != nil {
				return err
			}
		}
		if len(r.GetEvents()) > 0 {
			e.follows.heard.Add(1)
		}
		if err := e.publishParts(p); err != nil {
			return err
		}
	}
	return nil
}

// publishParts publishes those parts that nothing is missing before.
func (e *Engine) publishParts(p *parts) error {
	for {
		events, last, ok := p.next()
		if !ok {
			return nil
		}
		if err := e.publish(events); err != nil {
			return err
		}
		e.progress(e.in.ours(last))
	}
}
