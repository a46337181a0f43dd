package server

import (
	"log/slog"
	"sync"
	"time"
)

// seldomEvery is how often it is written down that the store answers nobody.
const seldomEvery = 10 * time.Second

// seldom writes down what is true of each request for as long as something is in the way, once in a while, and how often it
// was so since. Its zero value is ready.
type seldom struct {
	mu    sync.Mutex // guards what follows
	said  time.Time  // last; zero if never
	since int        // how often it was so, and not said
}

// say writes it down if it was not for a while.
func (s *seldom) say(log *slog.Logger, message string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.said.IsZero() && now.Sub(s.said) < seldomEvery {
		s.since++
		return
	}
	if s.since > 0 {
		args = append(args, "others", s.since)
	}
	log.Error(message, args...)
	s.said, s.since = now, 0
}
