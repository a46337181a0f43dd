package pawl

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// BenchmarkCounter has 16 clients count one counter up over the network, each by GET and PUT and again when the PUT
// is refused, on a store that waits for the disk. It tells the successes per second, how many PUTs are refused for each, and
// how much of its share the client got who succeeded least.
func BenchmarkCounter(b *testing.B) {
	const clients = 16
	s, err := Start(b.Context(), Config{DataDir: b.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Stop(b.Context())
	x := newCounting(b, s)
	definition, err := os.ReadFile("testdata/widgets.json")
	if err != nil {
		b.Fatal(err)
	}
	x.must(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
	x.must(http.MethodPost, widgetsPath, []byte(widget("a", "", 0)))
	var mu sync.Mutex
	left := b.N
	next := func() bool {
		mu.Lock()
		defer mu.Unlock()
		left--
		return left >= 0
	}
	b.ResetTimer()
	began := time.Now()
	won, refused := make([]int, clients), make([]int, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for next() {
				for !x.increment(b) {
					refused[i]++
				}
				won[i]++
			}
		})
	}
	wg.Wait()
	seconds := time.Since(began).Seconds()
	if got := x.counter(b); got != b.N {
		b.Fatalf("it counted to %d after %d successes", got, b.N)
	}
	lost := 0
	for _, n := range refused {
		lost += n
	}
	b.ReportMetric(float64(b.N)/seconds, "successes/s")
	b.ReportMetric(float64(lost)/float64(b.N), "refused/success")
	b.ReportMetric(float64(slices.Min(won))*clients/float64(b.N), "least-share")
	b.ReportMetric(0, "ns/op")
}

// counting is a client of a counter.
type counting struct {
	b          *testing.B
	client     *http.Client
	url, token string
}

func newCounting(b *testing.B, s *Server) *counting {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.RESTConfig().CAData)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	b.Cleanup(transport.CloseIdleConnections)
	return &counting{b, &http.Client{Transport: transport}, s.RESTConfig().Host, s.RESTConfig().BearerToken}
}

func (x *counting) do(method, path string, body []byte) (int, []byte, error) {
	r, err := http.NewRequest(method, x.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+x.token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := x.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	return answer.StatusCode, data, err
}

func (x *counting) must(method, path string, body []byte) []byte {
	x.b.Helper()
	code, data, err := x.do(method, path, body)
	if err != nil || code > 299 {
		x.b.Fatalf("%s %s: %d %s %v", method, path, code, data, err)
	}
	return data
}

func (x *counting) counter(b *testing.B) int {
	var o struct{ Spec struct{ Counter int } }
	if err := json.Unmarshal(x.must(http.MethodGet, widgetsPath+"/a", nil), &o); err != nil {
		b.Fatal(err)
	}
	return o.Spec.Counter
}

// increment reads the counter and writes it one higher, and reports whether that was accepted.
func (x *counting) increment(b *testing.B) bool {
	code, data, err := x.do(http.MethodGet, widgetsPath+"/a", nil)
	var o struct {
		Metadata struct{ ResourceVersion string }
		Spec     struct{ Counter int }
	}
	if err == nil && code == http.StatusOK {
		err = json.Unmarshal(data, &o)
	}
	if err != nil || code != http.StatusOK {
		b.Errorf("GET: %d %s %v", code, data, err)
		return true
	}
	code, data, err = x.do(http.MethodPut, widgetsPath+"/a", []byte(widget("a", o.Metadata.ResourceVersion, o.Spec.Counter+1)))
	if err != nil || code != http.StatusOK && code != http.StatusConflict {
		b.Error(fmt.Sprintf("PUT: %d %s", code, data), err)
	}
	return code != http.StatusConflict
}
