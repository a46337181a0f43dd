package histories

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest/broken"
)

// unseen are the faults that no history shows: they lie in what clients do not do, or cannot
// tell. The tests of package kvtest find them.
var unseen = []string{
	"answers with no revision if nothing is asked",
	"takes what breaks the rules",
	"refuses what is large",
	"keeps the caller's slice",
	"takes an empty value for none",
	"loses the slot of what was just written",
	"says what it likes of a revision that does not come",
	"watches what cannot be named",
	"forgets what is to come",
	"lets only some keys go",
	"forgets history after it was closed",
	"lets reads wait on when it is closed",
	"takes writes, it says, after it was closed",
	"takes no writes, it says, from the beginning",
	"cannot be closed twice",
	"never tires of waiting",
	"wakes everybody all the time",
}

// orderless are the faults after which there is no order of what was answered. Porcupine
// alone must find these.
var orderless = []string{
	"commits whatever the conditions are",
	"judges only the first condition",
	"takes what exists for absent if it must be",
	"takes what was deleted for what it was",
	"refuses what holds",
	"names the last key in a conflict",
	"makes what it refuses",
	"judges nothing if nothing is to change",
	"makes half of a transaction",
	"makes a transaction in two steps",
	"acknowledges what it does not make",
	"refuses what it makes",
	"makes a commit twice",
	"answers with an earlier revision",
	"answers a refusal before what it lost to can be read",
	"says that it deletes what is absent",
	"sometimes reads a state that is not the latest",
	"leaves out the last of a list",
	"begins a list after the key that is named",
	"loses in a restart what was put last",
	"forgets in a restart what is to expire",
	"begins anew with the revisions after a restart",
}

// seeds is how many runs a fault has to show itself in. Most do in the first.
const seeds = 40

// impatience is how long what must come is waited for in a store that may be broken.
const impatience = time.Second

func TestBrokenStoresAreFound(t *testing.T) {
	var names []string
	for _, f := range broken.Faults() {
		names = append(names, f.Name)
		if slices.Contains(unseen, f.Name) {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			order := slices.Contains(orderless, f.Name)
			for s := range uint64(seeds) {
				res := Check(t, Plan{Seed: s + 1, Patience: impatience}, Broken(CutDisk, f), nil)
				if len(res.Order) > 0 || !order && len(res.Problems()) > 0 {
					return
				}
			}
			t.Errorf("%d runs did not show it", seeds)
		})
	}
	for _, name := range slices.Concat(unseen, orderless) {
		if !slices.Contains(names, name) {
			t.Errorf("no such fault: %q", name)
		}
	}
}

// A replica is one of those that share a store, and does not ask as it should.
type replica struct {
	kv.Engine
	read   func(context.Context, kv.Freshness) (kv.Snapshot, error)
	commit func(context.Context, kv.Txn) (kv.Committed, error)
	watch  func(prefix string, after kv.Revision) (kv.Watch, error)
}

func (r *replica) Read(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
	return r.read(ctx, at)
}

func (r *replica) Commit(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
	return r.commit(ctx, txn)
}

func (r *replica) Watch(prefix string, after kv.Revision) (kv.Watch, error) {
	return r.watch(prefix, after)
}

func (r *replica) Compact(ctx context.Context, rev kv.Revision) error {
	return r.Engine.(kv.Compactor).Compact(ctx, rev)
}

// lonely are the faults of a replica that takes what it has seen for all there is.
var lonely = []struct {
	name   string
	slow   bool // looked for only where it may take long
	breaks func(r *replica)
}{
	{"reads the latest without asking etcd", false, func(r *replica) {
		r.read = func(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
			if at == kv.Latest {
				at = kv.Any
			}
			return r.Engine.Read(ctx, at)
		}
	}},
	{"knows no revision that the other has handed out", true, func(r *replica) {
		r.read = func(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
			_, newest := r.Engine.Revisions()
			if rev, ok := at.Exactly(); ok && rev > newest {
				return nil, &kv.Error{Op: "read", Want: rev, Have: newest, Kind: kv.ErrFuture}
			}
			return r.Engine.Read(ctx, at)
		}
	}},
	{"goes on with a watch from what it has seen by then", true, func(r *replica) {
		r.watch = func(prefix string, after kv.Revision) (kv.Watch, error) {
			_, newest := r.Engine.Revisions()
			return r.Engine.Watch(prefix, max(after, newest))
		}
	}},
	{"refuses by what it has seen", true, func(r *replica) {
		r.commit = func(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
			seen, err := r.Engine.Read(ctx, kv.Any)
			if err != nil {
				return kv.Committed{}, err
			}
			for _, c := range txn.Conditions {
				have := kv.Absent
				if v := seen.Get(c.Key); v != nil {
					have = v.Revision
				}
				if have != c.At && c.At <= seen.Revision() {
					return kv.Committed{}, &kv.Error{Op: "commit", Key: c.Key, Want: c.At, Have: have, Kind: kv.ErrConflict}
				}
			}
			return r.Engine.Commit(ctx, txn)
		}
	}},
	{"says that conditions hold at what it has seen", true, func(r *replica) {
		r.commit = func(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
			done, err := r.Engine.Commit(ctx, txn)
			if err == nil && !slices.ContainsFunc(done.Versions, func(v *kv.Version) bool { return v != nil }) {
				<-time.After(2 * late) // the longer since, the more has been seen
				_, done.Revision = r.Engine.Revisions()
			}
			return done, err
		}
	}},
}

func TestLonelyReplicasAreFound(t *testing.T) {
	open := Etcd(t)
	for _, f := range lonely {
		t.Run(f.name, func(t *testing.T) {
			if f.slow && !heavy() {
				t.Skip("say PAWL_HEAVY=1 or -duration")
			}
			for s := range uint64(seeds) {
				res := Check(t, Plan{Seed: s + 1, Ops: 50, Patience: 10 * time.Second}, oneOf(open, f.breaks), nil)
				if len(res.Problems()) > 0 {
					t.Logf("after %d runs: %s", s+1, res.Problems()[0])
					return
				}
			}
			t.Errorf("%d runs did not show it", seeds)
		})
	}
}

// oneOf breaks the replica that is told everything late.
func oneOf(open Opener, breaks func(r *replica)) Opener {
	return func(t testing.TB, seed uint64) Subject {
		s := open(t, seed)
		whole := s.Open
		s.Open = func(number int) (kv.Engine, error) {
			e, err := whole(number)
			if err != nil || number != replicas-1 {
				return e, err
			}
			r := &replica{Engine: e, read: e.Read, commit: e.Commit, watch: e.Watch}
			breaks(r)
			return r, nil
		}
		return s
	}
}
