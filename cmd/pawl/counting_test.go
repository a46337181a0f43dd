package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/tally"
)

// countRounds is how often the server is killed while clients count: PAWL_HEAVY=1 asks for all rounds.
func countRounds() int {
	if os.Getenv("PAWL_HEAVY") != "" {
		return 40
	}
	return 4
}

// seats is how many clients count at a time: more of them would only wait, for the server and then for nothing.
const seats = 16

// TestNoIncrementIsLost has clients count up through every way of writing that names what was read,
// while the server is killed with SIGKILL and started again. Each way at each door counts by two in an object of
// its own, and with all others in one that they share.
func TestNoIncrementIsLost(t *testing.T) {
	s := newSite(t)
	c := newCount(t, s)
	var start []func()
	for _, d := range doors {
		c.begin(d, "shared")
		for i, w := range d.through() {
			own := fmt.Sprintf("own-%d%s", i, strings.ReplaceAll(d.sub, "/", "-"))
			c.begin(d, own)
			told := &told{way: d.String() + ", " + w.name, made: map[string]*atomic.Int64{own: {}, "shared": {}}}
			c.told = append(c.told, told)
			for j := range 2 {
				start = append(start, func() { c.write(d, w, own, fmt.Sprintf("%s-%d", own, j), told) })
			}
		}
	}
	for _, write := range start {
		c.writing.Go(write)
	}
	s.kills(countRounds(), &c.acked, len(start))
	s.until(c.missing)
	c.end()
	refused := 0
	for _, told := range c.told {
		refused += int(told.refused.Load())
	}
	t.Logf("%d ways at %d doors, %d kills: %d increments acknowledged, %d refused, %d not answered", len(c.told), len(doors), countRounds(), c.acked.Load(), refused, c.open.Load())
}

// A count is many who count.
type count struct {
	*testing.T
	site     *site
	begun    []begunAt
	counters map[string]*tally.Counter // by where they are
	seats    chan struct{}
	told     []*told
	writing  sync.WaitGroup
	acked    atomic.Int64
	open     atomic.Int64
	rebased  atomic.Int64 // acknowledged, though others had written meanwhile
}

// begunAt is where there is a counter.
type begunAt struct {
	door
	name string
}

func newCount(t *testing.T, s *site) *count {
	return &count{T: t, site: s, counters: map[string]*tally.Counter{}, seats: make(chan struct{}, seats)}
}

// told is what those of one way were told, of their own object and of the shared one.
type told struct {
	way     string
	made    map[string]*atomic.Int64 // by the object's name
	refused atomic.Int64
}

func whereIs(d door, name string) string { return d.resource + "/" + name + ": " + d.stored }

// begin makes an object, if it is not there, and the counter at the door.
func (c *count) begin(d door, name string) {
	c.Helper()
	if c.counters[whereIs(d, name)] != nil {
		return // it is seen through another door
	}
	c.counters[whereIs(d, name)] = &tally.Counter{}
	c.begun = append(c.begun, begunAt{d, name})
	var got object
	code, err := c.site.now.do(http.MethodPost, d.resource, json.RawMessage(strings.Replace(begun[d.resource], "NAME", name, 1)), &got)
	if err != nil || code != http.StatusCreated && code != http.StatusConflict {
		c.Fatalf("%v: %d %v, %v", d, code, got, err)
	}
	patch := object{}.set(d.field, d.said(0))
	if code, err := c.site.now.send(http.MethodPatch, d.path(name), mergePatch, patch, &got); err != nil || code != http.StatusOK {
		c.Fatalf("%v: %d %v, %v", d, code, got, err)
	}
}

// write counts up through a door, now in an object of its own way and now in the one of all.
func (c *count) write(d door, w way, own, who string, told *told) {
	for i := 0; ; i++ {
		p := c.site.current()
		if p == nil || c.Failed() {
			return
		}
		c.seats <- struct{}{}
		answered := c.once(p, d, w, []string{own, "shared"}[i%2], who, told)
		<-c.seats
		if !answered {
			c.site.after(p)
		}
	}
}

// once counts up once, and says whether the server answered.
func (c *count) once(p *running, d door, w way, name, who string, told *told) bool {
	var read object
	if code, err := p.do(http.MethodGet, d.path(name), nil, &read); err != nil {
		return false
	} else if code != http.StatusOK {
		c.Errorf("%s reads: %d %v", told.way, code, read)
		return true
	}
	counter, n := c.counters[whereIs(d, name)], read.number(d.field)+1
	code, got, err := w.write(p, d, name, who, read, n)
	switch {
	case errors.As(err, new(*liar)):
		c.Errorf("%s: %v", told.way, err)
	case err != nil:
		counter.Unanswered()
		c.open.Add(1)
		return false
	case code == http.StatusOK:
		counter.Made(n, who+" by "+w.name)
		told.made[name].Add(1)
		c.acked.Add(1)
	case code == w.refused:
		told.refused.Add(1)
	default:
		c.Errorf("%s: %d %v", told.way, code, got)
	}
	return true
}

// missing says which way was not yet refused, and acknowledged in both of its objects; "" if none is.
func (c *count) missing() string {
	for _, told := range c.told {
		if told.refused.Load() == 0 {
			return told.way + " was never refused"
		}
		for name, made := range told.made {
			if made.Load() == 0 {
				return told.way + " has not counted up in " + name
			}
		}
	}
	return ""
}

