package pawl_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/pawltest"
)

// A deed is one thing that can be done over HTTP, and in what words it is forbidden.
type deed struct {
	method, path string
	verb         string
	what         string // `resource "pods" in API group "" …` or `path "/x"`
	about        string // what the message begins with: "" for a path
	open         bool   // the path can be read by everybody who is known
	public       bool   // the path can be read by everybody
}

// asks reports whether d asks about the sender, which everybody may who is known (rule H205).
func (d deed) asks() bool { return d.verb == "create" && strings.Contains(d.path, "/selfsubject") }

// resourceDeeds are all deeds that could be done to a resource of discovery, whether or not it
// allows them: whoever may do nothing learns nothing from the answer.
func resourceDeeds(group, version string, r metav1.APIResource) []deed {
	plural, sub, _ := strings.Cut(r.Name, "/")
	base := "/apis/" + group + "/" + version
	about := plural + "." + group
	if group == "" {
		base, about = "/api/"+version, plural
	}
	collection, where := base+"/"+plural, "at the cluster scope"
	if r.Namespaced {
		collection, where = base+"/namespaces/default/"+plural, `in the namespace "default"`
	}
	named := func(method, verb, query string) deed {
		path, resource, place := collection+"/a", plural, where
		if plural == "namespaces" {
			place = `in the namespace "a"`
		}
		if sub != "" {
			path, resource = path+"/"+sub, resource+"/"+sub
		}
		return deed{method: method, path: path + query, verb: verb, what: fmt.Sprintf("resource %q in API group %q %s", resource, group, place), about: about + ` "a"`}
	}
	ds := []deed{named("GET", "get", ""), named("PUT", "update", ""), named("PATCH", "patch", ""), named("DELETE", "delete", ""), named("POST", "create", ""), named("GET", "watch", "?watch=1")}
	if sub != "" {
		return ds
	}
	of := func(method, verb, query, path, place string) deed {
		return deed{method: method, path: path + query, verb: verb, what: fmt.Sprintf("resource %q in API group %q %s", plural, group, place), about: about}
	}
	for _, at := range [][2]string{{collection, where}, {base + "/" + plural, "at the cluster scope"}} {
		ds = append(ds, of("GET", "list", "", at[0], at[1]), of("GET", "watch", "?watch=1", at[0], at[1]), of("POST", "create", "", at[0], at[1]), of("DELETE", "deletecollection", "", at[0], at[1]))
	}
	ds = append(ds, of("GET", "watch", "", base+"/watch/"+plural, "at the cluster scope"))
	one := of("GET", "list", "?fieldSelector=metadata.name%3Da", collection, where)
	one.about += ` "a"`
	return append(ds, one)
}

// pathDeeds are deeds that are about no resource.
func pathDeeds() []deed {
	var ds []deed
	add := func(open, public bool, paths ...string) {
		for _, p := range paths {
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
				ds = append(ds, deed{method: method, path: p, verb: strings.ToLower(method), what: fmt.Sprintf("path %q", p), open: open, public: public})
			}
		}
	}
	add(true, true, "/healthz", "/livez", "/readyz", "/livez/ping", "/readyz/store", "/version")
	add(true, false, "/api", "/api/v1", "/apis", "/apis/pawl.test", "/apis/pawl.test/v1", "/apis/apiextensions.k8s.io/v1", "/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1")
	add(false, false, "/", "/metrics", "/pawl/backup", "/pawl/compact", "/debug/pawl/contention", "/nowhere", "/healthz2", "/versions", "/debug/pprof", "/logs", "/api/v1//x", "/healthz/../metrics")
	return ds
}

// forbidden is what somebody is told who may not do a deed.
func (d deed) forbidden(user string) string {
	text := fmt.Sprintf("forbidden: User %q cannot %s %s", user, d.verb, d.what)
	if d.about != "" {
		text = d.about + " is " + text
	}
	return text
}

// catalogue is every resource that discovery lists, by group and version.
func (a *api) catalogue() map[[2]string][]metav1.APIResource {
	a.t.Helper()
	all := map[[2]string][]metav1.APIResource{}
	read := func(path string, into any) {
		if err := json.Unmarshal([]byte(a.must("GET", path, "").text), into); err != nil {
			a.t.Fatal(err)
		}
	}
	var core metav1.APIResourceList
	read("/api/v1", &core)
	all[[2]string{"", "v1"}] = core.APIResources
	var groups metav1.APIGroupList
	read("/apis", &groups)
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			var list metav1.APIResourceList
			read("/apis/"+v.GroupVersion, &list)
			all[[2]string{g.Name, v.Version}] = list.APIResources
		}
	}
	return all
}

// deeds is everything that can be done to a server.
func (a *api) deeds() []deed {
	a.t.Helper()
	ds := pathDeeds()
	for gv, resources := range a.catalogue() {
		for _, r := range resources {
			ds = append(ds, resourceDeeds(gv[0], gv[1], r)...)
		}
	}
	ds = append(ds, resourceDeeds("no.such.group", "v1", metav1.APIResource{Name: "things", Namespaced: true})...)
	return append(ds, resourceDeeds("", "v1", metav1.APIResource{Name: "things"})...)
}

