package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-dev/pawl/integration/etcd"
	"github.com/pawl-dev/pawl/kv"
	kvetcd "github.com/pawl-dev/pawl/kv/etcd"
)

func heavy(t testing.TB) {
	if os.Getenv("PAWL_HEAVY") == "" {
		t.Skip("takes long: set PAWL_HEAVY=1")
	}
}

// A replica that is cut off from etcd reads nothing stale as the latest, lets nobody write, and says so. What was
// read it still has. Back again, it goes on where it was, and its watches with it.
func TestACutReplicaDoesNotLie(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	p := etcd.NewProxy(t, m)
	cut, well := subjectOn(t, through(p)), subjectOn(t, on(m))
	before := cut.put(a, "before")
	w := cut.watch(ns, before)
	p.Cut()
	during := well.put(a, "during")
	_, err := cut.Read(t.Context(), kv.Latest)
	fails(t, err, kv.ErrAway)
	fails(t, err, context.DeadlineExceeded)
	cut.holds(cut.read(kv.Any), a, "before")
	cut.holds(cut.read(kv.Exactly(before)), a, "before")
	if _, ok, err := w.Next(); ok || err != nil {
		t.Errorf("a watch tells %v, %v", ok, err)
	}
	l := newLedger()
	done, err := cut.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(b, []byte("lost?"))}})
	if l.note("lost?", done, err); err == nil {
		t.Error("a write was answered though nobody was there")
	}
	eventually(t, "the engine says that etcd is away", func() bool { return errors.Is(cut.Err(), kv.ErrAway) })
	_, err = cut.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(b, []byte("refused"))}})
	fails(t, err, kv.ErrAway)
	l.note("refused", kv.Committed{}, err)
	p.Heal()
	eventually(t, "the engine takes writes again", func() bool { return cut.Err() == nil })
	cut.holds(cut.read(kv.Latest), a, "during")
	if e, err := cut.next(w); err != nil || e.Version.Revision != during {
		t.Errorf("the watch goes on with %+v, %v", e.Version, err)
	}
	done = cut.commit(kv.Txn{Ops: []kv.Op{kv.Put(a, []byte("after"))}})
	l.note("after", done, nil)
	same(t, cut, well)
	l.judge(t, well)
}

// Connections break under load, and are cut for a while, again and again: nobody is told what is not so.
func TestNothingIsLostOrRepeatedAcrossCuts(t *testing.T) {
	t.Parallel()
	rounds := 2
	if os.Getenv("PAWL_HEAVY") != "" {
		rounds = 20
	}
	m := etcd.Start(t, etcd.Options{})
	p := etcd.NewProxy(t, m)
	cut, well := subjectOn(t, through(p)), subjectOn(t, on(m))
	l := newLedger()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 4 {
		s := []*subject{cut, well}[w%2]
		wg.Go(func() { l.write(ctx, s, w, 3) })
	}
	wg.Go(func() { latestIsLatest(t, ctx, l, cut) })
	step := time.NewTicker(300 * time.Millisecond)
	defer step.Stop()
	for range rounds {
		<-step.C
		p.Break()
		<-step.C
		p.Cut()
		<-step.C
		<-step.C
		p.Break()
		p.Heal()
		<-step.C
		p.Cut()
		<-step.C
		p.Heal()
	}
	eventually(t, "the engine takes writes again", func() bool { return cut.Err() == nil })
	cancel()
	wg.Wait()
	same(t, well, cut)
	l.judge(t, cut)
	l.judge(t, well)
}

// latestIsLatest reads the latest, and compares it with what was answered before.
func latestIsLatest(t testing.TB, ctx context.Context, l *ledger, s *subject) {
	for ctx.Err() == nil {
		l.mu.Lock()
		before := l.answered
		l.mu.Unlock()
		snap, err := s.Read(context.Background(), kv.Latest)
		if err == nil && snap.Revision() < before {
			t.Errorf("the latest is %d after %d was answered", snap.Revision(), before)
		}
	}
}

