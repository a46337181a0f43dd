package clients

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pawl-dev/pawl/pawltest"
)

// Informers see what is there, then each change once: those of built-in and those of custom
// resources, each with the watch that lists first (spec/http.md H105-H115).
func TestInformers(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	config := pawltest.New(t)
	asked := &requests{}
	_, wheelsOf := defined(ctx, t, config)
	config.Wrap(asked.count)
	c := typed(t, config)
	writeMaps(ctx, t, c.CoreV1().ConfigMaps("default"), 3)
	if _, err := wheelsOf.Namespace("default").Create(ctx, wheel("first", map[string]any{}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	typedOnes := informers.NewSharedInformerFactory(c, 0)
	dynamicOnes := dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(unthrottled(config)), 0)
	configMaps := follow(t, typedOnes.Core().V1().ConfigMaps().Informer())
	custom := follow(t, dynamicOnes.ForResource(wheels).Informer())
	run, stop := context.WithCancel(ctx)
	typedOnes.StartWithContext(run)
	dynamicOnes.Start(run.Done())
	defer func() { stop(); typedOnes.Shutdown(); dynamicOnes.Shutdown() }()
	typedOnes.WaitForCacheSyncWithContext(ctx)
	dynamicOnes.WaitForCacheSync(ctx.Done())

	configMaps.expect(ctx, t, "added map-0", "added map-1", "added map-2")
	custom.expect(ctx, t, "added first")
	changeMaps(ctx, t, c.CoreV1().ConfigMaps("default"))
	configMaps.expect(ctx, t, "updated map-1", "deleted map-2", "added map-3")
	if err := wheelsOf.Namespace("default").Delete(ctx, "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	custom.expect(ctx, t, "deleted first")
	if lists := asked.lists(); lists != 0 {
		t.Errorf("the informers fell back to %d plain lists: the watch that lists first was not to their liking", lists)
	}
}

// Two informers that start at different times end with the same picture.
func TestLateInformerCatchesUp(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	c := typed(t, pawltest.New(t))
	configMaps := c.CoreV1().ConfigMaps("default")
	run, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	start := func() (*followed, cache.SharedIndexInformer) {
		informer := informers.NewSharedInformerFactory(c, 0).Core().V1().ConfigMaps().Informer()
		f := follow(t, informer)
		running.Go(func() { informer.RunWithContext(run) })
		return f, informer
	}
	writeMaps(ctx, t, configMaps, 3)
	early, a := start()
	early.expect(ctx, t, "added map-0", "added map-1", "added map-2")
	changeMaps(ctx, t, configMaps)
	late, b := start()
	late.expect(ctx, t, "added map-0", "added map-1", "added map-3")
	early.expect(ctx, t, "updated map-1", "deleted map-2", "added map-3")
	if x, y := versions(a), versions(b); !maps.Equal(x, y) {
		t.Errorf("one informer holds %v, the other %v", x, y)
	}
}

func writeMaps(ctx context.Context, t *testing.T, c corev1client.ConfigMapInterface, n int) {
	t.Helper()
	for i := range n {
		if _, err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: named(fmt.Sprint("map-", i))}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// changeMaps updates one map of the three, deletes one, and makes one more.
func changeMaps(ctx context.Context, t *testing.T, c corev1client.ConfigMapInterface) {
	t.Helper()
	one, err := c.Get(ctx, "map-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	one.Data = map[string]string{"is": one.Data["is"] + "blue"}
	if _, err := c.Update(ctx, one, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(ctx, "map-2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("map-3")}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A followed is what an informer tells its handlers, as "added NAME" and the like.
type followed struct{ heard chan string }

func follow(t *testing.T, informer cache.SharedIndexInformer) *followed {
	t.Helper()
	f := &followed{heard: make(chan string, 1000)}
	name := func(o any) string {
		key, err := cache.DeletionHandlingObjectToName(o)
		if err != nil {
			t.Error(err)
		}
		return key.Name
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { f.heard <- "added " + name(o) },
		UpdateFunc: func(_, o any) { f.heard <- "updated " + name(o) },
		DeleteFunc: func(o any) { f.heard <- "deleted " + name(o) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// expect waits for as many events as are wanted; their order among objects is the handler's own.
func (f *followed) expect(ctx context.Context, t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for range want {
		got = append(got, next(ctx, t, fmt.Sprintf("%q after %q", want, got), f.heard))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the informer told of %q, want %q", got, want)
	}
}

// versions is what an informer holds: the version of each object.
func versions(i cache.SharedIndexInformer) map[string]string {
	all := map[string]string{}
	for _, o := range i.GetStore().List() {
		all[o.(metav1.Object).GetName()] = o.(metav1.Object).GetResourceVersion()
	}
	return all
}

// requests counts what a client asks of the server.
type requests struct {
	mu  sync.Mutex // guards all
	all []*http.Request
}

func (r *requests) count(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(q *http.Request) (*http.Response, error) {
		r.mu.Lock()
		r.all = append(r.all, q)
		r.mu.Unlock()
		return next.RoundTrip(q)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// lists is how many collections were read without watching them.
func (r *requests) lists() int {
	return r.those(func(q *http.Request) bool {
		collection := q.URL.Path == "/api/v1/configmaps" || q.URL.Path == "/apis/ratchet.example/v1/wheels"
		return collection && q.Method == http.MethodGet && !q.URL.Query().Has("watch")
	})
}

// those counts the requests that a description fits.
func (r *requests) those(fits func(*http.Request) bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, q := range r.all {
		if fits(q) {
			n++
		}
	}
	return n
}
