package main

import (
	"fmt"
	"sync"
	"time"
)

// A meter tells people how a long piece of work gets on, which begins when the meter is told of
// it first: nothing in the first second, and then ever more rarely.
type meter struct {
	say func(done, total int64)
	now func() time.Time

	mu   sync.Mutex // guards what follows
	next time.Time  // when there is something to say
	step time.Duration
}

// The first step of a meter, and the longest.
const (
	meterAfter = time.Second
	meterMax   = 10 * time.Second
)

func newMeter(now func() time.Time, say func(done, total int64)) *meter {
	return &meter{say: say, now: now, step: meterAfter}
}

// meter returns one that tells on stderr how much of what is being done is done.
func (p process) meter(what string, unit func(int64) string) *meter {
	return newMeter(p.clock, func(done, total int64) {
		fmt.Fprintf(p.stderr, "%s: %d%% of %s\n", what, done*100/total, unit(total))
	})
}

// tell says how much is done, if it is time to.
func (m *meter) tell(done, total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	if m.next.IsZero() {
		m.next = now.Add(meterAfter)
	}
	if now.Before(m.next) || total <= 0 {
		return
	}
	m.say(done, total)
	m.next = now.Add(m.step)
	m.step = min(2*m.step, meterMax)
}

// sized writes a number of bytes for people.
func sized(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d bytes", n)
	}
	value, name := float64(n)/unit, "KiB"
	for _, bigger := range []string{"MiB", "GiB", "TiB"} {
		if value < unit {
			break
		}
		value, name = value/unit, bigger
	}
	return fmt.Sprintf("%.1f %s", value, name)
}

// objects writes a number of objects for people.
func objects(n int64) string { return counted(n, "object", "objects") }

func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + many
}

// grouped writes a number with its thousands apart.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
