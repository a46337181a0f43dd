package clients

import (
	"context"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/pawltest"
)

// stopMax is how long a server may take to end.
const stopMax = 10 * time.Second

// An informer outlives the server: it misses nothing that was written before and after, hears
// nothing twice, and goes on from the version it had, without reading all anew.
func TestInformerOverRestart(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	c := pawl.Config{DataDir: t.TempDir()}
	srv := pawltest.Start(t, c)
	c.Listen = srv.URL()[len("https://"):] // the next one is where this one was
	asked := &requests{}
	config := srv.RESTConfig()
	config.Wrap(asked.count)

	factory := informers.NewSharedInformerFactoryWithOptions(typed(t, config), 0, informers.WithNamespace("default"))
	heard := follow(t, factory.Core().V1().ConfigMaps().Informer())
	run, stop := context.WithCancel(ctx)
	factory.StartWithContext(run)
	defer func() { stop(); factory.Shutdown() }()

	writeMaps(ctx, t, mapsOf(t, srv), 3)
	heard.expect(ctx, t, "added map-0", "added map-1", "added map-2")
	for range 2 {
		srv = restarted(t, srv, c)
		changeMaps(ctx, t, mapsOf(t, srv))
		heard.expect(ctx, t, "updated map-1", "deleted map-2", "added map-3")
		unchange(ctx, t, mapsOf(t, srv))
		heard.expect(ctx, t, "deleted map-3", "added map-2")
	}
	anew := asked.those(func(q *http.Request) bool {
		query := q.URL.Query()
		return q.URL.Path == "/api/v1/namespaces/default/configmaps" && (!query.Has("watch") || query.Get("sendInitialEvents") == "true")
	})
	if anew != 1 {
		t.Errorf("the informer read everything %d times, want once, at its start", anew)
	}
}

func mapsOf(t *testing.T, srv *pawl.Server) corev1client.ConfigMapInterface {
	t.Helper()
	return typed(t, srv.RESTConfig()).CoreV1().ConfigMaps("default")
}

// unchange brings back what changeMaps deleted, and deletes what it made.
func unchange(ctx context.Context, t *testing.T, c corev1client.ConfigMapInterface) {
	t.Helper()
	if err := c.Delete(ctx, "map-3", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("map-2")}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// restarted stops a server and starts another on the same folder and port.
func restarted(t *testing.T, srv *pawl.Server, c pawl.Config) *pawl.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stopMax)
	defer cancel()
	if err := srv.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	return pawltest.Start(t, c)
}
