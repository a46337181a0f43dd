// Package pawltest starts a Kubernetes API server inside a Go test, in one call:
//
//	func TestMyController(t *testing.T) {
//		client := kubernetes.NewForConfigOrDie(pawltest.New(t))
//		…
//	}
//
// There is nothing to download and nothing to clean up. The server keeps its objects in
// memory, listens on a free port of the loopback interface, and is gone when the test ends.
// Every call starts another server, so tests that run in parallel do not see each other.
//
// It is the server that pawl serve runs, with all it does: conflicts, finalizers, watches,
// dry run, validation and deletion behave as they do in production.
package pawltest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/pawl-dev/pawl"
)

// stopMax is how long a server may take to end after its test.
const stopMax = 10 * time.Second

// New starts a server for a test, and returns how to reach it as its administrator. It
// ends with the test. What the server has to say of faults goes to the test's log.
func New(t testing.TB) *rest.Config {
	t.Helper()
	return Start(t, pawl.Config{}).RESTConfig()
}

// Start is New for those who want more than the defaults, or the server itself. Unless c
// says otherwise the server keeps everything in memory and listens on a free port.
func Start(t testing.TB, c pawl.Config) *pawl.Server {
	t.Helper()
	if c.Engine == "" && c.DataDir == "" {
		c.Engine = pawl.EngineMemory
	}
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	srv, err := pawl.Start(t.Context(), c)
	if err != nil {
		t.Fatalf("pawltest: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopMax)
		defer cancel()
		if err := srv.Stop(ctx); err != nil {
			t.Errorf("pawltest: stopping the server: %v", err)
		}
	})
	return srv
}
