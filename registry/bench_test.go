package registry

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/kv/local"
)

// A gauge is a Go type whose objects come to 1 KiB of JSON.
type gauge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              gaugeSpec   `json:"spec"`
	Status            gaugeStatus `json:"status"`
}

type gaugeSpec struct {
	Unit    string            `json:"unit"`
	Limits  map[string]int64  `json:"limits"`
	Places  []gaugePlace      `json:"places"`
	Comment string            `json:"comment"`
	Tags    map[string]string `json:"tags"`
}

type gaugePlace struct {
	Name string `json:"name"`
	Port int    `json:"port"`
}

type gaugeStatus struct {
	Count int64 `json:"count"`
}

func newGauge(name string) *gauge {
	g := &gauge{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"app": "gauges", "tier": "back"}, Annotations: map[string]string{"owner": "ops"},
	}}
	g.Spec = gaugeSpec{Unit: "bar", Limits: map[string]int64{"low": 1, "high": 900}, Tags: map[string]string{}}
	for i := range 4 {
		g.Spec.Places = append(g.Spec.Places, gaugePlace{fmt.Sprint("place-", i), 8000 + i})
		g.Spec.Tags[fmt.Sprint("tag-", i)] = "a value of some length"
	}
	g.Spec.Comment = strings.Repeat("x", 400)
	return g
}

func gauges(t testing.TB) *Collection[gauge] {
	engine, err := local.Open(context.Background(), local.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	c := Of[gauge](engine, nil)
	if _, err := c.Create(context.Background(), newGauge("one")); err != nil {
		t.Fatal(err)
	}
	return c
}

// count is a desire that changes the object, or leaves it.
func count(by int64) Desire {
	return func(_ context.Context, current runtime.Object) (runtime.Object, error) {
		g, err := unboxed[gauge](current)
		if err == nil {
			g.Status.Count += by
		}
		return current, err
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, c := range []struct {
		name string
		by   int64
	}{{"changed", 1}, {"unchanged", 0}} {
		b.Run(c.name, func(b *testing.B) {
			s := gauges(b).Store()
			defer measure(b)()
			for b.Loop() {
				if _, err := s.Update(b.Context(), "", "one", count(c.by), UpdateOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("typed", func(b *testing.B) {
		c := gauges(b)
		defer measure(b)()
		for b.Loop() {
			if _, err := c.Update(b.Context(), "one", func(g *gauge) error { g.Status.Count++; return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// measure makes a benchmark report allocations and processor time, which other work on the machine
// disturbs less than the time that passes.
func measure(b *testing.B) (done func()) {
	b.ReportAllocs()
	began := cpu()
	return func() { b.ReportMetric(float64((cpu()-began).Nanoseconds())/1000/float64(b.N), "cpu-us/op") }
}
