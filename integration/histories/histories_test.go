package histories

import (
	"cmp"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

var (
	seed     = flag.Uint64("seed", 0, "the seed of one run; 0 means the usual ones")
	ops      = flag.Int("ops", 0, "operations of each client")
	clients  = flag.Int("clients", 0, "clients")
	duration = flag.Duration("duration", 0, "how long to make runs of new seeds; PAWL_HEAVY=1 means half a minute")
)

// subjects are the stores under test. Another engine is one more line.
var subjects = []struct {
	name string
	open func(t testing.TB) Opener
	runs int  // in a short test
	ops  int  // of each client in a short test; 0 means the usual
	slow bool // made only where it may take long
}{
	{"memory", always(Memory), 4, 0, false},
	{"disk", always(Disk), 1, 0, false},
	{"a disk that loses power", always(CutDisk), 6, 0, false},
	{"two on one etcd", Etcd, 1, 80, false},
	{"two on an etcd of three", EtcdCluster, 2, 0, true},
}

// always needs nothing to be there before.
func always(open Opener) func(testing.TB) Opener {
	return func(testing.TB) Opener { return open }
}

// heavy says whether the tests may take long.
func heavy() bool { return os.Getenv("PAWL_HEAVY") != "" || *duration != 0 }

// TestHistories makes runs of the usual seeds, or of the one that is given.
func TestHistories(t *testing.T) {
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			if s.slow && !heavy() {
				t.Skip("say PAWL_HEAVY=1 or -duration")
			}
			var sum Figures
			open := s.open(t)
			for i := range s.runs {
				sum.Add(check(t, plan(uint64(i+1), s.ops), open))
			}
			t.Log(sum)
		})
	}
}

// TestHistoriesForLong makes runs and rings of one new seed after the other, as long as it is told.
func TestHistoriesForLong(t *testing.T) {
	long := *duration
	if long == 0 {
		long = time.Minute / 2
	}
	if !heavy() {
		t.Skip("say PAWL_HEAVY=1 or -duration")
	}
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			var sum Figures
			var rings RingFigures
			open := s.open(t)
			first, began := plan(1000, 0).Seed, time.Now()
			next := first
			for ; time.Since(began) < long/time.Duration(len(subjects)) && !t.Failed(); next++ {
				p := Plan{Seed: next, Clients: cmp.Or(*clients, 2+int(next%9)), Ops: cmp.Or(*ops, 50+int(next%97*next%997))}
				if s.slow && *ops == 0 {
					p.Ops = 50 + p.Ops/4 // each takes its time
				}
				sum.Add(check(t, p, open))
				rings.Add(turn(t, p, open))
			}
			t.Logf("seeds %d to %d in %v: %v; rings: %v", first, next-1, time.Since(began).Round(time.Second), sum, rings)
		})
	}
}

// plan is the plan of the usual seed and operations, with what the flags say in its place.
func plan(usual uint64, each int) Plan {
	p := Plan{Seed: usual, Clients: *clients, Ops: cmp.Or(*ops, each)}
	if *seed != 0 {
		p.Seed = *seed
	}
	return p
}

// check checks one run, and says how to repeat it if something is wrong.
func check(t *testing.T, p Plan, open Opener) Figures {
	t.Helper()
	res := Check(t, p, open, t.ArtifactDir)
	for _, problem := range res.Problems() {
		t.Errorf("seed %d: %s", p.Seed, problem)
	}
	if len(res.Problems()) > 0 {
		again(t, p)
	}
	return res.Figures
}

// again says what to type to see a run again. Which client comes first is not the seed's to
// say, so it is made many times.
func again(t *testing.T, p Plan) {
	t.Helper()
	test, subject, _ := strings.Cut(t.Name(), "/")
	if test == "TestHistoriesForLong" {
		test = "TestHistories|TestRings"
	}
	p = p.complete()
	t.Logf("again: go test -run '^(%s)$/%s' -count 20 ./integration/histories -seed %d -clients %d -ops %d", test, subject, p.Seed, p.Clients, p.Ops)
}

// The same seed asks for the same operations of every store.
func TestTheSameSeedAsksForTheSame(t *testing.T) {
	p := Plan{Seed: 7, Ops: 40}.complete()
	var first [][]string
	for _, s := range subjects {
		if s.slow && !heavy() {
			continue
		}
		r, err := play(p, s.open(t)(t, p.Seed))
		if err != nil {
			t.Fatal(err)
		}
		var asked [][]string
		for _, c := range r.clients {
			var all []string
			for _, a := range c.answers {
				all = append(all, fmt.Sprintf("%+v", a.op))
				for i, op := range a.txn.Ops {
					if !op.Delete && string(op.Value) != string(a.value(writes(a.op)[i])) {
						t.Fatalf("%s: %v wrote %q", s.name, a.name, op.Value)
					}
				}
			}
			asked = append(asked, all)
		}
		if first == nil {
			first = asked
		}
		if !reflect.DeepEqual(asked, first) {
			t.Errorf("%s was asked for something else than %s", s.name, subjects[0].name)
		}
	}
}

// writes are the touches of an operation that change something.
func writes(op Op) (all []Touch) {
	for _, t := range op.Touches {
		if !t.Only {
			all = append(all, t)
		}
	}
	return all
}

// A seed stands for the same operations on every machine, and from one version of pawl to the
// next until the plans are changed on purpose.
func TestASeedStaysWhatItIs(t *testing.T) {
	h := fnv.New64a()
	for client := range 4 {
		fmt.Fprintf(h, "%+v", Plan{Seed: 1, Ops: 1000}.Client(client))
	}
	const want uint64 = 0xf4741c1675b3f267
	if got := h.Sum64(); got != want {
		t.Errorf("the operations of seed 1 have the sum %#x, want %#x: if the plans were changed on purpose, write that here", got, want)
	}
}
