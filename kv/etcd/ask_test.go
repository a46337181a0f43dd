package etcd

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// A question takes a second, and its answer is the second in which it was asked.
func askingClock(asked *atomic.Int64) *asker {
	start := time.Now()
	return &asker{ask: func() (kv.Revision, error) {
		asked.Add(1)
		at := time.Since(start)
		time.Sleep(time.Second)
		return kv.Revision(at / time.Millisecond), nil
	}}
}

func TestWhoWaitsSharesAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		a := askingClock(&asked)
		for i := range 64 {
			go func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				came := time.Duration(i) * 10 * time.Millisecond
				rev, err := a.revision(t.Context())
				if err != nil || time.Duration(rev)*time.Millisecond < came {
					t.Errorf("who came at %v got what was asked at %d ms, %v", came, rev, err)
				}
			}()
		}
		time.Sleep(10 * time.Second)
		if got := asked.Load(); got != 2 {
			t.Errorf("64 readers within one question's time asked %d, want the one under way and one more", got)
		}
		if rev, err := a.revision(t.Context()); rev != 10_000 || err != nil {
			t.Errorf("asked later: %d, %v", rev, err)
		}
	})
}

func TestWhoGoesAwayLeavesTheOthersTheirAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		a := askingClock(&asked)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		other := make(chan error)
		go func() {
			_, err := a.revision(t.Context())
			other <- err
		}()
		if _, err := a.revision(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if err := <-other; err != nil {
			t.Errorf("got %v", err)
		}
		time.Sleep(5 * time.Second) // for what may still be on its way
	})
}

func TestAQuestionThatFailsFailsForAllWhoSharedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		a := &asker{ask: func() (kv.Revision, error) { time.Sleep(time.Second); return 0, down }}
		for range 3 {
			go func() {
				if _, err := a.revision(t.Context()); !errors.Is(err, down) {
					t.Errorf("got %v", err)
				}
			}()
		}
		time.Sleep(5 * time.Second)
	})
}
