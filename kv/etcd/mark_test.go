package etcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

func TestAMarkWakesWhoItReaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m mark
		over := make(chan struct{})
		reached := map[kv.Revision]chan error{}
		for _, rev := range []kv.Revision{3, 5, 9} {
			r := make(chan error, 1)
			reached[rev] = r
			go func() { r <- m.await(t.Context(), rev, over) }()
		}
		for _, step := range []struct {
			to    kv.Revision
			wakes []kv.Revision
		}{{2, nil}, {3, []kv.Revision{3}}, {7, []kv.Revision{5}}} {
			m.move(step.to)
			synctest.Wait()
			for _, rev := range step.wakes {
				if err := <-reached[rev]; err != nil {
					t.Errorf("who waited for %d: %v", rev, err)
				}
				delete(reached, rev)
			}
			for rev, r := range reached {
				if len(r) > 0 {
					t.Errorf("at %d whoever waits for %d was woken", step.to, rev)
				}
			}
		}
		close(over)
		if err := <-reached[9]; !errors.Is(err, kv.ErrClosed) {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.await(ctx, 8, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := m.await(ctx, 7, nil); err != nil {
			t.Errorf("what is there was not seen by who came too late: %v", err)
		}
	})
}
