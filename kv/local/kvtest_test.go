package local_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/local"
)

// open returns a store that goes by a clock of its own.
func open(t *testing.T, opts local.Options) kv.Engine {
	t.Helper()
	clock := kvtest.NewClock()
	opts.Clock = clock
	e, err := local.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	rig := kvtest.Rig{Engine: e, Clock: clock}
	if !opts.Memory {
		rig.Reopen = func() (kv.Engine, error) { return local.Open(context.Background(), opts) }
	}
	return rig
}

func TestMemory(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.Engine { return open(t, local.Options{Memory: true}) })
}

func TestDisk(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.Engine { return open(t, local.Options{Dir: t.TempDir()}) })
}

// Segments and snapshots that are much too small find what lies at their edges, and limits that allow
// no history find what is kept whatever they say.
func TestDiskWithTinyFiles(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.Engine {
		return open(t, local.Options{
			Dir: t.TempDir(), SegmentSize: 500, SnapshotSize: 1000,
			HistoryDuration: time.Second, HistorySize: 1,
		})
	})
}
