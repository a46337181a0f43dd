package crd

import (
	"cmp"
	"context"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// reconcile settles the names of those groups, brings the catalogue in step with all
// definitions, and says which of them are established by that.
func (m *Manager) reconcile(ctx context.Context, groups map[string]bool) {
	m.owes = false
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		m.settle(ctx, m.inGroup(group))
	}
	m.publish()
	if m.establish(ctx, groups) {
		m.publish() // approves them at their new revisions
	}
}

// establish says of the definitions of those groups whose resources are in place that they are
// established. It reports whether there were any.
func (m *Manager) establish(ctx context.Context, groups map[string]bool) (any bool) {
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		for _, e := range m.inGroup(group) {
			if e.def.DeletionTimestamp != nil || isTrue(e.def, apiextensionsv1.Established) || !m.serves(e) {
				continue
			}
			any = m.write(ctx, e, func(def *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.CustomResourceDefinitionStatus {
				return Establish(def, m.now())
			}) || any
		}
	}
	return any
}

// inGroup returns the definitions of a group, the oldest first: it has its names by right.
func (m *Manager) inGroup(group string) []*entry {
	var in []*entry
	for _, e := range m.entries {
		if e.def.Spec.Group == group {
			in = append(in, e)
		}
	}
	slices.SortFunc(in, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.def.Name, b.def.Name))
	})
	return in
}

// settle writes what [Accept] says of each definition, until it says nothing new: one that gives
// a name up leaves it to another (rule C24).
func (m *Manager) settle(ctx context.Context, in []*entry) {
	for range len(in) + 1 {
		changed := false
		inUse := namesOf(in)
		for _, e := range in {
			if e.def.DeletionTimestamp != nil {
				continue // it keeps the names it has until it is gone
			}
			if equality.Semantic.DeepEqual(accept(e.def, inUse, m.now()), e.def.Status) {
				continue
			}
			if m.write(ctx, e, func(def *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.CustomResourceDefinitionStatus {
				return accept(def, inUse, m.now())
			}) {
				changed, inUse = true, namesOf(in)
			}
		}
		if !changed {
			return
		}
	}
}

// namesOf returns the names in use in a group.
func namesOf(in []*entry) nameSet {
	names := namesInUse("", nil)
	for _, e := range in {
		names.add(e.def)
	}
	return names
}

func (m *Manager) now() metav1.Time {
	return metav1.NewTime(m.clock.Now().UTC()).Rfc3339Copy()
}

// write brings the stored status to what status says of the definition as it is stored by
// then, and takes in the outcome. It reports whether that is something new. One that is gone
// or replaced by then needs nothing: the watch tells.
func (m *Manager) write(ctx context.Context, e *entry, status func(*apiextensionsv1.CustomResourceDefinition) apiextensionsv1.CustomResourceDefinitionStatus) bool {
	ctx = storage.WithAuthor(ctx, kv.Author{User: "system:apiserver", Manager: "pawl", Verb: "update", Subresource: "status"})
	did, err := m.o.Status.Update(ctx, "", e.def.Name, func(_ context.Context, current runtime.Object) (runtime.Object, error) {
		def, ok := current.(*apiextensionsv1.CustomResourceDefinition)
		if !ok {
			return nil, errNoDefinition
		}
		if def.DeletionTimestamp == nil {
			def.Status = status(def)
		}
		return def, nil
	}, registry.UpdateOptions{UID: e.def.UID, Owned: true})
	if err == nil {
		var now *entry
		if now, err = newEntry(did.Version); err == nil {
			changed := now.revision != e.revision
			*e = *now
			return changed
		}
	}
	if ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		m.log.Error("the status of a definition cannot be written; will try again", "name", e.def.Name, "error", err)
		m.owes = true
	}
	return false
}

// publish brings the catalogue in step with the definitions, in one change.
func (m *Manager) publish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	var without []schema.GroupResource
	var with []*resource.Resource
	var over []*live
	for name, l := range m.live {
		if e := m.entries[name]; e != nil && l.follows(e) {
			continue
		}
		over = append(over, l)
		if l.resource != nil {
			without = append(without, l.resource.GroupResource())
		}
		delete(m.live, name)
	}
	for name, e := range m.entries {
		if !Served(e.def) || m.builtin(e.def) {
			continue
		}
		l, old := m.live[name], (*resource.Resource)(nil)
		if l == nil {
			l = m.enliven(e, over)
			m.live[name] = l
		} else {
			old = l.resource
		}
		l.approve(e)
		if l.resource != nil && l.resource != old {
			with = append(with, l.resource)
		}
	}
	if len(without)+len(with) > 0 {
		m.o.Catalogue.Change(without, with...)
	}
	for _, l := range over {
		l.end(m.entries)
	}
}

// builtin reports whether a definition asks for a resource that every server has. It is not
// served: the built-in is.
func (m *Manager) builtin(def *apiextensionsv1.CustomResourceDefinition) bool {
	r := m.o.Catalogue.Catalogue().Lookup(def.Spec.Group, def.Status.AcceptedNames.Plural)
	return r != nil && !r.Custom
}

// serves reports whether the resource of a definition is in place.
func (m *Manager) serves(e *entry) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live[e.def.Name] != nil
}
