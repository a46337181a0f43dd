package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

// A chair is a member that answers after a millisecond with its number, unless something is the matter with it.
type chair struct {
	number int64

	mu     sync.Mutex // guards what follows
	asked  int        // but for probes
	probed int
	hangs  chan struct{} // closed when it is continued; nil if it does not hang
	broken bool          // there is no connection
	cut    bool          // there is one, and it breaks when it is used
	says   error
	hasty  bool // it was last asked by a call that does not wait for a connection
}

func (c *chair) Close() error { return nil }

func (c *chair) GetState() connectivity.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken {
		return connectivity.TransientFailure
	}
	return connectivity.Ready
}

func (c *chair) Invoke(ctx context.Context, method string, _, reply any, opts ...grpc.CallOption) error {
	c.mu.Lock()
	hangs, broken, says, cut := c.hangs, c.broken, c.says, c.cut
	if method == "probe" {
		c.probed++
	} else {
		c.asked++
	}
	c.mu.Unlock()
	if broken || cut {
		return status.Error(codes.Unavailable, "connection refused")
	}
	for _, o := range opts {
		if at, ok := o.(grpc.PeerCallOption); ok {
			at.PeerAddr.Addr = addr{}
		}
		if f, ok := o.(grpc.FailFastCallOption); ok {
			c.set(func() { c.hasty = f.FailFast })
		}
	}
	over := func() error { return status.FromContextError(ctx.Err()).Err() }
	if hangs != nil {
		select {
		case <-hangs:
		case <-ctx.Done():
			return over()
		}
	}
	select {
	case <-time.After(time.Millisecond):
	case <-ctx.Done():
		return over()
	}
	if r, ok := reply.(*pb.RangeResponse); ok && says == nil {
		r.Count = c.number
	}
	return says
}

func (c *chair) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("nobody asks for that")
}

func (c *chair) hang() { c.set(func() { c.hangs = make(chan struct{}) }) }
func (c *chair) goOn() { c.set(func() { close(c.hangs); c.hangs = nil }) }

func (c *chair) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// A table is members, numbered from 1, the first being preferred.
type table struct {
	*members
	t      *testing.T
	chairs []*chair
}

func seated(t *testing.T, n int) *table {
	tb := &table{t: t}
	var links []link
	for i := range n {
		tb.chairs = append(tb.chairs, &chair{number: int64(i + 1)})
		links = append(links, tb.chairs[i])
	}
	tb.members = newMembers(&chair{}, links, 0, func(ctx context.Context, conn grpc.ClientConnInterface) error {
		return conn.Invoke(ctx, "probe", nil, nil)
	})
	t.Cleanup(tb.close)
	return tb
}

// ask has a member answer within a time, and returns who did, or what came instead.
func (tb *table) ask(within time.Duration, opts ...grpc.CallOption) string {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	var r pb.RangeResponse
	began := time.Now()
	if err := tb.Invoke(ctx, "ask", &pb.RangeRequest{}, &r, opts...); err != nil {
		return fmt.Sprint(status.Convert(err).Message(), " after ", time.Since(began))
	}
	return fmt.Sprint(r.Count, " after ", time.Since(began))
}

