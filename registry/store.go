package registry

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

const secondsOnly = time.Second // the resolution of times in metadata

// A Store serves one version of one resource. It is safe for concurrent use.
type Store struct {
	kind     schema.GroupVersionKind
	resource schema.GroupResource
	path     string
	table    *storage.Table
	strategy Strategy
	policy   Policy
	guards   []Guard
	hooks    []Hook
	shape    func() Shape
	owners   Ownership
	clock    clock.PassiveClock
	newUID   func() types.UID
	suffix   func() string

	recollection recollection
}

// Config is what a [Store] is made of. Kind, Resource, Table and Strategy are needed.
type Config struct {
	Kind     schema.GroupVersionKind
	Resource schema.GroupResource
	Table    *storage.Table
	Strategy Strategy

	// Path is the place of the resource in the reference's store: it is part of one error
	// text that clients see (rule K19). Empty means the plural name.
	Path string
	// Guards are asked before an object is created.
	Guards []Guard
	// GuardsFor make more guards, asked after those: for one that has to know the resource, where
	// many stores are made of one Config.
	GuardsFor []func(schema.GroupResource) Guard
	// Hooks are told of every attempt to write.
	Hooks []Hook
	// Shape returns the shape of the objects, by which their fields are told apart. It is asked when a
	// write is refused, or rebased, and returns the same each time. Nil, or what returns nil, means that
	// nothing is known. What metadata are made of is known.
	Shape func() Shape
	// Ownership keeps managedFields; nil leaves them as they are sent.
	Ownership Ownership
	// Clock tells the time; nil means the real one.
	Clock clock.PassiveClock
	// NewUID makes identities; nil means random ones.
	NewUID func() types.UID
	// Suffix makes the end of generated names; nil means five random characters.
	Suffix func() string
}

// A Guard says whether an object may be created, given the state that view shows. What it
// looked at through view becomes a condition of the commit: had it changed, the guard
// is asked again and nobody sees the race. Its error goes to the client.
type Guard func(ctx context.Context, view *storage.View, namespace, name string) error

// check says what c lacks (rules S1 to S7).
func (c Config) check() error {
	switch {
	case c.Kind.Kind == "" || c.Kind.Version == "":
		return errors.New("registry: a store needs a kind and a version")
	case c.Resource.Resource == "":
		return errors.New("registry: a store needs the plural name of its resource")
	case c.Table == nil || c.Strategy == nil:
		return errors.New("registry: the store of " + c.Resource.String() + " needs a table and a strategy")
	case c.Table.Engine() == nil || c.Table.Codec() == nil:
		return errors.New("registry: the table of " + c.Resource.String() + " needs an engine and a codec")
	}
	return nil
}

// New makes a store, or says what c lacks.
func New(c Config) (*Store, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &Store{
		kind: c.Kind, resource: c.Resource, path: c.Path, table: c.Table, strategy: c.Strategy,
		policy: c.Strategy.Policy(), guards: c.Guards, hooks: c.Hooks, shape: c.Shape, owners: c.Ownership,
		clock: c.Clock, newUID: c.NewUID, suffix: c.Suffix, recollection: newRecollection(),
	}
	if s.table.Namespaced() != s.policy.Namespaced {
		return nil, errors.New("registry: the table and the strategy of " + c.Resource.String() + " do not agree on whether objects have namespaces")
	}
	s.guards = slices.Clone(s.guards)
	for _, guard := range c.GuardsFor {
		s.guards = append(s.guards, guard(c.Resource))
	}
	if s.policy.Name == nil {
		s.policy.Name = validation.NameIsDNSSubdomain
	}
	if s.path == "" {
		s.path = c.Resource.Resource
	}
	if s.clock == nil {
		s.clock = clock.RealClock{}
	}
	if s.newUID == nil {
		s.newUID = uuid.NewUUID
	}
	if s.suffix == nil {
		s.suffix = randomSuffix
	}
	return s, nil
}

// Must is New for those who know that c is complete. It panics if it is not.
func Must(c Config) *Store {
	s, err := New(c)
	if err != nil {
		panic(err)
	}
	return s
}

// Kind returns the kind of the objects.
func (s *Store) Kind() schema.GroupVersionKind { return s.kind }

// Resource returns the name of the resource in error texts.
func (s *Store) Resource() schema.GroupResource { return s.resource }

// Policy returns what the resource allows.
func (s *Store) Policy() Policy { return s.policy }

// Ownership returns what keeps managedFields, nil if nothing does.
func (s *Store) Ownership() Ownership { return s.owners }

// Table returns the table beneath.
func (s *Store) Table() *storage.Table { return s.table }

// nameAlphabet has no vowels, so that no words come out, and no look-alikes.
const (
	nameAlphabet  = "bcdfghjklmnpqrstvwxz2456789"
	suffixLength  = 5
	nameBaseMax   = 58 // rule S42: so that base and suffix make a DNS label
	nameTriesMax  = 8  // rule S38
	deleteWorkers = 16
)

func randomSuffix() string {
	b := make([]byte, suffixLength)
	for i := range b {
		b[i] = nameAlphabet[rand.IntN(len(nameAlphabet))]
	}
	return string(b)
}

