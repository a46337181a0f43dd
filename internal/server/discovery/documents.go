package discovery

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/internal/resource"
)

var (
	builtinVerbs     = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	customVerbs      = []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"} // the reference's order
	reviewVerbs      = []string{"create"}
	terminatingVerbs = []string{"delete", "deletecollection", "get", "list", "watch"}
)

// verbs returns what can be done with a resource (rules H20, C33).
func verbs(r *resource.Resource) []string {
	all := builtinVerbs
	switch {
	case r.Reviews():
		all = reviewVerbs
	case r.Terminating:
		all = terminatingVerbs
	case r.Custom:
		all = customVerbs
	}
	if r.NoDeleteCollection {
		all = slices.DeleteFunc(slices.Clone(all), func(verb string) bool { return verb == "deletecollection" })
	}
	return all
}

// foreign are the kinds of subresources that belong to another group than their resource
// (rule H19).
var foreign = map[string]schema.GroupVersion{
	"Scale":        {Group: "autoscaling", Version: "v1"},
	"TokenRequest": {Group: "authentication.k8s.io", Version: "v1"},
	"Eviction":     {Group: "policy", Version: "v1"},
}

// A part is a subresource as discovery shows it.
type part struct {
	name  string
	kind  schema.GroupVersionKind
	other bool // the kind is of another group or version than the resource
	verbs []string
}

// parts returns the subresources of one version of a resource: of built-ins by name, of custom
// resources status before scale.
func parts(r *resource.Resource, version string) (all []part) {
	v := r.Version(version)
	for name, sub := range v.Subresources {
		p := part{name: name, kind: schema.GroupVersionKind{Group: r.Group, Version: version, Kind: cmp.Or(sub.Kind, r.Kind)}}
		if gv, ok := foreign[p.kind.Kind]; ok && p.kind.Kind != r.Kind {
			p.kind, p.other = gv.WithKind(p.kind.Kind), true
		}
		p.verbs = slices.Sorted(slices.Values(sub.Verbs))
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b part) int {
		if r.Custom {
			return -cmp.Compare(a.name, b.name)
		}
		return cmp.Compare(a.name, b.name)
	})
	return all
}

// storageVersionHash is the short name of the version that is stored (rule H21): it changes when
// objects should be stored anew. Of a custom resource whose storage version is not served nothing is
// said.
func storageVersionHash(r *resource.Resource) string {
	if r.StorageVersion == "" || r.Custom && r.Version(r.StorageVersion) == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(r.Group + "/" + r.StorageVersion + "/" + r.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}

// serverAddresses says that clients anywhere reach the server at the address they used.
func serverAddresses(host string) []metav1.ServerAddressByClientCIDR {
	return []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: host}}
}

// coreVersions is the document at /api (rule H15).
func coreVersions(c *resource.Catalogue, host string) *metav1.APIVersions {
	doc := &metav1.APIVersions{
		TypeMeta:                   metav1.TypeMeta{Kind: "APIVersions"},
		Versions:                   []string{},
		ServerAddressByClientCIDRs: serverAddresses(host),
	}
	if core := c.Group(""); core != nil {
		doc.Versions = core.Versions
	}
	return doc
}

// groupList is the document at /apis (rule H16).
func groupList(c *resource.Catalogue) *metav1.APIGroupList {
	doc := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for i := range c.Groups() {
		if g := &c.Groups()[i]; g.Name != "" {
			doc.Groups = append(doc.Groups, apiGroup(g))
		}
	}
	return doc
}

func apiGroup(g *resource.Group) metav1.APIGroup {
	out := metav1.APIGroup{Name: g.Name}
	for _, v := range g.Versions {
		gv := schema.GroupVersion{Group: g.Name, Version: v}
		out.Versions = append(out.Versions, metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: v})
	}
	out.PreferredVersion = out.Versions[0]
	return out
}

// oneGroup is the document at /apis/GROUP (rule H17).
func oneGroup(g *resource.Group) *metav1.APIGroup {
	doc := apiGroup(g)
	doc.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
	return &doc
}

// resourceList is the document at /api/v1 and /apis/GROUP/VERSION (rules H17 to H21).
func resourceList(g *resource.Group, version string) *metav1.APIResourceList {
	doc := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList"},
		GroupVersion: schema.GroupVersion{Group: g.Name, Version: version}.String(),
	}
	if g.Name != "" { // the core document is older than apiVersion
		doc.APIVersion = "v1"
	}
	for _, r := range g.Resources[version] {
		doc.APIResources = append(doc.APIResources, metav1.APIResource{
			Name: r.Plural, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind, Verbs: verbs(r),
			ShortNames: r.ShortNames, Categories: r.Categories, StorageVersionHash: storageVersionHash(r),
		})
		for _, p := range parts(r, version) {
			entry := metav1.APIResource{Name: r.Plural + "/" + p.name, Namespaced: r.Namespaced, Kind: p.kind.Kind, Verbs: p.verbs}
			if p.other {
				entry.Group, entry.Version = p.kind.Group, p.kind.Version
			}
			doc.APIResources = append(doc.APIResources, entry)
		}
	}
	return doc
}

// aggregated is the document in place of all the others (rules H24 and H25): of the core group,
// or of the named ones.
func aggregated(c *resource.Catalogue, core bool) *apidiscoveryv2.APIGroupDiscoveryList {
	doc := &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
		Items:    []apidiscoveryv2.APIGroupDiscovery{},
	}
	for i := range c.Groups() {
		g := &c.Groups()[i]
		if (g.Name == "") != core {
			continue
		}
		item := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.Name}}
		for _, version := range g.Versions {
			v := apidiscoveryv2.APIVersionDiscovery{Version: version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
			for _, r := range g.Resources[version] {
				v.Resources = append(v.Resources, aggregatedResource(r, version))
			}
			item.Versions = append(item.Versions, v)
		}
		doc.Items = append(doc.Items, item)
	}
	return doc
}

func aggregatedResource(r *resource.Resource, version string) apidiscoveryv2.APIResourceDiscovery {
	out := apidiscoveryv2.APIResourceDiscovery{
		Resource:         r.Plural,
		ResponseKind:     &metav1.GroupVersionKind{Group: r.Group, Version: version, Kind: r.Kind},
		Scope:            apidiscoveryv2.ScopeCluster,
		SingularResource: r.Singular,
		Verbs:            verbs(r),
		ShortNames:       r.ShortNames,
		Categories:       r.Categories,
	}
	if r.Namespaced {
		out.Scope = apidiscoveryv2.ScopeNamespace
	}
	for _, p := range parts(r, version) {
		out.Subresources = append(out.Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource:  p.name,
			ResponseKind: &metav1.GroupVersionKind{Group: p.kind.Group, Version: p.kind.Version, Kind: p.kind.Kind},
			Verbs:        p.verbs,
		})
	}
	return out
}
