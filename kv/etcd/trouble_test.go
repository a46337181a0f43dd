package etcd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"

	"github.com/pawl-dev/pawl/kv"
)

// Whatever is the matter with members, nobody is told what is not so, and when all is well again everything goes on.
func TestTroubleMakesNobodyLie(t *testing.T) {
	runs := 2
	if os.Getenv("PAWL_HEAVY") != "" {
		runs = 50
	}
	for range runs {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { trouble(t, seed) })
		})
	}
}

func trouble(t *testing.T, seed uint64) {
	q := &quorum{chance: rand.New(rand.NewPCG(seed, 1)), now: map[string]*mvccpb.KeyValue{}, at: []time.Time{time.Now()}}
	var voters []*voter
	var links []link
	for range 1 + 2*min(q.chance.IntN(4), 1) {
		voters = append(voters, &voter{quorum: q, healed: make(chan struct{})})
		links = append(links, voters[len(voters)-1])
	}
	probe := func(ctx context.Context, conn grpc.ClientConnInterface) error {
		return conn.Invoke(ctx, "probe", &pb.RangeRequest{}, &pb.RangeResponse{})
	}
	var engines []*Engine
	var heard []*follows
	for i := range uint64(2) {
		e := newEngine(Options{CompactEvery: -1, Patience: 3 * time.Second}.complete(), newMembers(&chair{}, links, seed+i, probe), 7+i)
		defer e.Close()
		if err := e.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		engines, heard = append(engines, e), append(heard, &follows{t: t, q: q, e: e})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute/2)
	defer cancel()
	var wg sync.WaitGroup
	all := claims{of: map[string]claim{}}
	for i := range 12 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				time.Sleep(q.some(100 * time.Millisecond))
				all.make(t, q, engines[q.some(2)-1], fmt.Sprint(i, "-", n))
			}
		})
	}
	over, end := context.WithCancel(t.Context())
	var following sync.WaitGroup
	for _, f := range heard {
		following.Go(func() { f.run(over) })
	}
	for ctx.Err() == nil {
		time.Sleep(q.some(2 * time.Second))
		if q.dice(4) {
			q.compact()
		}
		voters[q.some(time.Duration(len(voters)))-1].turn(ailment(q.some(time.Duration(ailments)) - 1))
	}
	for _, v := range voters {
		v.turn(fine)
	}
	wg.Wait()
	time.Sleep(time.Minute) // until all that was on its way has arrived
	end()
	following.Wait()
	for i, e := range engines {
		if _, err := e.Read(t.Context(), kv.Latest); err != nil || e.Err() != nil {
			t.Fatalf("it does not go on: %v, %v", err, e.Err())
		}
		heard[i].compare(int64(len(q.at)))
	}
	t.Logf("they began anew %d and %d times", heard[0].anew-1, heard[1].anew-1)
	q.audit(t, engines[0].in, all.of)
}

// follows keeps, by what an engine tells, a copy of what there is.
type follows struct {
	t *testing.T
	q *quorum
	e *Engine

	have   map[string]kv.Revision
	newest kv.Revision
	anew   int // times that it began
}

// run follows until ctx ends, and begins anew whenever history is gone.
func (f *follows) run(ctx context.Context) {
	for ctx.Err() == nil {
		snap := f.e.index.Newest()
		f.have, f.newest = map[string]kv.Revision{}, snap.Revision()
		for v := range snap.Ascend(space, "") {
			f.have[v.Key] = v.Revision
		}
		f.anew++
		f.compare(f.e.in.theirs(snap.Revision()))
		w, err := f.e.Watch(space, snap.Revision())
		if err == nil {
			err = f.hear(ctx, w)
			w.Stop()
		}
		if err != nil && !errors.Is(err, kv.ErrCompacted) {
			f.t.Errorf("the watch ended: %v", err)
			return
		}
	}
}

// hear hears what one watch tells.
func (f *follows) hear(ctx context.Context, w kv.Watch) error {
	for {
		ready := w.Wait()
		event, ok, err := w.Next()
		switch {
		case err != nil:
			return err
		case !ok:
			select {
			case <-ready:
			case <-ctx.Done():
				return nil
			}
			continue
		}
		v := event.Version
		if was := revisionOf(event.Prev); was != f.have[v.Key] || v.Revision < f.newest || v.Revision <= was {
			f.t.Errorf("it told of %s at %d, and before that at %d, when it had been told of %d, and of others at %d", v.Key, v.Revision, was, f.have[v.Key], f.newest)
		}
		if f.have[v.Key], f.newest = v.Revision, v.Revision; v.Deleted {
			delete(f.have, v.Key)
		}
	}
}

