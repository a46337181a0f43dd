package openapi

import (
	"bytes"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/munnerz/goautoneg"

	"github.com/pawl-dev/pawl/internal/resource"
)

// zipMin is the size from which a document is compressed for who takes that (rule H60).
const zipMin = 128 << 10

// A Handler serves /openapi/v2, /openapi/v3 and what is below it (rules H40 to H50). It
// compresses by itself, and must not be wrapped by what compresses again. Log and Now may be
// left out.
type Handler struct {
	Catalogue func() *resource.Catalogue
	Log       *slog.Logger
	Now       func() time.Time // for Expires

	mu   sync.Mutex // guards last; documents are made outside it
	last *set
}

// ServeHTTP answers GET and HEAD.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "405 method not allowed", http.StatusMethodNotAllowed)
		return
	}
	s := h.set()
	path := strings.TrimSuffix(r.URL.Path, "/")
	switch key, below := strings.CutPrefix(path, "/openapi/v3/"); {
	case path == "/openapi/v2":
		h.serve(w, r, "", s.old, types2)
	case path == "/openapi/v3":
		h.serve(w, r, "", s.index, indexTypes)
	case below && s.groups[key] != nil:
		h.serve(w, r, key, s.groups[key].page, types3)
	default:
		http.NotFound(w, r)
	}
}

// set returns the documents of the catalogue in place.
func (h *Handler) set() *set {
	c := h.Catalogue()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last != nil && h.last.of.Serial() == c.Serial() {
		return h.last
	}
	log := h.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := newSet(c, h.last, log)
	if h.last == nil || h.last.of.Serial() < c.Serial() { // a slow request must not bring back the past
		h.last = s
	}
	return s
}

// A mediaType is one that a document is offered as. Clients ask for protobuf by two names; it is
// always sent under the newer (rule H41).
type mediaType struct {
	asked, sent string
	binary      bool
}

var (
	indexTypes = []mediaType{{"json", "application/json", false}}
	types3     = []mediaType{
		{"json", "application/json", false},
		{"com.github.proto-openapi.spec.v3.v1.0+protobuf", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf", true},
		{"com.github.proto-openapi.spec.v3@v1.0+protobuf", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf", true},
	}
	types2 = []mediaType{
		{"json", "application/json", false},
		{"com.github.proto-openapi.spec.v2@v1.0+protobuf", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", true},
		{"com.github.proto-openapi.spec.v2.v1.0+protobuf", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", true},
	}
)

// choose returns the media type that fits an Accept header best; it is not ok if none does.
func choose(accept string, offered []mediaType) (mediaType, bool) {
	if accept == "" {
		accept = "*/*"
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		if clause.Q <= 0 || clause.Type != "*" && clause.Type != "application" {
			continue
		}
		for _, offer := range offered {
			if clause.SubType == "*" || clause.SubType == offer.asked {
				return offer, true
			}
		}
	}
	return mediaType{}, false
}

// serve sends a page. Key is that of the document, "" for those that no hash names.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, key string, p *page, offered []mediaType) {
	w.Header().Add("Vary", "Accept")
	as, ok := choose(r.Header.Get("Accept"), offered)
	if !ok {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	f, err := p.take(as.binary)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if asked := r.URL.Query().Get("hash"); asked != "" && key != "" {
		if asked != f.hash {
			http.Redirect(w, r, address(key, f.hash), http.StatusMovedPermanently)
			return
		}
		h.forever(w)
	}
	w.Header().Set("Content-Type", as.sent)
	w.Header().Set("Etag", strconv.Quote(f.hash))
	body := f.body
	if len(body) >= zipMin {
		w.Header().Add("Vary", "Accept-Encoding")
		if takesGzip(r) {
			w.Header().Set("Content-Encoding", "gzip")
			body = f.zipped()
		}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body)) // which answers If-None-Match
}

// forever says that what this address gives never changes (rule H43).
func (h *Handler) forever(w http.ResponseWriter) {
	now := time.Now
	if h.Now != nil {
		now = h.Now
	}
	w.Header().Set("Cache-Control", "public, immutable")
	w.Header().Set("Expires", now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
}

func takesGzip(r *http.Request) bool {
	for clause := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		coding, params, _ := strings.Cut(strings.TrimSpace(clause), ";")
		if coding == "gzip" {
			q, named := strings.CutPrefix(strings.TrimSpace(params), "q=")
			worth, err := strconv.ParseFloat(q, 64)
			return !named || err == nil && worth > 0
		}
	}
	return false
}
