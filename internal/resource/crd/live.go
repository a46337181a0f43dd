package crd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"

	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/internal/table"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// A live is what is served of a definition until it changes in a way that matters to clients.
type live struct {
	definition *definition
	resource   *resource.Resource // nil if no version is served
	instances  *registry.Store    // in the storage version, served or not
	closed     chan struct{}
	tenure     *tenure
	seen       *apiextensionsv1.CustomResourceDefinition // the last that was found to ask for the same
}

// A tenure is the time from the creation of a definition to its removal. All that was ever
// served of it shares one, so that requests in flight finish on what they began with (rule C28).
type tenure struct {
	uid types.UID
	now atomic.Pointer[standing]
}

// A standing is what the manager knows of a definition at one revision.
type standing struct {
	revision    kv.Revision
	terminating bool
	over        bool     // the definition is gone
	versions    []string // that an object may be stored in
}

// follows reports whether what is served is what e asks for.
func (l *live) follows(e *entry) bool {
	was, now := l.definition.CustomResourceDefinition, e.def
	if now == l.seen {
		return true
	}
	same := was.UID == now.UID && Served(now) &&
		equality.Semantic.DeepEqual(was.Status.AcceptedNames, now.Status.AcceptedNames) &&
		equality.Semantic.DeepEqual(was.Spec, now.Spec)
	if same {
		l.seen, now.Spec = now, was.Spec // one copy in memory
	}
	return same
}

// approve takes in that the definition is as e says. If it is being deleted from now on, another
// resource takes the place of the one served: the same but for what it lets clients do, and
// with the same watches (rule C33).
func (l *live) approve(e *entry) {
	if was := l.tenure.now.Load(); was != nil && was.revision == e.revision {
		return
	}
	s := &standing{revision: e.revision, terminating: terminating(e.def)}
	for _, v := range e.def.Spec.Versions {
		s.versions = append(s.versions, v.Name)
	}
	l.tenure.now.Store(s)
	if l.resource != nil && l.resource.Terminating != s.terminating {
		r := *l.resource
		r.Terminating = s.terminating
		l.resource = &r
	}
}

func terminating(def *apiextensionsv1.CustomResourceDefinition) bool {
	return def.DeletionTimestamp != nil || isTrue(def, apiextensionsv1.Terminating)
}

// end closes what is no longer served. If the definition is gone, so is all that was served of
// it before.
func (l *live) end(entries map[string]*entry) {
	e := entries[l.definition.Name]
	if e == nil || e.def.UID != l.tenure.uid {
		s := *l.tenure.now.Load()
		s.over = true
		l.tenure.now.Store(&s)
	}
	close(l.closed)
}

// enliven makes what is served of a definition. Over is what ends: the same definition goes on
// in the same tenure.
func (m *Manager) enliven(e *entry, over []*live) *live {
	l := &live{definition: newDefinition(e.def), closed: make(chan struct{}), tenure: &tenure{uid: e.def.UID}, seen: e.def}
	if i := slices.IndexFunc(over, func(o *live) bool { return o.tenure.uid == e.def.UID }); i >= 0 {
		l.tenure = over[i].tenure
	}
	names, d := l.definition.names, l.definition
	r := &resource.Resource{
		Group: d.Spec.Group, Plural: names.Plural, Singular: names.Singular, Kind: names.Kind, ListKind: names.ListKind,
		ShortNames: names.ShortNames, Categories: names.Categories,
		Namespaced: d.Spec.Scope == apiextensionsv1.NamespaceScoped, Custom: true,
		StorageVersion: d.storage, Terminating: terminating(d.CustomResourceDefinition), Closed: l.closed,
	}
	for _, v := range d.Spec.Versions {
		if !v.Served && !v.Storage {
			continue
		}
		served, err := m.serve(l, r.GroupResource(), v.Name)
		if err != nil {
			m.log.Error("a version of a definition cannot be served", "name", d.Name, "version", v.Name, "error", err)
			continue
		}
		if v.Storage {
			l.instances = served.Store
		}
		if v.Served {
			r.Versions = append(r.Versions, served)
		}
	}
	slices.SortFunc(r.Versions, func(a, b *resource.Version) int {
		return version.CompareKubeAwareVersionStrings(b.Name, a.Name) // rule C90
	})
	if len(r.Versions) > 0 {
		l.resource = r
	}
	return l
}

