package controllers

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// A client that is told nothing speaks protobuf of built-in kinds, in both directions, and
// JSON of custom ones (spec/http.md H51, H52). So do the watches of a manager's cache.
func TestClientSpeaksProtobuf(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	config, _ := world(t)
	heard := &forms{seen: map[string]map[string]int{}}
	config.Wrap(heard.listen)
	c := direct(t, config)
	must(t, c.Create(ctx, &corev1.Namespace{ObjectMeta: namedCluster(ledgers)}))
	managed(t, config, options(t))
	built(ctx, t, c, "north")
	d := &appsv1.Deployment{}
	must(t, c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "north-own"}, d))
	if _, err := controllerutil.CreateOrUpdate(ctx, c, d, func() error { d.Spec.Paused = true; return nil }); err != nil {
		t.Fatal(err)
	}
	must(t, c.List(ctx, &corev1.ConfigMapList{}))
	must(t, c.Delete(ctx, d))
	for _, resource := range []string{"configmaps", "deployments"} {
		heard.only(t, resource, runtime.ContentTypeProtobuf)
	}
	heard.only(t, "mills", runtime.ContentTypeJSON)
}

// spoken are the resources that are listened for.
var spoken = []string{"configmaps", "deployments", "mills"}

// A forms counts the forms in which resources travelled.
type forms struct {
	mu   sync.Mutex
	seen map[string]map[string]int // by resource and media type; guarded by mu
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (f *forms) listen(to http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		response, err := to.RoundTrip(r)
		if err == nil {
			f.note(r.URL.Path, r.Header.Get("Content-Type"))
			f.note(r.URL.Path, response.Header.Get("Content-Type"))
		}
		return response, err
	})
}

func (f *forms) note(path, form string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	form, _, _ = strings.Cut(form, ";")
	for _, resource := range spoken {
		if strings.Contains(path, "/"+resource) && form != "" {
			if f.seen[resource] == nil {
				f.seen[resource] = map[string]int{}
			}
			f.seen[resource][form]++
		}
	}
}

func (f *forms) only(t *testing.T, resource, form string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.seen[resource]) != 1 || f.seen[resource][form] == 0 {
		t.Errorf("%s travelled as %v, want only %s", resource, f.seen[resource], form)
	}
}
