package pawl

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/auth"
	"github.com/pawl-dev/pawl/internal/server"
)

// benched is a server whose handler is called without a network in between, so that a
// benchmark counts what the server does and not what TLS and a client do.
type benched struct {
	b       *testing.B
	parts   *parts
	handler http.Handler
	token   string
}

func startBenched(b *testing.B) *benched {
	b.Helper()
	s, err := Start(b.Context(), Config{Engine: EngineMemory, Listen: "127.0.0.1:0"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Stop(context.Background()) })
	x := &benched{b: b, parts: s.parts, handler: s.http.Handler, token: s.config.BearerToken}
	definition, err := os.ReadFile("testdata/widgets.json")
	if err != nil {
		b.Fatal(err)
	}
	x.do(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", string(definition), http.StatusCreated)
	return x
}

func (x *benched) do(method, path, body string, want int) []byte {
	x.b.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+x.token)
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	w := httptest.NewRecorder()
	x.handler.ServeHTTP(w, r)
	if w.Code != want {
		x.b.Fatalf("%s %s: %d, want %d: %s", method, path, w.Code, want, w.Body)
	}
	return w.Body.Bytes()
}

// widget is a custom resource of about one kilobyte; counter and version are what changes.
func widget(name, version string, counter int) string {
	return fmt.Sprintf(`{"apiVersion":"bench.example.com/v1","kind":"Widget","metadata":{"name":%q,"namespace":"default","resourceVersion":%q,"labels":{"app":"bench","tier":"backend"},"annotations":{"bench.example.com/owner":"team-a"}},`+
		`"spec":{"seq":1000000,"counter":%d,"replicas":3,"size":"medium","paused":false,"selector":{"matchLabels":{"app":"bench"}},`+
		`"containers":[{"name":"main","image":"registry.example.com/team/app:v1.2.3","ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],`+
		`"env":[{"name":"MODE","value":"production"},{"name":"LOG_LEVEL","value":"info"}],`+
		`"resources":{"limits":{"cpu":"500m","memory":"256Mi"},"requests":{"cpu":100,"memory":"128Mi"}}}],`+
		`"config":{"feature.a":"true","feature.b":"false","endpoint":"https://service.example.com/api"},"tags":["alpha","beta","gamma"],"description":%q}}`,
		name, version, counter, strings.Repeat("the quick brown fox jumps over the lazy dog ", 4))
}

const widgetsPath = "/apis/bench.example.com/v1/namespaces/default/widgets"

func versionOf(b *testing.B, object []byte) string {
	b.Helper()
	var o struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(object, &o); err != nil {
		b.Fatal(err)
	}
	return o.Metadata.ResourceVersion
}

func BenchmarkPut(b *testing.B) {
	x := startBenched(b)
	version := versionOf(b, x.do(http.MethodPost, widgetsPath, widget("a", "", 0), http.StatusCreated))
	n := 1
	for b.Loop() {
		version = versionOf(b, x.do(http.MethodPut, widgetsPath+"/a", widget("a", version, n), http.StatusOK))
		n++
	}
}

func BenchmarkMergePatch(b *testing.B) {
	x := startBenched(b)
	x.do(http.MethodPost, widgetsPath, widget("a", "", 0), http.StatusCreated)
	n := 1
	for b.Loop() {
		x.do(http.MethodPatch, widgetsPath+"/a", fmt.Sprintf(`{"spec":{"counter":%d}}`, n), http.StatusOK)
		n++
	}
}

func BenchmarkCreate(b *testing.B) {
	x := startBenched(b)
	n := 0
	for b.Loop() {
		x.do(http.MethodPost, widgetsPath, widget(fmt.Sprintf("w%d", n), "", n), http.StatusCreated)
		n++
	}
}

func BenchmarkGet(b *testing.B) {
	x := startBenched(b)
	x.do(http.MethodPost, widgetsPath, widget("a", "", 0), http.StatusCreated)
	for b.Loop() {
		x.do(http.MethodGet, widgetsPath+"/a", "", http.StatusOK)
	}
}

// BenchmarkConflict measures a refused write and its explanation, when so many others have
// written since the version it was based on.
func BenchmarkConflict(b *testing.B) {
	for _, behind := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(behind, "_behind"), func(b *testing.B) {
			x := startBenched(b)
			stale := versionOf(b, x.do(http.MethodPost, widgetsPath, widget("a", "", 0), http.StatusCreated))
			version := stale
			for n := range behind {
				version = versionOf(b, x.do(http.MethodPut, widgetsPath+"/a", widget("a", version, n+1), http.StatusOK))
			}
			for b.Loop() {
				x.do(http.MethodPut, widgetsPath+"/a", widget("a", stale, 7), http.StatusConflict)
			}
		})
	}
}

// deaf is an authorizer that lets nobody read one object: a conflict is not explained to them.
type deaf struct{}

func (deaf) Authorize(a auth.Attributes) (bool, string) { return a.Verb != "get", "" }

// BenchmarkConflictStorm measures what explanations add when many writes to one object are refused. Each
// is sent twice: to the server, and to another over the same store which nobody may read from, so that it
// does all the same but explain. Between so many writes the object changes, and 0 means never. The times
// are medians.
func BenchmarkConflictStorm(b *testing.B) {
	put := func(stale string) string { return widget("a", stale, -1) }
	elsewhere := func(stale string) string { // nothing that anybody else changes
		return fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"labels":{"q":"r"}}}`, stale)
	}
	for _, c := range []struct {
		method string
		body   func(stale string) string
		every  int
	}{{http.MethodPut, put, 0}, {http.MethodPut, put, 15}, {http.MethodPut, put, 1}, {http.MethodPatch, elsewhere, 15}} {
		b.Run(fmt.Sprintf("%s_changes_every_%d", c.method, c.every), func(b *testing.B) {
			x := startBenched(b)
			bare := *x
			bare.handler = x.bare(b)
			version := versionOf(b, x.do(http.MethodPost, widgetsPath, widget("a", "", 0), http.StatusCreated))
			stale, n := version, 0
			change := func() {
				n++
				stale, version = version, versionOf(b, x.do(http.MethodPut, widgetsPath+"/a", widget("a", version, n), http.StatusOK))
			}
			change()
			var explained, unexplained []time.Duration
			for i := 1; b.Loop(); i++ {
				if c.every > 0 && i%c.every == 0 {
					change()
				}
				body, begin := c.body(stale), time.Now()
				x.do(c.method, widgetsPath+"/a", body, http.StatusConflict)
				middle := time.Now()
				bare.do(c.method, widgetsPath+"/a", body, http.StatusConflict)
				explained, unexplained = append(explained, middle.Sub(begin)), append(unexplained, time.Since(middle))
			}
			with, without := median(explained), median(unexplained)
			b.ReportMetric(float64(with.Nanoseconds())/1000, "explained-us")
			b.ReportMetric(float64(without.Nanoseconds())/1000, "bare-us")
			b.ReportMetric(float64(with)/float64(without), "ratio")
		})
	}
}

// median of some times: what else the machine does is in few of them.
func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// bare serves the same store to those who may not read single objects.
func (x *benched) bare(b *testing.B) http.Handler {
	gate, err := x.parts.gate()
	if err != nil {
		b.Fatal(err)
	}
	return gate.WithAuthentication(gate.WithImpersonation(server.New(server.Config{
		Catalogue: x.parts.catalogue, Authorizer: deaf{}, Authenticator: gate.Authenticator, Other: http.NotFoundHandler(), Scheme: x.parts.scheme, Logger: slog.New(slog.DiscardHandler),
	})))
}
