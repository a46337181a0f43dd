package etcd

import (
	"context"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Slack is how long after its time a key goes at the latest that was to go after d.
func Slack(d time.Duration) time.Duration { return max(2*time.Second, d/20) }

// etcd counts in whole seconds, and looks every half second for leases that have ended.
const (
	leaseUnit  = time.Second
	leaseSweep = leaseUnit / 2
)

// graceMax bounds how much longer than asked a lease lasts, so that others can share it.
const graceMax = time.Minute

// Bounds of sharing leases.
const (
	leaseKeys = 1000 // that one lease is given to, written or not
	leasesMax = 64   // that are remembered
)

// How a lease is kept.
const (
	keepParts = 3 // of it there are between two times that it is renewed
	keepAgain = time.Second / 2
	keepMax   = 2 * time.Second // that it may take
)

// A lease is one of etcd's, that keys are attached to.
type lease struct {
	number int64
	ends   time.Time
	left   int // keys that it may still be given to
}

// leases are those that may be shared. The zero value has none.
type leases struct {
	turn  chan struct{} // whoever is in it may use what follows
	known []*lease
	grant func(ctx context.Context, seconds int64) (number, granted int64, err error)
	now   func() time.Time
}

func newLeases(now func() time.Time, grant func(context.Context, int64) (int64, int64, error)) *leases {
	return &leases{turn: make(chan struct{}, 1), now: now, grant: grant}
}

// grace is how much longer than d a lease may be made last.
func grace(d time.Duration) time.Duration {
	return min(Slack(d)-leaseUnit-leaseSweep, graceMax)
}

// get returns a lease for n keys that lasts for d from now, and not much longer.
func (l *leases) get(ctx context.Context, d time.Duration, n int) (int64, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	now := l.now()
	if found := l.find(now, d, n); found != nil {
		found.left -= n
		return found.number, nil
	}
	number, granted, err := l.grant(ctx, int64((d+grace(d)+leaseUnit-1)/leaseUnit))
	if err != nil {
		return 0, err
	}
	// It began after now, so it ends no earlier than that. The sum is of one clock that nobody sets.
	l.known = append(l.known, &lease{number, now.Add(time.Duration(granted) * leaseUnit), leaseKeys - n})
	if len(l.known) > leasesMax {
		l.known = l.known[1:]
	}
	return number, nil
}

// find returns one that fits, and forgets those that have ended or have been given to as many keys as may be.
func (l *leases) find(now time.Time, d time.Duration, n int) *lease {
	var found *lease
	kept := l.known[:0]
	for _, have := range l.known {
		remains := have.ends.Sub(now)
		if remains <= 0 || have.left <= 0 {
			continue
		}
		kept = append(kept, have)
		if have.left >= n && remains >= d && remains <= d+grace(d)+leaseUnit {
			found = have
		}
	}
	clear(l.known[len(kept):])
	l.known = kept
	return found
}

// keep keeps a lease that lasts for d until ctx ends, or the lease has.
func keep(ctx context.Context, client pb.LeaseClient, number int64, d time.Duration) {
	pause := d / keepParts
	for renewed := time.Now(); time.Since(renewed) < d; {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		began := time.Now()
		left, err := renew(ctx, client, number)
		switch {
		case err != nil:
			pause = keepAgain
		case left <= 0:
			return
		default:
			renewed, pause = began, d/keepParts
		}
	}
}

// renew has a lease begin anew, and returns how many seconds it has; none if it has ended.
func renew(ctx context.Context, client pb.LeaseClient, number int64) (left int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, keepMax)
	defer cancel()
	stream, err := client.LeaseKeepAlive(withLeader(ctx), patient)
	if err != nil {
		return 0, err
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: number}); err != nil {
		return 0, err
	}
	r, err := stream.Recv()
	return r.GetTTL(), err
}

// drop forgets all leases: etcd no longer has one of them.
func (l *leases) drop(ctx context.Context) {
	select {
	case l.turn <- struct{}{}:
		l.known = nil
		<-l.turn
	case <-ctx.Done():
	}
}
