package pawl

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/pawl-dev/pawl/internal/auth"
	"github.com/pawl-dev/pawl/internal/pki"
	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/internal/resource/builtin"
	"github.com/pawl-dev/pawl/internal/resource/crd"
	"github.com/pawl-dev/pawl/internal/server"
	"github.com/pawl-dev/pawl/internal/server/contention"
	"github.com/pawl-dev/pawl/internal/server/openapi"
	"github.com/pawl-dev/pawl/internal/table"
	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// parts is what a server is put together from, from the bottom up.
type parts struct {
	config                        Config
	engine                        store
	shared                        SharedStore // the engine, if it is one; nil otherwise
	pki                           *pki.PKI
	accounts                      *auth.Accounts
	turns                         *storage.Turns
	contention                    *contention.Counts
	scheme                        *runtime.Scheme
	schemas                       func(schema.GroupVersion) (map[string]*spec.Schema, error) // of built-in kinds
	catalogue                     *resource.Registry
	namespaces                    *storage.Table
	definitions, definitionStatus *registry.Store // without the hook that waits for the manager: for loops
	manager                       *crd.Manager
	specs                         *openapi.Handler
	server                        *server.Server
	handler                       http.Handler

	stop     sync.Once
	stopping chan struct{} // closed when the server begins to stop
	cancel   context.CancelFunc
	loops    sync.WaitGroup
}

// assemble opens the store and the keys, and wires the layers. Nothing runs yet.
func assemble(ctx context.Context, c Config) (*parts, error) {
	p := &parts{config: c, turns: &storage.Turns{}, contention: &contention.Counts{}, scheme: newScheme(), schemas: remembered(openapi.Schemas), catalogue: &resource.Registry{}, stopping: make(chan struct{})}
	if c.DataDir != "" {
		if err := pki.PrepareFolder(c.DataDir); err != nil {
			return nil, err
		}
	}
	var err error
	if p.engine, p.shared, err = openEngine(ctx, c); err != nil {
		return nil, err
	}
	if err := p.openKeys(ctx); err != nil {
		return nil, errors.Join(err, p.engine.Close())
	}
	if err := p.wire(); err != nil {
		return nil, errors.Join(err, p.engine.Close())
	}
	return p, nil
}

// confirm has the catalogue catch up, if there may be more in the store than it knows.
func (p *parts) confirm() func(context.Context) error {
	if p.shared == nil {
		return nil
	}
	return func(ctx context.Context) error { return p.manager.Confirm(ctx) }
}

// remembered calls f once for each group version.
func remembered(f func(schema.GroupVersion) (map[string]*spec.Schema, error)) func(schema.GroupVersion) (map[string]*spec.Schema, error) {
	var known sync.Map
	return func(gv schema.GroupVersion) (map[string]*spec.Schema, error) {
		once, _ := known.LoadOrStore(gv, sync.OnceValues(func() (map[string]*spec.Schema, error) { return f(gv) }))
		return once.(func() (map[string]*spec.Schema, error))()
	}
}

