package health

import (
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/version"
)

// Kubernetes is the release whose behaviour pawl has.
const Kubernetes = "1.37.2"

// VersionOf returns what /version says of a program that calls itself by that version, such as
// "0.4.0", and was built as build says, which may be nil.
//
// Clients read gitVersion to know what a server can do: helm compares a chart's kubeVersion
// with it, and kubectl its own minor version. So it is the version of the Kubernetes whose
// behaviour pawl has, and pawl's own stands behind a plus. There, in the language of
// semantic versions, it is build metadata, which no comparison looks at; behind a hyphen it would make the
// server a pre-release, older than 1.37.2 and outside of every range that charts name.
func VersionOf(pawl string, build *debug.BuildInfo) version.Info {
	major, rest, _ := strings.Cut(Kubernetes, ".")
	minor, _, _ := strings.Cut(rest, ".")
	info := version.Info{
		Major: major, Minor: minor,
		GitVersion:   "v" + Kubernetes + "+pawl-" + identifier(pawl),
		GitCommit:    "unknown",
		GitTreeState: "unknown",
		BuildDate:    "1970-01-01T00:00:00Z",
		GoVersion:    runtime.Version(),
		Compiler:     runtime.Compiler,
		Platform:     runtime.GOOS + "/" + runtime.GOARCH,
	}
	if build == nil {
		return info
	}
	for _, s := range build.Settings {
		switch s.Key {
		case "vcs.revision":
			info.GitCommit = s.Value
		case "vcs.time":
			info.BuildDate = s.Value
		case "vcs.modified":
			info.GitTreeState = map[string]string{"true": "dirty", "false": "clean"}[s.Value]
		}
	}
	return info
}

var notIdentifier = regexp.MustCompile(`[^0-9A-Za-z.-]+`)

// identifier makes of a version something that may be build metadata: dots between
// parts that are not empty, and nothing but letters, digits and hyphens in them.
func identifier(v string) string {
	v = notIdentifier.ReplaceAllString(strings.TrimPrefix(v, "v"), "-")
	parts := slices.DeleteFunc(strings.Split(v, "."), func(part string) bool { return part == "" })
	return cmp.Or(strings.Trim(strings.Join(parts, "."), "-"), "devel")
}

// Version serves /version (rule H31).
func Version(info version.Info) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, info) })
}

// Metrics serves /metrics (rule H38) of one server: process-wide collectors are in it only if
// they were registered there.
func Metrics(registry *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry})
}

// Index serves /, the list of paths that there are when it is asked (rule H39). In any order and
// more than once they may be given; they are sent sorted.
func Index(paths func() []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		all := slices.Compact(slices.Sorted(slices.Values(paths())))
		if all == nil {
			all = []string{}
		}
		writeJSON(w, map[string][]string{"paths": all})
	})
}

func writeJSON(w http.ResponseWriter, v any) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(text) // a client that is gone needs no answer
}
