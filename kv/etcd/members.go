package etcd

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	owesAfter  = 500 * time.Millisecond // without any answer, a member that was asked is passed over
	probeEvery = 250 * time.Millisecond // one that could not answer is asked again
)

// members are those of etcd's that were named, each with a connection of its own. Everything is asked of the first, so that
// its watch has told, or is about to tell, what it answers. One that owes an answer while others give theirs is passed over,
// and so is one that says that it has none to give: the next is asked in its place, until a probe, of which there is one at a
// time, is answered there. What may be done twice is asked of another, too, when it takes long.
//
// It is the connection that etcd's services are called on. One that is alone is called as it is.
type members struct {
	all    []*member // in the order in which they are preferred
	client io.Closer // that the connections are of
	probe  func(context.Context, grpc.ClientConnInterface) error

	ctx    context.Context // of the probes
	cancel context.CancelFunc

	mu     sync.Mutex // guards what follows; taken before a member's
	better chan struct{}
	closed bool
	probes sync.WaitGroup
}

// A link is a connection with one member, that says whether it is there.
type link interface {
	grpc.ClientConnInterface
	GetState() connectivity.State
	Close() error
}

// A member is one of etcd's, and what is known of it by its answers.
type member struct {
	link link

	mu      sync.Mutex // guards what follows
	under   int        // calls under way
	owes    time.Time  // since when it has not answered though it was asked to; zero if it owes nothing
	heard   time.Time  // of it last
	state   standing   // by the last answer
	probing bool
	why     error // the last probe failed
}

// A standing says how good it is to ask a member.
type standing uint8

const (
	well      standing = iota // it answers
	ailing                    // it answers that it cannot: it has no leader, or is about to stop
	silent                    // it owes an answer
	unreached                 // there is no connection
)

// A repeatable is the option of a call that does no harm if it is done twice.
type repeatable struct{ grpc.EmptyCallOption }

var harmless = repeatable{}

// newMembers returns those that are at the other ends of links, the one with that number being preferred. Probe asks one
// for something that needs a majority of them.
func newMembers(client io.Closer, links []link, first uint64, probe func(context.Context, grpc.ClientConnInterface) error) *members {
	ms := &members{client: client, probe: probe, better: make(chan struct{})}
	ms.ctx, ms.cancel = context.WithCancel(context.Background())
	n := uint64(len(links))
	for i := range n {
		ms.all = append(ms.all, &member{link: links[(first%n+i)%n]})
	}
	return ms
}

// close ends the probes and the connections.
func (ms *members) close() {
	ms.mu.Lock()
	ms.closed = true
	ms.mu.Unlock()
	ms.cancel()
	ms.probes.Wait()
	for _, m := range ms.all {
		m.link.Close()
	}
	ms.client.Close() // says only that it was cancelled
}

func (ms *members) alone() bool { return len(ms.all) == 1 }

// choose returns the member that is best asked now, but for some, and how that is. Those that would have been better are probed.
func (ms *members) choose(but ...*member) (best *member, how standing) {
	if ms.alone() {
		return ms.all[0], well
	}
	now := time.Now()
	var heard time.Time
	for _, m := range ms.all {
		if slices.Contains(but, m) {
			continue
		}
		is, last := m.stands(now)
		if is == well {
			return m, well
		}
		ms.look(m)
		if best == nil || is < how || is == silent && how == silent && last.After(heard) {
			best, how, heard = m, is, last
		}
	}
	return best, how
}

// stands says how good it is to ask m, and when it was heard of last.
func (m *member) stands(now time.Time) (standing, time.Time) {
	connected := m.link.GetState() == connectivity.Ready
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.owes.IsZero() && now.Sub(m.owes) > owesAfter {
		m.state = silent
	}
	if !connected {
		return unreached, m.heard
	}
	return m.state, m.heard
}

// look has m probed until it is well.
func (ms *members) look(m *member) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.probing || ms.closed {
		return
	}
	m.probing = true
	ms.probes.Go(func() { ms.untilWell(m) })
}

// untilWell probes m until it answers, and tells those who wait for that.
func (ms *members) untilWell(m *member) {
	for {
		ctx, cancel := context.WithTimeout(ms.ctx, questionMax)
		m.begin()
		err := ms.probe(ctx, m.link)
		cancel()
		m.end(err)
		if isAnswer(err) || ms.ctx.Err() != nil {
			break
		}
		m.mu.Lock()
		m.why = err
		m.mu.Unlock()
		select {
		case <-time.After(probeEvery):
		case <-ms.ctx.Done():
		}
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	m.mu.Lock()
	m.probing = false
	m.mu.Unlock()
	close(ms.better)
	ms.better = make(chan struct{})
}

// begin notes that m is asked.
func (m *member) begin() {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.under++
	if m.owes.IsZero() {
		m.owes = now
	}
}

// end notes what came of it. If nothing did, the answer is still owed, unless whoever asked did not wait for long.
func (m *member) end(err error) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.under--
	is := well
	switch status.Code(err) {
	case codes.Canceled, codes.DeadlineExceeded:
		if m.under == 0 && now.Sub(m.owes) < owesAfter {
			m.owes = time.Time{}
		}
		return
	case codes.Unavailable:
		is = ailing
	}
	m.state, m.heard, m.owes = is, now, time.Time{}
	if m.under > 0 {
		m.owes = now
	}
}