// Get returns an object: the newest version for "", one at least that new for a
// resourceVersion, whatever is at hand for "0" (rules S121, H93).
func (s *Store) Get(ctx context.Context, namespace, name, resourceVersion string) (storage.Version, error) {
	if err := s.address(namespace, name); err != nil {
		return storage.Version{}, err
	}
	at := kv.Latest
	if resourceVersion != "" {
		rev, err := storage.ParseRevision(resourceVersion)
		if err != nil {
			return storage.Version{}, err
		}
		at = kv.AtLeast(rev)
		if rev == kv.Absent {
			at = kv.Any
		}
	}
	v, err := s.table.Get(ctx, namespace, name, at)
	return v, s.refuse("get", name, err)
}

// ListOptions say what a list holds. A [storage.ListQuery] makes From and Limit of what a client
// sends.
type ListOptions struct {
	Namespace string       // "" for all
	From      storage.From // nil is the newest state
	Limit     int64        // 0 for all
	Selector  storage.Selector
}

// List returns the objects that o asks for, or a page of them (rules S122 to S125).
func (s *Store) List(ctx context.Context, o ListOptions) (*storage.Page, error) {
	namespace, name := o.Namespace, ""
	if !storage.Continues(o.From) {
		namespace, name = s.narrow(o.Namespace, o.Selector.Fields)
	}
	page, err := s.table.List(ctx, storage.ListOptions{
		Namespace: namespace, Name: name, From: o.From, Limit: o.Limit, Selector: o.Selector,
	})
	if err != nil {
		return nil, s.ListError(err)
	}
	return page, nil
}

// ListError turns the error of a list, or of the options of one, into what a client is told.
func (s *Store) ListError(err error) error { return s.refuse("list", "", err) }

// narrow finds the one namespace and the one object that a field selector leaves, if it
// does (rules S124, S125). A list that goes on with another is not narrowed.
func (s *Store) narrow(namespace string, sel fields.Selector) (ns, name string) {
	if sel == nil {
		return namespace, ""
	}
	if pinned, ok := sel.RequiresExactMatch("metadata.namespace"); ok && namespace == "" && s.policy.Namespaced &&
		len(validation.ValidateNamespaceName(pinned, false)) == 0 {
		namespace = pinned
	}
	if pinned, ok := sel.RequiresExactMatch("metadata.name"); ok && s.address(namespace, pinned) == nil {
		name = pinned
	}
	return namespace, name
}

// WatchOptions say what a watch tells. A [storage.WatchQuery] makes From of what a client sends.
type WatchOptions struct {
	Namespace string            // "" for all
	From      storage.WatchFrom // nil tells the state at hand, then what changes
	Selector  storage.Selector
}

// Watch begins a watch (rule S127). What its events fail with has to go through
// [Store.WatchError].
func (s *Store) Watch(ctx context.Context, o WatchOptions) (*storage.Watch, error) {
	namespace, name := s.narrow(o.Namespace, o.Selector.Fields)
	w, err := s.table.Watch(ctx, storage.WatchOptions{Namespace: namespace, Name: name, Selector: o.Selector, From: o.From})
	if err != nil {
		return nil, s.WatchError(err)
	}
	return w, nil
}

// WatchError turns the error of a watch, or of the options of one, into what a client is told.
func (s *Store) WatchError(err error) error { return s.refuse("watch", "", err) }

// decode gives the object of a version, and its metadata.
func decode(v storage.Version) (runtime.Object, metav1.Object, error) {
	obj, err := v.Object()
	if err != nil {
		return nil, nil, err
	}
	acc, err := meta.Accessor(obj)
	return obj, acc, err
}

func parseUint(s string) (kv.Revision, error) {
	if s == "" {
		return kv.Absent, nil
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return kv.Revision(n), err
}

// authored notes what is being done with the author of ctx, if nobody above has.
func authored(ctx context.Context, verb string) context.Context {
	a := storage.AuthorFrom(ctx)
	if a.Verb != "" {
		return ctx
	}
	a.Verb = verb
	return storage.WithAuthor(ctx, a)
}

// endings collects what hooks want to be told, one set for each attempt.
type endings struct {
	tell  []func(context.Context, Ending)
	store *Store
}

// begin tells the hooks that an attempt begins; the attempt before it has ended refused.
func (e *endings) begin(ctx context.Context, verb Verb, obj, old runtime.Object, dryRun bool) error {
	e.end(ctx, Ending{Outcome: Refused})
	for _, h := range e.store.hooks {
		tell, err := h.Begin(ctx, verb, obj, old, dryRun)
		if err != nil {
			return err
		}
		if tell != nil {
			e.tell = append(e.tell, tell)
		}
	}
	return nil
}

// end tells the hooks of the attempt under way how it ended. It does nothing if there is
// none.
func (e *endings) end(ctx context.Context, how Ending) {
	tell := e.tell
	e.tell = nil
	for _, f := range tell {
		f(ctx, how)
	}
}

// close makes sure, however the call is left, that no hook waits for its ending.
func (e *endings) close(ctx context.Context) { e.end(ctx, Ending{Outcome: Refused}) }
