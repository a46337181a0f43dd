package pawl

import (
	"context"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawl-dev/pawl/internal/server/contention"
	"github.com/pawl-dev/pawl/internal/server/discovery"
	"github.com/pawl-dev/pawl/internal/server/health"
	"github.com/pawl-dev/pawl/internal/server/openapi"
	"github.com/pawl-dev/pawl/internal/server/upkeep"
)

// other serves what is no resource.
func (p *parts) other() http.Handler {
	mux := http.NewServeMux()
	docs := &discovery.Handler{Catalogue: p.catalogue.Catalogue}
	for _, path := range []string{"/api", "/api/", "/apis", "/apis/"} {
		mux.Handle(path, docs)
	}
	specs := &openapi.Handler{Catalogue: p.catalogue.Catalogue, Log: p.config.Logger}
	mux.Handle("/openapi/", specs)
	p.specs = specs

	store := health.Check{Name: "store", Run: func(context.Context) error { return p.engine.Err() }}
	ready := health.Endpoint("readyz", p.config.Logger, health.Ping, store, health.Stopping(p.stopping))
	alive := health.Endpoint("livez", p.config.Logger, health.Ping)
	well := health.Endpoint("healthz", p.config.Logger, health.Ping, store)
	for name, h := range map[string]http.Handler{"readyz": ready, "livez": alive, "healthz": well} {
		mux.Handle("/"+name, h)
		mux.Handle("/"+name+"/", h)
	}
	build, _ := debug.ReadBuildInfo() // nil is fine
	mux.Handle("/version", health.Version(health.VersionOf(p.config.Version, build)))
	mux.Handle("/metrics", health.Metrics(p.metrics()))
	kept := keptStore{store: p.engine, parts: p}
	mux.Handle(upkeep.BackupPath, upkeep.Backup(kept, p.config.Logger))
	mux.Handle(upkeep.CompactPath, upkeep.Compact(kept, p.config.Logger, time.Now))
	mux.Handle(contention.Path, p.contention)
	mux.Handle("/{$}", health.Index(p.paths))
	return mux
}

// metrics are the figures of this server alone.
func (p *parts) metrics() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(health.StoreMetrics(p.engine, time.Now), health.ObjectMetrics(p.held), p.contention)
	return r
}

// held are the tables of what is served.
func (p *parts) held() []health.Held {
	var all []health.Held
	for _, res := range p.catalogue.Catalogue().Resources() {
		for _, v := range res.Versions {
			if v.Store != nil { // all versions are in one table
				all = append(all, v.Store.Table())
				break
			}
		}
	}
	return all
}

// paths are those that the index lists (rule H39).
func (p *parts) paths() []string {
	paths := strings.Fields("/api /api/v1 /apis /debug/pawl/contention /healthz /livez /metrics /openapi/v2 /openapi/v3 /pawl/backup /pawl/compact /readyz /version")
	for _, g := range p.catalogue.Catalogue().Groups() {
		if g.Name == "" {
			continue
		}
		paths = append(paths, "/apis/"+g.Name)
		for _, v := range g.Versions {
			paths = append(paths, "/apis/"+g.Name+"/"+v)
		}
	}
	return paths
}
