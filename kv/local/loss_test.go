package local

import (
	"testing"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

func TestTheRevisionAfterALoss(t *testing.T) {
	now := time.Date(2026, time.March, 14, 0, 0, 0, 0, time.UTC)
	micros := kv.Revision(now.UnixMicro())
	for _, c := range []struct {
		name string
		rev  kv.Revision
		now  time.Time
		want kv.Revision
	}{
		{"is the time", 41, now, micros},
		{"is the time for a store that has been restored before", micros - 1, now, micros},
		{"is a great step if the clock was set back since", micros, now, micros + lossMax},
		{"is a great step if the clock shows nothing", 41, time.Unix(0, 0), 41 + lossMax},
		{"is a great step if the clock shows a time before there was time", 41, time.Time{}, 41 + lossMax},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := revisionAfterLoss(c.rev, c.now); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