// History that is compacted while the replica cannot see it is gone, and everybody is told.
func TestCompactionBehindTheBackOfAReplica(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	p := etcd.NewProxy(t, m)
	cut, well := subjectOn(t, through(p)), subjectOn(t, on(m))
	before := cut.put(a, "before")
	cut.put(b, "stays")
	told, behind := cut.watch(ns, cut.read(kv.Latest).Revision()), cut.watch(ns, before)
	p.Cut()
	p.Break()
	well.put(ns+"passing", "x")
	well.commit(kv.Txn{Ops: []kv.Op{kv.Delete(ns + "passing")}})
	well.put(a, "during")
	at := well.put(ns+"c", "last")
	if _, err := raw(t, m.URL).Compact(t.Context(), revisionIn(at)); err != nil {
		t.Fatal(err)
	}
	p.Heal()
	eventually(t, "the engine takes writes again", func() bool { return cut.Err() == nil })
	snap := cut.read(kv.Latest)
	cut.holds(snap, a, "during")
	cut.holds(snap, b, "stays")
	cut.holds(snap, ns+"passing", "")
	for name, w := range map[string]kv.Watch{"that was told everything": told, "that was behind": behind} {
		for {
			if _, err := cut.next(w); err != nil {
				if !errors.Is(err, kv.ErrCompacted) {
					t.Errorf("a watch %s: %v", name, err)
				}
				break
			}
		}
	}
	_, err := cut.Read(t.Context(), kv.Exactly(before))
	fails(t, err, kv.ErrCompacted)
	_, err = cut.Watch(ns, at-1)
	fails(t, err, kv.ErrCompacted)
	w := cut.watch(ns, at)
	rev := well.put(a, "after")
	if e, err := cut.next(w); err != nil || e.Version.Revision != rev || string(e.Prev.Value) != "during" {
		t.Errorf("got %+v in place of %+v, %v", e.Version, e.Prev, err)
	}
	if v := cut.read(kv.AtLeast(rev)).Get(b); v.Created == 0 || !v.Time.Time().Before(time.Now()) {
		t.Errorf("b is %+v", v)
	}
}

// A commit that was made is answered as done though history was compacted before the watch had told of it, if it is still seen.
func TestACommitIsSeenInWhatIsReadAnew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		txn   kv.Txn
		then  func(s *subject) // by another replica
		known bool
	}{
		{"it is the last of its key", kv.Txn{Ops: []kv.Op{kv.Put(a, []byte("mine")), kv.Put(b, []byte("mine"))}}, func(*subject) {}, true},
		{"it was written over in part", kv.Txn{Ops: []kv.Op{kv.Put(a, []byte("mine")), kv.Put(b, []byte("mine"))}},
			func(s *subject) { s.put(b, "another's") }, false},
		{"it deletes", kv.Txn{Ops: []kv.Op{kv.Put(a, []byte("mine")), kv.Delete(b)}}, func(*subject) {}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := etcd.Start(t, etcd.Options{})
			p := etcd.NewProxy(t, m)
			opts := through(p)
			opts.Patience = patience
			s, another := subjectOn(t, opts), subjectOn(t, on(m))
			s.put(b, "before")
			p.Delay(time.Hour) // what etcd says is lost, and what it is told is not
			answered := make(chan kv.Committed, 1)
			went := make(chan error, 1)
			go func() {
				done, err := s.Commit(context.Background(), c.txn)
				answered <- done
				went <- err
			}()
			eventually(t, "the commit is made", func() bool {
				v := another.read(kv.Latest).Get(a)
				return v != nil && string(v.Value) == "mine"
			})
			made := another.read(kv.Latest).Get(a)
			c.then(another)
			last := another.put(ns+"c", "last")
			if _, err := raw(t, m.URL).Compact(t.Context(), revisionIn(last)); err != nil {
				t.Fatal(err)
			}
			p.Delay(0)
			p.Break()
			done, err := <-answered, <-went
			switch {
			case c.known && (err != nil || done.Revision != made.Revision):
				t.Errorf("got %+v, %v; it is at %d", done, err, made.Revision)
			case c.known:
				for i, v := range done.Versions {
					if v == nil || v.Key != c.txn.Ops[i].Key || v.Revision != made.Revision || string(v.Value) != "mine" {
						t.Errorf("version %d is %+v", i, v)
					}
				}
			case !errors.Is(err, kv.ErrUnknown):
				t.Errorf("got %+v, %v", done, err)
			}
			s.holds(s.read(kv.Latest), a, "mine")
		})
	}
}

