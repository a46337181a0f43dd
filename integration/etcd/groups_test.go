package etcd_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/integration/etcd"
	"github.com/pawl-dev/pawl/kv"
)

// Commits of every kind that come together at two replicas, more than one of etcd's transactions takes, are told by
// both in the same way, and by one that comes later and reads the state without its history. Every key has the revision, the
// beginning and the author that it has where all of its changes were seen.
func TestCommitsThatComeTogetherAreToldAlike(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	one, other := subjectOn(t, on(m)), subjectOn(t, on(m))
	keys := make([]string, 40)
	for i := range keys {
		keys[i] = fmt.Sprintf("%sk%02d", ns, i)
	}
	var wg sync.WaitGroup
	for w := range 48 {
		s := []*subject{one, other}[w%2]
		random := rand.New(rand.NewPCG(1, uint64(w)))
		wg.Go(func() {
			for range 60 {
				s.Commit(t.Context(), somehow(random, keys, s.Engine, w)) // who loses is answered, and that is all
			}
		})
	}
	wg.Wait()
	same(t, one, other)
	newest := one.read(kv.Latest)
	if err := other.Compact(t.Context(), newest.Revision()); err != nil {
		t.Fatal(err)
	}
	quiet := on(m)
	var said bytes.Buffer
	quiet.Logger = slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	later := subjectOn(t, quiet)
	if said.Len() > 0 {
		t.Errorf("opening what has no history says %s", said.String())
	}
	loaded := later.read(kv.AtLeast(newest.Revision()))
	together := map[kv.Revision]int{}
	for _, key := range keys {
		want, have := newest.Get(key), loaded.Get(key)
		if want == nil || have == nil {
			if want != have {
				t.Errorf("%s is %+v, and loaded %+v", key, want, have)
			}
			continue
		}
		together[want.Revision>>7]++
		// Not its time: nobody knows any more what came before.
		if want.Revision != have.Revision || want.Created != have.Created || want.By() != have.By() || want.Expires != have.Expires ||
			string(want.Value) != string(have.Value) {
			t.Errorf("%s is %+v, and loaded %+v", key, want, have)
		}
	}
	t.Logf("%d keys, of %d of etcd's revisions", len(keys), len(together))
}

// somehow returns a commit of some kind to one or two keys.
func somehow(random *rand.Rand, keys []string, e kv.Engine, writer int) kv.Txn {
	snap, _ := e.Read(context.Background(), kv.Any)
	txn := kv.Txn{Author: kv.Author{User: fmt.Sprint("w", writer%5), Verb: "update"}}
	for _, i := range random.Perm(len(keys))[:1+random.IntN(2)] {
		key, there := keys[i], snap.Get(keys[i])
		value := fmt.Appendf(nil, "%d-%d", writer, random.IntN(1000))
		op := kv.Put(key, value)
		switch random.IntN(8) {
		case 0, 5, 6:
			op.Expiry = kv.Expiry{Kind: []kv.ExpiryKind{kv.After, kv.Forever}[random.IntN(2)], For: time.Hour}
		case 1, 2:
			op.Expiry = kv.Expiry{Kind: kv.Keep}
		case 3, 4:
			op = kv.Delete(key)
		}
		txn.Ops = append(txn.Ops, op)
		if random.IntN(3) == 0 {
			continue // whatever is there
		}
		cond := kv.Condition{Key: key}
		if there != nil {
			cond.At = there.Revision
		}
		txn.Conditions = append(txn.Conditions, cond)
	}
	return txn
}

// A lease that ends while commits that give it to keys are sent together with others keeps none of them from being made, once.
func TestALeaseThatIsGoneHarmsNoGroup(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	s := subjectOn(t, on(m))
	client := raw(t, m.URL)
	counts := make([]int, 16)
	var writers, revoker sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	revoked := 0
	revoker.Go(func() {
		for ctx.Err() == nil {
			all, err := client.Leases(ctx)
			if err != nil {
				continue
			}
			for _, l := range all.Leases {
				if _, err := client.Revoke(ctx, l.ID); err == nil {
					revoked++
				}
			}
		}
	})
	for w := range counts {
		writers.Go(func() {
			for ctx.Err() == nil {
				op := kv.Put(fmt.Sprintf("%slast%02d", ns, w), []byte("x"))
				count := kv.Put(fmt.Sprintf("%scount%02d", ns, w), fmt.Append(nil, counts[w]+1))
				op.Expiry = kv.Expiry{Kind: kv.Forever}
				if w%2 == 0 {
					op.Expiry = kv.Expiry{Kind: kv.After, For: time.Hour}
				}
				cond := kv.Condition{Key: count.Key}
				if v := s.read(kv.Any).Get(count.Key); v != nil {
					cond.At = v.Revision
				}
				if _, err := s.Commit(t.Context(), kv.Txn{Conditions: []kv.Condition{cond}, Ops: []kv.Op{count, op}}); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				counts[w]++
			}
		})
	}
	writers.Wait()
	revoker.Wait()
	if revoked == 0 {
		t.Error("no lease was revoked")
	}
	for w, n := range counts {
		s.holds(s.read(kv.Latest), fmt.Sprintf("%scount%02d", ns, w), fmt.Sprint(n))
	}
	t.Logf("%d leases were revoked, of %v commits", revoked, counts)
}
