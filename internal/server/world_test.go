package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/internal/auth"
	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/internal/resource/builtin"
	"github.com/pawl-dev/pawl/internal/resource/crd"
	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// A world is a server over a store in memory, with the built-in resources and the custom
// resource widgets.test.example.
type world struct {
	t         testing.TB
	engine    *local.Engine
	catalogue *resource.Registry
	server    *Server
}

// allowAll lets everybody do everything.
type allowAll struct{}

func (allowAll) Authorize(auth.Attributes) (bool, string) { return true, "" }

// author is who sends the requests of these tests.
var author = auth.NewUser("ann")

const widgetDefinition = `{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.test.example"},
	"spec": {
		"group": "test.example", "scope": "Namespaced", "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
		"versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {"type": "object",
			"properties": {"spec": {"type": "object", "properties": {"color": {"type": "string"}, "size": {"type": "integer"}}}}}}}]
	}}`

func newWorld(t testing.TB, authorizer auth.Authorizer) *world {
	t.Helper()
	engine, err := local.Open(t.Context(), local.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	w := &world{t: t, engine: engine, catalogue: &resource.Registry{}}
	for _, kind := range builtin.Kinds() {
		table := storage.NewTable(storage.Options{
			Engine: engine, Group: kind.Group, Resource: kind.Plural, Namespaced: kind.Strategy.Policy().Namespaced, Codec: kind.Codec(), Fields: kind.Fields,
		})
		w.catalogue.Change(nil, kind.Resource(func(k builtin.Kind, _ string, s registry.Strategy) *registry.Store {
			return registry.Must(registry.Config{Kind: k.GroupVersionKind(), Resource: k.GroupResource(), Table: table, Strategy: s})
		}))
	}
	w.catalogue.Change(nil, builtin.Reviews(time.Now)...)
	w.define()
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w.server = New(Config{
		Catalogue: w.catalogue, Authorizer: authorizer, Other: http.NotFoundHandler(), Scheme: scheme,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	return w
}

// define puts widgets into the catalogue.
func (w *world) define() {
	w.t.Helper()
	table := storage.NewTable(storage.Options{
		Engine: w.engine, Group: crd.DefinitionResource.Group, Resource: crd.DefinitionResource.Resource, Codec: crd.DefinitionCodec{},
	})
	config := registry.Config{Kind: crd.DefinitionKind, Resource: crd.DefinitionResource, Table: table, Strategy: crd.Strategy{Now: metav1.Now}}
	status := config
	status.Strategy = crd.StatusStrategy{}
	definitions := registry.Must(config)
	def, _, err := crd.DefinitionForm{}.Decode([]byte(widgetDefinition))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := definitions.Create(w.t.Context(), "", def, registry.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	m := crd.NewManager(crd.Options{
		Definitions: definitions, Status: registry.Must(status), Catalogue: w.catalogue, Tables: storage.Options{Engine: w.engine},
	})
	if err := m.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// do sends a request past authentication. Headers are pairs of name and value.
func (w *world) do(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, r.WithContext(auth.WithUser(w.t.Context(), author)))
	return rec
}

// must is do for a request that is known to succeed.
func (w *world) must(method, target, body string, headers ...string) *httptest.ResponseRecorder {
	w.t.Helper()
	rec := w.do(method, target, body, headers...)
	if rec.Code >= 300 {
		w.t.Fatalf("%s %s: %d %s", method, target, rec.Code, rec.Body)
	}
	return rec
}

// pipes is a network in memory, so that a server and its clients can live in a bubble of
// package synctest.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve serves the world over HTTP/1.1 and HTTP/2 in memory until the returned function is
// called.
func (w *world) serve() (network *pipes, stop func()) {
	network = newPipes()
	srv := &http.Server{
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			w.server.ServeHTTP(rw, r.WithContext(auth.WithUser(r.Context(), author)))
		}),
		Protocols: new(http.Protocols), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0),
	}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(network) // says that it was closed
	}()
	return network, func() {
		_ = srv.Close()
		<-done
	}
}

// client speaks one version of HTTP, 1 or 2, over a network in memory.
func (p *pipes) client(version int) *http.Client {
	t := &http.Transport{DialContext: p.dial, Protocols: new(http.Protocols)}
	t.Protocols.SetHTTP1(version == 1)
	t.Protocols.SetUnencryptedHTTP2(version == 2)
	return &http.Client{Transport: t}
}

// readAll reads a body to its end.
func readAll(t testing.TB, r *http.Response) string {
	t.Helper()
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatalf("after %q: %v", data, err)
	}
	return string(data)
}