// An etcd that was restored from a backup has lost what was told. The engine stops, and says why.
func TestARestoredEtcdStopsTheEngine(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		name string
		then int // that are written to the restored one before the engine sees it
		want []string
	}{
		{"its revision has gone back", 0, []string{"it does not know revision", "its revision was"}},
		{"its revision is where it was, by other ways", 5, []string{"it tells revision"}},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			m := etcd.Start(t, etcd.Options{})
			p := etcd.NewProxy(t, m)
			s := subjectOn(t, through(p))
			s.put(a, "saved")
			m.Stop()
			restore := m.Save()
			m.Restart()
			for range 3 {
				rewritten(t, s, a, "lost")
			}
			w := s.watch(ns, s.read(kv.Latest).Revision())
			ready := w.Wait()
			p.Cut()
			p.Break()
			m.Stop()
			restore()
			m.Restart()
			for i := range k.then {
				if _, err := raw(t, m.URL).Put(t.Context(), "/others", fmt.Sprint(i)); err != nil {
					t.Fatal(err)
				}
			}
			p.Heal()
			select {
			case <-ready:
			case <-time.After(patience):
				t.Fatal("the watch was told nothing")
			}
			_, _, err := w.Next()
			fails(t, err, kv.ErrClosed)
			says := func(text string) bool { return strings.Contains(fmt.Sprint(s.Err()), text) }
			if err := s.Err(); !slices.ContainsFunc(k.want, says) || !says("restart") {
				t.Errorf("it says %v", err)
			}
			_, err = s.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(a, []byte("x"))}})
			fails(t, err, kv.ErrClosed)
			for _, at := range []kv.Freshness{kv.Latest, kv.Any} {
				_, err = s.Read(t.Context(), at)
				fails(t, err, kv.ErrClosed)
			}
		})
	}
}

// rewritten puts a value, however often that takes after a restart of etcd.
func rewritten(t testing.TB, s *subject, key, value string) {
	eventually(t, "it is written", func() bool {
		_, err := s.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(key, []byte(value))}})
		return err == nil
	})
}

// Another etcd at the same address is not the one that was told of.
func TestAReplacedEtcdStopsTheEngine(t *testing.T) {
	t.Parallel()
	m, another := etcd.Start(t, etcd.Options{}), etcd.Start(t, etcd.Options{})
	p := etcd.NewProxy(t, m)
	s := subjectOn(t, through(p))
	s.put(a, "1")
	for i := range 5 {
		if _, err := raw(t, another.URL).Put(t.Context(), "/others", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	p.Turn(another)
	p.Break()
	eventually(t, "the engine has stopped", func() bool {
		err := s.Err()
		return err != nil && strings.Contains(err.Error(), "its cluster was")
	})
	// Whoever asks is told why, whatever is asked.
	_, reads := s.Read(t.Context(), kv.Any)
	_, watches := s.Watch(ns, 0)
	_, writes := s.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(a, []byte("2"))}})
	for _, err := range []error{reads, watches, writes} {
		if fails(t, err, kv.ErrClosed); err != nil && !strings.Contains(err.Error(), "its cluster was") {
			t.Errorf("it does not say why: %v", err)
		}
	}
}