// serve makes one version, with its stores over the table that all versions share.
func (m *Manager) serve(l *live, gr schema.GroupResource, name string) (*resource.Version, error) {
	kind, err := l.definition.kind(name)
	if err != nil {
		return nil, err
	}
	t := m.o.Tables
	t.Group, t.Resource = gr.Group, gr.Resource
	t.Namespaced, t.Codec, t.Fields = kind.Strategy.Policy().Namespaced, kind.Codec, kind.Fields
	c := m.o.Stores
	c.Kind, c.Resource, c.Table, c.Strategy = kind.GroupVersionKind, gr, storage.NewTable(t), kind.Strategy
	c.Path = gr.Group + "/" + gr.Resource
	c.Shape = kind.shape
	c.Guards = append(slices.Clone(c.Guards), m.guard(l, gr))
	c.Ownership = kind.ownership("")
	main, err := registry.New(c)
	if err != nil {
		return nil, err
	}
	v := &resource.Version{
		Name: name, Form: kind.Form, Store: main, FieldLabels: kind.FieldLabels, Deprecated: kind.Deprecated, OpenAPI: kind.OpenAPI,
		Columns: l.definition.columns(name),
	}
	v.Subresources = map[string]*resource.Subresource{}
	if s := l.definition.scale(name); s != nil {
		v.Subresources["scale"] = &resource.Subresource{
			Name: "scale", Kind: resource.ScaleKind.Kind, Store: main, Verbs: []string{"get", "patch", "update"}, Scale: s,
		}
	}
	if kind.Status != nil {
		c.Strategy, c.Ownership = kind.Status, kind.ownership("status")
		status, err := registry.New(c)
		if err != nil {
			return nil, err
		}
		v.Subresources["status"] = &resource.Subresource{
			Name: "status", Kind: kind.GroupVersionKind.Kind, Store: status, Verbs: []string{"get", "patch", "update"},
		}
	}
	return v, nil
}

// columns are what a table shows of the objects of a version, worked out when first asked for
// (rule C101).
func (d *definition) columns(version string) func() *table.Columns {
	return sync.OnceValue(func() *table.Columns {
		i := slices.IndexFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
		return table.Custom(d.Spec.Versions[i].AdditionalPrinterColumns)
	})
}

// guard lets an object come into being only as long as its definition is there and is not being
// deleted (rule C33), at the very revision that its commit is tied to. What the manager
// knows of that revision decides; if it does not know it yet, it will in a moment.
func (m *Manager) guard(l *live, gr schema.GroupResource) registry.Guard {
	key := m.o.Definitions.Table().Key("", l.definition.Name)
	stored := l.definition.storage
	return func(ctx context.Context, view *storage.View, _, name string) error {
		def := view.Get(key)
		if def == nil {
			return apierrors.NewNotFound(gr, name)
		}
		if l.tenure.now.Load().revision < def.Revision {
			if err := m.WaitFor(ctx, def.Revision); err != nil {
				return apierrors.NewTimeoutError(fmt.Sprintf("the definition of %s changed, and is not in place yet: %v", gr, err), 1)
			}
		}
		switch s := l.tenure.now.Load(); {
		case s.over:
			return apierrors.NewNotFound(gr, name)
		case s.terminating:
			return apierrors.NewForbidden(gr, name, errors.New("create not allowed while custom resource definition is terminating"))
		case !slices.Contains(s.versions, stored):
			return apierrors.NewServiceUnavailable(fmt.Sprintf("the definition of %s changed: send the request again", gr))
		}
		return nil
	}
}

// Instances returns a store for the objects of a definition, in any version, and nil if none
// can exist: it was never served. Whoever cleans up after a definition lists and deletes
// there (rule C31).
func (m *Manager) Instances(name string) *registry.Store {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.live[name]; l != nil {
		return l.instances
	}
	return nil
}
