package health

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/local"
)

func metricsOf(t *testing.T, s Store, now func() time.Time) string {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(StoreMetrics(s, now))
	code, _, body := get(Metrics(r), "/metrics")
	if code != 200 {
		t.Fatal(code, body)
	}
	return body
}

func TestMetricsOfAStore(t *testing.T) {
	clock := kvtest.NewClock()
	e, err := local.Open(t.Context(), local.Options{Dir: t.TempDir(), Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"one", "two", "three"} {
		if _, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put("default/core/configmaps/ns/a", []byte(value))}}); err != nil {
			t.Fatal(err)
		}
		clock.Advance(time.Second)
	}
	if err := e.Shrink(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	body := metricsOf(t, e, clock.Now)
	for _, want := range []string{
		"pawl_store_commits_total 4", // the compaction is one
		`pawl_store_group_commits_bucket{le="1"} 4`, "pawl_store_group_commits_sum 4",
		`pawl_store_sync_seconds_bucket{le="+Inf"} 4`, "pawl_store_syncs_total 4",
		"pawl_store_revision 4", "pawl_store_oldest_revision 3", "pawl_store_objects 1", "pawl_store_watches 0",
		"pawl_store_history_events 1", "pawl_store_history_age_seconds 1",
		"pawl_store_log_files 2", "pawl_store_snapshots 1", "pawl_store_newest_snapshot_age_seconds 2", "pawl_store_snapshots_written_total 1",
		"pawl_store_takes_writes 1",
	} {
		if !strings.Contains(body, "\n"+want+"\n") {
			t.Errorf("%s is missing in\n%s", want, body)
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if body := metricsOf(t, e, clock.Now); !strings.Contains(body, "\npawl_store_takes_writes 0\n") {
		t.Error("a store that is closed takes writes")
	}
}

// A store with figures that are all different, so that none stands for another.
type distinct struct{}

func (distinct) Err() error { return errors.New("full") }
func (distinct) Stats() local.Stats {
	return local.Stats{
		Commits: 1, Groups: 2, Syncs: 3, Bytes: 4, Snapshots: 5, SnapshotBytes: 6,
		GroupCommits: local.Histogram{Bounds: []float64{1, 2}, Counts: []uint64{7, 8, 9}, Sum: 10},
		SyncSeconds:  local.Histogram{Bounds: []float64{0.5}, Counts: []uint64{11, 12}, Sum: 13},
	}
}
func (distinct) Sizes() local.Sizes {
	s := local.Sizes{Oldest: 14, Newest: 15, Segments: 16, LogBytes: 17, Snapshots: 18, SnapshotBytes: 19,
		NewestSnapshot: time.Unix(80, 0), OldestSnapshot: time.Unix(79, 0)}
	s.Index.Keys, s.Index.Events, s.Index.Bytes, s.Index.Watches, s.Index.Since = 22, 23, 24, 25, time.Unix(74, 0)
	return s
}

func TestEachFigureHasItsName(t *testing.T) {
	body := metricsOf(t, distinct{}, func() time.Time { return time.Unix(100, 0) })
	got := map[string]bool{}
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "pawl_store_") {
			got[strings.TrimPrefix(strings.TrimSpace(line), "pawl_store_")] = true
		}
	}
	for _, want := range []string{
		"commits_total 1", "syncs_total 3", "log_written_bytes_total 4", "snapshots_written_total 5", "snapshots_written_bytes_total 6",
		`group_commits_bucket{le="1"} 7`, `group_commits_bucket{le="2"} 15`, `group_commits_bucket{le="+Inf"} 24`, "group_commits_sum 10", "group_commits_count 24",
		`sync_seconds_bucket{le="0.5"} 11`, `sync_seconds_bucket{le="+Inf"} 23`, "sync_seconds_sum 13", "sync_seconds_count 23",
		"oldest_revision 14", "revision 15", "log_files 16", "log_bytes 17", "snapshots 18", "snapshots_bytes 19",
		"newest_snapshot_age_seconds 20", "oldest_snapshot_age_seconds 21",
		"objects 22", "history_events 23", "history_bytes 24", "watches 25", "history_age_seconds 26", "takes_writes 0",
	} {
		if !got[want] {
			t.Errorf("%s is missing", want)
		}
		delete(got, want)
	}
	for line := range got {
		t.Errorf("%s is not expected", line)
	}
}
