package server

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/auth"
)

// raw are the answers that are a 500 as the reference's are: bad input, and no fault of the
// server (rules K81, S41).
var raw = []string{"resourceVersion: Invalid value", "resourceVersion should not be set on objects to be created"}

// brief is how long requests are given: watches, and those that wait for a version to come, end
// with it.
const brief = time.Millisecond

// quick asks for something in the shortest time there is: watches end as soon as they have begun.
func (w *world) quick(t *testing.T, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), brief)
	defer cancel()
	rec := httptest.NewRecorder()
	w.server.ServeHTTP(rec, r.WithContext(auth.WithUser(ctx, author)))
	text := rec.Body.String()
	if strings.Contains(text, "This request caused apiserver to panic") {
		t.Fatalf("%s %s panicked", r.Method, r.URL)
	}
	if rec.Code == http.StatusGatewayTimeout { // the request was broken off, or asked for the future
		return rec
	}
	if rec.Code >= 500 && !containsAny(text, raw) {
		t.Fatalf("%s %s: %d %s", r.Method, r.URL, rec.Code, text)
	}
	return rec
}

func containsAny(s string, texts []string) bool {
	for _, text := range texts {
		if strings.Contains(s, text) {
			return true
		}
	}
	return false
}

// fuzzed is a world with something to find in it.
func fuzzed(f *testing.F) *world {
	f.Helper()
	w := newWorld(f, allowAll{})
	w.fill("default", 3)
	return w
}

func request(t testing.TB, method, target string) *http.Request {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		t.Skip("no server ever sees that target")
	}
	return &http.Request{
		Method: method, URL: u, RequestURI: target, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: http.NoBody, Host: "memory",
	}
}