// is fails the test if something is not as it is to be.
func (tb *table) is(got, want string) {
	tb.t.Helper()
	if !strings.Contains(got, want) {
		tb.t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhichMemberIsAsked(t *testing.T) {
	const long = time.Minute
	for _, c := range []struct {
		name  string
		story func(tb *table, first, second, third *chair)
	}{
		{"the first, always", func(tb *table, first, second, third *chair) {
			for range 3 {
				tb.is(tb.ask(long), "1 after 1ms")
			}
		}},
		{"another while the first owes an answer, and the first once it has given it", func(tb *table, first, second, third *chair) {
			first.hang()
			go tb.ask(long)
			time.Sleep(owesAfter + time.Millisecond)
			for range 10 {
				tb.is(tb.ask(long), "2 after 1ms")
			}
			if first.asked != 1 || first.probed != 1 {
				tb.t.Errorf("the one that hangs was asked %d times, and probed %d times", first.asked, first.probed)
			}
			first.goOn()
			time.Sleep(2 * time.Millisecond)
			tb.is(tb.ask(long), "1 after 1ms")
		}},
		{"another also when those who asked the first have gone away", func(tb *table, first, second, third *chair) {
			first.hang()
			tb.is(tb.ask(2*owesAfter), "deadline exceeded")
			time.Sleep(long)
			tb.is(tb.ask(long), "2 after 1ms")
			first.goOn()
			time.Sleep(2 * time.Millisecond)
			tb.is(tb.ask(long), "1 after 1ms")
		}},
		{"the first, though somebody went away before it had answered", func(tb *table, first, second, third *chair) {
			tb.ask(time.Microsecond)
			time.Sleep(long)
			tb.is(tb.ask(long), "1 after 1ms")
		}},
		{"another while the first owes an answer, though somebody else did not wait for his", func(tb *table, first, second, third *chair) {
			first.hang()
			go tb.ask(long)
			synctest.Wait()
			tb.is(tb.ask(owesAfter/2), "deadline exceeded")
			time.Sleep(owesAfter/2 + time.Millisecond)
			tb.is(tb.ask(long), "2 after 1ms")
			first.goOn()
		}},
		{"the first, though it is slow, as long as it answers others", func(tb *table, first, second, third *chair) {
			first.hang()
			slow := first.hangs
			go tb.ask(long)
			synctest.Wait()
			first.set(func() { first.hangs = nil })
			for range 10 {
				tb.is(tb.ask(long), "1 after 1ms")
				time.Sleep(owesAfter / 2)
			}
			close(slow)
		}},
		{"another, when the first was heard of too long ago by those who still wait", func(tb *table, first, second, third *chair) {
			first.hang()
			slow := first.hangs
			go tb.ask(long)
			synctest.Wait()
			first.set(func() { first.hangs = nil })
			time.Sleep(owesAfter / 2)
			tb.is(tb.ask(long), "1 after 1ms")
			first.hang()
			time.Sleep(owesAfter + time.Millisecond)
			tb.is(tb.ask(long), "2 after 1ms")
			close(slow)
			first.goOn()
		}},
		{"another while the first has no leader", func(tb *table, first, second, third *chair) {
			first.set(func() { first.says = rpctypes.ErrGRPCNoLeader })
			tb.is(tb.ask(long), "no leader")
			tb.is(tb.ask(long), "2 after 1ms")
			time.Sleep(2 * probeEvery)
			tb.is(tb.ask(long), "2 after 1ms")
			first.set(func() { first.says = nil })
			time.Sleep(2 * probeEvery)
			tb.is(tb.ask(long), "1 after 1ms")
		}},
		{"the first, though it refuses what it is asked for", func(tb *table, first, second, third *chair) {
			first.set(func() { first.says = rpctypes.ErrGRPCPermissionDenied })
			tb.is(tb.ask(long), "permission denied")
			first.set(func() { first.says = nil })
			tb.is(tb.ask(long), "1 after 1ms")
		}},
		{"the one that was heard of last, if all owe an answer", func(tb *table, first, second, third *chair) {
			first.hang()
			go tb.ask(long)
			time.Sleep(owesAfter + time.Millisecond)
			tb.is(tb.ask(long), "2 after 1ms")
			second.hang()
			third.hang()
			go tb.ask(long)
			time.Sleep(owesAfter + time.Millisecond)
			go tb.ask(long)
			time.Sleep(owesAfter + time.Millisecond)
			go tb.ask(long)
			synctest.Wait()
			if second.asked != 3 {
				tb.t.Errorf("they were asked %d, %d and %d times", first.asked, second.asked, third.asked)
			}
			for _, c := range tb.chairs {
				c.goOn()
			}
		}},
		{"one with which there is a connection", func(tb *table, first, second, third *chair) {
			first.set(func() { first.broken = true })
			second.set(func() { second.cut = true })
			tb.is(tb.ask(long, patient), "3 after 1ms")
			if !third.hasty {
				tb.t.Error("should its connection break, it is waited for")
			}
		}},
		{"nobody until there is a connection", func(tb *table, first, second, third *chair) {
			for _, c := range tb.chairs {
				c.set(func() { c.broken = true })
			}
			tb.is(tb.ask(time.Second), "deadline exceeded: rpc error: code = Unavailable desc = connection refused after 1s")
			time.AfterFunc(long/2, func() { third.set(func() { third.broken = false }) })
			tb.is(tb.ask(long), "3 after 30")
		}},
		{"one only, of what may not be done twice, however long it takes", func(tb *table, first, second, third *chair) {
			first.hang()
			tb.is(tb.ask(long), "deadline exceeded after 1m0s")
			if second.asked+third.asked != 0 {
				tb.t.Error("another was asked, too")
			}
		}},
		{"another, too, of what may be done twice, if it takes long", func(tb *table, first, second, third *chair) {
			first.hang()
			tb.is(tb.ask(long, harmless), "2 after 501ms")
		}},
		{"another, at once, of what may be done twice, if the first cannot answer", func(tb *table, first, second, third *chair) {
			first.set(func() { first.says = rpctypes.ErrGRPCNoLeader })
			tb.is(tb.ask(long, harmless), "2 after 2ms")
			for _, c := range tb.chairs {
				c.set(func() { c.says = rpctypes.ErrGRPCNoLeader })
			}
			tb.is(tb.ask(long, harmless), "no leader")
		}},
		{"all of them, of what may be done twice, one after the other", func(tb *table, first, second, third *chair) {
			first.hang()
			second.hang()
			tb.is(tb.ask(long, harmless), "3 after 1.001s")
		}},
		{"another, whose refusal counts", func(tb *table, first, second, third *chair) {
			first.hang()
			second.set(func() { second.says = rpctypes.ErrGRPCCompacted })
			tb.is(tb.ask(long, harmless), "compacted after 501ms")
		}},
		{"the first counts, if it has its answer before the other", func(tb *table, first, second, third *chair) {
			first.hang()
			second.hang()
			third.hang()
			time.AfterFunc(time.Second, first.goOn)
			tb.is(tb.ask(long, harmless), "1 after 1.001s")
			second.goOn()
			third.goOn()
		}},
		{"the first is waited for, if the others have no answer", func(tb *table, first, second, third *chair) {
			first.hang()
			second.set(func() { second.says = rpctypes.ErrGRPCNoLeader })
			third.set(func() { third.says = rpctypes.ErrGRPCNoLeader })
			time.AfterFunc(time.Second, first.goOn)
			tb.is(tb.ask(long, harmless), "1 after 1.001s")
		}},
		{"the first, by all who prefer it", func(tb *table, first, second, third *chair) {
			links := []link{first, second, third}
			ms := newMembers(&chair{}, links, 5, tb.probe)
			defer ms.close()
			if m, _ := ms.choose(); m.link != third {
				tb.t.Error("who prefers the third asks another")
			}
		}},
		{"one that is not shunned, if there is another", func(tb *table, first, second, third *chair) {
			first.set(func() { first.broken = true })
			if m, err := tb.another(tb.ctx, tb.all[1]); err != nil || m.link != third {
				tb.t.Errorf("got %v, %v", m, err)
			}
			third.set(func() { third.broken = true })
			if m, err := tb.another(tb.ctx, tb.all[1]); err != nil || m.link != second {
				tb.t.Errorf("got %v, %v, and no other is there", m, err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tb := seated(t, 3)
				c.story(tb, tb.chairs[0], tb.chairs[1], tb.chairs[2])
				time.Sleep(2 * long) // for those who still wait
			})
		})
	}
}

// A member that is alone is asked whatever it does, as often as anybody likes.
func TestAMemberThatIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := seated(t, 1)
		only := tb.chairs[0]
		tb.is(tb.ask(time.Minute, patient), "1 after 1ms")
		if only.hasty {
			t.Error("it was not waited for")
		}
		only.hang()
		tb.is(tb.ask(time.Minute, harmless), "deadline exceeded after 1m0s")
		only.set(func() { only.broken = true })
		tb.is(tb.ask(time.Minute), "connection refused after 0s")
		if m, err := tb.another(t.Context(), tb.all[0]); err != nil || m.link != only {
			t.Errorf("got %v, %v", m, err)
		}
		if only.asked != 3 || only.probed != 0 {
			t.Errorf("it was asked %d times, and probed %d times", only.asked, only.probed)
		}
	})
}

func TestHowLongAWatchMayTellNothing(t *testing.T) {
	alone, three := &members{all: make([]*member, 1)}, &members{all: make([]*member, 3)}
	for _, c := range []struct {
		name string
		of   *members
		vain int
		want time.Duration
	}{
		{"not long, where there is another member to watch at", three, 0, stallMin},
		{"longer, after one that did", three, 1, 2 * stallMin},
		{"not for ever, after many", three, 1000, stallMax},
		{"long, where there is none", alone, 0, stallAlone},
		{"and longer there, too, after one that did", alone, 1, 2 * stallAlone},
	} {
		if got := stallFor(c.of, c.vain); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
