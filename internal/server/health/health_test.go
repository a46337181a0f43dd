package health

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	utilversion "k8s.io/apimachinery/pkg/util/version"
)

func get(h http.Handler, path string) (code int, kind, body string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Header().Get("Content-Type"), w.Body.String()
}

func TestEndpoint(t *testing.T) {
	well := func(name string) Check { return Check{name, func(context.Context) error { return nil }} }
	ill := Check{"disk", func(context.Context) error { return errors.New("the secret is out") }}
	for _, c := range []struct {
		name, path string
		checks     []Check
		code       int
		want       string
	}{
		{"all is well (H32)", "/readyz", []Check{Ping, well("log")}, 200, "ok"},
		{"all is well, said at length (H32)", "/readyz?verbose", []Check{Ping, well("log")}, 200, "[+]ping ok\n[+]log ok\nreadyz check passed\n"},
		{"a slash at the end does not matter", "/readyz/", []Check{Ping}, 200, "ok"},
		{"without checks there is ping", "/readyz?verbose=1", nil, 200, "[+]ping ok\nreadyz check passed\n"},
		{"what fails is named, and why is not (H33)", "/readyz", []Check{Ping, ill, well("log")}, 500, "[+]ping ok\n[-]disk failed: reason withheld\n[+]log ok\nreadyz check failed\n"},
		{"what fails can be left out (H34)", "/readyz?exclude=disk", []Check{Ping, ill}, 200, "ok"},
		{"and is still named (H34)", "/readyz?verbose&exclude=disk&exclude=ping", []Check{Ping, ill}, 200, "[+]ping excluded: ok\n[+]disk excluded: ok\nreadyz check passed\n"},
		{"leaving out what is not there is pointed out (H34)", "/readyz?verbose&exclude=z&exclude=disk&exclude=a&exclude=z", []Check{Ping, ill}, 200,
			"[+]ping ok\n[+]disk excluded: ok\nwarn: some health checks cannot be excluded: no matches for \"a\",\"z\"\nreadyz check passed\n"},
		{"one check (H35)", "/readyz/ping", []Check{Ping, ill}, 200, "ok"},
		{"one check that fails says why (H35)", "/readyz/disk", []Check{Ping, ill}, 500, "internal server error: the secret is out\n"},
		{"a check that is not there", "/readyz/moon", []Check{Ping}, 404, "404 page not found\n"},
		{"a check may have a path for a name", "/readyz/poststarthook/log", []Check{well("poststarthook/log")}, 200, "ok"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, kind, body := get(Endpoint("readyz", nil, c.checks...), c.path)
			if code != c.code || body != c.want || kind != "text/plain; charset=utf-8" {
				t.Errorf("have %d %s %q\nwant %d %q", code, kind, body, c.code, c.want)
			}
		})
	}
	var log bytes.Buffer
	get(Endpoint("livez", slog.New(slog.NewTextHandler(&log, nil)), ill), "/livez")
	if !strings.Contains(log.String(), "the secret is out") {
		t.Errorf("the log keeps the reason to itself: %s", log.String())
	}
}

func TestReadinessEndsWhenTheServerBeginsToStop(t *testing.T) { // rule H37
	stopping := make(chan struct{})
	ready, live := Endpoint("readyz", nil, Ping, Stopping(stopping)), Endpoint("livez", nil, Ping)
	if code, _, _ := get(ready, "/readyz"); code != 200 {
		t.Errorf("before: %d", code)
	}
	close(stopping)
	if code, _, body := get(ready, "/readyz"); code != 500 || !strings.Contains(body, "[-]shutdown failed") {
		t.Errorf("after: %d %s", code, body)
	}
	if code, _, _ := get(live, "/livez"); code != 200 {
		t.Errorf("it is not live: %d", code)
	}
}

func TestVersionIsOneThatClientsCanCompare(t *testing.T) {
	for _, c := range []struct{ name, pawl, want string }{
		{"a release", "0.4.0", "v1.37.2+pawl-0.4.0"},
		{"a release with the letter", "v0.4.0-rc.1", "v1.37.2+pawl-0.4.0-rc.1"},
		{"what Go calls a build of no release", "(devel)", "v1.37.2+pawl-devel"},
		{"a version with a plus of its own", "v0.0.0-20300102+dirty", "v1.37.2+pawl-0.0.0-20300102-dirty"},
		{"empty parts", "1..2.", "v1.37.2+pawl-1.2"},
		{"none", "", "v1.37.2+pawl-devel"},
	} {
		t.Run(c.name, func(t *testing.T) {
			have := VersionOf(c.pawl, nil).GitVersion
			if have != c.want {
				t.Errorf("have %s, want %s", have, c.want)
			}
			v, err := utilversion.ParseSemantic(have)
			if err != nil {
				t.Fatal(err)
			}
			if v.LessThan(utilversion.MustParseSemantic("v1.37.2")) || v.PreRelease() != "" || v.Minor() != 37 {
				t.Errorf("clients take %s for an older version", have)
			}
		})
	}
}

func TestVersionDocument(t *testing.T) {
	code, kind, body := get(Version(VersionOf("0.4.0", &debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2030-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
	}})), "/version")
	if code != 200 || kind != "application/json" || !strings.HasPrefix(body, "{\n  \"") {
		t.Errorf("%d %s %s", code, kind, body)
	}
	var have map[string]string
	if err := json.Unmarshal([]byte(body), &have); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"major": "1", "minor": "37", "gitCommit": "abc", "gitTreeState": "dirty", "buildDate": "2030-01-02T03:04:05Z"} {
		if have[name] != want {
			t.Errorf("%s: %q, want %q", name, have[name], want)
		}
	}
	for _, name := range []string{"gitVersion", "goVersion", "compiler", "platform"} {
		if have[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestMetricsAreThoseOfOneServer(t *testing.T) {
	one, other := prometheus.NewRegistry(), prometheus.NewRegistry()
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "pawl_things_total", Help: "Things."})
	one.MustRegister(c)
	c.Add(3)
	if code, kind, body := get(Metrics(one), "/metrics"); code != 200 || !strings.Contains(body, "pawl_things_total 3") || !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
		t.Errorf("%d %s %s", code, kind, body)
	}
	if _, _, body := get(Metrics(other), "/metrics"); strings.Contains(body, "pawl_things_total") {
		t.Error("another server shows them")
	}
}

func TestIndexIsSorted(t *testing.T) {
	paths := []string{"/version", "/api", "/api", "/apis"}
	_, kind, body := get(Index(func() []string { return paths }), "/")
	if want := "{\n  \"paths\": [\n    \"/api\",\n    \"/apis\",\n    \"/version\"\n  ]\n}"; body != want || kind != "application/json" {
		t.Errorf("%s %s", kind, body)
	}
	if _, _, body := get(Index(func() []string { return nil }), "/"); body != "{\n  \"paths\": []\n}" {
		t.Errorf("of nothing: %s", body)
	}
}