// An etcd without room lets nobody write, and the engine says so. What there is can be read. Once there is
// room it goes on by itself.
func TestAFullEtcd(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{Quota: 4 << 20})
	s := subjectOn(t, on(m))
	other := subjectOn(t, on(m))
	l := newLedger()
	big := strings.Repeat("x", 200<<10)
	var err error
	for i := 0; err == nil; i++ {
		if i > 1000 {
			t.Fatal("it is never full")
		}
		var done kv.Committed
		value := fmt.Sprint(i, " ", big)
		done, err = s.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(a, []byte(value))}})
		l.note(value, done, err)
	}
	fails(t, err, kv.ErrReadOnly)
	if err := s.Err(); !errors.Is(err, kv.ErrReadOnly) || !strings.Contains(err.Error(), "no room") {
		t.Errorf("it says %v", err)
	}
	_, err = s.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(b, []byte("small"))}})
	l.note("small", kv.Committed{}, err)
	fails(t, err, kv.ErrReadOnly)
	if v := s.read(kv.Latest).Get(a); v == nil {
		t.Error("what there is cannot be read")
	}
	eventually(t, "a replica that writes nothing says so, too", func() bool { return errors.Is(other.Err(), kv.ErrReadOnly) })
	_, err = other.Commit(t.Context(), expiring(b, kv.After, time.Hour))
	fails(t, err, kv.ErrReadOnly)

	same(t, s, other)
	l.judge(t, s)
	if err := s.Compact(t.Context(), s.read(kv.Latest).Revision()); err != nil {
		t.Errorf("forgetting, which makes room, is refused: %v", err)
	}
	makeRoom(t, raw(t, m.URL), m.URL)
	for _, e := range []*subject{s, other} {
		eventually(t, "the engine takes writes again", func() bool { return e.Err() == nil })
		e.put(b, "small")
	}
}

// makeRoom does what whoever runs etcd does.
func makeRoom(t testing.TB, c *clientv3.Client, url string) {
	t.Helper()
	now, err := c.Get(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Compact(t.Context(), now.Header.Revision, clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		t.Fatal(err)
	}
	if _, err := c.Defragment(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	alarm := &clientv3.AlarmMember{Alarm: etcdserverpb.AlarmType_NOSPACE}
	if _, err := c.AlarmDisarm(t.Context(), alarm); err != nil {
		t.Fatal(err)
	}
	alarms, err := c.AlarmList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range alarms.Alarms {
		if _, err := c.AlarmDisarm(t.Context(), (*clientv3.AlarmMember)(a)); err != nil {
			t.Fatal(err)
		}
	}
}

// What is more than etcd takes in one commit is refused before it is sent, and who sent it is told what is too much.
func TestWhatIsTooMuchForACommit(t *testing.T) {
	t.Parallel()
	s := subjectOn(t, on(etcd.Start(t, etcd.Options{})))
	puts := func(n, size int) (txn kv.Txn) {
		for i := range n {
			txn.Ops = append(txn.Ops, kv.Op{Key: fmt.Sprint(ns, i), Value: make([]byte, size), Expiry: kv.Expiry{Kind: kv.Forever}})
		}
		return txn
	}
	rests := func(n int) (txn kv.Txn) {
		for i := range n {
			txn.Conditions = append(txn.Conditions, kv.Condition{Key: fmt.Sprint(ns, "absent", i)})
		}
		return txn
	}
	const half = kvetcd.MaxBytes / 2
	for _, k := range []struct {
		name string
		txn  kv.Txn
		says string // "" if it is not too much
	}{
		{"as many changes as etcd takes", puts(kvetcd.MaxOps, 1), ""},
		{"one change more", puts(kvetcd.MaxOps+1, 1), "129 changes, and etcd takes at most 128"},
		{"as many conditions as etcd takes", rests(kvetcd.MaxOps), ""},
		{"one condition more", rests(kvetcd.MaxOps + 1), "129 conditions, and etcd takes at most 128"},
		{"nearly as many bytes", puts(2, half-1000), ""},
		{"more bytes", puts(2, half), "etcd takes at most 1572864"},
	} {
		_, before := s.Revisions()
		_, err := s.Commit(t.Context(), k.txn)
		switch _, after := s.Revisions(); {
		case k.says == "" && err != nil:
			t.Errorf("%s: %v", k.name, err)
		case k.says != "" && (!errors.Is(err, kv.ErrTooLarge) || !strings.Contains(err.Error(), k.says) || after != before):
			t.Errorf("%s: %v, revisions %d and %d", k.name, err, before, after)
		}
	}
}

// An engine that is opened before etcd is there waits for it.
func TestOpeningWaitsForEtcd(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	m.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := kvetcd.Open(ctx, on(m)); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), m.URL) {
		t.Errorf("got %v", err)
	}
	opened := make(chan error, 1)
	go func() {
		e, err := kvetcd.Open(context.Background(), on(m))
		if err == nil {
			err = e.Close()
		}
		opened <- err
	}()
	m.Restart()
	select {
	case err := <-opened:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it waits on")
	}
}

