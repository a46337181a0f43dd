package server

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/pawl-dev/pawl/internal/auth"
)

// A route is what a method and a path say.
type route struct {
	verb        string // as authorization knows it
	group       string
	version     string
	resource    string // "" if the path is not that of a resource
	subresource string
	namespace   string
	name        string
	path        string
	extra       bool // the path has more segments than any resource
}

// parseRoute reads a request (rules H1 to H5, H12). Whether anything is there is not asked.
func parseRoute(r *http.Request) route {
	rt := route{path: r.URL.Path, verb: strings.ToLower(r.Method)}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		rt.version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		rt.group, rt.version, parts = parts[1], parts[2], parts[3:]
	default:
		return rt
	}
	watched := false
	if parts[0] == "watch" && len(parts) > 1 { // the deprecated prefix
		watched, parts = true, parts[1:]
	}
	rt.locate(parts)
	if rt.resource == "" { // nothing between two slashes
		return route{path: r.URL.Path, verb: strings.ToLower(r.Method)}
	}
	rt.verb = verbOf(r.Method, rt.name, watched || wantsWatch(r.URL.Query()), r.URL.Query())
	return rt
}

// locate reads the part of the path after the version.
func (rt *route) locate(parts []string) {
	if parts[0] == "namespaces" && len(parts) > 1 {
		rt.namespace = parts[1]
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
			parts = parts[2:]
		}
	}
	rt.resource = parts[0]
	if len(parts) > 1 {
		rt.name = parts[1]
	}
	if len(parts) > 2 {
		rt.subresource = parts[2]
	}
	rt.extra = len(parts) > 3
}

// wantsWatch reports whether a query asks for a watch: any value but 0 and false does (H5).
func wantsWatch(q url.Values) bool {
	v, ok := q["watch"]
	return ok && len(v) > 0 && v[0] != "0" && v[0] != "false"
}

func verbOf(method, name string, watch bool, q url.Values) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodGet, http.MethodHead:
		switch {
		case watch:
			return "watch"
		case name == "":
			return "list"
		}
		return "get"
	case http.MethodDelete:
		if name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	return strings.ToLower(method)
}

// attributes are what an authorizer is asked about. A list or watch of one name alone is
// about that object (rule H4).
func (rt route) attributes(user auth.User, q url.Values) auth.Attributes {
	a := auth.Attributes{
		User: user, Verb: rt.verb, Group: rt.group, Version: rt.version, Resource: rt.resource,
		Subresource: rt.subresource, Namespace: rt.namespace, Name: rt.name, Path: rt.path, IsResource: rt.resource != "",
	}
	if (rt.verb == "list" || rt.verb == "watch") && rt.name == "" {
		if name, ok := strings.CutPrefix(q.Get("fieldSelector"), "metadata.name="); ok && !strings.Contains(name, ",") {
			a.Name = strings.TrimPrefix(name, "=")
		}
	}
	return a
}
