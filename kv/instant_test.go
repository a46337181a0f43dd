package kv

import (
	"testing"
	"time"
)

func TestInstants(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	i := InstantOf(at)
	switch {
	case !i.Time().Equal(at) || i.Time().Location() != time.UTC:
		t.Errorf("%v comes back as %v", at, i.Time())
	case i.IsZero() || !InstantOf(time.Time{}).IsZero() || !Instant(0).Time().IsZero():
		t.Error("the zero time is no instant, and every other is one")
	case i.Add(time.Minute).Sub(i) != time.Minute:
		t.Error("a minute later is not a minute later")
	case i.Add(1<<63-1) != 1<<63-1 || i.Add(-time.Minute).Sub(i) != -time.Minute:
		t.Error("what is later is not later, or what is earlier is not earlier")
	case i.String() != "2030-01-02T02:04:05.000000006Z":
		t.Errorf("shown as %s", i)
	}
}

func TestAVersionOfNobodyIsByNobody(t *testing.T) {
	if who := (&Version{}).By(); who != (Author{}) {
		t.Errorf("by %+v", who)
	}
}
