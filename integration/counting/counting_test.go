package counting

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/integration/histories"
	"github.com/pawl-dev/pawl/internal/tally"
	"github.com/pawl-dev/pawl/kv/kvtest/broken"
	"github.com/pawl-dev/pawl/registry"
)

var seed = flag.Uint64("seed", 0, "the seed of one run; 0 means the usual ones")

// heavy makes runs longer, and more of them.
var heavy = os.Getenv("PAWL_HEAVY") != ""

// subjects are the stores in which is counted.
var subjects = []struct {
	name string
	open func(testing.TB) histories.Opener
	runs int // in a short test; 0 means that it takes too long for one
}{
	{"memory", always(histories.Memory), 2},
	{"disk", always(histories.Disk), 1},
	{"a disk that loses power", always(histories.CutDisk), 6},
	{"two on one etcd", histories.Etcd, 1},
	{"two on an etcd of three", histories.EtcdCluster, 0},
}

// always needs nothing to be there before.
func always(open histories.Opener) func(testing.TB) histories.Opener {
	return func(testing.TB) histories.Opener { return open }
}

func TestNoIncrementIsLost(t *testing.T) {
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			runs := s.runs
			if heavy {
				runs = max(1, 20*runs)
			}
			if runs == 0 {
				t.Skip("say PAWL_HEAVY=1")
			}
			open := s.open(t)
			refused, rebased := int64(0), int64(0)
			for i := range runs {
				n := uint64(i + 1)
				if *seed != 0 {
					n = *seed
				}
				f, err := count(t, n, open, ways)
				if err != nil {
					t.Fatalf("seed %d: %v\nagain: go test -run '^%s$' -count 20 ./integration/counting -seed %d", n, err, t.Name(), n)
				}
				t.Logf("seed %d: %s", n, f)
				refused, rebased = refused+f.refused.Load(), rebased+f.rebased.Load()
			}
			if refused == 0 || rebased == 0 {
				t.Errorf("%d refused and %d rebased: writers never met", refused, rebased)
			}
		})
	}
}

// shown is how many runs a fault has to show itself in.
const shown = 20

// A store that breaks its promises loses increments, and a way that names no version does in any store.
func TestLostIncrementsAreFound(t *testing.T) {
	for _, name := range []string{
		"commits whatever the conditions are",
		"judges only the first condition",
		"makes what it refuses",
		"refuses what it makes",
		"makes half of a transaction",
		"makes a transaction in two steps",
		"acknowledges what it does not make",
		"loses in a restart what was put last",
	} {
		t.Run(name, func(t *testing.T) {
			for _, f := range broken.Faults() {
				if f.Name == name {
					found(t, histories.Broken(histories.CutDisk, f), ways)
					return
				}
			}
			t.Fatal("no such fault")
		})
	}
	t.Run(blind.name, func(t *testing.T) { found(t, histories.Memory, append(slices.Clone(ways), blind)) })
	t.Run(blind.name+", alone", func(t *testing.T) { found(t, histories.Memory, []way{blind}) })
}

// found fails if no run shows that something is wrong.
func found(t *testing.T, open histories.Opener, ways []way) {
	t.Helper()
	for n := range uint64(shown) {
		_, err := count(t, n+1, open, ways)
		if errors.As(err, new(*lost)) {
			t.Logf("seed %d: %v", n+1, err)
			return
		}
		if err != nil {
			t.Logf("seed %d shows something else: %v", n+1, err)
		}
	}
	t.Errorf("%d runs did not show it", shown)
}

// Figures say what a run consisted of.
type figures struct{ openings, acknowledged, refused, unanswered, rebased, looks atomic.Int64 }

func (f *figures) String() string {
	return fmt.Sprintf("%d openings, %d increments acknowledged, %d of them rebased, %d refused, %d not answered; pairs looked at %d times",
		f.openings.Load(), f.acknowledged.Load(), f.rebased.Load(), f.refused.Load(), f.unanswered.Load(), f.looks.Load())
}

const (
	writers = 8
	shared  = "shared" // counted up in all ways, in each store for itself
	paired  = "pair"   // counted up in all ways that write two objects, and equal in both stores
	parts   = "parts"  // an object in which each writer has a number
)

// A run is many who count in one store.
type run struct {
	figures
	seed     uint64
	ways     []way
	subject  histories.Subject
	counters sides
	parts    [writers]*tally.Counter
	stale    [writers]*gauge // the object of parts as each writer knows it; nil if they are to read it

	mu    sync.Mutex
	wrong error
}