// guarded is a server that knows somebody who is no administrator.
func guarded(t *testing.T) (a *api, stranger string, srv *pawl.Server) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(file, []byte("ann-token,ann,1,\"developers,system:nodes\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv = pawltest.Start(t, pawl.Config{TokenAuthFile: file})
	a = apiOf(t, srv.RESTConfig(), 2)
	a.must("POST", definitions, crd("widgets", "Widget", "Namespaced"))
	a.must("POST", definitions, crd("planets", "Planet", "Cluster"))
	return a, "ann-token", srv
}

// unreadable is how the answer to a question ends of which nothing was sent.
const unreadable = "json parse error: unexpected end of JSON input (<empty>)"

func TestNobodyElseGetsIn(t *testing.T) { // rules H195, H202, H204
	a, stranger, _ := guarded(t)
	ds := a.deeds()
	before := a.state()
	for _, c := range []struct {
		name, token string
		want        func(d deed) (code int, message string)
	}{
		{"who presents no credential is let in to health and version alone", "", func(d deed) (int, string) {
			switch {
			case d.public && d.method == "GET":
				return http.StatusOK, ""
			case d.public:
				return http.StatusForbidden, d.forbidden("system:anonymous")
			}
			return http.StatusUnauthorized, "Unauthorized"
		}},
		{"who presents one that nobody knows is let in nowhere", "guess", func(deed) (int, string) {
			return http.StatusUnauthorized, "Unauthorized"
		}},
		{"who is no administrator is let in to health, version and discovery, and may ask about themselves", stranger, func(d deed) (int, string) {
			switch {
			case d.open && d.method == "GET":
				return http.StatusOK, ""
			case d.asks() && strings.HasSuffix(d.path, "/a"):
				return http.StatusNotFound, "the server could not find the requested resource"
			case d.asks():
				return http.StatusBadRequest, unreadable
			}
			return http.StatusForbidden, d.forbidden("ann")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, d := range ds {
				got := a.as(c.token, d.method, d.path, nil)
				code, message := c.want(d)
				st := got.status()
				if message == unreadable && strings.HasSuffix(st.Message, message) {
					st.Message = message
				}
				if got.code != code || code != http.StatusOK && (st.Message != message || st.Kind != "Status" || int(st.Code) != code || string(st.Reason) != strings.ReplaceAll(http.StatusText(code), " ", "")) {
					t.Errorf("%s %s: %d %.400s\nwant %d %s", d.method, d.path, got.code, got.text, code, message)
				}
			}
		})
	}
	if a.state() != before {
		t.Error("something changed")
	}
}

func TestTheAdministratorGetsInEverywhere(t *testing.T) {
	a, _, _ := guarded(t)
	for _, d := range a.deeds() {
		if d.verb == "delete" || d.verb == "deletecollection" || d.verb == "watch" {
			d.path += "?dryRun=All&timeoutSeconds=1"
			if d.verb == "watch" {
				d.path = strings.Replace(strings.Replace(d.path, "?watch=1?", "?watch=1&", 1), "dryRun=All&", "resourceVersion=x&", 1) // ends at once, with an error
			}
		}
		if got := a.do(d.method, d.path, nil); got.code == http.StatusUnauthorized || got.code == http.StatusForbidden || got.code < 200 {
			t.Errorf("%s %s: %d %.300s", d.method, d.path, got.code, got.text)
		}
	}
}

// TestEveryRouteIsWalked looks at what is served, and not at what discovery says of it, for
// routes that the walk above does not take: of whatever is added one day.
func TestEveryRouteIsWalked(t *testing.T) {
	a, _, srv := guarded(t)
	sent := map[string]bool{}
	for _, d := range a.deeds() {
		path, _, _ := strings.Cut(d.path, "?")
		sent[d.verb+" "+path] = true
	}
	for _, r := range pawl.CatalogueOf(srv).Resources() {
		for _, v := range r.Versions {
			base := "/apis/" + r.Group + "/" + v.Name
			if r.Group == "" {
				base = "/api/" + v.Name
			}
			collection := base + "/" + r.Plural
			if r.Namespaced {
				collection = base + "/namespaces/default/" + r.Plural
			}
			for _, verb := range []string{"list", "watch", "create", "deletecollection"} {
				if !sent[verb+" "+collection] {
					t.Errorf("nobody is sent to %s %s", verb, collection)
				}
			}
			for _, verb := range []string{"get", "update", "patch", "delete"} {
				if !sent[verb+" "+collection+"/a"] {
					t.Errorf("nobody is sent to %s %s/a", verb, collection)
				}
			}
			for name, sub := range v.Subresources {
				for _, verb := range sub.Verbs {
					if !sent[verb+" "+collection+"/a/"+name] {
						t.Errorf("nobody is sent to %s %s/a/%s", verb, collection, name)
					}
				}
			}
		}
	}
}
