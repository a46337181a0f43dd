package conversation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Result says how a conversation went.
type Result struct {
	ID          string
	Token       string        // what ${unique} stood for
	Took        time.Duration // without the cleaning up
	Differences []Difference  // in the order they were found; none: it passed
}

// Passed says whether every answer was the recorded one.
func (r *Result) Passed() bool { return len(r.Differences) == 0 }

// String tells all differences, or that there are none.
func (r *Result) String() string {
	if r.Passed() {
		return fmt.Sprintf("%s: passed in %v", r.ID, r.Took.Round(time.Millisecond))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %d differences (${unique} was %s)", r.ID, len(r.Differences), r.Token)
	for _, d := range r.Differences {
		out.WriteString("\n" + d.String())
	}
	return out.String()
}

// A Difference is one place where an answer is not what was recorded.
type Difference struct {
	Step    string // "3", or "3.1" for the first step that runs while the watch of step 3 is open
	Note    string // what the recording says about the step
	Request string // its request line
	Path    string // where in the answer
	Want    string // what was recorded there, or "<absent>"
	Got     string // what came, or "<absent>"
}

// shownMax is how much of a value a Difference shows.
const shownMax = 1000

func (d Difference) String() string {
	short := func(s string) string {
		if len(s) > shownMax {
			return fmt.Sprintf("%s… (%d bytes)", s[:shownMax], len(s))
		}
		return s
	}
	head := fmt.Sprintf("step %s: %s", d.Step, d.Request)
	if d.Note != "" {
		head += " (" + d.Note + ")"
	}
	return fmt.Sprintf("%s\n    at   %s\n    want %s\n    got  %s", head, d.Path, short(d.Want), short(d.Got))
}

// Run replays the conversation and says where the answers differ from the
// recorded ones. token stands for ${unique}: eight lower-case letters and digits,
// the first a letter, that no other run on the same server has.
//
// A step on which the rest depends (a retry, or one whose status alone is
// checked) ends the run when its status is wrong. At the end Run removes what
// the conversation made, as far as the server lets it.
func (c *Conversation) Run(ctx context.Context, client *Client, token string) *Result {
	r := &run{
		client: client,
		vars:   vars{"unique": token},
		norm:   newNormalizer(token, c.ManagedFields),
		result: &Result{ID: c.ID(), Token: token},
		made:   leftovers{namespace: "/namespaces/p-" + token + "/"},
	}
	began := time.Now()
	r.steps(ctx, "", c.Steps)
	r.result.Took = time.Since(began)
	r.made.remove(ctx, client)
	return r.result
}

// A run is one replay under way. Only a race uses several goroutines, and they
// touch nothing of it.
type run struct {
	client *Client
	vars   vars
	norm   *normalizer
	result *Result
	made   leftovers
}

// steps runs steps in order and says whether the conversation can go on.
func (r *run) steps(ctx context.Context, prefix string, steps []*Step) bool {
	for i, s := range steps {
		if !r.step(ctx, prefix+strconv.Itoa(i+1), s) {
			return false
		}
	}
	return true
}

func (r *run) step(ctx context.Context, number string, s *Step) bool {
	var got *answer
	var err error
	switch {
	case s.Pause != 0:
		err = sleep(ctx, s.Pause)
	case s.Race != nil:
		got, err = r.race(ctx, s.Race)
	case s.Watch != nil:
		got, err = r.watch(ctx, number, s.Watch)
		if err == errStopped {
			return false
		}
	default:
		got, err = r.request(ctx, s)
	}
	if err != nil {
		r.differ(number, s, mismatch{"exchange", "an answer", err.Error()})
		return false
	}
	if got == nil {
		return true
	}
	return r.judge(number, s, got)
}

// judge compares the answer of a step, and says whether the conversation can go on.
func (r *run) judge(number string, s *Step, got *answer) bool {
	missing := r.capture(s, got)
	c := comparison{n: r.norm, check: s.Check, vars: r.vars}
	c.answer(&s.Expect, got)
	for _, m := range c.found {
		r.differ(number, s, m)
	}
	if c.err != nil {
		r.differ(number, s, mismatch{"check", "paths that can be followed", c.err.Error()})
		return false
	}
	for _, p := range missing {
		r.differ(number, s, mismatch{"capture " + p, "a value to capture", absent})
	}
	rests := s.Retry != nil || s.Check.StatusOnly
	wrong := s.Expect.Tally == nil && got.status != s.Expect.Status
	return len(missing) == 0 && !(rests && wrong)
}

func (r *run) differ(number string, s *Step, m mismatch) {
	r.result.Differences = append(r.result.Differences, Difference{
		Step: number, Note: s.Note, Request: s.line(), Path: m.path, Want: m.want, Got: m.got,
	})
}

// line is the step's request line as it was recorded.
func (s *Step) line() string {
	as := func(user string) string {
		if user == "" {
			return ""
		}
		return " as " + user
	}
	switch {
	case s.Request != nil:
		return s.Request.Method + " " + s.Request.Path + as(s.Request.As)
	case s.Watch != nil:
		return "WATCH " + s.Watch.Path + as(s.Watch.As)
	case s.Race != nil:
		return fmt.Sprintf("%d × %s %s", s.Race.Count, s.Race.Request.Method, s.Race.Request.Path)
	}
	return "pause " + s.Pause.String()
}

// capture keeps what the step wants kept of the raw answer, and returns the paths
// where nothing was.
func (r *run) capture(s *Step, got *answer) (missing []string) {
	var raw any = got.body
	if got.stream {
		list := []any{}
		for _, e := range got.events {
			list = append(list, map[string]any{"type": e.kind, "object": e.object})
		}
		raw = list
	}
	for _, name := range slices.Sorted(maps.Keys(s.Capture)) {
		text := s.Capture[name]
		if header, ok := strings.CutPrefix(text, "header:"); ok {
			r.vars[name] = strings.Join(got.header.Values(header), " | ")
			if len(got.header.Values(header)) == 0 {
				missing = append(missing, text)
			}
			continue
		}
		if text == "." {
			r.vars[name] = asJSON(raw)
			continue
		}
		v, ok := follow(r.vars, text, raw)
		r.vars[name] = textOf(v)
		if !ok {
			missing = append(missing, text)
		}
	}
	return missing
}

// follow returns what is at a path that may hold replacements.
func follow(v vars, text string, tree any) (any, bool) {
	replaced, err := v.replace(text)
	if err != nil {
		return nil, false
	}
	p, err := parsePath(replaced)
	if err != nil {
		return nil, false
	}
	return p.get(tree)
}

// retryEvery is the time between two tries.
const retryEvery = 100 * time.Millisecond

// request sends the request of a step, again and again if it is to be retried.
func (r *run) request(ctx context.Context, s *Step) (*answer, error) {
	var until time.Time
	if s.Retry != nil {
		patience := time.Duration(s.Retry.Seconds) * time.Second
		if p := r.client.Patience; p > 0 {
			patience = min(patience, p)
		}
		until = time.Now().Add(patience)
	}
	for {
		sent, err := prepare(s.Request, r.vars)
		if err != nil {
			return nil, err
		}
		got, err := r.client.exchange(ctx, sent)
		if err != nil {
			return nil, err
		}
		r.made.note(sent, got)
		if s.Retry == nil || s.Retry.satisfied(r.vars, got) || !time.Now().Before(until) {
			return got, nil
		}
		if err := sleep(ctx, retryEvery); err != nil {
			return nil, err
		}
	}
}

// satisfied says whether an answer needs no other try.
func (y *Retry) satisfied(v vars, got *answer) bool {
	if y.Status != 0 && y.Status != got.status {
		return false
	}
	for at, want := range y.Where {
		found, ok := follow(v, at, got.body)
		text, err := v.replace(want)
		if !ok || err != nil || textOf(found) != text {
			return false
		}
	}
	return true
}

// race sends a request many times at once and counts the statuses.
func (r *run) race(ctx context.Context, race *Race) (*answer, error) {
	sent := make([]*sending, race.Count)
	for i := range sent {
		s, err := prepare(race.Request, r.vars.with("i", strconv.Itoa(i)))
		if err != nil {
			return nil, err
		}
		sent[i] = s
	}
	answers, errs := make([]*answer, race.Count), make([]error, race.Count)
	var racers sync.WaitGroup
	start := make(chan struct{})
	for i := range sent {
		racers.Go(func() {
			<-start
			answers[i], errs[i] = r.client.exchange(ctx, sent[i])
		})
	}
	close(start)
	racers.Wait()
	tally := map[string]int{}
	for i, got := range answers {
		if errs[i] != nil {
			return nil, errs[i]
		}
		r.made.note(sent[i], got)
		tally[strconv.Itoa(got.status)]++
	}
	return &answer{tally: tally}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
