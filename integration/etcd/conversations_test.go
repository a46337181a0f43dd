package etcd_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/integration/etcd"
	"github.com/pawl-dev/pawl/internal/conversation"
	kvetcd "github.com/pawl-dev/pawl/kv/etcd"
)

// What clients and a reference server said to each other goes the same way where objects are in etcd, and also if a client
// speaks to another server with each request.
func TestConversationsWithServersOnAnEtcd(t *testing.T) {
	t.Parallel()
	pending, err := os.ReadFile(filepath.Join(repository, "internal/conversation/testdata/pending.txt"))
	if err != nil {
		t.Fatal(err)
	}
	m := etcd.Start(t, etcd.Options{})
	opts := kvetcd.Options{Endpoints: []string{m.URL}}
	servers := []*pawl.Server{serve(t, opts), serve(t, opts)}
	if err := servers[0].Compact(t.Context()); err != nil { // some ask for version 1, and expect it to be gone
		t.Fatal(err)
	}
	config := servers[0].RESTConfig()
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	client := &conversation.Client{BaseURL: config.Host, HTTP: &http.Client{Transport: &turns{next: transport, hosts: hostsOf(t, servers)}}, Token: config.BearerToken}
	conversation.RunAll(t, client, conversation.ParsePending(string(pending)))
}

// turns sends one request after another to another host.
type turns struct {
	next  http.RoundTripper
	hosts []string
	sent  atomic.Int64
}

func (r *turns) RoundTrip(q *http.Request) (*http.Response, error) {
	q = q.Clone(q.Context())
	q.URL.Host = r.hosts[int(r.sent.Add(1))%len(r.hosts)]
	return r.next.RoundTrip(q)
}

func hostsOf(t testing.TB, servers []*pawl.Server) (hosts []string) {
	for _, s := range servers {
		hosts = append(hosts, must[*url.URL](t)(url.Parse(s.URL())).Host)
	}
	return hosts
}
