package etcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pawl-dev/pawl/kv"
)

// nothing is what a watch tells that nobody hears from.
func nothing(int, int64) []*pb.WatchResponse { return nil }

// What became of a commit is told by what can be read, whatever etcd says of it.
func TestWhatBecameOfACommit(t *testing.T) {
	for _, c := range []struct {
		name  string
		says  error
		lives bool // the watch tells it
		want  error
	}{
		{"it was made", nil, true, nil},
		{"it was made, and the answer is lost", status.Error(codes.Unavailable, "it broke"), true, nil},
		{"it was made, and there is no room for another", rpctypes.ErrGRPCNoSpace, true, nil},
		{"it was made, and is not told in time", nil, false, kv.ErrUnknown},
		{"neither is told in time whether it was", status.Error(codes.Unavailable, "it broke"), false, kv.ErrUnknown},
		{"nor whether it was before there was no room", rpctypes.ErrGRPCNoSpace, false, kv.ErrUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &teller{shelf: held(), lives: true, each: 100 * time.Millisecond}
				if !c.lives {
					l.tells = nothing
				}
				e := begun(t, time.Minute, l)
				l.set(func() { l.says = c.says })
				done, err := e.Commit(context.Background(), kv.Txn{Ops: []kv.Op{kv.Put(a, []byte{})}})
				if !errors.Is(err, c.want) || err == nil && done.Revision != e.in.ours(2) {
					t.Errorf("got %v, %v, want %v", done, err, c.want)
				}
			})
		})
	}
}

// Whoever goes away is told that nobody knows, even where it is known that nothing was written.
func TestWhoGoesAwayFromACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &teller{shelf: held()}
		e := begun(t, time.Minute, l)
		l.set(func() { l.hangs = true })
		for name, txn := range map[string]kv.Txn{
			"that has lost":                        {Conditions: []kv.Condition{{Key: a, At: 1}}, Ops: []kv.Op{kv.Put(a, []byte{})}},
			"that is sent":                         {Ops: []kv.Op{kv.Put(a, []byte{})}},
			"that changes nothing":                 {},
			"that waits for a lease":               {Ops: []kv.Op{expires(kv.Put(a, []byte{}))}},
			"that speaks of what is not known yet": {Conditions: []kv.Condition{{Key: a, At: 1000}}, Ops: []kv.Op{kv.Put(a, []byte{})}},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/10)
			if _, err := e.Commit(ctx, txn); !errors.Is(err, kv.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("one %s: %v", name, err)
			}
			cancel()
		}
	})
}

func expires(op kv.Op) kv.Op {
	op.Expiry = kv.Expiry{Kind: kv.After, For: time.Minute}
	return op
}

// Who closes the engine does not wait for what will not be seen, and who wrote it is told at once that nobody knows.
func TestClosingWhileACommitIsNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &teller{shelf: held(), tells: nothing}
		e := begun(t, time.Minute, l)
		said := make(chan error, 1)
		go func() {
			_, err := e.Commit(context.Background(), kv.Txn{Ops: []kv.Op{kv.Put(a, []byte{})}})
			said <- err
		}()
		synctest.Wait()
		l.set(func() { l.hangs = true })
		began := time.Now()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := <-said; !errors.Is(err, kv.ErrUnknown) || time.Since(began) > drainEvery+drainMax {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestWhatAnErrorSaysOfATransaction(t *testing.T) {
	broke, late, gone := status.Error(codes.Unavailable, "it broke"), status.Error(codes.DeadlineExceeded, "late"), status.Error(codes.Canceled, "gone")
	for _, c := range []struct {
		name string
		err  error
		sent bool
		want verdict
	}{
		{"what was not sent may be sent again", broke, false, again},
		{"also if there was no time to", late, false, again},
		{"unless nobody wants it any more", gone, false, unknown},
		{"or did before there was a connection", context.Canceled, false, unknown},
		{"of what was sent nothing is known", broke, true, unknown},
		{"however long it takes", late, true, unknown},
		{"or if its answer is not waited for", gone, true, unknown},
		{"or etcd itself does not know", rpctypes.ErrGRPCTimeout, true, unknown},
		{"or lost its leader meanwhile", rpctypes.ErrGRPCLeaderChanged, true, unknown},
		{"who has no leader did not begin", rpctypes.ErrGRPCNoLeader, true, again},
		{"nor who has too much to do", rpctypes.ErrGRPCRequestTooManyRequests, true, again},
		{"a lease may have ended", rpctypes.ErrGRPCLeaseNotFound, true, noLease},
		{"there may be no room", rpctypes.ErrGRPCNoSpace, true, full},
		{"it may be too large", rpctypes.ErrGRPCRequestTooLarge, true, tooMuch},
		{"it may be denied", rpctypes.ErrGRPCPermissionDenied, true, refused},
	} {
		if got := judge(c.err, c.sent); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

// That a commit is not seen says that it was not made, unless everything was read anew since it began: it may have been written over.
func TestWhatIsNotSeenInAStateThatIsReadAnew(t *testing.T) {
	for _, c := range []struct {
		name string
		anew bool
		want error
	}{
		{"the watch told everything", false, kv.ErrReadOnly},
		{"everything was read anew", true, kv.ErrUnknown},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := engineOn(t, &teller{shelf: held("a")})
			if err := e.settle(t.Context()); err != nil {
				t.Fatal(err)
			}
			mine := &attempts{e: e, wait: *waits(t.Context()), ticket: &ticket{done: make(chan struct{})}, loads: e.follows.loads.Load()}
			defer mine.wait.over()
			e.progress(e.in.ours(2))
			if c.anew {
				if err := e.load(t.Context(), 2); err != nil {
					t.Fatal(err)
				}
			}
			if _, over, err := mine.explain(rpctypes.ErrGRPCNoSpace, true); !over || !errors.Is(err, c.want) {
				t.Errorf("%s: got %v, %v, want %v", c.name, over, err, c.want)
			}
		})
	}
}
