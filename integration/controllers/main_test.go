package controllers

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pawl-dev/pawl/pawltest"
)

// TestMain sees that servers, managers and caches leave no goroutine behind. What the
// libraries say outside of a manager nobody hears: it is of servers that ended with their test.
// One goroutine is the libraries' own: a watch of metadata that is stopped between two events
// waits for ever for somebody to take the next.
func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/apimachinery/pkg/watch.(*filteredWatch).loop"))
}

// patience bounds every wait. It is long because a machine that tests may be busy; nothing
// that works comes near it.
const patience = time.Minute

// definitions is where the definition of mills is.
const definitions = "testdata/definitions"

// soon is the context of one test, which ends in time to say what was waited for.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// world starts a server that knows mills, and returns how to reach it and a client without a
// cache.
func world(t *testing.T) (*rest.Config, client.WithWatch) {
	t.Helper()
	config := pawltest.New(t)
	config.QPS = -1 // a test has no neighbours
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{definitions}, ErrorIfPathMissing: true}); err != nil {
		t.Fatal(err)
	}
	return config, direct(t, config)
}

// direct is a client without a cache.
func direct(t *testing.T, config *rest.Config) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// logger writes what a manager finds worth a warning to the test's log.
func logger(t *testing.T) logr.Logger {
	return logr.FromSlogHandler(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// must ends a test that cannot go on.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// following watches the one object of o's kind, namespace and name: first as it is, then
// each change.
func following(ctx context.Context, t *testing.T, c client.WithWatch, o client.Object) watch.Interface {
	t.Helper()
	kind, err := apiutil.GVKForObject(o, c.Scheme())
	must(t, err)
	kind.Kind += "List"
	list, err := c.Scheme().New(kind)
	must(t, err)
	w, err := c.Watch(ctx, list.(client.ObjectList), client.InNamespace(o.GetNamespace()), client.MatchingFields{"metadata.name": o.GetName()})
	must(t, err)
	return w
}

// await waits until an object is as wanted, and returns it.
func await[T client.Object](ctx context.Context, t *testing.T, c client.WithWatch, o T, what string, is func(T) bool) T {
	t.Helper()
	w := following(ctx, t, c, o)
	defer w.Stop()
	last := watch.Event{}
	for {
		select {
		case last = <-w.ResultChan():
			if got, ok := last.Object.(T); ok && last.Type != watch.Deleted && is(got) {
				return got
			}
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s; the last seen was %s %+v", what, last.Type, last.Object)
		}
	}
}

// gone waits until an object is no more, and returns the version at which it went, if it
// was still there to be seen.
func gone(ctx context.Context, t *testing.T, c client.WithWatch, o client.Object) string {
	t.Helper()
	w := following(ctx, t, c, o)
	defer w.Stop()
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object)); apierrors.IsNotFound(err) {
		return ""
	}
	for {
		select {
		case e := <-w.ResultChan():
			if e.Type == watch.Deleted {
				return e.Object.(client.Object).GetResourceVersion()
			}
		case <-ctx.Done():
			t.Fatalf("waited in vain for %T %s to go", o, o.GetName())
		}
	}
}

// next is the next value of a channel; a test that waits in vain ends, saying for what.
func next[T any](ctx context.Context, t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v, ok := <-c:
		if !ok {
			t.Fatalf("the channel closed while waiting for %s", what)
		}
		return v
	case <-ctx.Done():
		t.Fatalf("waited in vain for %s", what)
	}
	panic("unreachable")
}
