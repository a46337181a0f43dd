package health

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
)

// A Check is one thing that must be well.
type Check struct {
	Name string
	Run  func(ctx context.Context) error // what is wrong; it should be quick
}

// Ping is the check that a server is well that answers at all.
var Ping = Check{Name: "ping", Run: func(context.Context) error { return nil }}

// Stopping returns the check that fails from the moment that stopping is closed (rule H37).
func Stopping(stopping <-chan struct{}) Check {
	return Check{Name: "shutdown", Run: func(context.Context) error {
		select {
		case <-stopping:
			return errors.New("process is shutting down")
		default:
			return nil
		}
	}}
}

// Endpoint serves checks at /NAME, and each at /NAME/CHECK. Without checks there is [Ping]. What
// fails is logged with its reason, if there is a log.
func Endpoint(name string, log *slog.Logger, checks ...Check) http.Handler {
	if len(checks) == 0 {
		checks = []Check{Ping}
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &endpoint{name: name, checks: checks, log: log}
}

type endpoint struct {
	name   string
	checks []Check
	log    *slog.Logger
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, child, below := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
	if below {
		e.serveOne(w, r, child)
		return
	}
	report, well := e.run(r)
	if !well {
		http.Error(w, report+e.name+" check failed", http.StatusInternalServerError)
		return
	}
	if r.URL.Query().Has("verbose") {
		writeText(w, report+e.name+" check passed\n")
		return
	}
	writeText(w, "ok")
}

// run runs the checks that r does not exclude, and says what came of it (rules H32 to H34).
func (e *endpoint) run(r *http.Request) (report string, well bool) {
	var text strings.Builder
	excluded := r.URL.Query()["exclude"]
	unknown := slices.Clone(excluded)
	well = true
	for _, c := range e.checks {
		if slices.Contains(excluded, c.Name) {
			unknown = slices.DeleteFunc(unknown, func(name string) bool { return name == c.Name })
			fmt.Fprintf(&text, "[+]%s excluded: ok\n", c.Name)
			continue
		}
		if err := c.Run(r.Context()); err != nil {
			well = false
			e.log.Warn("a health check failed", "endpoint", e.name, "check", c.Name, "err", err)
			fmt.Fprintf(&text, "[-]%s failed: reason withheld\n", c.Name)
			continue
		}
		fmt.Fprintf(&text, "[+]%s ok\n", c.Name)
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		fmt.Fprintf(&text, "warn: some health checks cannot be excluded: no matches for %s\n", quoted(slices.Compact(unknown)))
	}
	return text.String(), well
}

func quoted(names []string) string {
	var all []string
	for _, name := range names {
		all = append(all, fmt.Sprintf("%q", name))
	}
	return strings.Join(all, ",")
}

// serveOne serves one check (rule H35).
func (e *endpoint) serveOne(w http.ResponseWriter, r *http.Request, name string) {
	i := slices.IndexFunc(e.checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		http.NotFound(w, r)
		return
	}
	if err := e.checks[i].Run(r.Context()); err != nil {
		http.Error(w, fmt.Sprintf("internal server error: %v", err), http.StatusInternalServerError)
		return
	}
	writeText(w, "ok")
}

func writeText(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	fmt.Fprint(w, text)
}
