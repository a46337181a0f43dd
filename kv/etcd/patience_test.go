package etcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhoComesAtTheSameTimeLosesPatienceAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &patience{of: 10 * time.Second, ctx: t.Context()}
		began := time.Now()
		first := p.term()
		time.Sleep(99 * time.Millisecond)
		second := p.term()
		time.Sleep(time.Millisecond)
		third := p.term()
		if first != second || second == third {
			t.Error("a hundredth of it is not what those have in common who share a term")
		}
		for i, c := range []struct {
			term     context.Context
			from, to time.Duration
		}{{second, 10*time.Second + 99*time.Millisecond, 10*time.Second + 100*time.Millisecond}, {third, 10*time.Second + 100*time.Millisecond, 10*time.Second + 200*time.Millisecond}} {
			<-c.term.Done()
			if took := time.Since(began); took < c.from || took > c.to || !errors.Is(c.term.Err(), context.DeadlineExceeded) {
				t.Errorf("term %d ends after %v with %v", i, took, c.term.Err())
			}
		}
	})
}

func TestAWaitEndsWithItsCallerOrItsTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		p := &patience{of: time.Second, ctx: t.Context()}
		for _, c := range []struct {
			name  string
			leave bool // the caller
			late  bool // the term is over before anybody asks
			want  error
		}{
			{"the caller leaves", true, false, context.Canceled},
			{"the term ends", false, false, context.DeadlineExceeded},
			{"the term has ended", false, true, context.DeadlineExceeded},
			{"both", true, true, context.Canceled},
		} {
			caller, leave := context.WithCancelCause(t.Context())
			w := &wait{caller: caller, term: p.term()}
			if w.err() != nil {
				t.Errorf("%s: it has ended before: %v", c.name, w.err())
			}
			if c.late {
				<-w.term.Done()
			}
			if c.leave {
				leave(gone)
			}
			<-w.ctx().Done()
			if !c.leave {
				<-w.term.Done() // which is at the same time, by another timer
			}
			if !errors.Is(w.err(), c.want) || !c.late && !errors.Is(w.ctx().Err(), c.want) {
				t.Errorf("%s: it ends with %v and %v", c.name, w.err(), w.ctx().Err())
			}
			w.over()
			leave(nil)
		}
	})
}
