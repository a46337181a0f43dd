package etcd_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/integration/etcd"
	"github.com/pawl-dev/pawl/kv"
	kvetcd "github.com/pawl-dev/pawl/kv/etcd"
)

// stallMax is how long an engine may stand still when one of three members hangs. It is about a second and a half; one that waited
// for the member would stand still for as long as that hangs, or fifteen seconds.
const stallMax = 4 * time.Second

// hangs is how long a member hangs, at least.
const hangs = 5 * time.Second

// A seat is one of three members, that can hang.
type seat struct {
	url        string
	leads      bool
	hang, goOn func()
	password   string // of root; "" means that nobody is asked for it
}

// behindProxies are members that hang for who comes through a proxy, though not for each other.
func behindProxies(t *testing.T) (seats []seat) {
	for _, m := range etcd.StartCluster(t, 3, etcd.Options{}) {
		p := etcd.NewProxy(t, m)
		seats = append(seats, seat{p.URL, m.Leads(), p.Cut, p.Heal, ""})
	}
	return seats
}

// guardedByPassword are such members that ask who is there.
func guardedByPassword(t *testing.T) []seat {
	seats := behindProxies(t)
	root := raw(t, seats[0].url)
	may := func(_ any, err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	may(root.UserAdd(t.Context(), "root", "secret"))
	may(root.RoleAdd(t.Context(), "root"))
	may(root.UserGrantRole(t.Context(), "root", "root"))
	may(root.AuthEnable(t.Context()))
	for i := range seats {
		seats[i].password = "secret"
	}
	return seats
}

// processes are members that hang altogether.
func processes(t *testing.T) (seats []seat) {
	for _, m := range etcd.StartApart(t, 3, "TestIsMember") {
		seats = append(seats, seat{m.URL, m.Leads(), m.Hang, m.GoOn, ""})
	}
	return seats
}

func TestIsMember(t *testing.T) { etcd.ServeApart(t) }

func leader(seats []seat) int {
	return max(slices.IndexFunc(seats, func(s seat) bool { return s.leads }), 0)
}

func follower(seats []seat) int { return (leader(seats) + 1) % len(seats) }

// A trio is an etcd of three members, and an engine that prefers one of them.
type trio struct {
	*subject
	seats  []seat
	ledger *ledger
	hung   int // times that something did
}

func trioOf(t *testing.T, seats []seat, prefers int) *trio {
	tr := &trio{seats: seats, ledger: newLedger()}
	opts := kvetcd.Options{Entropy: bytes.NewReader(binary.BigEndian.AppendUint64(nil, uint64(3+prefers)))}
	for _, s := range seats {
		opts.Endpoints = append(opts.Endpoints, s.url)
		if opts.Password = s.password; s.password != "" {
			opts.User = "root"
		}
	}
	tr.subject = subjectOn(t, opts)
	return tr
}

// A load is commits, reads and a watch, that begin all the time whatever became of those before.
type load struct {
	s     *subject
	l     *ledger
	round int
	wg    sync.WaitGroup

	mu   sync.Mutex // guards what follows
	ends map[string][]time.Time
	slow map[string]time.Duration // of those that began when the member had been hanging for a while
	errs []error                  // of those
}

// run begins something every few milliseconds until ctx ends; what begins after a time is to be quick.
func (ld *load) run(ctx context.Context, quick time.Time) {
	w := ld.s.watch(ns, ld.s.read(kv.Latest).Revision())
	ld.wg.Go(func() {
		for ctx.Err() == nil {
			ready := w.Wait()
			for {
				if _, ok, err := w.Next(); err != nil {
					ld.s.t.Errorf("the watch ended: %v", err)
					return
				} else if !ok {
					break
				}
				ld.end("events", time.Now(), quick, nil)
			}
			select {
			case <-ready:
			case <-ctx.Done():
			}
		}
	})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		<-tick.C
		began, value := time.Now(), fmt.Sprint(ld.round, "-", i)
		ld.wg.Go(func() {
			done, err := ld.s.Commit(context.Background(), kv.Txn{Ops: []kv.Op{kv.Put(fmt.Sprint(ns, "h", i%100), []byte(value))}})
			ld.l.note(value, done, err)
			ld.end("commits", began, quick, err)
		})
		ld.wg.Go(func() {
			_, before := ld.s.Revisions()
			snap, err := ld.s.Read(context.Background(), kv.Latest)
			if err == nil && snap.Revision() < before {
				ld.s.t.Errorf("the latest is %d after %d was shown", snap.Revision(), before)
			}
			ld.end("reads", began, quick, err)
		})
	}
}

func (ld *load) end(what string, began, quick time.Time, err error) {
	now := time.Now()
	ld.mu.Lock()
	defer ld.mu.Unlock()
	if err == nil {
		ld.ends[what] = append(ld.ends[what], now)
	}
	if began.After(quick) {
		ld.slow[what] = max(ld.slow[what], now.Sub(began))
		if err != nil {
			ld.errs = append(ld.errs, err)
		}
	}
}

