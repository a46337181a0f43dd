package controller

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// CollectorOptions are what [Collector] is made of. All but Space, Clock and Log are needed.
type CollectorOptions struct {
	Engine kv.Engine
	// Catalogue says where the objects of a kind are, and Custom knows of those resources that it
	// does not show, and when it is up to date.
	Catalogue *resource.Registry
	Custom    CustomResources
	Space     string       // kv.DefaultSpace if empty
	Clock     clock.Clock  // nil means the real one
	Log       *slog.Logger // is told what no request can be told; nil means nobody
}

// Collector deletes objects whose owners have all gone, and does what deletions in the foreground,
// and those that orphan, leave to be done (rules H165, B20).
//
// One goroutine follows every change of the space, in order, and keeps a graph of who owns whom
// of it. Since there is one order, all objects that came to be before their owner was marked are
// known when the mark is. What has to be done to an object is decided there, by a function of the
// graph ([node.verdict]), and done by a bounded number of other goroutines. What they did comes
// back as a change like any other, and only that changes the graph. So nothing is remembered that
// is not stored, and after a restart the collector goes on where it was.
//
// An object is decided on when it changed in a way that matters here, when an owner of it went or
// was marked, and when the last of those that an owner waits for let go of it. So a tree costs as much as
// it has objects and references, however wide it is.
//
// # What "absent" means
//
// An owner is absent if what its reference names does not exist, or has another UID. That is looked
// up in a state that is not older than the reference. UIDs are given once, so an absence never
// ends. A reference to a kind that is not served says nothing: who has one is kept until the
// kind is served, or the reference has gone; so is a cluster-scoped object that names an
// owner in a namespace.
//
// # Cycles
//
// Objects that own each other in a circle all have an owner, so nobody collects them. When one is deleted
// in the background the others follow one by one. In the foreground each would wait for
// the next: so before the last of the circle is marked, or when it has been by somebody else, its references
// are made not to block, and the circle opens there. The reference looks no further than to
// the dependents of the object, and so waits forever for some circles.
type Collector struct{ o CollectorOptions }

// NewCollector makes the loop. Nothing happens before [Collector.Run].
func NewCollector(o CollectorOptions) *Collector {
	o.Clock, o.Log = clockOr(o.Clock), logOr(o.Log).With("controller", "collector")
	if o.Space == "" {
		o.Space = kv.DefaultSpace
	}
	return &Collector{o}
}

// Run works until ctx ends or the engine is closed. When it returns, nothing that it started
// still runs. It is called once.
func (c *Collector) Run(ctx context.Context) error {
	anew(ctx, c.o.Clock, c.o.Log, c.follow)
	return nil
}

// collectedMax is how many objects are written at a time. Writers share the engine's fsyncs.
const collectedMax = 32

// A collection is what the collector knows and does from one state of the store on.
type collection struct {
	*Collector
	graph *graph
	upTo  kv.Revision // what the graph knows
	queue []*node     // to be decided on

	done    chan outcome
	working int // how many tasks are under way
	running sync.WaitGroup

	unserved map[*node]bool // wait for another catalogue
	failed   map[*node]bool // wait for again
	again    clock.Timer    // when they are tried again; nil while nothing failed
	due      time.Time      // of again

	definitions string        // what keys of definitions begin with
	changed     bool          // a definition has changed, and nobody waits for the catalogue yet
	confirmed   chan struct{} // somebody waited; nil while nobody waits
	places      places
}

// follow builds the graph from the newest state and follows what happens from there, until it
// cannot go on.
func (c *Collector) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	r := c.collection()
	defer r.stop()
	defer r.running.Wait()
	defer cancel()
	snap, err := c.o.Engine.Read(ctx, kv.Latest)
	if err != nil {
		return err
	}
	changes, err := c.o.Engine.Watch(c.o.Space+"/", snap.Revision())
	if err != nil {
		return err
	}
	defer changes.Stop()
	for v := range snap.Ascend(c.o.Space+"/", "") {
		r.take(v)
	}
	r.upTo = snap.Revision()
	for {
		if err := r.drain(changes); err != nil {
			return err
		}
		if err := r.dispatch(ctx); err != nil {
			return err
		}
		select {
		case <-changes.Wait():
		case did := <-r.done:
			r.finish(did)
		case <-r.retry():
			r.release(r.failed)
			r.again = nil
		case <-r.confirmed:
			r.release(r.unserved)
			r.confirmed = nil
		case <-ctx.Done():
			return nil
		}
	}
}

// collection begins with an empty graph.
func (c *Collector) collection() *collection {
	r := &collection{
		Collector: c, done: make(chan outcome, collectedMax), unserved: map[*node]bool{}, failed: map[*node]bool{},
		definitions: storage.TablePrefix(c.o.Space, definitions.Group, definitions.Resource),
	}
	r.graph = newGraph(r.touch)
	return r
}

var definitions = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

func (r *collection) stop() {
	if r.again != nil {
		r.again.Stop()
	}
}

// drain takes in all that has happened.
func (r *collection) drain(changes kv.Watch) error {
	for {
		event, ok, err := changes.Next()
		if err != nil || !ok {
			return err
		}
		r.take(event.Version)
	}
}

// take takes in one change.
func (r *collection) take(v *kv.Version) {
	r.upTo = v.Revision
	if strings.HasPrefix(v.Key, r.definitions) {
		r.changed = true
	}
	if v.Deleted {
		r.graph.remove(v.Key, v.Revision)
		return
	}
	if err := r.graph.put(v); err != nil {
		r.o.Log.Error("a stored object cannot be read; its owners are not known", "key", v.Key, "error", err)
	}
}

