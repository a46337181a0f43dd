package resource

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// A Catalogue is the resources that are served at one time. It never changes.
type Catalogue struct {
	resources map[schema.GroupResource]*Resource
	groups    []Group
	serial    uint64
}

// A Group is what one API group serves.
type Group struct {
	Name     string
	Versions []string // best first; the first is the preferred one (rule H26)
	// Resources by version, ordered by plural.
	Resources map[string][]*Resource
}

// Builtin reports whether the group has resources that no definition made.
func (g *Group) Builtin() bool {
	for _, rs := range g.Resources {
		for _, r := range rs {
			if !r.Custom {
				return true
			}
		}
	}
	return false
}

// Lookup returns the resource of that group and plural, nil if it is not served.
func (c *Catalogue) Lookup(group, plural string) *Resource {
	return c.resources[schema.GroupResource{Group: group, Resource: plural}]
}

// Groups returns the groups in the order discovery lists them (rule H26). The caller must
// not change what it gets.
func (c *Catalogue) Groups() []Group { return c.groups }

// Group returns the group of that name, nil if nothing in it is served.
func (c *Catalogue) Group(name string) *Group {
	for i := range c.groups {
		if c.groups[i].Name == name {
			return &c.groups[i]
		}
	}
	return nil
}

// Resources returns all resources, ordered by group and plural.
func (c *Catalogue) Resources() []*Resource {
	return slices.SortedFunc(maps.Values(c.resources), func(a, b *Resource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Plural, b.Plural))
	})
}

// Serial tells catalogues of one [Registry] apart: a later one has a larger number.
func (c *Catalogue) Serial() uint64 { return c.serial }

// A Registry holds the catalogue that is in place. Its zero value holds an empty one.
type Registry struct {
	current atomic.Pointer[Catalogue]
	mu      sync.Mutex    // one change at a time
	changed chan struct{} // closed by the next change; nil if nobody waits for it
}

// Changed returns a channel that is closed when the catalogue is no longer the one whose serial is
// named, which it may be at once.
func (r *Registry) Changed(serial uint64) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Catalogue().serial != serial {
		over := make(chan struct{})
		close(over)
		return over
	}
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// Catalogue returns the catalogue in place.
func (r *Registry) Catalogue() *Catalogue {
	if c := r.current.Load(); c != nil {
		return c
	}
	return &Catalogue{}
}

// Change takes the resources named in without out of the catalogue and puts those in with
// in, in place of any of the same group and plural, all at once. Resources that left are
// the caller's to close.
func (r *Registry) Change(without []schema.GroupResource, with ...*Resource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.Catalogue()
	next := maps.Clone(old.resources)
	if next == nil {
		next = map[schema.GroupResource]*Resource{}
	}
	for _, gr := range without {
		delete(next, gr)
	}
	for _, res := range with {
		next[res.GroupResource()] = res
	}
	r.current.Store(&Catalogue{resources: next, groups: group(next), serial: old.serial + 1})
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// group sorts resources into groups. The built-in groups come first, in the order of
// builtinOrder, then the others by name.
func group(resources map[schema.GroupResource]*Resource) []Group {
	byName := map[string]*Group{}
	for _, res := range resources {
		g := byName[res.Group]
		if g == nil {
			g = &Group{Name: res.Group, Resources: map[string][]*Resource{}}
			byName[res.Group] = g
		}
		for _, v := range res.Versions {
			g.Resources[v.Name] = append(g.Resources[v.Name], res)
		}
	}
	groups := make([]Group, 0, len(byName))
	for _, g := range byName {
		if len(g.Resources) == 0 {
			continue
		}
		g.Versions = slices.SortedFunc(maps.Keys(g.Resources), func(a, b string) int {
			return version.CompareKubeAwareVersionStrings(b, a)
		})
		for _, rs := range g.Resources {
			slices.SortFunc(rs, func(a, b *Resource) int { return cmp.Compare(a.Plural, b.Plural) })
		}
		groups = append(groups, *g)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(groupRank(a.Name), groupRank(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return groups
}

// builtinOrder is the order in which the groups of the reference are listed.
var builtinOrder = []string{
	"", "apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io",
	"autoscaling", "batch", "certificates.k8s.io", "networking.k8s.io", "policy", "rbac.authorization.k8s.io",
	"storage.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io",
	"coordination.k8s.io", "node.k8s.io", "discovery.k8s.io",
}

func groupRank(name string) int {
	if i := slices.Index(builtinOrder, name); i >= 0 {
		return i
	}
	return len(builtinOrder)
}
