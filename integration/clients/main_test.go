package clients

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestMain sees that servers and clients leave no goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait. It is long because a machine that tests may be busy; nothing
// that works comes near it.
const patience = time.Minute

// soon is the context of one test, which ends in time to say what was waited for.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// typed is a client of the built-in types. It is not throttled: a test has no neighbours.
func typed(t *testing.T, c *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(unthrottled(c))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func unthrottled(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.QPS = -1
	return c
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
