package compat

import (
	"testing"

	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/utils/clock"

	"github.com/pawl-dev/pawl/kv/local"
)

// crowd is what the reference's benchmarks store: namespaces of pods on nodes. As many as it uses itself
// only if long runs were asked for.
func crowd() storagetesting.BenchmarkData {
	if heavy() {
		return storagetesting.PrepareBenchmarkData(50, 3_000, 5_000)
	}
	return storagetesting.PrepareBenchmarkData(10, 100, 100)
}

// onEach runs a benchmark on a store over each engine.
func onEach(b *testing.B, bench func(b *testing.B, s *subject)) {
	for name, open := range engines {
		b.Run(name, func(b *testing.B) { bench(b, newSubject(b, open(b, local.Options{}))) })
	}
}

func BenchmarkWriteThroughput(b *testing.B) {
	onEach(b, func(b *testing.B, s *subject) {
		storagetesting.RunBenchmarkWriteThroughput(b.Context(), b, s, crowd(), false, storagetesting.NewWatchLatencyTracker(clock.RealClock{}))
	})
}

func BenchmarkStoreList(b *testing.B) {
	onEach(b, func(b *testing.B, s *subject) {
		data := crowd()
		if err := storagetesting.PrecreateBenchmarkPods(b.Context(), s, data); err != nil {
			b.Fatal(err)
		}
		storagetesting.RunBenchmarkStoreList(b.Context(), b, s, data, false)
	})
}

func BenchmarkStoreStats(b *testing.B) {
	onEach(b, func(b *testing.B, s *subject) {
		if err := storagetesting.PrecreateBenchmarkPods(b.Context(), s, crowd()); err != nil {
			b.Fatal(err)
		}
		storagetesting.RunBenchmarkStoreStats(b.Context(), b, s)
	})
}
