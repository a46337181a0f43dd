package server

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/pawl-dev/pawl/internal/auth"
)

// A sink is a client that takes everything and keeps nothing.
type sink struct {
	header http.Header
	code   int
	bytes  int64
}

func (s *sink) Header() http.Header { return s.header }
func (s *sink) WriteHeader(code int) {
	if s.code == 0 {
		s.code = code
	}
}
func (s *sink) Write(p []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	s.bytes += int64(len(p))
	return len(p), nil
}

// getter returns what answers a GET over and over.
func (w *world) getter(target string) (run func() *sink) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(auth.WithUser(w.t.Context(), author), "GET", target, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	header := http.Header{}
	return func() *sink {
		clear(header)
		s := &sink{header: header}
		w.server.ServeHTTP(s, r)
		if s.code != http.StatusOK {
			w.t.Fatalf("GET %s: %d", target, s.code)
		}
		return s
	}
}

// fill makes n objects of each of two resources in a namespace.
func (w *world) fill(namespace string, n int) {
	w.t.Helper()
	for i := range n {
		w.must("POST", "/api/v1/namespaces/"+namespace+"/configmaps", fmt.Sprintf(`{"metadata":{"name":"a%d","labels":{"app":"x"}},"data":{"k":"v"}}`, i))
		w.must("POST", "/apis/test.example/v1/namespaces/"+namespace+"/widgets",
			fmt.Sprintf(`{"apiVersion":"test.example/v1","kind":"Widget","metadata":{"name":"a%d","labels":{"app":"x"}},"spec":{"color":"red"}}`, i))
	}
}

// listings are the lists that send what is stored, with the namespace left out.
var listings = []struct{ name, target string }{
	{"a built-in", "/api/v1/namespaces/%s/configmaps"},
	{"a built-in by label", "/api/v1/namespaces/%s/configmaps?labelSelector=app%%3Dx"},
	{"a built-in by name", "/api/v1/namespaces/%s/configmaps?fieldSelector=metadata.name!%%3Dzz"},
	{"a custom resource", "/apis/test.example/v1/namespaces/%s/widgets"},
	{"a custom resource by label", "/apis/test.example/v1/namespaces/%s/widgets?labelSelector=app%%3Dx"},
}

// TestListsSendWhatIsStored holds a list to less than one allocation per object: what differs
// between a short list and a long one.
func TestListsSendWhatIsStored(t *testing.T) {
	const short, long = 100, 1100
	w := newWorld(t, allowAll{})
	w.fill("short", short)
	w.fill("long", long)
	for _, l := range listings {
		t.Run(l.name, func(t *testing.T) {
			runShort, runLong := w.getter(fmt.Sprintf(l.target, "short")), w.getter(fmt.Sprintf(l.target, "long"))
			runLong() // what is computed on first look
			runShort()
			a := testing.AllocsPerRun(20, func() { runShort() })
			b := testing.AllocsPerRun(20, func() { runLong() })
			per := (b - a) / (long - short)
			t.Logf("%.0f allocations for %d objects, %.0f for %d: %.3f for each", a, short, b, long, per)
			if per >= 1 {
				t.Errorf("%.3f allocations for each listed object, want less than 1", per)
			}
		})
	}
}

// getAllocationsMax is how many allocations a GET of one object may take in the server, whatever its size.
const getAllocationsMax = 50

func TestAGetSendsWhatIsStored(t *testing.T) {
	w := newWorld(t, allowAll{})
	w.fill("default", 1)
	for _, target := range []string{configMaps + "/a0", "/apis/test.example/v1/namespaces/default/widgets/a0"} {
		run := w.getter(target)
		run()
		if n := testing.AllocsPerRun(100, func() { run() }); n > getAllocationsMax {
			t.Errorf("GET %s: %.0f allocations, want at most %d", target, n, getAllocationsMax)
		} else {
			t.Logf("GET %s: %.0f allocations", target, n)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	w := newWorld(b, allowAll{})
	w.fill("default", 1)
	run := w.getter(configMaps + "/a0")
	b.ReportAllocs()
	for b.Loop() {
		run()
	}
}

func BenchmarkList(b *testing.B) {
	const objects = 1000
	w := newWorld(b, allowAll{})
	w.fill("default", objects)
	run := w.getter(configMaps)
	b.ReportAllocs()
	for b.Loop() {
		b.SetBytes(run().bytes)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/objects, "ns/object")
}