func openEngine(ctx context.Context, c Config) (store, SharedStore, error) {
	if c.Engine == EngineShared {
		s, err := c.Shared(ctx, SharedOptions{HistoryDuration: c.HistoryDuration, HistorySize: c.HistorySize, Logger: c.Logger})
		if err != nil {
			return nil, nil, err
		}
		return sharedStore{s}, s, nil
	}
	o := local.Options{
		Memory: c.Engine == EngineMemory, HistoryDuration: c.HistoryDuration, HistorySize: c.HistorySize, Logger: c.Logger, Progress: c.Opening,
	}
	if !o.Memory {
		o.Dir = storeDir(c.DataDir)
	}
	e, err := local.Open(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	return e, nil, nil
}

func (p *parts) openKeys(ctx context.Context) error {
	c := p.config
	host, err := hostOf(c.Listen)
	if err != nil {
		return err
	}
	o := pki.Options{
		Dir: c.DataDir, Hosts: append([]string{host}, c.TLSSANs...), CertFile: c.TLSCertFile, KeyFile: c.TLSPrivateKeyFile, Logger: c.Logger,
	}
	if p.shared != nil {
		p.pki, err = sharedKeys(ctx, p.shared, o)
	} else {
		p.pki, err = pki.Open(o)
	}
	return err
}

// wire makes the catalogue and what serves it.
func (p *parts) wire() error {
	tables := map[schema.GroupResource]*storage.Table{}
	for _, kind := range builtin.Kinds() {
		tables[kind.GroupResource()] = p.tableOf(kind)
	}
	p.namespaces = tables[namespaces]
	for _, kind := range builtin.Kinds() {
		res := kind.Resource(p.stores(tables[kind.GroupResource()]))
		if kind.GroupResource() == serviceAccounts {
			res.Versions[0].Subresources["token"] = p.tokens().Door()
		}
		p.catalogue.Change(nil, res)
	}
	p.catalogue.Change(nil, builtin.Reviews(time.Now)...)
	p.wireDefinitions()
	gate, err := p.gate()
	if err != nil {
		return err
	}
	p.server = server.New(server.Config{
		Catalogue: p.catalogue, Confirm: p.confirm(), Authorizer: auth.Masters{}, Authenticator: gate.Authenticator, Other: p.other(), Scheme: p.scheme, Logger: p.config.Logger,
	})
	p.handler = gate.WithAuthentication(gate.WithImpersonation(p.server))
	return nil
}

// table is the table of a resource in the one space there is.
func (p *parts) table(group, plural string, namespaced bool, codec storage.Codec, fields storage.FieldsFunc) *storage.Table {
	return storage.NewTable(storage.Options{
		Engine: p.engine, Group: group, Resource: plural, Namespaced: namespaced, Codec: codec, Fields: fields, Turns: p.turns, Observer: p.contention,
	})
}

func (p *parts) tableOf(k builtin.Kind) *storage.Table {
	at := k.TableResource()
	return p.table(at.Group, at.Resource, k.Strategy.Policy().Namespaced, k.Codec(), k.Fields)
}

// stores makes the stores of a built-in, all over one table.
func (p *parts) stores(table *storage.Table) func(builtin.Kind, string, registry.Strategy) *registry.Store {
	return func(k builtin.Kind, subresource string, s registry.Strategy) *registry.Store {
		return registry.Must(registry.Config{
			Kind: k.GroupVersionKind(), Resource: k.GroupResource(), Table: table, Strategy: s,
			GuardsFor: p.creation(), Hooks: p.hooks(k), Ownership: k.Ownership(subresource, p.scheme, p.schemas),
			Shape: k.Shape(p.schemas),
		})
	}
}

// wireDefinitions makes the resource of the definitions, and what follows them.
func (p *parts) wireDefinitions() {
	now := func() metav1.Time { return metav1.NewTime(time.Now().UTC().Truncate(time.Second)) }
	gr := schema.GroupResource{Group: crd.DefinitionKind.Group, Resource: "customresourcedefinitions"}
	held := p.table(gr.Group, gr.Resource, false, crd.DefinitionCodec{}, nil)
	config := registry.Config{Kind: crd.DefinitionKind, Resource: gr, Path: "apiextensions.k8s.io/customresourcedefinitions", Table: held, Shape: crd.DefinitionShape(p.schemas)}
	store := func(subresource string, s registry.Strategy, hooks ...registry.Hook) *registry.Store {
		c := config
		c.Strategy, c.Hooks, c.Ownership = s, hooks, crd.DefinitionOwnership(subresource, p.scheme, p.schemas)
		return registry.Must(c)
	}
	strategy := crd.Strategy{Now: now}
	p.definitions, p.definitionStatus = store("", strategy), store("status", crd.StatusStrategy{})
	p.manager = crd.NewManager(crd.Options{
		Definitions: p.definitions, Status: p.definitionStatus, Catalogue: p.catalogue,
		Tables: storage.Options{Engine: p.engine, Turns: p.turns, Observer: p.contention},
		Stores: registry.Config{GuardsFor: p.creation()},
		Log:    p.config.Logger,
	})
	settled := settledHook{p.manager}
	p.catalogue.Change(nil, &resource.Resource{
		Group: gr.Group, Plural: gr.Resource, Singular: "customresourcedefinition", Kind: crd.DefinitionKind.Kind,
		ListKind: "CustomResourceDefinitionList", ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"},
		StorageVersion: crd.DefinitionKind.Version,
		Versions: []*resource.Version{{
			Name: crd.DefinitionKind.Version, Form: crd.DefinitionForm{}, Store: store("", strategy, settled),
			Columns: func() *table.Columns { return table.Of(crd.DefinitionKind) },
			Subresources: map[string]*resource.Subresource{"status": {
				Name: "status", Kind: crd.DefinitionKind.Kind, Verbs: []string{"get", "patch", "update"}, Store: store("status", crd.StatusStrategy{}, settled),
			}},
		}},
	})
}

// A settledHook holds the answer to a write of a definition back until the catalogue holds
// what came of it: a definition is usable the moment the call that created it returns.
type settledHook struct{ manager *crd.Manager }

func (h settledHook) Begin(_ context.Context, _ registry.Verb, _, _ runtime.Object, dryRun bool) (func(context.Context, registry.Ending), error) {
	return func(ctx context.Context, how registry.Ending) {
		if dryRun || how.Outcome != registry.Written && how.Outcome != registry.Removed {
			return
		}
		_ = h.manager.Confirm(ctx) // who gives up waiting has their write all the same
	}, nil
}

// tokens are those of service accounts.
func (p *parts) tokens() builtin.Tokens {
	return builtin.Tokens{
		Issue: func(g resource.Grant) (string, error) { return p.accounts.Issue(g) },
		Now:   time.Now,
		Find: func(ctx context.Context, plural, namespace, name string) (runtime.Object, error) {
			v, err := p.version(schema.GroupResource{Resource: plural}).Store.Get(ctx, namespace, name, "")
			if err != nil {
				return nil, err
			}
			return v.Object()
		},
	}
}

func (p *parts) gate() (*auth.Gate, error) {
	admin := auth.Token{Value: p.pki.AdminToken(), User: adminUser()}
	tokens := []auth.Token{admin}
	if file := p.config.TokenAuthFile; file != "" {
		more, err := auth.ReadTokenFile(file)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, more...)
	}
	bearers, err := auth.NewTokens(tokens...)
	if err != nil {
		return nil, err
	}
	if p.accounts, err = auth.NewAccounts(p.pki.AccountKey(), time.Now, p.tokens().Void); err != nil {
		return nil, err
	}
	return &auth.Gate{
		Authenticator: auth.Union{auth.NewCertificates(p.pki.Roots, time.Now), bearers, p.accounts},
		Authorizer:    auth.Masters{}, Logger: p.config.Logger,
	}, nil
}