// touch has an object decided on.
func (r *collection) touch(n *node) {
	switch {
	case n.busy:
		n.again = true
	case !n.queued:
		n.queued = true
		r.queue = append(r.queue, n)
	}
}

// release has those decided on who waited.
func (r *collection) release(waited map[*node]bool) {
	for n := range waited {
		r.touch(n)
	}
	clear(waited)
}

// dispatch decides and begins what is to be done, as much as may be under way.
func (r *collection) dispatch(ctx context.Context) error {
	if r.changed && r.confirmed == nil {
		r.changed = false
		r.confirm(ctx)
	}
	for r.working < collectedMax && len(r.queue) > 0 {
		n := r.queue[0]
		r.queue = r.queue[1:]
		n.queued = false
		delete(r.unserved, n)
		delete(r.failed, n)
		if err := r.seek(ctx, n); err != nil {
			return err
		}
		v := n.verdict()
		switch v.what {
		case rests:
		case unsure:
			r.unserved[n] = true
		default:
			r.begin(ctx, n, v)
		}
	}
	return nil
}

// confirm waits, beside everything else, until the catalogue holds what became of definitions.
func (r *collection) confirm(ctx context.Context) {
	confirmed := make(chan struct{})
	r.confirmed = confirmed
	r.running.Go(func() {
		if err := r.o.Custom.Confirm(ctx); err != nil && ctx.Err() == nil {
			r.o.Log.Warn("the catalogue may lag behind the definitions", "because", err)
		}
		close(confirmed)
	})
}

// seek looks for those owners of an object that nobody has found yet.
func (r *collection) seek(ctx context.Context, n *node) error {
	var snap kv.Snapshot
	for i := range n.owners {
		e := &n.owners[i]
		if e.key == "" {
			e.key = r.placeOf(e.ref, n.key)
		}
		if e.key == "" || e.owner.stage != unseen {
			continue
		}
		if snap == nil {
			var err error
			if snap, err = r.o.Engine.Read(ctx, kv.AtLeast(n.revision)); err != nil {
				return err
			}
		}
		v := snap.Get(e.key)
		if v == nil {
			continue
		}
		md, err := metadataOf(v)
		switch {
		case err != nil:
			r.o.Log.Error("a stored object cannot be read; those who name it as their owner stay", "key", v.Key, "error", err)
			e.key = ""
		case md.UID == e.owner.uid:
			r.meet(e.owner, v, md)
		}
	}
	return nil
}

// meet gives the graph an owner that was found, as it was when what the graph knows was so: had it
// been marked since, the mark would come before dependents that came to be before it.
func (r *collection) meet(owner *node, v *kv.Version, md metadata) {
	then := v
	for then.Revision > r.upTo {
		p := then.Prev()
		if p == nil || p.Deleted || p.Created != v.Created {
			break // no longer kept: the oldest that is will do
		}
		then = p
	}
	if before, err := metadataOf(then); err == nil {
		v, md = then, before
	}
	r.graph.fill(owner, v, md)
}

// placeOf returns the key of what a reference names, "" if that is not served, or cannot be in
// that place. Key is that of the object which has the reference.
func (r *collection) placeOf(ref reference, key string) string {
	_, _, namespace, _, _ := storage.ParseKey(key)
	return r.places.keyOf(r.o.Catalogue.Catalogue(), ref, namespace)
}

// places are where the objects of each served kind are.
type places struct {
	serial uint64
	known  map[schema.GroupVersionKind]place
}

type place struct {
	table      *storage.Table
	namespaced bool
}

func (p *places) keyOf(c *resource.Catalogue, ref reference, namespace string) string {
	if p.known == nil || p.serial != c.Serial() {
		p.known, p.serial = map[schema.GroupVersionKind]place{}, c.Serial()
		for _, res := range c.Resources() {
			if res.Reviews() {
				continue // nothing is stored, and nothing can own or be owned
			}
			for _, v := range res.Versions {
				p.known[v.Form.GroupVersionKind()] = place{v.Store.Table(), res.Namespaced}
			}
		}
	}
	at, ok := p.known[schema.FromAPIVersionAndKind(ref.apiVersion, ref.kind)]
	if !ok || at.namespaced && namespace == "" {
		return ""
	}
	return at.table.Key(namespace, ref.name)
}

// retry is when those that failed are tried again.
func (r *collection) retry() <-chan time.Time {
	if r.again == nil {
		return nil
	}
	return r.again.C()
}

// finish takes in that a task has ended. That one succeeded is nothing new: what it did is told
// by the watch.
func (r *collection) finish(did outcome) {
	n := did.node
	r.working--
	n.busy = false
	if did.err == nil {
		n.failures = 0
	}
	switch {
	case n.again:
		n.again = false
		r.touch(n)
	case errors.Is(did.err, errUnserved):
		r.unserved[n] = true
	case did.err != nil:
		r.o.Log.Warn("an object cannot be collected; will try again", "key", n.key, "error", did.err)
		r.postpone(n)
	}
}

// postpone has an object tried again after a pause, that grows with its failures, or earlier if
// another is.
func (r *collection) postpone(n *node) {
	wait := pauseFor(n.failures)
	n.failures++
	r.failed[n] = true
	due := r.o.Clock.Now().Add(wait)
	if r.again != nil && !due.Before(r.due) {
		return
	}
	r.stop()
	r.again, r.due = r.o.Clock.NewTimer(wait), due
}