func FuzzAccept(f *testing.F) {
	for _, seed := range []string{
		"", "*/*", "application/json", "application/yaml;q=0.5,application/json;q=0.1", "application/vnd.kubernetes.protobuf",
		"application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;q=NaN,application/yaml;q=-1,*/*;q=Inf", "text/html", ";;;", ",,,,",
		"application/json;pretty=1", "application/json;stream=watch", `application/json;a="\`, strings.Repeat("*/*,", 3000), "\xff\xfe/\x00",
	} {
		f.Add(seed)
	}
	w := fuzzed(f)
	f.Fuzz(func(t *testing.T, accept string) {
		for _, target := range []string{configMaps + "/a0", configMaps, "/apis/test.example/v1/widgets", configMaps + "?watch=1"} {
			r := request(t, "GET", target)
			r.Header["Accept"] = []string{accept}
			if rec := w.quick(t, r); rec.Code != http.StatusOK && rec.Code != http.StatusNotAcceptable && rec.Code != http.StatusGatewayTimeout {
				t.Errorf("GET %s with Accept %q: %d", target, accept, rec.Code)
			}
		}
	})
}

func FuzzRoutes(f *testing.F) {
	for _, seed := range []string{
		"/", "//", "/api", "/api/v1", "/api/v1/", "/api/v1//", "/api/v1/namespaces", "/api/v1/namespaces/", "/api/v1/namespaces//configmaps", "/api/v1/namespaces/a/status",
		"/api/v1/namespaces/a/finalize", "/api/v1/namespaces/a/configmaps/b/c/d", "/api/v1/watch/configmaps", "/api/v1/watch", "/api/v1/watch/namespaces/default/configmaps/a0",
		"/apis/test.example/v1/widgets", "/apis/test.example/v1/namespaces/default/widgets/a0/status", "/apis/test.example/v2/widgets", "/apis/test.example/v1/watch/watch/watch",
		configMaps + "/%2e%2e", configMaps + "/a%2fb", configMaps + "/a%00b", configMaps + "/%ff%fe", configMaps + "/..", "/api/v1/namespaces/%2e%2e/configmaps/a", "/api/v1/configmaps/a0",
		"/api/v1/../v1/configmaps", "/apis/apis/apis/apis", "/api/v1/namespaces/default/configmaps/a0?watch=1",
	} {
		for _, method := range []string{"GET", "POST", "DELETE", "PROPFIND"} {
			f.Add(method, seed)
		}
	}
	w := fuzzed(f)
	f.Fuzz(func(t *testing.T, method, target string) {
		r := request(t, method, target)
		rt := parseRoute(r)
		if none := (route{verb: rt.verb, path: rt.path}); rt.resource == "" && rt != none {
			t.Errorf("a route without a resource is about %+v", rt)
		}
		if method == "GET" && rt.resource != "" && path.Clean(r.URL.Path) == r.URL.Path {
			again := parseRoute(request(t, "GET", (&url.URL{Path: r.URL.Path + "/", RawQuery: r.URL.RawQuery}).String()))
			again.path = rt.path
			if again != rt {
				t.Errorf("a slash at the end makes %+v of %+v", again, rt)
			}
		}
		w.quick(t, r)
	})
}

func FuzzReadingOptions(f *testing.F) {
	for _, seed := range []string{
		"", "limit=1", "limit=-1", "limit=x", "limit=9223372036854775808", "continue=x", "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiYVx1MDAwMCJ9",
		"resourceVersion=0", "resourceVersion=1", "resourceVersion=-1", "resourceVersion=x", "resourceVersion=2&resourceVersionMatch=Exact", "resourceVersionMatch=Exact",
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&watch=1", "watch=true&timeoutSeconds=-5", "watch=%zz", "timeout=1s", "timeout=x", "a;b",
		"watch=1&resourceVersion=x", "limit=2&limit=x", "pretty=true", "allowWatchBookmarks=&watch=",
	} {
		f.Add(seed)
	}
	w := fuzzed(f)
	f.Fuzz(func(t *testing.T, query string) {
		for _, target := range []string{configMaps, "/apis/test.example/v1/widgets"} {
			w.quick(t, request(t, "GET", target+"?"+query))
			w.quick(t, request(t, "GET", target+"?watch=1&"+query))
		}
	})
}

func FuzzSelectors(f *testing.F) {
	for _, seed := range []string{
		"", "app=x", "app in (x,y)", "!app", "app", "app notin (x)", "a>1", "app=x,", "app==x,app!=y", "in (", "((((", "app in ()", "x/y/z=1", "\xff=\xff", "app=\x00",
		"metadata.name=a0", "metadata.name=a0,metadata.namespace!=b", "metadata.name", `metadata.name=a\,b`, `metadata.name=\`, "spec.color=red", "=", ",", "!", "type=x", "status.phase=Active",
	} {
		f.Add(seed)
	}
	w := fuzzed(f)
	f.Fuzz(func(t *testing.T, selector string) {
		text := url.QueryEscape(selector)
		for _, target := range []string{configMaps, "/apis/test.example/v1/namespaces/default/widgets", "/api/v1/namespaces", "/api/v1/secrets"} {
			for _, query := range []string{"labelSelector=" + text, "fieldSelector=" + text, "watch=1&labelSelector=" + text, "watch=1&fieldSelector=" + text} {
				if rec := w.quick(t, request(t, "GET", target+"?"+query)); rec.Code != http.StatusOK && rec.Code != http.StatusBadRequest && rec.Code != http.StatusGatewayTimeout {
					t.Errorf("GET %s?%s: %d %s", target, query, rec.Code, rec.Body)
				}
			}
		}
	})
}

func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "null", "[]", "0", `"x"`, `{"metadata":null}`, `{"metadata":{"name":"a0"}}`, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"\ud800"}}`,
		`{"apiVersion":"test.example/v1","kind":"Widget","metadata":{"name":"a0","resourceVersion":"1"},"spec":{"size":1e400}}`, `[{"op":"add","path":"/x","value":1}]`, `[{"op":"remove","path":""}]`,
		`{"$patch":"replace"}`, `{"metadata":{"$retainKeys":[1]}}`, "a: &a [*a]", "a: &a 1\nb: *a", "? {a: b}\n: c", "<<: *x", "{\"metadata\":{\"labels\":{\"\xff\":\"\xfe\"}}}",
		"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x00", "k8s\x00", "%YAML 9.9\n---\n", "!!binary x", "!!float .nan", `{"metadata":{"creationTimestamp":"x"}}`, `{"metadata":{"managedFields":[{}]}}`,
	} {
		for _, media := range []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"} {
			f.Add(media, seed)
		}
	}
	w := fuzzed(f)
	f.Fuzz(func(t *testing.T, media, body string) {
		for _, target := range []string{configMaps, "/apis/test.example/v1/namespaces/default/widgets"} {
			for _, call := range [][2]string{{"POST", target}, {"PUT", target + "/a0"}, {"PATCH", target + "/a0"}, {"DELETE", target + "/a1"}} {
				r := request(t, call[0], call[1]+"?dryRun=All")
				if call[0] == "DELETE" {
					r.URL.RawQuery = ""
					r.URL.Path = target + "/none"
				}
				r.Body = io.NopCloser(strings.NewReader(body))
				r.Header.Set("Content-Type", media)
				w.quick(t, r)
			}
		}
	})
}
