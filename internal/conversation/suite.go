package conversation

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// atOnce is how many conversations run at the same time. They mostly wait.
const atOnce = 8

// pendingPatience is how long a step of a pending conversation is retried: long enough for
// what would pass, and not the half minutes that waiting for what is not there would take.
const pendingPatience = 3 * time.Second

// RunAll replays every recorded conversation against a server, each as the
// subtest topic/title. pending are the IDs of those that do not pass yet: one of
// them that passes fails the test, as does any other that does not pass. At the
// end RunAll logs how many pass, and returns the IDs of those that do.
//
// Conversations run eight at a time, whatever -parallel says; with a -run that
// picks among them, only those that are asked for.
func RunAll(t *testing.T, c *Client, pending []string) (passed []string) {
	t.Helper()
	all, err := Load(Recordings())
	if err != nil {
		t.Fatal(err)
	}
	checkPending(t, all, pending)
	s := newSuite(t.Context(), c, all)
	hasty := *c
	hasty.Patience = pendingPatience
	s.run = func(conv *Conversation) *Result {
		if slices.Contains(pending, conv.ID()) {
			return conv.Run(t.Context(), &hasty, NewToken())
		}
		return conv.Run(t.Context(), c, NewToken())
	}
	if depth := strings.Count(t.Name(), "/") + 1; !picksBelow(depth) {
		s.start(all)
	}
	byTopic := map[string][]*Conversation{}
	for _, conv := range all {
		byTopic[conv.Topic] = append(byTopic[conv.Topic], conv)
	}
	var topics []tally
	for _, topic := range topicsOf(all) {
		count := tally{topic: topic}
		t.Run(topic, func(t *testing.T) {
			if depth := strings.Count(t.Name(), "/") + 1; !picksBelow(depth) {
				s.start(byTopic[topic])
			}
			for _, conv := range byTopic[topic] {
				t.Run(conv.Title, func(t *testing.T) {
					result := s.result(conv)
					judge(t, result, slices.Contains(pending, conv.ID()))
					count.ran++
					if result.Passed() {
						passed = append(passed, conv.ID())
						count.passed++
					}
				})
			}
		})
		topics = append(topics, count)
	}
	t.Log(summary(topics, len(all)))
	return passed
}

// judge fails the test of a conversation that does not do what the list says.
func judge(t *testing.T, r *Result, pending bool) {
	t.Helper()
	switch {
	case pending && r.Passed():
		t.Errorf("%s passes: remove it from pending.txt", r.ID)
	case pending:
		t.Logf("pending: %s", r)
	case !r.Passed():
		t.Errorf("%s", r)
	}
}

// checkPending refuses a list that names what is not there.
func checkPending(t *testing.T, all []*Conversation, pending []string) {
	t.Helper()
	for _, id := range pending {
		if !slices.ContainsFunc(all, func(c *Conversation) bool { return c.ID() == id }) {
			t.Errorf("pending.txt names %q, and there is no such conversation: remove it", id)
		}
	}
}

// A suite runs conversations ahead of the subtests that ask for their results.
type suite struct {
	run   func(*Conversation) *Result
	place chan struct{} // one for each that may run

	mu      sync.Mutex // guards futures
	futures map[*Conversation]chan *Result
}

func newSuite(ctx context.Context, c *Client, all []*Conversation) *suite {
	return &suite{
		run:     func(conv *Conversation) *Result { return conv.Run(ctx, c, NewToken()) },
		place:   make(chan struct{}, atOnce),
		futures: make(map[*Conversation]chan *Result, len(all)),
	}
}

// start begins those conversations that have not been begun, in order.
func (s *suite) start(all []*Conversation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var fresh []*Conversation
	for _, conv := range all {
		if s.futures[conv] == nil {
			s.futures[conv] = make(chan *Result, 1)
			fresh = append(fresh, conv)
		}
	}
	if len(fresh) > 0 {
		go s.feed(fresh)
	}
}

// feed runs conversations as places come free.
func (s *suite) feed(fresh []*Conversation) {
	for _, conv := range fresh {
		s.place <- struct{}{}
		go func() {
			defer func() { <-s.place }()
			result := s.run(conv)
			s.future(conv) <- result
		}()
	}
}

func (s *suite) future(conv *Conversation) chan *Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.futures[conv]
}

// result waits for a conversation, and begins it if need be.
func (s *suite) result(conv *Conversation) *Result {
	s.start([]*Conversation{conv})
	return <-s.future(conv)
}

// picksBelow says whether -run picks among the subtests at a depth.
func picksBelow(depth int) bool {
	f := flag.Lookup("test.run")
	return f != nil && strings.Count(f.Value.String(), "/") >= depth
}

// NewToken returns a fresh token for ${unique}.
func NewToken() string {
	return "c" + strings.ToLower(rand.Text()[:7])
}

func topicsOf(all []*Conversation) []string {
	var topics []string
	for _, c := range all {
		if !slices.Contains(topics, c.Topic) {
			topics = append(topics, c.Topic)
		}
	}
	return topics
}

// A tally counts the conversations of a topic.
type tally struct {
	topic       string
	ran, passed int
}

func summary(topics []tally, all int) string {
	var out strings.Builder
	passed := 0
	for _, c := range topics {
		passed += c.passed
		if c.ran > 0 {
			fmt.Fprintf(&out, "\n    %-20s %3d of %3d", c.topic, c.passed, c.ran)
		}
	}
	return fmt.Sprintf("%d of %d pass%s", passed, all, out.String())
}

// ParsePending reads a list of IDs, one per line; # begins a comment line.
func ParsePending(text string) []string {
	var ids []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			ids = append(ids, line)
		}
	}
	return ids
}

// PrunePending returns the list without the lines of those that pass. It adds and
// changes nothing.
func PrunePending(text string, passed []string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !slices.Contains(passed, strings.TrimSpace(line)) {
			out.WriteString(line)
		}
	}
	return out.String()
}