// However long etcd was away, it is noticed within seconds that it is back.
func TestAnEtcdThatWasAwayForLong(t *testing.T) {
	heavy(t)
	m := etcd.Start(t, etcd.Options{})
	s := subjectOn(t, on(m))
	s.put(a, "1")
	m.Stop()
	<-time.After(45 * time.Second)
	m.Restart()
	back := time.Now()
	eventually(t, "the engine takes writes again", func() bool { return s.Err() == nil })
	if took := time.Since(back); took > 6*time.Second {
		t.Errorf("it took %v", took)
	}
	s.put(a, "2")
}

// An engine can be closed though etcd is away, also with writes and reads under way that would wait long for it. Nobody is told what
// is not so.
func TestClosingDoesNotWaitForEtcd(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("an etcd of %d", n), func(t *testing.T) {
			t.Parallel()
			opts := kvetcd.Options{Patience: 10 * patience}
			var proxies []*etcd.Proxy
			for _, m := range etcd.StartCluster(t, n, etcd.Options{}) {
				proxies = append(proxies, etcd.NewProxy(t, m))
				opts.Endpoints = append(opts.Endpoints, proxies[len(proxies)-1].URL)
			}
			s := subjectOn(t, opts)
			s.put(a, "1")
			for _, p := range proxies {
				p.Cut()
			}
			var wg sync.WaitGroup
			asks := func(kind error, do func() error) {
				wg.Go(func() {
					if err := do(); !errors.Is(err, kind) {
						t.Errorf("got %v, want an error that is %q", err, kind)
					}
				})
			}
			for range 3 { // of one key, so that they are sent by themselves
				asks(kv.ErrUnknown, func() error {
					_, err := s.Commit(context.Background(), kv.Txn{Ops: []kv.Op{kv.Put(a, []byte("2"))}})
					return err
				})
			}
			asks(kv.ErrClosed, func() error {
				_, err := s.Read(context.Background(), kv.Latest)
				return err
			})
			<-time.After(100 * time.Millisecond) // until all that is under way
			began := time.Now()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			wg.Wait()
			t.Logf("it took %v", time.Since(began))
			if took := time.Since(began); took > patience/6 {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// Somebody else's keys under the prefix are not overwritten, and not passed over in silence.
func TestAForeignKeyIsNamed(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	c := raw(t, m.URL)
	key := kvetcd.DefaultPrefix + "/kv/" + a
	if _, err := c.Put(t.Context(), key, "k8s\x00"); err != nil {
		t.Fatal(err)
	}
	if _, err := kvetcd.Open(t.Context(), on(m)); err == nil || !strings.Contains(err.Error(), key) {
		t.Errorf("got %v", err)
	}
}

// The leader changes, and members go and come, while many write through two replicas. What was answered is there.
func TestLeaderChanges(t *testing.T) {
	heavy(t)
	members := etcd.StartCluster(t, 3, etcd.Options{})
	one, other := subjectOn(t, on(members...)), subjectOn(t, on(members[2], members[0]))
	l := newLedger()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 8 {
		s := []*subject{one, other}[w%2]
		wg.Go(func() { l.write(ctx, s, w, 5) })
	}
	wg.Go(func() { latestIsLatest(t, ctx, l, one) })
	wg.Go(func() { latestIsLatest(t, ctx, l, other) })
	step := time.NewTicker(700 * time.Millisecond)
	defer step.Stop()
	for round := range 12 {
		<-step.C
		for _, m := range members {
			if m.Leads() {
				if round%3 == 2 {
					m.Stop()
					<-step.C
					<-step.C
					m.Restart()
				} else {
					m.GiveUp()
				}
				break
			}
		}
	}
	for _, s := range []*subject{one, other} {
		eventually(t, "the engine takes writes again", func() bool { return s.Err() == nil })
	}
	<-step.C
	cancel()
	wg.Wait()
	same(t, one, other)
	l.judge(t, one)
	l.judge(t, other)
}