// newScheme knows the Go types of the built-in resources.
func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, coordinationv1.AddToScheme, eventsv1.AddToScheme,
		rbacv1.AddToScheme, schedulingv1.AddToScheme, apiextensionsv1.AddToScheme,
		authenticationv1.AddToScheme, authorizationv1.AddToScheme, policyv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // two types of one name: a bug in what was linked
		}
	}
	return s
}

// begin brings the catalogue up to what is stored and starts the loops.
func (p *parts) begin(ctx context.Context, port int) error {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel = cancel
	if err := p.manager.Start(ctx); err != nil {
		return err
	}
	if err := p.bootstrap(ctx, port); err != nil {
		return err
	}
	p.loop(run, func(ctx context.Context) { _ = p.manager.Run(ctx) }) // ends with ctx or the engine
	p.loop(run, p.pki.Run)
	p.control(run)
	return nil
}

func (p *parts) loop(ctx context.Context, run func(context.Context)) {
	p.loops.Go(func() { run(ctx) })
}

// shuttingDown makes readiness fail (rule H37).
func (p *parts) shuttingDown() { p.stop.Do(func() { close(p.stopping) }) }

// close ends the loops and closes the store.
func (p *parts) close() error {
	if p.cancel != nil {
		p.cancel()
	}
	p.loops.Wait()
	return p.engine.Close()
}