// gap returns the longest time between two that ended well, or that none did up to now.
func (ld *load) gap(what string) time.Duration {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	longest := time.Duration(0)
	for i, at := range ld.ends[what] {
		if i > 0 {
			longest = max(longest, at.Sub(ld.ends[what][i-1]))
		}
	}
	return longest
}

// hang has members hang one after the other while there is load, and says how that was.
func (tr *trio) hang(t *testing.T, which ...int) {
	t.Helper()
	tr.hung++
	ld := &load{s: tr.subject, l: tr.ledger, round: tr.hung, ends: map[string][]time.Time{}, slow: map[string]time.Duration{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { ld.run(ctx, time.Now().Add(time.Second+stallMax/2+stallMax/4)) })
	<-time.After(time.Second)
	for _, i := range which {
		tr.seats[i].hang()
	}
	<-time.After(hangs)
	for _, i := range which {
		tr.seats[i].goOn()
	}
	<-time.After(time.Second)
	cancel()
	running.Wait()
	ld.wg.Wait()
	for _, what := range []string{"commits", "reads", "events"} {
		gap := ld.gap(what)
		t.Logf("the longest time without %s was %v; what began when others hung took up to %v", what, gap.Round(time.Millisecond), ld.slow[what].Round(time.Millisecond))
		if gap > stallMax {
			t.Errorf("no %s for %v", what, gap)
		}
		if ld.slow[what] > stallMax/2 {
			t.Errorf("after %v of hanging %s still take %v", 3*stallMax/4, what, ld.slow[what])
		}
	}
	if err := errors.Join(ld.errs...); err != nil {
		t.Errorf("after %v of hanging: %v", 3*stallMax/4, err)
	}
	ld.l.judge(t, tr.subject)
}

// One of three members that hangs holds up what is under way there, and nothing else for long. When it is continued it is used again:
// it alone is enough then. What was begun because of all that has ended.
func TestAMemberHangs(t *testing.T) {
	for _, c := range []struct {
		name            string
		of              func(*testing.T) []seat
		prefers, freeze func([]seat) int
		others          bool // hang afterwards, both at once
		heavy           bool
	}{
		{"the leader, of whom everything is asked", behindProxies, leader, leader, true, false},
		{"a follower, of whom everything is asked", behindProxies, follower, follower, true, true},
		{"the leader, and a follower is asked", behindProxies, follower, leader, true, true},
		{"a follower, who knows by a password who asks", guardedByPassword, follower, follower, true, true},
		{"the leader's process, which is asked", processes, leader, leader, false, true},
		{"the leader's process, and a follower is asked", processes, follower, leader, false, true},
		{"a follower's process, which is asked", processes, follower, follower, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.heavy {
				heavy(t)
			}
			seats := c.of(t)
			tr := trioOf(t, seats, c.prefers(seats))
			<-time.After(time.Second / 2) // until there are connections with all members
			running := goroutines()
			hung := c.freeze(seats)
			tr.hang(t, hung)
			if c.others {
				tr.hang(t, (hung+1)%3, (hung+2)%3)
			}
			eventually(t, "as many goroutines run as before", func() bool { return goroutines() <= running })
		})
	}
}

// A store can be opened, and restored, while a member hangs, and who leads stays leader.
func TestBeginningWhileAMemberHangs(t *testing.T) {
	t.Parallel()
	seats := behindProxies(t)
	hung := follower(seats)
	seats[hung].hang()
	quick := func(what string, do func()) {
		t.Helper()
		began := time.Now()
		if do(); time.Since(began) > stallMax {
			t.Errorf("%s took %v", what, time.Since(began))
		}
	}
	var opts kvetcd.Options
	for _, s := range seats {
		opts.Endpoints = append(opts.Endpoints, s.url)
	}
	prefer := func() kvetcd.Options {
		opts.Entropy = bytes.NewReader(binary.BigEndian.AppendUint64(nil, uint64(3+hung)))
		return opts
	}
	quick("restoring", func() {
		if _, err := kvetcd.Restore(t.Context(), prefer(), 1000, func(func(*kv.Version, error) bool) {}, nil); err != nil {
			t.Error(err)
		}
	})
	var s *subject
	quick("opening", func() { s = subjectOn(t, prefer()) })
	quick("a commit that expires", func() { s.commit(expiring(a, kv.After, time.Hour)) })
	leads, ended := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		s.Lead(ctx, "it", func(ctx context.Context) {
			close(leads)
			<-ctx.Done()
		})
	}()
	quick("leading", func() { <-leads })
	seats[hung].goOn()
	quick("all the rest", func() {
		cancel()
		<-ended
		s.put(a, "1")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// goroutines counts those of engines and of their connections.
func goroutines() (n int) {
	all := make([]byte, 4<<20)
	for g := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
		if strings.Contains(g, "pawl/kv/etcd.") || strings.Contains(g, "transport.newHTTP2Client") || strings.Contains(g, "transport.NewHTTP2Client") {
			n++
		}
	}
	return n
}