// isAnswer says whether a call was answered, be it by a refusal.
func isAnswer(err error) bool {
	switch status.Code(err) {
	case codes.Canceled, codes.DeadlineExceeded, codes.Unavailable:
		return false
	}
	return true
}

// reach returns the member that is best asked, but for some, as soon as there is a connection with one.
func (ms *members) reach(ctx context.Context, but ...*member) (*member, error) {
	for {
		ms.mu.Lock()
		better := ms.better
		ms.mu.Unlock()
		m, how := ms.choose(but...)
		if how != unreached {
			return m, nil
		}
		select {
		case <-better:
		case <-ctx.Done():
			return nil, m.missed(ctx.Err())
		case <-ms.ctx.Done():
			return nil, m.missed(ms.ctx.Err())
		}
	}
}

// another returns the member that is best asked, which is not the one that is shunned if there are others; nil stands for none.
func (ms *members) another(ctx context.Context, shunned *member) (*member, error) {
	if shunned != nil && !ms.alone() {
		if m, how := ms.choose(shunned); how != unreached {
			return m, nil
		}
	}
	return ms.reach(ctx)
}

// owing says whether m owes an answer for so long that others are asked.
func (ms *members) owing(m *member) bool {
	if ms.alone() {
		return false
	}
	is, _ := m.stands(time.Now())
	return is == silent
}

// missed returns an error that says that the time was over before there was a connection with m.
func (m *member) missed(over error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	why := "there is no connection yet"
	if m.why != nil {
		why = m.why.Error()
	}
	return status.Errorf(status.FromContextError(over).Code(), "%v: %s", over, why)
}

// A call is one that members may be asked for.
type call struct {
	method string
	args   any
	opts   []grpc.CallOption
}

// Invoke implements [grpc.ClientConnInterface]: it has a member answer.
func (ms *members) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	if ms.alone() {
		return ms.all[0].link.Invoke(ctx, method, args, reply, opts...)
	}
	c := call{method, args, append(slices.Clip(opts), grpc.WaitForReady(false))}
	for _, o := range opts {
		if o == harmless {
			return ms.hedge(ctx, c, reply)
		}
	}
	return ms.once(ctx, c, reply)
}

// once has one member answer, and another only if the first one's connection is found broken before anything is sent.
func (ms *members) once(ctx context.Context, c call, reply any) error {
	m, err := ms.reach(ctx)
	if err != nil {
		return err
	}
	var tried []*member
	for {
		var at peer.Peer
		err := m.invoke(ctx, c, reply, grpc.Peer(&at))
		if at.Addr != nil || status.Code(err) != codes.Unavailable {
			return err
		}
		if tried = append(tried, m); len(tried) == len(ms.all) {
			return err
		}
		next, how := ms.choose(tried...)
		if how == unreached {
			return err
		}
		m = next
	}
}

// invoke has m answer.
func (m *member) invoke(ctx context.Context, c call, reply any, opts ...grpc.CallOption) error {
	m.begin()
	err := m.link.Invoke(ctx, c.method, c.args, reply, append(slices.Clip(c.opts), opts...)...)
	m.end(err)
	return err
}

// hedge has a member answer, and others, too, one after the other, if that takes long or it cannot. Whoever does first is heard.
func (ms *members) hedge(ctx context.Context, c call, reply any, but ...*member) error {
	m, err := ms.reach(ctx, but...)
	if err != nil {
		return err
	}
	if but = append(slices.Clip(but), m); len(but) == len(ms.all) {
		return m.invoke(ctx, c, reply)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first, give := context.WithCancel(ctx)
	defer give()
	other := reply.(proto.Message).ProtoReflect().New().Interface()
	told := make(chan error, 1)
	late := time.AfterFunc(owesAfter, func() {
		err := ms.hedge(ctx, c, other, but...)
		if isAnswer(err) {
			give()
		}
		told <- err
	})
	err = m.invoke(first, c, reply)
	stopped := late.Stop()
	if isAnswer(err) {
		return err
	}
	if stopped {
		if _, how := ms.choose(but...); how == well {
			return ms.hedge(ctx, c, reply, but...)
		}
		return err
	}
	otherErr := <-told
	if !isAnswer(otherErr) {
		return err
	}
	proto.Reset(reply.(proto.Message))
	proto.Merge(reply.(proto.Message), other)
	return otherErr
}

// NewStream implements [grpc.ClientConnInterface]: it opens a stream to a member.
func (ms *members) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	m, err := ms.reach(ctx)
	if err != nil {
		return nil, err
	}
	if !ms.alone() {
		opts = append(slices.Clip(opts), grpc.WaitForReady(false))
	}
	return m.link.NewStream(ctx, desc, method, opts...)
}
