package health

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawl-dev/pawl/kv/local"
)

// A Store is what figures of a store are taken from.
type Store interface {
	Sizes() local.Sizes
	Err() error
}

// A Logged store writes a log of its own, of which there are figures too.
type Logged interface{ Stats() local.Stats }

// StoreMetrics are the figures of a store: what it has done, what it holds, and whether it takes writes.
// They are read when they are collected, and cost nothing until then.
func StoreMetrics(s Store, now func() time.Time) prometheus.Collector {
	return &storeMetrics{s, now}
}

type storeMetrics struct {
	store Store
	now   func() time.Time
}

func describe(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("pawl_store_"+name, help, nil, nil)
}

var (
	commitsTotal  = describe("commits_total", "Commits and compactions handed to the log.")
	groupCommits  = describe("group_commits", "How many commits were made durable together.")
	syncSeconds   = describe("sync_seconds", "How long the disk took to make a group of commits durable (fsync).")
	syncsTotal    = describe("syncs_total", "Times the log was made durable; many commits share one.")
	writtenBytes  = describe("log_written_bytes_total", "Bytes written to the log.")
	snapshotTotal = describe("snapshots_written_total", "Snapshots written.")
	snapshotBytes = describe("snapshots_written_bytes_total", "Bytes written to snapshots.")

	revision       = describe("revision", "The newest revision, which is the newest resourceVersion.")
	oldestRevision = describe("oldest_revision", "The oldest revision that can be read everywhere.")
	keys           = describe("objects", "Objects that exist.")
	watches        = describe("watches", "Watches under way.")
	historyEvents  = describe("history_events", "Past changes that are held.")
	historyBytes   = describe("history_bytes", "Memory that past changes are taken to occupy; bounded by --history-size.")
	historyAge     = describe("history_age_seconds", "Age of the oldest change that is held.")

	logFiles        = describe("log_files", "Files of the log (segments).")
	logBytes        = describe("log_bytes", "Size of the log on disk.")
	snapshotFiles   = describe("snapshots", "Snapshots on disk.")
	snapshotsSize   = describe("snapshots_bytes", "Size of the snapshots on disk.")
	newestSnapshot  = describe("newest_snapshot_age_seconds", "Age of the newest commit that is in a snapshot.")
	oldestSnapshot  = describe("oldest_snapshot_age_seconds", "Age of the newest commit in the snapshot that history on disk begins with.")
	takesWrites     = describe("takes_writes", "1 while the store takes writes, 0 when it does not; /readyz/store says why.")
	allStoreMetrics = []*prometheus.Desc{
		commitsTotal, groupCommits, syncSeconds, syncsTotal, writtenBytes, snapshotTotal, snapshotBytes,
		revision, oldestRevision, keys, watches, historyEvents, historyBytes, historyAge,
		logFiles, logBytes, snapshotFiles, snapshotsSize, newestSnapshot, oldestSnapshot, takesWrites,
	}
)

// Describe implements [prometheus.Collector].
func (m *storeMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range allStoreMetrics {
		out <- d
	}
}

// Collect implements [prometheus.Collector].
func (m *storeMetrics) Collect(out chan<- prometheus.Metric) {
	sizes := m.store.Sizes()
	counter := func(d *prometheus.Desc, n uint64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n))
	}
	gauge := func(d *prometheus.Desc, n float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n)
	}
	age := func(d *prometheus.Desc, t time.Time) { // nothing is no age
		if !t.IsZero() {
			gauge(d, max(m.now().Sub(t), 0).Seconds())
		}
	}
	gauge(revision, float64(sizes.Newest))
	gauge(oldestRevision, float64(sizes.Oldest))
	gauge(keys, float64(sizes.Index.Keys))
	gauge(watches, float64(sizes.Index.Watches))
	gauge(historyEvents, float64(sizes.Index.Events))
	gauge(historyBytes, float64(sizes.Index.Bytes))
	age(historyAge, sizes.Index.Since)

	if logged, ok := m.store.(Logged); ok {
		stats := logged.Stats()
		counter(commitsTotal, stats.Commits)
		out <- histogram(groupCommits, stats.GroupCommits)
		out <- histogram(syncSeconds, stats.SyncSeconds)
		counter(syncsTotal, stats.Syncs)
		counter(writtenBytes, stats.Bytes)
		counter(snapshotTotal, stats.Snapshots)
		counter(snapshotBytes, stats.SnapshotBytes)

		gauge(logFiles, float64(sizes.Segments))
		gauge(logBytes, float64(sizes.LogBytes))
		gauge(snapshotFiles, float64(sizes.Snapshots))
		gauge(snapshotsSize, float64(sizes.SnapshotBytes))
		age(newestSnapshot, sizes.NewestSnapshot)
		age(oldestSnapshot, sizes.OldestSnapshot)
	}
	writes := 1.0
	if m.store.Err() != nil {
		writes = 0
	}
	gauge(takesWrites, writes)
}

// histogram makes a metric of a histogram; there it counts what is at most each bound.
func histogram(d *prometheus.Desc, h local.Histogram) prometheus.Metric {
	buckets := make(map[float64]uint64, len(h.Bounds))
	var n uint64
	for i, bound := range h.Bounds {
		n += h.Counts[i]
		buckets[bound] = n
	}
	return prometheus.MustNewConstHistogram(d, h.Count(), h.Sum, buckets)
}