// Sides are the counters of two stores, by the names of their objects.
type sides struct{ left, right map[string]*tally.Counter }

func (s sides) turned() sides { return sides{s.right, s.left} }

// count has writers count in a new store, which loses its power and is opened again some times if it can, and
// returns what is wrong then.
func count(t *testing.T, seed uint64, open histories.Opener, ways []way) (*figures, error) {
	r := &run{seed: seed, ways: ways, subject: open(t, seed), counters: sides{map[string]*tally.Counter{}, map[string]*tally.Counter{}}}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	rounds := 5
	switch {
	case !r.subject.Lasts:
		rounds = 1
	case r.subject.Disturb != nil:
		rounds = 2 // each takes seconds
	}
	for round := range rounds {
		if err := r.round(ctx, round, round == rounds-1); err != nil {
			return &r.figures, fmt.Errorf("opening %d: %w", round, err)
		}
	}
	return &r.figures, nil
}

// round opens the store, judges what is there, and has writers count until the power fails or, if it does
// not, until each has done its share.
func (r *run) round(ctx context.Context, number int, last bool) error {
	var stores []two // as each replica has them
	for i := range max(1, r.subject.Replicas) {
		engine, err := r.subject.Open(i)
		if err != nil {
			return err
		}
		defer engine.Close()
		stores = append(stores, storesOf(engine))
	}
	r.openings.Add(1)
	examine := r.judge
	if number == 0 {
		examine = r.begin
	}
	if err := examine(ctx, stores[0]); apierrors.IsNotFound(err) { // nobody deletes
		return &lost{err}
	} else if err != nil {
		return err
	}
	chance := rand.New(rand.NewPCG(r.seed, uint64(number)))
	if !last && r.subject.Cut != nil {
		r.subject.Cut(10 + chance.IntN(400))
	}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			r.write(ctx, stores[w%len(stores)], w, rand.New(rand.NewPCG(r.seed, uint64(number*writers+w)<<32)))
		})
	}
	if r.subject.Disturb != nil {
		for range troubles {
			r.subject.Disturb(chance.IntN(len(stores)), chance.IntN(1000))
		}
	}
	all.Wait()
	if r.wrong != nil {
		return errors.Join(r.wrong, r.judge(ctx, stores[0])) // what else is wrong may say why
	}
	if !last {
		return nil
	}
	return r.judge(ctx, stores[0])
}

