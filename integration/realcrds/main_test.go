package realcrds

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain sees that servers and clients leave no goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every test. It is long because a machine that tests may be busy; nothing
// that works comes near it.
const patience = 2 * time.Minute

// soon is the context of one test.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
