package faults

import (
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
)

// A timeline knows when keys may go by themselves and when they must have gone, by the time
// that passed and by how far the clock was set forward, whichever came first.
type timeline struct {
	elapsed time.Duration
	loose   time.Duration // that keys may be late because the clock was set back
	lives   map[string]life
}

// A life is that of one key which expires.
type life struct {
	expires time.Time // as the version says
	from    time.Duration
	to      time.Duration
}

// set notes that the clock was set by d.
func (l *timeline) set(d time.Duration) {
	if d > 0 {
		l.elapsed += d
		for key, k := range l.lives {
			k.to = max(k.to, l.elapsed+local.ExpirySlack) // it is noticed when the engine wakes
			l.lives[key] = k
		}
		return
	}
	// A clock that shows an earlier time than before does not tell how much passed since it was
	// looked at, which was no longer ago than this.
	l.loose += local.ExpirySlack
	for key, k := range l.lives {
		k.to += local.ExpirySlack
		l.lives[key] = k
	}
}

// restart notes that the store is opened again. If the clock was set back, what passed since the
// last commit is forgotten with the process; no key lives longer than it was given anew.
func (l *timeline) restart() {
	if l.loose == 0 {
		return
	}
	for key, k := range l.lives {
		k.to += k.to - k.from + l.elapsed
		l.lives[key] = k
	}
}

// told notes what a commit says of expiry, and returns an error if a key went too early. Now is
// what the clock shows, or would show if it had not been set back.
func (l *timeline) told(t told, now time.Time) error {
	if l.lives == nil {
		l.lives = map[string]life{}
	}
	for _, c := range t.changes {
		k, expired := l.lives[c.key]
		switch {
		case t.author == local.Expirer && (!expired || k.from > l.elapsed):
			return fmt.Errorf("%v: %s went after %v, and was to stay until %v", t, c.key, l.elapsed, k.from)
		case c.deleted || c.expires.IsZero():
			delete(l.lives, c.key)
		case !expired || !k.expires.Equal(c.expires):
			due := l.elapsed + c.expires.Sub(now)
			l.lives[c.key] = life{c.expires, due, due + local.ExpirySlack}
		}
	}
	return nil
}

// mayStay returns an error if v should have gone.
func (l *timeline) mayStay(v *kv.Version) error {
	if k, expires := l.lives[v.Key]; expires && k.to < l.elapsed {
		return fmt.Errorf("%s of revision %d is there after %v, and was to go between %v and %v", v.Key, v.Revision, l.elapsed, k.from, k.to)
	}
	return nil
}