// begin makes what is counted in.
func (r *run) begin(ctx context.Context, s two) error {
	names := []string{shared, paired, parts}
	for i := range r.ways {
		names = append(names, own(i))
	}
	for _, name := range names {
		if name != parts {
			r.counters.left[name], r.counters.right[name] = &tally.Counter{}, &tally.Counter{}
		}
		for _, c := range []*registry.Collection[gauge]{s.right, s.left} { // where there is a left one there is a right one
			if _, err := c.Create(ctx, &gauge{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
	}
	for w := range writers {
		r.parts[w] = &tally.Counter{}
	}
	return nil
}

func own(way int) string { return fmt.Sprint("own-", way) }

func part(w int) string { return fmt.Sprint("w", w) }

// A lost is the error of a store in which something was lost, made twice, or made in part.
type lost struct{ error }

// judge compares all counters with what writers were told of them.
func (r *run) judge(ctx context.Context, s two) error {
	for name := range r.counters.left {
		if err := errors.Join(stands(ctx, s.left, name, r.counters.left[name]), stands(ctx, s.right, name, r.counters.right[name])); err != nil {
			return err
		}
	}
	g, err := s.left.Get(ctx, parts)
	if err != nil {
		return err
	}
	for w, counter := range r.parts {
		if err := counter.Stands(g.Parts[part(w)]); err != nil {
			return &lost{fmt.Errorf("part %s: %w", part(w), err)}
		}
	}
	for i, w := range r.ways {
		if w.pair {
			if err := r.look(ctx, s, own(i)); err != nil {
				return err
			}
		}
	}
	return r.look(ctx, s, paired)
}

// stands compares one object with its counter.
func stands(ctx context.Context, c *registry.Collection[gauge], name string, counter *tally.Counter) error {
	g, err := c.Get(ctx, name)
	if err != nil {
		return err
	}
	if err := counter.Stands(g.N); err != nil {
		return &lost{fmt.Errorf("%s %s: %w", c.Store().Resource().Resource, name, err)}
	}
	return nil
}

// look compares two counters that are equal in every state of the store.
func (r *run) look(ctx context.Context, s two, name string) error {
	left, err := s.left.Get(ctx, name)
	if err != nil {
		return err
	}
	right, err := s.right.At(ctx, name, left.ResourceVersion)
	if err != nil {
		return err
	}
	r.looks.Add(1)
	if left.N != right.N {
		return &lost{fmt.Errorf("of the pair %s one is at %d and the other at %d, at resourceVersion %s", name, left.N, right.N, left.ResourceVersion)}
	}
	return nil
}

// A writer does so many steps if the power does not fail, and fewer where each takes long. Then
// there is trouble so many times meanwhile.
const (
	steps    = 150
	few      = 30
	troubles = 3
)

// write has a writer count until the power fails.
func (r *run) write(ctx context.Context, s two, w int, chance *rand.Rand) {
	n := steps
	if r.subject.Disturb != nil {
		n = few
	}
	for range n {
		var err error
		who := fmt.Sprint("writer ", w)
		switch chance.IntN(10) {
		case 0:
			err = r.look(ctx, s, paired)
		case 1, 2:
			if err = r.rebase(ctx, s, w, chance.IntN(2) == 0); err != nil {
				r.stale[w] = nil
			}
		default:
			err = r.count(ctx, s, who, chance)
		}
		switch away := apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err); {
		case err == nil, away && r.subject.Disturb != nil:
		case away && r.subject.Cut != nil:
			return // it takes no more writes, or it is not known what became of one: the power is gone
		default:
			r.end(fmt.Errorf("%s: %w", who, err))
			return
		}
	}
}

// count counts up in a way, in an object of that way, in one of all pairs, or in one of all ways.
func (r *run) count(ctx context.Context, s two, who string, chance *rand.Rand) error {
	i := chance.IntN(len(r.ways))
	way, name, counters := r.ways[i], own(i), r.counters
	switch chance.IntN(3) {
	case 0:
		name = shared
		if chance.IntN(2) == 0 {
			s, counters = s.turned(), counters.turned()
		}
	case 1:
		if way.pair {
			name = paired
		}
	}
	made, err := way.up(ctx, s, name)
	err = r.told(counters.left[name], made, who+" by "+way.name, err)
	if way.pair {
		err = r.told(counters.right[name], made[min(1, len(made)):], who+" by "+way.name, err)
	}
	if apierrors.IsConflict(err) || errors.Is(err, errMoved) {
		r.refused.Add(1)
		return nil
	}
	return err
}

// told tells a counter what somebody was told, and returns the error of who was not told that it was made.
func (r *run) told(counter *tally.Counter, made []int, who string, err error) error {
	switch {
	case err == nil:
		counter.Made(made[0], who)
		r.acknowledged.Add(1)
	case apierrors.IsTimeout(err):
		counter.Unanswered()
		r.unanswered.Add(1)
	}
	return err
}

// end takes in what a writer found wrong.
func (r *run) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if apierrors.IsNotFound(err) { // nobody deletes
		err = &lost{err}
	}
	if r.wrong == nil {
		r.wrong = err
	}
}

// rebase counts up the part of a writer from what that knows, however old it is: nobody else writes it, so
// it is not refused.
func (r *run) rebase(ctx context.Context, s two, w int, patch bool) error {
	mine := part(w)
	if r.stale[w] == nil {
		g, err := s.left.Get(ctx, parts)
		if err != nil {
			return err
		}
		r.stale[w] = g
	}
	seen := r.stale[w]
	desire := func(_ context.Context, current runtime.Object) (runtime.Object, error) {
		g := seen.DeepCopyObject().(*gauge)
		if patch {
			g = current.(*gauge)
			g.ResourceVersion = seen.ResourceVersion
		}
		if g.Parts == nil {
			g.Parts = map[string]int{}
		}
		g.Parts[mine] = seen.Parts[mine] + 1
		return g, nil
	}
	did, err := s.left.Store().Update(ctx, "", parts, desire, registry.UpdateOptions{Rebase: true, Patch: patch, Attempts: attempts})
	if err := r.told(r.parts[w], []int{seen.Parts[mine] + 1}, mine, err); err != nil {
		return err
	}
	if did.Rebased != nil {
		r.rebased.Add(1)
	}
	obj, err := did.Version.Object()
	if err != nil {
		return err
	}
	r.stale[w] = obj.(*gauge)
	return nil
}
