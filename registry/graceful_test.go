package registry

import (
	"fmt"
	"testing"
	"time"
)

func TestNotify(t *testing.T) { // rules S84, S87 to S89
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	in := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	asks := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name     string
		left     int // seconds until it ends
		grace    int64
		recorded bool
		asked    *int64
		want     string
	}{
		{"who says no grace is deleted now", 30, 30, false, nil, "no time"},
		{"who has none left is deleted now", 0, 0, true, asks(30), "no time"},
		{"who is not asked to hurry does not", 20, 30, true, nil, "stands"},
		{"more time is not given", 20, 30, true, asks(60), "stands"},
		{"nor the same again", 20, 30, true, asks(30), "stands"},
		{"less time is counted from the beginning", 20, 30, true, asks(15), "15 s, in 5 s"},
		{"what is over by then is over now, after a second", 20, 30, true, asks(5), "1 s, in 0 s"},
		{"no time is no time", 20, 30, true, asks(0), "0 s, in 0 s"},
		{"less than nothing is a second", 30, 30, true, asks(-7), "1 s, in 1 s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, next := notify(farewell{in(c.left), c.grace}, c.recorded, c.asked, now)
			got := map[notice]string{
				noTime: "no time", timeStands: "stands",
				shortens: fmt.Sprintf("%d s, in %d s", next.seconds, int(next.at.Sub(now).Seconds())),
			}[n]
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestDoomTold(t *testing.T) { // rules S98, S99
	for _, c := range []struct {
		name string
		h    holding
		want fate
	}{
		{"it has time left", holding{grace: 5}, marked},
		{"it has none, and nothing holds it", holding{}, departs},
		{"it has none, but finalizers hold it", holding{finalizers: 1}, marked},
		{"it has none, but its strategy holds it", holding{held: true}, marked},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := doomTold(c.h); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
