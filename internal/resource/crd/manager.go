package crd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/clock"

	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// Options are what a [Manager] is made of. All but Log and Clock are needed.
type Options struct {
	// Definitions and Status are the stores of definitions and of their status.
	Definitions, Status *registry.Store
	// Catalogue is what the manager keeps equal to the definitions.
	Catalogue *resource.Registry
	// Tables holds what all tables of custom resources share: Engine, Space and Turns.
	Tables storage.Options
	// Stores holds what all stores of custom resources share: Guards, Hooks, Clock, NewUID
	// and Suffix.
	Stores registry.Config
	// Clock tells the time of conditions; nil means the real one.
	Clock clock.PassiveClock
	// Log is told what no request can be told; nil means nobody.
	Log *slog.Logger
}

// A Manager keeps a catalogue equal to the stored definitions. It alone writes which names of a
// definition are accepted, and whether it is established; what it finds beside that in a status
// it leaves. One goroutine runs it; its other methods may be called from any.
//
// What it does for a new definition, in this order, so that nobody ever sees a promise that does
// not hold yet: accepts its names, puts its resource into the catalogue, says that it is
// established (rules C20, C21).
type Manager struct {
	o     Options
	log   *slog.Logger
	clock clock.PassiveClock
	poke  chan struct{} // somebody waits: see what the watch has

	// What the goroutine that runs the manager knows of the stored definitions, by name.
	watch   *storage.Watch
	entries map[string]*entry
	owes    bool // a status could not be written

	mu      sync.Mutex // guards what follows
	upTo    kv.Revision
	changed chan struct{} // closed when upTo grows
	stopped error         // why the manager no longer runs
	live    map[string]*live
}

// An entry is a stored definition.
type entry struct {
	def      *apiextensionsv1.CustomResourceDefinition
	revision kv.Revision
	created  kv.Revision // at which the definition came to be
}

// NewManager makes a manager. Nothing happens before [Manager.Start].
func NewManager(o Options) *Manager {
	m := &Manager{
		o: o, log: o.Log, clock: o.Clock, poke: make(chan struct{}, 1),
		entries: map[string]*entry{}, changed: make(chan struct{}), live: map[string]*live{},
	}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	if m.clock == nil {
		m.clock = clock.RealClock{}
	}
	return m
}

// Start returns once the catalogue holds all definitions that are stored. It is called once.
func (m *Manager) Start(ctx context.Context) error { return m.begin(ctx) }

// Run follows the definitions until ctx ends or the engine is closed. It is called once,
// after [Manager.Start].
func (m *Manager) Run(ctx context.Context) error {
	err := m.follow(ctx)
	m.watch.Stop()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = errors.New("crd: definitions are no longer followed")
	close(m.changed)
	return err
}

func (m *Manager) follow(ctx context.Context) error {
	for {
		err := m.step(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case storage.IsClosed(err):
			return nil
		case err != nil:
			m.log.Warn("definitions are read anew", "because", err)
			m.beginAnew(ctx)
		}
		m.wait(ctx)
	}
}

// beginAnew begins again, however often it has to try: the store may be elsewhere, and away.
func (m *Manager) beginAnew(ctx context.Context) {
	for {
		err := m.begin(ctx)
		if err == nil || storage.IsClosed(err) || ctx.Err() != nil {
			return
		}
		m.log.Warn("definitions cannot be read, and are tried again", "because", err)
		select {
		case <-time.After(owedRetry):
		case <-ctx.Done():
			return
		}
	}
}

// owedRetry is how long the manager waits before it tries again to write a status that could
// not be written, because the disk was full, say.
const owedRetry = time.Second

// wait returns when there may be something to do.
func (m *Manager) wait(ctx context.Context) {
	var again <-chan time.Time
	if m.owes {
		timer := time.NewTimer(owedRetry)
		defer timer.Stop()
		again = timer.C
	}
	select {
	case <-m.watch.Wait():
	case <-m.poke:
	case <-again:
	case <-ctx.Done():
	}
}

