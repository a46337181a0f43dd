package health

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Held is where the objects of a resource are. Counting them must be quick.
type Held interface {
	Resource() schema.GroupResource
	Count(ctx context.Context) (int, error)
}

// ObjectMetrics are how many objects there are of each resource, under the reference's name. Held
// is asked each time they are collected, so that they are never old, and those of a resource that
// is gone are gone (rules S138, S139).
func ObjectMetrics(held func() []Held) prometheus.Collector { return objectMetrics(held) }

type objectMetrics func() []Held

var resourceObjects = prometheus.NewDesc("apiserver_resource_objects",
	"Objects that are stored of each resource; -1 if they cannot be counted.", []string{"group", "resource"}, nil)

// Describe implements [prometheus.Collector].
func (objectMetrics) Describe(out chan<- *prometheus.Desc) { out <- resourceObjects }

// Collect implements [prometheus.Collector].
func (m objectMetrics) Collect(out chan<- prometheus.Metric) {
	seen := map[schema.GroupResource]bool{}
	for _, h := range m() {
		name := h.Resource()
		if seen[name] { // two groups may show the objects of one
			continue
		}
		seen[name] = true
		n, err := h.Count(context.Background())
		if err != nil {
			n = -1
		}
		out <- prometheus.MustNewConstMetric(resourceObjects, prometheus.GaugeValue, float64(n), name.Group, name.Resource)
	}
}
