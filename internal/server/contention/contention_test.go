package contention

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawl-dev/pawl/storage"
)

func at(name string) storage.Place {
	return storage.Place{Resource: "widgets.example.com", Namespace: "ns", Name: name}
}

func TestWhatIsObservedIsReported(t *testing.T) {
	var c Counts
	for range 3 {
		c.Observe(storage.Conflicted, at("a"), "left")
	}
	c.Observe(storage.Retried, at("a"), "right")
	c.Observe(storage.Unchanged, storage.Place{Resource: "nodes", Name: "n"}, "")
	got, _ := json.Marshal(c.Report(10))
	want := `{"resources":[` +
		`{"resource":"widgets.example.com","conflicts":3,"retries":1,"unchanged":0,"managers":[` +
		`{"manager":"left","conflicts":3,"retries":0,"unchanged":0},{"manager":"right","conflicts":0,"retries":1,"unchanged":0}]},` +
		`{"resource":"nodes","conflicts":0,"retries":0,"unchanged":1,"managers":[{"manager":"","conflicts":0,"retries":0,"unchanged":1}]}],` +
		`"objects":[` +
		`{"resource":"widgets.example.com","namespace":"ns","name":"a","conflicts":3,"retries":1,"unchanged":0,"managers":[` +
		`{"manager":"left","conflicts":3,"retries":0,"unchanged":0},{"manager":"right","conflicts":0,"retries":1,"unchanged":0}]},` +
		`{"resource":"nodes","name":"n","conflicts":0,"retries":0,"unchanged":1,"managers":[{"manager":"","conflicts":0,"retries":0,"unchanged":1}]}]}`
	if string(got) != want {
		t.Errorf("reported\n%s, want\n%s", got, want)
	}
	if r := c.Report(1); len(r.Objects) != 1 || r.Objects[0].Name != "a" {
		t.Errorf("of one object, %+v", r.Objects)
	}
}

// Whatever else goes on, an object with more than its share is told of, and never with less than
// happened once what it may have missed is added.
func TestTheBusiestAreKnownWhateverElseHappens(t *testing.T) {
	var c Counts
	r := rand.New(rand.NewPCG(3, 4))
	truth := map[string]uint64{}
	const events = 200_000
	for range events {
		name := fmt.Sprint("rare-", r.IntN(20_000))
		if r.IntN(10) == 0 {
			name = fmt.Sprint("busy-", r.IntN(5))
		}
		truth[name]++
		c.Observe(storage.Conflicted, at(name), fmt.Sprint("manager-", r.IntN(100)))
	}
	report := c.Report(Objects)
	if len(report.Objects) != Objects || len(c.objects) != Objects {
		t.Fatalf("%d objects are reported and %d are known, want %d", len(report.Objects), len(c.objects), Objects)
	}
	known := map[string]Object{}
	for _, o := range report.Objects {
		known[o.Name] = o
		if o.Total() > truth[o.Name] || o.Total()+o.Before < truth[o.Name] {
			t.Errorf("%s: %d and at most %d before, but there were %d", o.Name, o.Total(), o.Before, truth[o.Name])
		}
		if len(o.Managers) > managersMax+1 {
			t.Errorf("%s: %d managers are told of", o.Name, len(o.Managers))
		}
	}
	for name, n := range truth {
		if _, ok := known[name]; !ok && n > events/Objects {
			t.Errorf("%s was in the way %d times of %d, and is not known", name, n, events)
		}
	}
	for i := range 5 {
		if name := fmt.Sprint("busy-", i); report.Objects[i].Name[:4] != "busy" || known[name].Total() < 3000 {
			t.Errorf("%s: %+v", name, known[name])
		}
	}
}

func TestResourcesAreBounded(t *testing.T) {
	var c Counts
	for i := range 3 * resourcesMax {
		c.Observe(storage.Retried, storage.Place{Resource: fmt.Sprint("r", i), Name: "x"}, "m")
	}
	r := c.Report(0)
	if len(r.Resources) != resourcesMax+1 || r.Resources[0].Resource != Rest || r.Resources[0].Retries != 2*resourcesMax {
		t.Errorf("%d resources, first %+v", len(r.Resources), r.Resources[0])
	}
}

func TestTheReportIsServed(t *testing.T) {
	var c Counts
	c.Observe(storage.Conflicted, at("a"), "left")
	c.Observe(storage.Conflicted, at("b"), "")
	for _, tt := range []struct {
		name, method, query, accept string
		code                        int
		holds                       string
	}{
		{"as JSON", "GET", "", "", 200, `"resource":"widgets.example.com","conflicts":2`},
		{"as JSON to who takes anything", "GET", "", "*/*", 200, `"objects":[{`},
		{"as a table", "GET", "", "text/plain", 200, "widgets.example.com ns/b  1          0        0          (unnamed) (1)\n"},
		{"of no object", "GET", "?limit=0", "", 200, `"objects":[]}`},
		{"of so many objects that it is no number", "GET", "?limit=many", "", 400, "as a number from 0 to 512"},
		{"of less than none", "GET", "?limit=-1", "", 400, "as a number from 0 to 512"},
		{"as something else", "GET", "", "image/png", 406, "only application/json and text/plain"},
		{"to who wants to write", "POST", "", "", 405, "405 method not allowed"},
	} {
		r := httptest.NewRequest(tt.method, Path+tt.query, nil)
		if tt.accept != "" {
			r.Header.Set("Accept", tt.accept)
		}
		w := httptest.NewRecorder()
		c.ServeHTTP(w, r)
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.holds) {
			t.Errorf("%s: %d %s", tt.name, w.Code, w.Body)
		}
		if w.Code == http.StatusMethodNotAllowed && w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: allowed is %q", tt.name, w.Header().Get("Allow"))
		}
	}
}

func TestTheMetricsAreThoseOfTheReport(t *testing.T) {
	var c Counts
	c.Observe(storage.Conflicted, at("a"), "left")
	c.Observe(storage.Unchanged, at("a"), "left")
	reg := prometheus.NewRegistry()
	reg.MustRegister(&c)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		for _, m := range f.Metric {
			line := f.GetName()
			for _, l := range m.Label {
				line += " " + l.GetValue()
			}
			got = append(got, fmt.Sprint(line, " = ", m.Counter.GetValue()))
		}
	}
	want := `pawl_contention_object_total conflict a ns widgets.example.com = 1
pawl_contention_object_total unchanged a ns widgets.example.com = 1
pawl_contention_total conflict left widgets.example.com = 1
pawl_contention_total unchanged left widgets.example.com = 1`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

func TestManyMayCountAtOnce(t *testing.T) {
	var c Counts
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 2000 {
				c.Observe(storage.Contention(i%3), at(fmt.Sprint("x", i%700)), fmt.Sprint("m", g))
				if i%500 == 0 {
					c.Report(5)
				}
			}
		})
	}
	all.Wait()
	if r := c.Report(1); r.Resources[0].Total() != 16000 {
		t.Errorf("%d of 16000 were counted", r.Resources[0].Total())
	}
}
