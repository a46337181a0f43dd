package discovery

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/internal/resource"
)

// A Handler serves the discovery documents, and answers everything else below /api and /apis
// as what is not there. Slashes at the end of a path do not matter.
type Handler struct {
	Catalogue func() *resource.Catalogue

	mu   sync.Mutex // guards kept
	kept *shelf
}

// A shelf holds the documents of one catalogue that were asked for.
type shelf struct {
	of   *resource.Catalogue
	mu   sync.Mutex // guards made, and is held while one is made: who waits wants it too
	made map[string]*document
}

// A document is one that is sent again and again.
type document struct {
	obj  runtime.Object
	json []byte
	etag string
	err  error
}

// ServeHTTP answers GET and HEAD.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	shelf := h.shelf()
	p := shelf.find(r)
	if p == nil {
		NotFound(w, r, shelf.of)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		fail(w, r, generic(http.StatusMethodNotAllowed))
		return
	}
	if p.whole != nil {
		w.Header().Set("Vary", "Accept")
	}
	switch verdict, as := choose(r.Header.Get("Accept"), p.whole != nil); verdict {
	case plain:
		w.Header().Set("Cache-Control", "no-cache, private") // rule H61
		if p.own {
			h.serve(w, r, newDocument(p.plain()), as, "")
			return
		}
		h.serve(w, r, shelf.document(p.key, p.plain), as, "")
	case whole:
		d := shelf.document(p.key+aggregatedForm, p.whole)
		w.Header().Set("Etag", d.etag)
		w.Header().Set("Cache-Control", "public")
		if r.Header.Get("If-None-Match") == d.etag { // rule H27
			w.WriteHeader(http.StatusNotModified)
			return
		}
		h.serve(w, r, d, as, aggregatedForm)
	default:
		fail(w, r, notAcceptable(verdict, p.routed))
	}
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, d *document, as encoding, params string) {
	if d.err != nil {
		http.Error(w, d.err.Error(), http.StatusInternalServerError)
		return
	}
	send(w, r, http.StatusOK, d.obj, d.json, as, params)
}

// shelf returns the documents of the catalogue in place.
func (h *Handler) shelf() *shelf {
	c := h.Catalogue()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kept != nil && h.kept.of.Serial() == c.Serial() {
		return h.kept
	}
	s := &shelf{of: c, made: map[string]*document{}}
	if h.kept == nil || h.kept.of.Serial() < c.Serial() { // a slow request must not bring back the past
		h.kept = s
	}
	return s
}

// A place is a path at which there is something.
type place struct {
	key    string
	plain  func() runtime.Object
	whole  func() runtime.Object // nil if there is no aggregated form
	own    bool                  // plain is for this client alone, who is told the address that it used
	routed bool                  // see notAcceptable
}

// find returns what is at the path of r, nil if nothing is.
func (s *shelf) find(r *http.Request) *place {
	segments := split(r.URL.Path)
	p := &place{key: strings.Join(segments, "/")}
	switch {
	case len(segments) == 1 && segments[0] == "api":
		p.own, p.routed = true, true
		p.plain = func() runtime.Object { return coreVersions(s.of, r.Host) }
		p.whole = func() runtime.Object { return aggregated(s.of, true) }
	case len(segments) == 1 && segments[0] == "apis":
		p.plain = func() runtime.Object { return groupList(s.of) }
		p.whole = func() runtime.Object { return aggregated(s.of, false) }
	case len(segments) == 2 && segments[0] == "api":
		return s.version(p, "", segments[1])
	case len(segments) == 2 && segments[0] == "apis":
		g := s.of.Group(segments[1])
		if g == nil {
			return nil
		}
		p.plain = func() runtime.Object { return oneGroup(g) }
	case len(segments) == 3 && segments[0] == "apis":
		return s.version(p, segments[1], segments[2])
	default:
		return nil
	}
	return p
}

func (s *shelf) version(p *place, group, version string) *place {
	g := s.of.Group(group)
	if g == nil || len(g.Resources[version]) == 0 {
		return nil
	}
	p.routed = g.Builtin()
	p.plain = func() runtime.Object { return resourceList(g, version) }
	return p
}

func split(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

// document returns the document under that key, and makes it if nobody asked for it before.
func (s *shelf) document(key string, build func() runtime.Object) *document {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.made[key]
	if d == nil {
		d = newDocument(build())
		s.made[key] = d
	}
	return d
}

func newDocument(obj runtime.Object) *document {
	text, err := json.Marshal(obj)
	if err != nil {
		return &document{err: fmt.Errorf("discovery: %w", err)}
	}
	return &document{obj: obj, json: append(text, '\n'), etag: fmt.Sprintf(`"%X"`, sha512.Sum512(text))}
}
