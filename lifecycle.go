package pawl

import (
	"context"
	"net"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/pawl-dev/pawl/internal/admission"
	"github.com/pawl-dev/pawl/internal/auth"
	"github.com/pawl-dev/pawl/internal/controller"
	"github.com/pawl-dev/pawl/internal/pki"
	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/internal/resource/builtin"
	"github.com/pawl-dev/pawl/registry"
)

func hostOf(listen string) (string, error) {
	host, _, err := net.SplitHostPort(listen)
	return host, err
}

// adminUser is who holds the administrator's token: the person of the administrator's
// certificate.
func adminUser() auth.User { return auth.NewUser(pki.AdminName, user.SystemPrivilegedGroup) }

// creation makes the guards that let objects come into being only in namespaces that live.
func (p *parts) creation() []func(schema.GroupResource) registry.Guard {
	return []func(schema.GroupResource) registry.Guard{admission.NamespaceGuard(p.namespaces)}
}

// hooks are those of a built-in resource.
func (p *parts) hooks(k builtin.Kind) []registry.Hook {
	if k.GroupResource() == namespaces {
		return []registry.Hook{admission.ProtectNamespaces()}
	}
	return nil
}

var (
	namespaces      = schema.GroupResource{Resource: "namespaces"}
	services        = schema.GroupResource{Resource: "services"}
	serviceAccounts = schema.GroupResource{Resource: "serviceaccounts"}
)

// bootstrap makes the namespaces that every server has, and the service that leads to it.
func (p *parts) bootstrap(ctx context.Context, port int) error {
	if err := admission.Bootstrap(ctx, p.version(namespaces).Store); err != nil {
		return err
	}
	return admission.Kubernetes(ctx, p.version(services).Store, builtin.FirstServiceAddress(), port)
}

func (p *parts) version(gr schema.GroupResource) *resource.Version {
	return p.catalogue.Catalogue().Lookup(gr.Group, gr.Resource).Versions[0]
}

// control starts the loops that empty what is being deleted, and collect what nobody owns any more. Of several servers on
// one store one has them run.
func (p *parts) control(ctx context.Context) {
	if p.shared == nil {
		for _, run := range p.controllers() {
			p.loop(ctx, func(ctx context.Context) { _ = run(ctx) }) // ends with ctx or the engine
		}
	} else {
		p.loop(ctx, func(ctx context.Context) { p.shared.Lead(ctx, "loops", p.lead) })
	}
	p.loop(ctx, func(ctx context.Context) { p.specs.Follow(ctx, p.catalogue.Changed) })
}

// lead runs the loops of all servers on one store.
func (p *parts) lead(ctx context.Context) {
	var all sync.WaitGroup
	for _, run := range p.controllers() {
		all.Go(func() { _ = run(ctx) })
	}
	all.Wait()
}

// controllers are the loops, ready to be run once.
func (p *parts) controllers() []func(context.Context) error {
	ns := p.version(namespaces)
	emptier := controller.NewNamespaces(controller.NamespacesOptions{
		Store: ns.Store, Status: ns.Subresources["status"].Store, Finalize: ns.Subresources["finalize"].Store,
		Catalogue: p.catalogue, Custom: p.manager, Log: p.config.Logger,
	})
	cleaner := controller.NewDefinitions(controller.DefinitionsOptions{
		Store: p.definitions, Status: p.definitionStatus, Custom: p.manager, Catalogue: p.catalogue, Log: p.config.Logger,
	})
	accounts := controller.NewAccounts(controller.AccountsOptions{
		Namespaces: p.namespaces, Accounts: p.version(serviceAccounts).Store, Log: p.config.Logger,
	})
	collector := controller.NewCollector(controller.CollectorOptions{
		Engine: p.engine, Catalogue: p.catalogue, Custom: p.manager, Log: p.config.Logger,
	})
	return []func(context.Context) error{emptier.Run, accounts.Run, cleaner.Run, collector.Run}
}
