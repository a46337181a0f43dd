package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/internal/resource/builtin"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// A grove is config maps alone, an engine in memory and a collector.
type grove struct {
	testing.TB
	engine *counted
	store  *registry.Store
	stop   func()
}

// counted is an engine that counts the states that the collector asks for.
type counted struct {
	kv.Engine
	reads int
}

func (c *counted) Read(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
	if at.AtLeast() != kv.Absent {
		c.reads++ // nobody but the collector asks for that
	}
	return c.Engine.Read(ctx, at)
}

// noCustom is that there are no custom resources.
type noCustom struct{}

func (noCustom) Confirm(context.Context) error    { return nil }
func (noCustom) Instances(string) *registry.Store { return nil }

func newGrove(t testing.TB) *grove {
	memory, err := local.Open(context.Background(), local.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	g := &grove{TB: t, engine: &counted{Engine: memory}}
	catalogue := &resource.Registry{}
	for _, k := range builtin.Kinds() {
		if k.Plural != "configmaps" {
			continue
		}
		table := storage.NewTable(storage.Options{
			Engine: g.engine, Group: k.Group, Resource: k.Plural, Namespaced: true, Codec: k.Codec(), Fields: k.Fields,
		})
		r := k.Resource(func(k builtin.Kind, _ string, s registry.Strategy) *registry.Store {
			return registry.Must(registry.Config{Kind: k.GroupVersionKind(), Resource: k.GroupResource(), Table: table, Strategy: s})
		})
		catalogue.Change(nil, r)
		g.store = r.Versions[0].Store
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = NewCollector(CollectorOptions{Engine: g.engine, Catalogue: catalogue, Custom: noCustom{}}).Run(ctx)
	}()
	g.stop = func() { cancel(); <-ended; memory.Close() }
	return g
}

// plant makes a tree: each object has so many dependents, level by level. It returns how many
// objects that are.
func (g *grove) plant(branches ...int) int {
	type grown struct {
		name string
		uid  types.UID
	}
	total, level := 1, []grown{{"tree", g.make("tree", "", "")}}
	for _, branch := range branches {
		var next []grown
		for _, owner := range level {
			for i := range branch {
				name := fmt.Sprintf("%s-%d", owner.name, i)
				next = append(next, grown{name, g.make(name, owner.name, owner.uid)})
			}
		}
		total, level = total+len(next), next
	}
	return total
}

func (g *grove) make(name, owner string, uid types.UID) types.UID {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"of": strings.Repeat("x", 200)}}
	if owner != "" {
		block := true
		cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner, UID: uid, BlockOwnerDeletion: &block}}
	}
	v, err := g.store.Create(context.Background(), "ns", cm, registry.CreateOptions{})
	if err != nil {
		g.Fatal(err)
	}
	obj, err := v.Object()
	if err != nil {
		g.Fatal(err)
	}
	acc, err := meta.Accessor(obj)
	if err != nil {
		g.Fatal(err)
	}
	return acc.GetUID()
}

// fell deletes the tree, and waits until all of it has gone.
func (g *grove) fell(total int, p metav1.DeletionPropagation) {
	changes, err := g.store.Table().Watch(context.Background(), storage.WatchOptions{From: storage.AfterState{At: kv.Latest}})
	if err != nil {
		g.Fatal(err)
	}
	defer changes.Stop()
	if _, err := g.store.Delete(context.Background(), "ns", "tree", &metav1.DeleteOptions{PropagationPolicy: &p}); err != nil {
		g.Fatal(err)
	}
	for total > 0 {
		event, ok, err := changes.Next()
		switch {
		case err != nil:
			g.Fatal(err)
		case !ok:
			<-changes.Wait()
		case event.Type == storage.Deleted:
			total--
		}
	}
}

// A tree of more than a thousand objects costs one commit for each in the background, and a mark
// more for each that has dependents in the foreground; its collector looks up the owners once.
func TestWhatATreeCosts(t *testing.T) {
	for _, c := range []struct {
		policy  metav1.DeletionPropagation
		commits uint64
	}{
		{inBackground, 1111},
		{inForeground, 1111 + 1 + 10 + 100}, // the marks
	} {
		synctest.Test(t, func(t *testing.T) {
			g := newGrove(t)
			defer g.stop()
			total := g.plant(10, 10, 10)
			synctest.Wait()
			_, before := g.engine.Revisions()
			g.fell(total, c.policy)
			synctest.Wait()
			if _, after := g.engine.Revisions(); uint64(after-before) != c.commits {
				t.Errorf("%s: %d objects went in %d commits, want %d", c.policy, total, after-before, c.commits)
			}
			if g.engine.reads > total {
				t.Errorf("%s: the owners of %d objects were looked up %d times", c.policy, total, g.engine.reads)
			}
		})
	}
}

// A graph has as much to decide as there are objects, however they hang together.
func TestWhatIsDecidedOn(t *testing.T) {
	for _, c := range []struct {
		name     string
		branches []int
	}{
		{"a broom", []int{1000}},
		{"a bush", []int{10, 100}},
		{"a tree", []int{10, 10, 10}},
	} {
		t.Run(c.name, func(t *testing.T) {
			touched := 0
			g := newGraph(func(*node) { touched++ })
			total, level := 1, []*node{g.node("tree")}
			level[0].stage = alive
			for _, branch := range c.branches {
				var next []*node
				for _, owner := range level {
					for range branch {
						n := g.node(types.UID(fmt.Sprint("n", total)))
						total++
						n.key, n.stage = string(n.uid), alive
						g.byKey[n.key] = n
						g.connect(n, []reference{{uid: owner.uid, blocks: true}})
						next = append(next, n)
					}
				}
				level = next
			}
			all := []*node{}
			for _, n := range g.byUID {
				all = append(all, n)
			}
			for _, n := range all { // everything goes, in any order
				g.advance(n, lingering)
				g.lose(n)
			}
			if touched > 6*total {
				t.Errorf("%d objects, touched %d times", total, touched)
			}
			if len(g.byUID)+len(g.byKey) > 0 {
				t.Errorf("nothing is there any more, and %d nodes are left", len(g.byUID))
			}
		})
	}
}

func TestATreeOf1000GoesInTime(t *testing.T) {
	g := newGrove(t)
	defer g.stop()
	total := g.plant(10, 100)
	began := time.Now()
	g.fell(total, inBackground)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%d objects took %v to go", total, took)
	}
}

func BenchmarkTree1000(b *testing.B) {
	for _, p := range []metav1.DeletionPropagation{inBackground, inForeground} {
		b.Run(string(p), func(b *testing.B) {
			g := newGrove(b)
			defer g.stop()
			for b.Loop() {
				b.StopTimer()
				total := g.plant(10, 100)
				b.StartTimer()
				g.fell(total, p)
			}
		})
	}
}