// compare fails the test if the copy is not what there was at a revision.
func (f *follows) compare(rev int64) {
	f.q.mu.Lock()
	defer f.q.mu.Unlock()
	there := map[string]kv.Revision{}
	for key, have := range f.q.then(rev) {
		if name := string(f.e.in.out([]byte(key))); !own([]byte(name)) {
			said, _ := decode(have.Value)
			there[name] = f.e.in.ours(have.ModRevision) - kv.Revision(said.behind)
		}
	}
	if !maps.Equal(there, f.have) {
		f.t.Errorf("at %d there was %v, and it told %v", rev, there, f.have)
	}
}

// A claim is what a writer was told of a commit.
type claim struct {
	done kv.Committed
	err  error
}

// claims are those of all writers.
type claims struct {
	mu     sync.Mutex       // guards what follows
	of     map[string]claim // by the value that was written
	newest kv.Revision      // that was acknowledged
}

// make reads what is latest, and writes a value, in one way or another.
func (c *claims) make(t *testing.T, q *quorum, e *Engine, value string) {
	c.mu.Lock()
	least := c.newest
	c.mu.Unlock()
	snap, err := e.Read(context.Background(), kv.Latest)
	switch {
	case err != nil:
		snap = e.index.Newest()
	case snap.Revision() < least:
		t.Errorf("the latest is %d after %d was acknowledged", snap.Revision(), least)
	}
	key := fmt.Sprint(space, int(q.some(8)))
	txn := kv.Txn{Ops: []kv.Op{kv.Put(key, []byte(value))}}
	if q.dice(2) {
		txn.Conditions = []kv.Condition{{Key: key, At: revisionOf(snap.Get(key))}}
	}
	if q.dice(4) {
		txn.Ops = append(txn.Ops, kv.Delete(fmt.Sprint(space, "x", int(q.some(8)))))
	}
	if q.dice(4) {
		txn.Ops = append(txn.Ops, kv.Put(fmt.Sprint(space, "x", 10+q.some(8)), []byte(value)))
	}
	ctx := context.Background()
	if q.dice(4) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.some(2*time.Second))
		defer cancel()
	}
	done, err := e.Commit(ctx, txn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[value] = (claim{done, err}); err == nil {
		c.newest = max(c.newest, done.Revision)
	}
}

// audit compares what writers were told with what there is.
func (q *quorum) audit(t *testing.T, in keyspace, claims map[string]claim) {
	made, by := map[string][]kv.Revision{}, map[kv.Revision]string{} // revisions by values, of which each commit has one, and these by revisions
	for _, h := range q.log {
		if h.Type != mvccpb.Event_PUT || own(in.out(h.Kv.Key)) {
			continue
		}
		said, err := decode(h.Kv.Value)
		if err != nil {
			t.Fatal(err)
		}
		v, at := string(said.value), in.ours(h.Kv.ModRevision)-kv.Revision(said.behind)
		if !slices.Contains(made[v], at) {
			made[v] = append(made[v], at)
		}
		if other, is := by[at]; is && other != v {
			t.Errorf("%s and %s are both of revision %d", v, other, at)
		}
		by[at] = v
	}
	kinds := map[string]int{}
	for _, value := range slices.Sorted(maps.Keys(claims)) {
		c, at := claims[value], made[value]
		switch {
		case len(at) > 1:
			t.Errorf("%s was made %d times, and told %v", value, len(at), c.err)
		case c.err == nil:
			kinds["done"]++
			if !slices.Equal(at, []kv.Revision{c.done.Revision}) {
				t.Errorf("%s was acknowledged at %d, and is at %d", value, c.done.Revision, at)
			}
		case errors.Is(c.err, kv.ErrUnknown):
			kinds["unknown"]++
		default:
			kinds["refused"]++
			if len(at) > 0 {
				t.Errorf("%s was refused, and is at %d: %v", value, at, c.err)
			}
		}
	}
	t.Log(kinds)
}
