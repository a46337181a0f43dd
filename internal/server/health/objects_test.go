package health

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A shelf holds so many objects; less than nothing cannot be counted.
type shelf struct {
	of schema.GroupResource
	n  int
}

func (s shelf) Resource() schema.GroupResource { return s.of }

func (s shelf) Count(context.Context) (int, error) {
	if s.n < 0 {
		return 0, errors.New("closed")
	}
	return s.n, nil
}

func TestObjectsAreCountedWhenSomebodyAsks(t *testing.T) { // rules S138, S139
	events := schema.GroupResource{Resource: "events"}
	shelves := []Held{shelf{events, 3}, shelf{events, 3}, shelf{schema.GroupResource{Group: "example.com", Resource: "lamps"}, 0}}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(ObjectMetrics(func() []Held { return shelves }))
	read := func() string {
		var lines []string
		_, _, body := get(Metrics(r), "/metrics")
		for line := range strings.Lines(body) {
			if after, ok := strings.CutPrefix(strings.TrimSpace(line), "apiserver_resource_objects"); ok {
				lines = append(lines, after)
			}
		}
		return strings.Join(lines, ", ")
	}
	if got, want := read(), `{group="",resource="events"} 3, {group="example.com",resource="lamps"} 0`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	shelves = []Held{shelf{events, -1}}
	if got, want := read(), `{group="",resource="events"} -1`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
