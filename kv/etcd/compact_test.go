package etcd

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// A clock shows the time, and something more.
type clock struct{ ahead time.Duration }

func (c *clock) Now() time.Time { return time.Now().Add(c.ahead) }

// What one writer's clock showed, that was a year ahead, keeps no history for a year.
func TestHistoryIsCutThoughAClockWasAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &teller{shelf: held(), lives: true}
		e := engineOn(t, l)
		c := &clock{365 * 24 * time.Hour}
		e.opts.CompactEvery, e.opts.HistoryDuration, e.opts.Clock = time.Minute, 5*time.Minute, c
		if err := e.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		put := func() kv.Revision {
			t.Helper()
			done, err := e.Commit(context.Background(), kv.Txn{Ops: []kv.Op{kv.Put(a, []byte{})}})
			if err != nil {
				t.Fatal(err)
			}
			return done.Revision
		}
		put()
		c.ahead = 0
		var at []kv.Revision // what was put each minute
		for range 20 {
			at = append(at, put())
			time.Sleep(time.Minute)
		}
		if oldest, _ := e.Revisions(); oldest < at[10] || oldest > at[15] {
			t.Errorf("history begins at %d; ten minutes ago it was %d, and five minutes ago %d", oldest, at[10], at[15])
		}
	})
}
