package openapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	openapiv3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/internal/server/openapi/document"
)

// fixed are the documents that describe the server rather than a group version. Those of
// groups are added where there is data for them.
var fixed = []string{"api", "apis", "version"}

// A set is the documents of one catalogue.
type set struct {
	of     *resource.Catalogue
	groups map[string]*group // by key
	index  *page
	old    *page // OpenAPI v2
}

// A group is the document of one key, and what it is made of.
type group struct {
	from []*resource.Resource
	page *page
}

// newSet returns the documents of a catalogue, none of them made yet. Those of last that would be
// the same are taken over.
func newSet(c *resource.Catalogue, last *set, log *slog.Logger) *set {
	s := &set{of: c, groups: map[string]*group{}}
	add := func(key string, from []*resource.Resource, make func() (*document.Document, error)) {
		if last != nil && last.groups[key] != nil && slices.Equal(last.groups[key].from, from) {
			s.groups[key] = last.groups[key]
			return
		}
		s.groups[key] = &group{from: from, page: newPage(marshal(make), binary3)}
		if last != nil && last.groups[key] != nil {
			s.groups[key].page.after(last.groups[key].page)
		}
	}
	for _, key := range fixed {
		add(key, nil, func() (*document.Document, error) { return builtin(key) })
	}
	for _, g := range c.Groups() {
		if key := "apis/" + g.Name; g.Name != "" && hasBuiltin(key) {
			add(key, nil, func() (*document.Document, error) { return builtin(key) })
		}
		for version, resources := range g.Resources {
			key := keyOf(g.Name, version)
			add(key, resources, func() (*document.Document, error) {
				return describe(key, version, resources, log)
			})
		}
	}
	s.index = newPage(s.makeIndex, nil)
	s.old = newPage(s.makeOld, binary2)
	if last != nil {
		s.index.after(last.index)
		s.old.after(last.old)
	}
	return s
}

func keyOf(group, version string) string {
	if group == "" {
		return "api/" + version
	}
	return "apis/" + group + "/" + version
}

func marshal(make func() (*document.Document, error)) func() ([]byte, error) {
	return func() ([]byte, error) {
		d, err := make()
		if err != nil {
			return nil, err
		}
		return d.JSON()
	}
}

// describe makes the document of a group version.
func describe(key, version string, resources []*resource.Resource, log *slog.Logger) (*document.Document, error) {
	d, err := builtin(key)
	if err != nil {
		return nil, err
	}
	if err := keepServed(d, "/"+key, resources, version); err != nil {
		return nil, err
	}
	for _, r := range resources {
		v := r.Version(version)
		if v.OpenAPI == nil {
			continue
		}
		part, err := custom(v)
		if err != nil {
			log.Warn("a resource is not in the OpenAPI documents", "resource", r.GroupResource().String(), "version", version, "err", err)
			continue
		}
		d.Add(part)
	}
	if d.OpenAPI == "" { // nothing is known of any
		d.OpenAPI, d.Info = "3.0.0", json.RawMessage(`{"title":"Kubernetes","version":"unversioned"}`)
		d.Paths = map[string]json.RawMessage{}
	}
	return d, nil
}

func custom(v *resource.Version) (*document.Document, error) {
	made, err := v.OpenAPI()
	if err != nil {
		return nil, err
	}
	if made == nil {
		return nil, errors.New("it describes nothing")
	}
	text, err := made.MarshalJSON() // json.Marshal would only check it again, which takes longer than making it
	if err != nil {
		return nil, err
	}
	d, err := document.Parse(text)
	if err != nil || !lists(made, func(mediaType string) bool { return refuses(v.Form, mediaType) }) {
		return d, err
	}
	return d, d.MediaTypes(func(_, mediaType string) bool { return refuses(v.Form, mediaType) })
}

// lists says whether some PATCH lists a media type of which unwanted is true. It is asked first because
// most documents list none, and rewriting one costs more than making it.
func lists(d *spec3.OpenAPI, unwanted func(mediaType string) bool) bool {
	if d.Paths == nil {
		return false
	}
	for _, item := range d.Paths.Paths {
		if item.Patch == nil || item.Patch.RequestBody == nil {
			continue
		}
		for mediaType := range item.Patch.RequestBody.Content {
			if unwanted(mediaType) {
				return true
			}
		}
	}
	return false
}

// makeIndex lists the documents (rule H40).
func (s *set) makeIndex() ([]byte, error) {
	type entry struct {
		ServerRelativeURL string `json:"serverRelativeURL"`
	}
	paths := make(map[string]entry, len(s.groups))
	for key, g := range s.groups {
		form, err := g.page.json()
		if err != nil {
			return nil, fmt.Errorf("openapi: %s: %w", key, err)
		}
		paths[key] = entry{address(key, form.hash)}
	}
	return json.Marshal(map[string]any{"paths": paths})
}

func address(key, hash string) string {
	u := url.URL{Path: "/openapi/v3/" + key, RawQuery: url.Values{"hash": {hash}}.Encode()}
	return u.String()
}

// makeOld makes the document of OpenAPI v2 (rule H45): of the built-ins first, so that what
// documents share is as they have it.
func (s *set) makeOld() ([]byte, error) {
	all := &document.Document{}
	for _, key := range s.keys() {
		form, err := s.groups[key].page.json()
		if err != nil {
			return nil, fmt.Errorf("openapi: %s: %w", key, err)
		}
		d, err := document.Parse(form.body)
		if err != nil {
			return nil, fmt.Errorf("openapi: %s: %w", key, err)
		}
		all.Add(d)
	}
	return all.Swagger()
}

// keys returns the keys in the order in which documents are merged.
func (s *set) keys() []string {
	rank := func(key string) int {
		if hasBuiltin(key) {
			return 0
		}
		return 1
	}
	return slices.SortedFunc(maps.Keys(s.groups), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
}

func binary3(text []byte) ([]byte, error) {
	d, err := openapiv3.ParseDocument(text)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(d)
}

func binary2(text []byte) ([]byte, error) {
	d, err := openapiv2.ParseDocument(text)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(d)
}
