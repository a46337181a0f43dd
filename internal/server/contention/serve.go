package contention

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/munnerz/goautoneg"
	"github.com/prometheus/client_golang/prometheus"
)

// Path is where the report is served.
const Path = "/debug/pawl/contention"

// objectsUsual is how many objects are told of if nobody says how many.
const objectsUsual = 20

// ServeHTTP serves the report: as JSON, or as a table for people who ask for text. The query limit
// says how many objects are told of. Who may see it is for others to say: it names objects and
// managers, but no values.
func (c *Counts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "405 method not allowed", http.StatusMethodNotAllowed)
		return
	}
	n := objectsUsual
	if text := r.URL.Query().Get("limit"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 0 {
			http.Error(w, fmt.Sprintf("limit=%q: say how many objects to tell of, as a number from 0 to %d", text, Objects), http.StatusBadRequest)
			return
		}
	}
	report := c.Report(n)
	w.Header().Set("Vary", "Accept")
	accept := r.Header.Get("Accept")
	if accept == "" {
		accept = "*/*"
	}
	switch goautoneg.Negotiate(accept, []string{"application/json", "text/plain"}) {
	case "text/plain":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		report.table(w)
	case "application/json":
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(report) // a client that is gone needs no answer
	default:
		http.Error(w, "only application/json and text/plain are to be had here", http.StatusNotAcceptable)
	}
}

// table writes the report for people.
func (r Report) table(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	row := func(who string, t Tally, managers []Manager) {
		names := make([]string, 0, len(managers))
		for _, m := range managers {
			names = append(names, fmt.Sprintf("%s (%d)", orNobody(m.Manager), m.Total()))
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\n", who, t.Conflicts, t.Retries, t.Unchanged, strings.Join(names, ", "))
	}
	fmt.Fprintln(w, "RESOURCE\tCONFLICTS\tRETRIES\tUNCHANGED\tMANAGERS")
	for _, x := range r.Resources {
		row(x.Resource, x.Tally, x.Managers)
	}
	fmt.Fprintln(w, "\t\t\t\t")
	fmt.Fprintln(w, "OBJECT\tCONFLICTS\tRETRIES\tUNCHANGED\tMANAGERS")
	for _, x := range r.Objects {
		name := x.Name
		if x.Namespace != "" {
			name = x.Namespace + "/" + x.Name
		}
		row(x.Resource+" "+name, x.Tally, x.Managers)
	}
	_ = w.Flush() // a client that is gone needs no answer
}

func orNobody(manager string) string {
	if manager == "" {
		return "(unnamed)"
	}
	return manager
}

var (
	byResource = prometheus.NewDesc("pawl_contention_total",
		"Writes that got in each other's way: conflict (refused), retry (a lost race, judged again) and unchanged (would have changed nothing).",
		[]string{"resource", "manager", "kind"}, nil)
	byObject = prometheus.NewDesc("pawl_contention_object_total",
		"The same for the busiest objects; one that is no longer among them is left out.",
		[]string{"resource", "namespace", "name", "kind"}, nil)
)

// Describe implements [prometheus.Collector].
func (c *Counts) Describe(out chan<- *prometheus.Desc) {
	out <- byResource
	out <- byObject
}

// Collect implements [prometheus.Collector].
func (c *Counts) Collect(out chan<- prometheus.Metric) {
	report := c.Report(objectsUsual)
	send := func(desc *prometheus.Desc, t Tally, labels ...string) {
		for _, k := range []struct {
			kind  string
			count uint64
		}{{"conflict", t.Conflicts}, {"retry", t.Retries}, {"unchanged", t.Unchanged}} {
			if k.count > 0 {
				out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(k.count), append(labels[:len(labels):len(labels)], k.kind)...)
			}
		}
	}
	for _, r := range report.Resources {
		for _, m := range r.Managers {
			send(byResource, m.Tally, r.Resource, m.Manager)
		}
	}
	for _, o := range report.Objects {
		send(byObject, o.Tally, o.Resource, o.Namespace, o.Name)
	}
}