// begin reads all definitions, and forgets those that are gone. From then on their changes are
// followed.
func (m *Manager) begin(ctx context.Context) error {
	w, err := m.o.Definitions.Table().Watch(ctx, storage.WatchOptions{From: storage.State{At: kv.Latest}})
	if err != nil {
		return fmt.Errorf("crd: the stored definitions cannot be read: %w", err)
	}
	if m.watch != nil {
		m.watch.Stop()
	}
	m.watch = w
	before := m.entries
	m.entries = map[string]*entry{}
	groups, upTo, err := m.drain()
	if err != nil {
		return fmt.Errorf("crd: the stored definitions cannot be read: %w", err)
	}
	for _, e := range before {
		groups[e.def.Spec.Group] = true
	}
	m.reconcile(ctx, groups)
	m.progress(upTo)
	return nil
}

// step brings the catalogue up to what the watch has to tell.
func (m *Manager) step(ctx context.Context) error {
	groups, upTo, err := m.drain()
	if err != nil {
		return err
	}
	if m.owes {
		for _, e := range m.entries {
			groups[e.def.Spec.Group] = true
		}
	}
	if len(groups) > 0 {
		m.reconcile(ctx, groups)
	}
	m.progress(upTo)
	return nil
}

// drain takes in all that the watch has to tell. It returns the groups that changed, and the
// revision up to which nothing is missing now.
func (m *Manager) drain() (groups map[string]bool, upTo kv.Revision, err error) {
	groups = map[string]bool{}
	for {
		event, ok, err := m.watch.Next()
		if err != nil {
			return nil, 0, err
		}
		if ok {
			m.take(event, groups)
			continue
		}
		if upTo, ok := m.watch.Progress(); ok {
			return groups, upTo, nil
		}
	}
}

// take takes in one event. What the manager itself wrote it knows already.
func (m *Manager) take(event storage.Event, groups map[string]bool) {
	v := event.Version
	name := v.Name()
	known := m.entries[name]
	if known != nil && known.revision >= v.Revision() {
		return
	}
	if known != nil {
		groups[known.def.Spec.Group] = true
	}
	if event.Type == storage.Deleted {
		delete(m.entries, name)
		return
	}
	e, err := newEntry(v)
	if err != nil {
		m.log.Error("a stored definition cannot be read; its resource stays as it was", "name", name, "error", err)
		return
	}
	m.entries[name] = e
	groups[e.def.Spec.Group] = true
}

func newEntry(v storage.Version) (*entry, error) {
	obj, err := v.Object()
	if err != nil {
		return nil, err
	}
	def, ok := obj.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return nil, errNoDefinition
	}
	return &entry{def: def, revision: v.Revision(), created: v.Created()}, nil
}

// progress tells those who wait that the catalogue holds all up to that revision.
func (m *Manager) progress(upTo kv.Revision) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if upTo <= m.upTo {
		return
	}
	m.upTo = upTo
	close(m.changed)
	m.changed = make(chan struct{})
}

// WaitFor returns once the catalogue holds the outcome of every change of a definition up to
// that revision. The error is that of ctx, or that the manager no longer runs.
func (m *Manager) WaitFor(ctx context.Context, revision kv.Revision) error {
	for {
		m.mu.Lock()
		upTo, changed, stopped := m.upTo, m.changed, m.stopped
		m.mu.Unlock()
		if upTo >= revision {
			return nil
		}
		if stopped != nil {
			return stopped
		}
		select {
		case m.poke <- struct{}{}:
		default: // it will look anyway
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Confirm returns once the catalogue holds the outcome of every change that was answered
// before the call: whoever has seen a definition established finds its resource.
func (m *Manager) Confirm(ctx context.Context) error {
	snap, err := m.o.Tables.Engine.Read(ctx, kv.Latest)
	if err != nil {
		return err
	}
	return m.WaitFor(ctx, snap.Revision())
}
