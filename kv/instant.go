package kv

import (
	"math"
	"time"
)

// An Instant is a time of day in a third of the room that a [time.Time] takes, of which a store holds
// many: nanoseconds since 1970, from 1678 to 2262. Zero is none.
type Instant int64

// InstantOf returns t as an instant; none if t is the zero time.
func InstantOf(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return Instant(t.UnixNano())
}

// Time returns the instant in UTC; the zero time if there is none.
func (i Instant) Time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(i)).UTC()
}

// IsZero says that there is none.
func (i Instant) IsZero() bool { return i == 0 }

// Add returns the instant so much later, or the last one there is.
func (i Instant) Add(d time.Duration) Instant {
	if d > 0 && i > math.MaxInt64-Instant(d) {
		return math.MaxInt64
	}
	return i + Instant(d)
}

// Sub returns how much later i is than j.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// String is for people.
func (i Instant) String() string { return i.Time().Format(time.RFC3339Nano) }
