package pawl_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/pawltest"
)

// An api speaks to a server with the bearer token of its choice, as any client would.
type api struct {
	t     testing.TB
	host  string
	admin string // the administrator's token
	http  *http.Client
}

// newAPI starts a server, and speaks to it over HTTP/2, or HTTP/1.1 if version is 1.
func newAPI(t testing.TB, c pawl.Config) *api {
	t.Helper()
	return apiOf(t, pawltest.Start(t, c).RESTConfig(), 2)
}

func apiOf(t testing.TB, c *rest.Config, version int) *api {
	t.Helper()
	tls, err := rest.TLSConfigFor(&rest.Config{Host: c.Host, TLSClientConfig: rest.TLSClientConfig{CAData: c.CAData, CAFile: c.CAFile}})
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{TLSClientConfig: tls, Protocols: new(http.Protocols), ExpectContinueTimeout: time.Minute}
	tr.Protocols.SetHTTP1(version == 1)
	tr.Protocols.SetHTTP2(version == 2)
	t.Cleanup(tr.CloseIdleConnections)
	return &api{t: t, host: c.Host, admin: c.BearerToken, http: &http.Client{
		Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// An answer is what came of a request.
type answer struct {
	code   int
	header http.Header
	text   string
}

// status is the Status that an answer holds; empty if it holds none.
func (a answer) status() (st metav1.Status) {
	_ = json.Unmarshal([]byte(a.text), &st) // what is no Status has no fields
	return st
}

// do sends a request as the administrator. Headers are pairs of name and value.
func (a *api) do(method, path string, body []byte, headers ...string) answer {
	a.t.Helper()
	return a.as(a.admin, method, path, body, headers...)
}

// as sends a request with a token, or without one if that is empty.
func (a *api) as(token, method, path string, body []byte, headers ...string) answer {
	a.t.Helper()
	ans, err := a.try(token, method, path, body, headers...)
	if err != nil {
		a.t.Fatal(err)
	}
	return ans
}

// try is as for goroutines, which must not end the test.
func (a *api) try(token, method, path string, body []byte, headers ...string) (answer, error) {
	resp, err := a.send(a.t.Context(), token, method, path, bytes.NewReader(body), headers...)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, fmt.Errorf("%s %.200s: after %d bytes: %w", method, path, len(data), err)
	}
	return answer{resp.StatusCode, resp.Header, string(data)}, nil
}

// send sends a request and leaves the body of the answer to the caller.
func (a *api) send(ctx context.Context, token, method, path string, body io.Reader, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.host+path, body)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	return a.http.Do(req)
}

// must is do for a request that is known to succeed.
func (a *api) must(method, path, body string, headers ...string) answer {
	a.t.Helper()
	ans := a.do(method, path, []byte(body), headers...)
	if ans.code >= 300 {
		a.t.Fatalf("%s %s: %d %s", method, path, ans.code, ans.text)
	}
	return ans
}

// crd is a definition of a resource of group pawl.test, with a status and a schema of two fields.
func crd(plural, kind, scope string) string {
	return strings.NewReplacer("PLURAL", plural, "KIND", kind, "SCOPE", scope, "SINGULAR", strings.ToLower(kind)).Replace(`{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "PLURAL.pawl.test"},
		"spec": {"group": "pawl.test", "scope": "SCOPE", "names": {"plural": "PLURAL", "singular": "SINGULAR", "kind": "KIND", "listKind": "KINDList"},
			"versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
				"type": "object", "properties": {"spec": {"type": "object", "properties": {"color": {"type": "string"}}}}}}}]}}`)
}

const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// state is everything that is stored, and the revision of the store.
func (a *api) state() string {
	a.t.Helper()
	var lists []string
	for gv, resources := range a.catalogue() {
		base := "/apis/" + gv[0] + "/" + gv[1] + "/"
		if gv[0] == "" {
			base = "/api/" + gv[1] + "/"
		}
		for _, r := range resources {
			if slices.Contains(r.Verbs, "list") {
				lists = append(lists, base+r.Name)
			}
		}
	}
	slices.Sort(lists)
	var all strings.Builder
	for _, path := range lists {
		all.WriteString(a.must("GET", path, "").text)
	}
	return all.String()
}