// end stops those who count, and compares each counter with what they were told.
func (c *count) end() {
	c.Helper()
	c.site.stop()
	c.writing.Wait()
	for _, at := range c.begun {
		var read object
		if code, err := c.site.now.do(http.MethodGet, at.resource+"/"+at.name, nil, &read); err != nil || code != http.StatusOK {
			c.Fatalf("%v: %d, %v", at.door, code, err)
		}
		if err := c.counters[whereIs(at.door, at.name)].Stands(read.number(at.stored)); err != nil {
			c.Errorf("%s: %v", whereIs(at.door, at.name), err)
		}
	}
}

// TestRebasedIncrementsAreExact has writers own one field each of one object, which they count up with
// rebase from what they wrote last, however old that is by now: they are never refused, and nobody's increments
// are lost, while the server is killed and started again.
func TestRebasedIncrementsAreExact(t *testing.T) {
	s := newSite(t)
	c := newCount(t, s)
	var start []func()
	for _, d := range []door{doors[0], doors[4]} {
		for i, w := range d.through() {
			if w.query != rebase {
				continue
			}
			mine := d
			mine.field = fmt.Sprintf("%s%d", d.field, i)
			mine.stored = mine.field
			c.begin(mine, "fields")
			start = append(start, func() { c.rebase(mine, w) })
		}
	}
	for _, write := range start {
		c.writing.Go(write)
	}
	s.kills(countRounds(), &c.acked, len(start)*10)
	c.end()
	if c.rebased.Load() == 0 {
		t.Error("nothing was rebased")
	}
	t.Logf("%d writers, %d kills: %d increments acknowledged, %d of them rebased, %d not answered", len(start), countRounds(), c.acked.Load(), c.rebased.Load(), c.open.Load())
}

// rebase counts up one field of an object, from what this writer wrote last.
func (c *count) rebase(d door, w way) {
	var last object
	counter := c.counters[whereIs(d, "fields")]
	for {
		p := c.site.current()
		if p == nil || c.Failed() {
			return
		}
		if last == nil {
			if code, err := p.do(http.MethodGet, d.path("fields"), nil, &last); err != nil {
				last = nil
				c.site.after(p)
				continue
			} else if code != http.StatusOK {
				c.Errorf("%v reads: %d %v", d, code, last)
				return
			}
		}
		n := last.number(d.field) + 1
		code, got, err := w.write(p, d, "fields", "m", last, n)
		switch {
		case errors.As(err, new(*liar)), err == nil && code != http.StatusOK:
			c.Errorf("%v%s, %s: %d %v, %v", d, d.field, w.name, code, got, err)
			return
		case err != nil:
			counter.Unanswered()
			c.open.Add(1)
			last = nil
			c.site.after(p)
		default:
			counter.Made(n, w.name)
			c.acked.Add(1)
			if others(d, got) > others(d, last) {
				c.rebased.Add(1)
			}
			last = got
		}
	}
}

// others is the sum of the numbers that stand beside the one at the door.
func others(d door, o object) (sum int) {
	beside, _ := o.at(d.field[:strings.LastIndex(d.field, "/")]).(map[string]any)
	for name := range beside {
		if field := d.field[:strings.LastIndex(d.field, "/")+1] + name; field != d.field {
			sum += o.number(field)
		}
	}
	return sum
}

// A site is a server that is killed and started again, in one folder and on one port, while its clients go on.
type site struct {
	t   *testing.T
	dir string
	rng *rand.Rand
	now *running // that the test may ask

	mu      sync.Mutex // guards what follows
	moved   sync.Cond
	serves  *running // that clients ask
	stopped bool
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), rng: chance(t)}
	s.moved.L = &s.mu
	s.now = startPawl(t, s.dir)
	t.Cleanup(s.stop)
	s.serves = s.now
	var got object
	if code, err := s.now.do(http.MethodPost, definitions, json.RawMessage(meterDefinition), &got); err != nil || code != http.StatusCreated {
		t.Fatalf("the definition: %d %v, %v", code, got, err)
	}
	return s
}

// current is the server, nil if clients are to stop.
func (s *site) current() *running {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	return s.serves
}

// after returns when another server has taken the place of p, or clients are to stop.
func (s *site) after(p *running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.serves == p && !s.stopped {
		s.moved.Wait()
	}
}

// kills kills the server so many times, each time after some acknowledgements.
func (s *site) kills(rounds int, acked *atomic.Int64, some int) {
	s.t.Helper()
	for range rounds {
		want := acked.Load() + int64(some/4+s.rng.IntN(some))
		s.until(func() string {
			if n := acked.Load(); n < want {
				return fmt.Sprintf("%d of %d acknowledgements", n, want)
			}
			return ""
		})
		if s.t.Failed() {
			return // what is there by now says more
		}
		s.now.kill(s.t)
		s.now = startPawlOn(s.t, s.dir, strings.TrimPrefix(s.now.url, "https://"))
		s.mu.Lock()
		s.serves = s.now
		s.moved.Broadcast()
		s.mu.Unlock()
	}
}

// until returns when nothing is missing.
func (s *site) until(missing func() string) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); missing() != ""; {
		if s.t.Failed() || time.Now().After(deadline) {
			s.t.Errorf("after a minute, or a failure: %s", missing())
			return
		}
		time.Sleep(time.Millisecond) // the server is another process: there is nothing to wait on
	}
}

// stop tells clients to stop.
func (s *site) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.moved.Broadcast()
}
