package etcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

func TestLeasesAreShared(t *testing.T) {
	now := time.Unix(1000, 0)
	granted := int64(0)
	var seconds []int64
	l := newLeases(func() time.Time { return now }, func(_ context.Context, ttl int64) (int64, int64, error) {
		granted++
		seconds = append(seconds, ttl)
		return granted, ttl, nil
	})
	for _, step := range []struct {
		name   string
		passed time.Duration
		d      time.Duration
		keys   int
		want   int64
	}{
		{"the first is granted", 0, time.Hour, 1, 1},
		{"another at the same time shares it", 0, time.Hour, 1, 1},
		{"so does one for as long as it lasts longer than asked", time.Minute, time.Hour, 1, 1},
		{"then there is another", time.Second, time.Hour, 1, 2},
		{"a little less time fits the older one", 0, time.Hour - 2*time.Second, 1, 1},
		{"much less time does not", 0, time.Minute, 1, 3},
		{"as many keys as one may have", 0, time.Hour, leaseKeys - 1, 2},
		{"and one more", 0, time.Hour, 1, 4},
		{"one that has ended is none", 2 * time.Hour, time.Second, 1, 5},
		{"a short one is shared for a moment", 500 * time.Millisecond, time.Second, 1, 5},
		{"and no longer", 501 * time.Millisecond, time.Second, 1, 6},
	} {
		now = now.Add(step.passed)
		if got, err := l.get(t.Context(), step.d, step.keys); got != step.want || err != nil {
			t.Errorf("%s: lease %d, %v, want %d", step.name, got, err, step.want)
		}
	}
	for i, want := range []int64{3660, 3660, 62, 3660, 2, 2} {
		if seconds[i] != want {
			t.Errorf("lease %d lasts %d seconds, want %d", i+1, seconds[i], want)
		}
	}
	l.drop(t.Context())
	if got, _ := l.get(t.Context(), time.Second, 1); got != 7 {
		t.Errorf("lease %d was given though it was forgotten", got)
	}
}

func TestALeaseEndsWithinTheSlack(t *testing.T) {
	for d := time.Millisecond; d < 1000*time.Hour; d += d/7 + time.Millisecond {
		lasts := (d + grace(d) + leaseUnit - 1) / leaseUnit * leaseUnit
		if lasts < d || lasts+leaseSweep > d+Slack(d) {
			t.Errorf("what is to go after %v has a lease of %v", d, lasts)
		}
		if grace(d) > graceMax {
			t.Errorf("the grace of %v is %v", d, grace(d))
		}
	}
}

func TestALeaseThatIsNotGrantedIsNone(t *testing.T) {
	down := errors.New("down")
	l := newLeases(time.Now, func(context.Context, int64) (int64, int64, error) { return 0, 0, down })
	for range 2 {
		if _, err := l.get(t.Context(), time.Minute, 1); !errors.Is(err, down) {
			t.Errorf("got %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.turn <- struct{}{}
	if _, err := l.get(ctx, time.Minute, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A lessor renews leases, or says why not; what takes for ever ends with whoever asks.
type lessor struct {
	pb.LeaseClient
	renew func() (left int64, err error)
	ever  bool
	asked int
}

func (l *lessor) LeaseKeepAlive(ctx context.Context, _ ...grpc.CallOption) (grpc.BidiStreamingClient[pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse], error) {
	l.asked++
	return &lessons{ctx: ctx, of: l}, nil
}

type lessons struct {
	grpc.BidiStreamingClient[pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse]
	ctx context.Context
	of  *lessor
}

func (s *lessons) Send(*pb.LeaseKeepAliveRequest) error { return nil }

func (s *lessons) Recv() (*pb.LeaseKeepAliveResponse, error) {
	if s.of.ever {
		<-s.ctx.Done()
		return nil, s.ctx.Err()
	}
	left, err := s.of.renew()
	return &pb.LeaseKeepAliveResponse{TTL: left}, err
}

func TestHowLongALeaseIsKept(t *testing.T) {
	const d = 15 * time.Second
	down := errors.New("down")
	for _, c := range []struct {
		name  string
		of    lessor
		until time.Duration // whoever keeps it goes away
		want  time.Duration
		asked int
	}{
		{"as long as somebody keeps it", lessor{renew: func() (int64, error) { return 15, nil }}, 62 * time.Second, 62 * time.Second, 12},
		{"until it has ended all the same", lessor{renew: func() (int64, error) { return 0, nil }}, time.Minute, 5 * time.Second, 1},
		{"until it must have ended, if nobody renews it", lessor{renew: func() (int64, error) { return 0, down }}, time.Minute, d, 21},
		{"until it must have ended, if nobody answers", lessor{ever: true}, time.Minute, 17 * time.Second, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), c.until)
				defer cancel()
				began := time.Now()
				keep(ctx, &c.of, 1, d)
				if took := time.Since(began); took != c.want || c.of.asked != c.asked {
					t.Errorf("it was kept for %v, and renewed %d times", took, c.of.asked)
				}
			})
		})
	}
}
