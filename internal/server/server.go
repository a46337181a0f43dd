package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"path"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/pawl-dev/pawl/internal/auth"
	"github.com/pawl-dev/pawl/internal/resource"
)

// Limits of a request.
const (
	bodyMax      = 3 << 20          // bytes of a body (rule H74)
	readTimeout  = 60 * time.Second // of a request that is no watch (rule H213)
	writeTimeout = 34 * time.Second // of one that writes (rule H213)
	answerMax    = 30 * time.Second // that a client may take for the answer, after that
)

// Config is what a [Server] is made of. All but Authenticator, Scheme, Logger and Now are needed.
type Config struct {
	Catalogue *resource.Registry
	// Confirm returns once the catalogue holds all that was answered before, here or by another server on the same
	// store: it is called before a resource is said not to exist. Nil if nobody else can have made one.
	Confirm    func(context.Context) error
	Authorizer auth.Authorizer
	// Authenticator knows the tokens that clients ask about; nil if nobody may know (rule H200).
	Authenticator auth.Authenticator
	// Other serves what is no resource: discovery, OpenAPI, health, version.
	Other http.Handler
	// Scheme knows the Go types of the resources that have some, and of their lists: these
	// can be sent as protobuf. Nil if there are none.
	Scheme *runtime.Scheme
	Logger *slog.Logger
	Now    func() time.Time // by which ages in tables are told; time.Now if nil
}

// A Server answers requests whose sender is known: it belongs behind an [auth.Gate].
type Server struct {
	catalogue     *resource.Registry
	confirm       func(context.Context) error // nil if there is nothing to confirm
	authorizer    auth.Authorizer
	authenticator auth.Authenticator // nil if there is none
	other         http.Handler
	scheme        *runtime.Scheme
	protobuf      runtime.Serializer // nil without a scheme
	logger        *slog.Logger
	now           func() time.Time
	pacer         pacer
	refusals      seldom // the store's

	mu       sync.Mutex // guards what follows
	draining chan struct{}
	drained  chan struct{} // closed when no watch is left after Drain
	watches  int
}

// New returns a server.
func New(c Config) *Server {
	s := &Server{
		catalogue: c.Catalogue, confirm: c.Confirm, authorizer: c.Authorizer, authenticator: c.Authenticator, other: c.Other, scheme: c.Scheme, logger: c.Logger, now: c.Now,
		draining: make(chan struct{}), drained: make(chan struct{}),
	}
	if s.logger == nil {
		s.logger = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.scheme != nil {
		s.protobuf = protobuf.NewSerializer(s.scheme, s.scheme)
	}
	return s
}

// Drain ends all watches, each after a whole event, and returns when they have ended or ctx
// has (rule H214). Requests that begin afterwards are refused; those under way go on.
func (s *Server) Drain(ctx context.Context) {
	s.mu.Lock()
	if !s.isDraining() {
		close(s.draining)
		s.checkDrained()
	}
	s.mu.Unlock()
	select {
	case <-s.drained:
	case <-ctx.Done():
	}
}

// checkDrained is called with mu held.
func (s *Server) checkDrained() {
	if s.isDraining() && s.watches == 0 {
		close(s.drained)
	}
}

// watching counts a watch in, unless the server is draining, and returns what counts it out.
func (s *Server) watching() (done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isDraining() {
		return nil, false
	}
	s.watches++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watches--
		s.checkDrained()
	}, true
}

func (s *Server) isDraining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}

// ServeHTTP authorizes a request and serves it.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Audit-Id", auditID(r))
	w.Header().Set("Cache-Control", "no-cache, private")
	defer s.survive(w, r)

	rt := parseRoute(r)
	user := auth.UserFrom(r.Context())
	if user == nil {
		s.fail(w, r, look{media: mediaJSON}, apierrors.NewUnauthorized("Unauthorized"))
		return
	}
	attrs := rt.attributes(user, r.URL.Query())
	if allowed, why := s.authorizer.Authorize(attrs); !allowed {
		s.fail(w, r, look{media: mediaJSON}, auth.Forbidden(attrs, why))
		return
	}
	if rt.resource == "" {
		s.serveOther(w, r)
		return
	}
	if s.isDraining() {
		s.fail(w, r, look{media: mediaJSON}, shuttingDown())
		return
	}
	s.serveResource(w, r, rt, user)
}

// serveOther serves what is no resource. A path that is not in its shortest form names
// nothing (rule H8); a mux would send the client elsewhere.
func (s *Server) serveOther(w http.ResponseWriter, r *http.Request) {
	p := strings.TrimSuffix(r.URL.Path, "/")
	if p != "" && path.Clean(p) != p {
		http.NotFound(w, r)
		return
	}
	s.other.ServeHTTP(w, r)
}

func shuttingDown() error {
	return status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "apiserver is shutting down", &metav1.StatusDetails{RetryAfterSeconds: 1})
}

// auditID echoes the request's Audit-Id, or makes one (rule H209).
func auditID(r *http.Request) string {
	if id := r.Header.Get("Audit-Id"); id != "" && len(id) <= 64 {
		return id
	}
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// survive answers a request whose handling panicked; the process goes on (rule H189).
func (s *Server) survive(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	s.logger.Error("a request handler panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	http.Error(w, "This request caused apiserver to panic. Look in the logs for details.", http.StatusInternalServerError)
}
