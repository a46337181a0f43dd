package discovery

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/pawl-dev/pawl/internal/resource"
)

// subs makes subresources, each written as name:kind:verb,verb.
func subs(of ...string) map[string]*resource.Subresource {
	all := map[string]*resource.Subresource{}
	for _, text := range of {
		f := strings.Split(text, ":")
		all[f[0]] = &resource.Subresource{Name: f[0], Kind: f[1], Verbs: strings.Split(f[2], ",")}
	}
	return all
}

func versions(names ...string) (all []*resource.Version) {
	for _, name := range names {
		all = append(all, &resource.Version{Name: name})
	}
	return all
}

func builtins() []*resource.Resource {
	namespaces := &resource.Resource{
		Plural: "namespaces", Singular: "namespace", Kind: "Namespace", ShortNames: []string{"ns"}, NoDeleteCollection: true,
		StorageVersion: "v1", Versions: versions("v1"),
	}
	namespaces.Versions[0].Subresources = subs("status::get,patch,update", "finalize::update")
	crds := &resource.Resource{
		Group: "apiextensions.k8s.io", Plural: "customresourcedefinitions", Singular: "customresourcedefinition", Kind: "CustomResourceDefinition",
		ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"}, StorageVersion: "v1", Versions: versions("v1"),
	}
	crds.Versions[0].Subresources = subs("status::get,patch,update")
	return []*resource.Resource{
		namespaces, crds,
		{Plural: "configmaps", Singular: "configmap", Kind: "ConfigMap", ShortNames: []string{"cm"}, Namespaced: true, StorageVersion: "v1", Versions: versions("v1")},
		{Plural: "secrets", Singular: "secret", Kind: "Secret", Namespaced: true, StorageVersion: "v1", Versions: versions("v1")},
		{Group: "coordination.k8s.io", Plural: "leases", Singular: "lease", Kind: "Lease", Namespaced: true, StorageVersion: "v1", Versions: versions("v1")},
	}
}

// widgets is the custom resource of conversations/discovery.yaml.
func widgets() *resource.Resource {
	r := &resource.Resource{
		Group: "parity.example", Plural: "widgets", Singular: "widget", Kind: "Widget", Namespaced: true, Custom: true,
		ShortNames: []string{"wd", "wdg"}, Categories: []string{"all", "toys"}, StorageVersion: "v1", Versions: versions("v1", "v1beta1"),
	}
	r.Versions[0].Subresources = subs("scale:Scale:get,update,patch", "status::get,patch,update")
	return r
}

func handler(with ...*resource.Resource) (*Handler, *resource.Registry) {
	reg := &resource.Registry{}
	reg.Change(nil, append(builtins(), with...)...)
	return &Handler{Catalogue: reg.Catalogue}, reg
}

func ask(h http.Handler, method, path string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(r *http.Response) string {
	var b bytes.Buffer
	b.ReadFrom(r.Body)
	return b.String()
}

const scale = `{"name":"widgets/scale","singularName":"","namespaced":true,"group":"autoscaling","version":"v1","kind":"Scale","verbs":["get","patch","update"]}`

func TestDocuments(t *testing.T) {
	terminating := widgets()
	terminating.Plural, terminating.Terminating, terminating.Versions, terminating.StorageVersion = "wrecks", true, versions("v1"), "v0"
	cluster := &resource.Resource{Group: "parity.example", Plural: "worlds", Singular: "world", Kind: "World", Custom: true, Versions: versions("v1beta1")}
	h, _ := handler(widgets(), terminating, cluster)
	const apiVerbs = `["create","delete","deletecollection","get","list","patch","update","watch"]`
	for _, c := range []struct{ name, path, want string }{
		{"the core versions (H15)", "/api", `{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"example.com"}]}`},
		{"built-in groups come before others, the better version first (H16, H26)", "/apis", `{"kind":"APIGroupList","apiVersion":"v1","groups":[
			{"name":"apiextensions.k8s.io","versions":[{"groupVersion":"apiextensions.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apiextensions.k8s.io/v1","version":"v1"}},
			{"name":"coordination.k8s.io","versions":[{"groupVersion":"coordination.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"coordination.k8s.io/v1","version":"v1"}},
			{"name":"parity.example","versions":[{"groupVersion":"parity.example/v1","version":"v1"},{"groupVersion":"parity.example/v1beta1","version":"v1beta1"}],"preferredVersion":{"groupVersion":"parity.example/v1","version":"v1"}}]}`},
		{"one group (H17)", "/apis/coordination.k8s.io", `{"kind":"APIGroup","apiVersion":"v1","name":"coordination.k8s.io","versions":[{"groupVersion":"coordination.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"coordination.k8s.io/v1","version":"v1"}}`},
		{"the core resources, with the hashes of the reference (H18, H20, H21)", "/api/v1", `{"kind":"APIResourceList","groupVersion":"v1","resources":[
			{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":` + apiVerbs + `,"shortNames":["cm"],"storageVersionHash":"qFsyl6wFWjQ="},
			{"name":"namespaces","singularName":"namespace","namespaced":false,"kind":"Namespace","verbs":["create","delete","get","list","patch","update","watch"],"shortNames":["ns"],"storageVersionHash":"Q3oi5N2YM8M="},
			{"name":"namespaces/finalize","singularName":"","namespaced":false,"kind":"Namespace","verbs":["update"]},
			{"name":"namespaces/status","singularName":"","namespaced":false,"kind":"Namespace","verbs":["get","patch","update"]},
			{"name":"secrets","singularName":"secret","namespaced":true,"kind":"Secret","verbs":` + apiVerbs + `,"storageVersionHash":"S6u1pOWzb84="}]}`},
		{"a built-in named group", "/apis/apiextensions.k8s.io/v1", `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apiextensions.k8s.io/v1","resources":[
			{"name":"customresourcedefinitions","singularName":"customresourcedefinition","namespaced":false,"kind":"CustomResourceDefinition","verbs":` + apiVerbs + `,"shortNames":["crd","crds"],"categories":["api-extensions"],"storageVersionHash":"` + hashOf("apiextensions.k8s.io/v1/CustomResourceDefinition") + `"},
			{"name":"customresourcedefinitions/status","singularName":"","namespaced":false,"kind":"CustomResourceDefinition","verbs":["get","patch","update"]}]}`},
		{"custom resources: scale is of another group (H19), what is going can only be read and deleted (C33)", "/apis/parity.example/v1", `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"parity.example/v1","resources":[
			{"name":"widgets","singularName":"widget","namespaced":true,"kind":"Widget","verbs":["delete","deletecollection","get","list","patch","create","update","watch"],"shortNames":["wd","wdg"],"categories":["all","toys"],"storageVersionHash":"` + hashOf("parity.example/v1/Widget") + `"},
			{"name":"widgets/status","singularName":"","namespaced":true,"kind":"Widget","verbs":["get","patch","update"]},` + scale + `,
			{"name":"wrecks","singularName":"widget","namespaced":true,"kind":"Widget","verbs":["delete","deletecollection","get","list","watch"],"shortNames":["wd","wdg"],"categories":["all","toys"]}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, path := range []string{c.path, c.path + "/"} {
				resp := ask(h, http.MethodGet, path)
				if have := tight(t, body(resp)); have != tight(t, c.want) {
					t.Errorf("%s\nhave %s\nwant %s", path, have, tight(t, c.want))
				}
				if have := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || have != "application/json" {
					t.Errorf("%d %s", resp.StatusCode, have)
				}
				if have := resp.Header.Get("Cache-Control"); have != "no-cache, private" {
					t.Errorf("Cache-Control: %s", have)
				}
			}
		})
	}
}

// hashOf has no known text of the reference to compare with: that one stores definitions as v1beta1.
func hashOf(text string) string {
	parts := strings.Split(text, "/")
	return storageVersionHash(&resource.Resource{Group: parts[0], StorageVersion: parts[1], Kind: parts[2]})
}

// tight brings JSON into one form.
func tight(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	out, _ := json.Marshal(v)
	return string(out)
}

func TestAggregated(t *testing.T) {
	h, reg := handler(widgets())
	const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	resp := ask(h, http.MethodGet, "/apis", "Accept", accept)
	text := body(resp)
	var doc apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, g := range doc.Items {
		names = append(names, g.Name)
	}
	if have := strings.Join(names, " "); have != "apiextensions.k8s.io coordination.k8s.io parity.example" {
		t.Errorf("groups %s", have)
	}
	want := `{"version":"v1","freshness":"Current","resources":[{"resource":"widgets","responseKind":{"group":"parity.example","version":"v1","kind":"Widget"},"scope":"Namespaced","singularResource":"widget",
		"verbs":["delete","deletecollection","get","list","patch","create","update","watch"],"shortNames":["wd","wdg"],"categories":["all","toys"],"subresources":[
		{"subresource":"status","responseKind":{"group":"parity.example","version":"v1","kind":"Widget"},"verbs":["get","patch","update"]},
		{"subresource":"scale","responseKind":{"group":"autoscaling","version":"v1","kind":"Scale"},"verbs":["get","patch","update"]}]}]}`
	have, _ := json.Marshal(doc.Items[2].Versions[0])
	if tight(t, string(have)) != tight(t, want) {
		t.Errorf("have %s\nwant %s", have, want)
	}
	etag := fmt.Sprintf(`"%X"`, sha512.Sum512([]byte(strings.TrimSpace(text))))
	for name, want := range map[string]string{"Etag": etag, "Vary": "Accept", "Cache-Control": "public", "Content-Type": accept} { // rules H23, H27
		if have := resp.Header.Get(name); have != want {
			t.Errorf("%s: %s, want %s", name, have, want)
		}
	}
	again := ask(h, http.MethodGet, "/apis", "Accept", accept, "If-None-Match", etag)
	if again.StatusCode != http.StatusNotModified || body(again) != "" {
		t.Errorf("who has it gets %d", again.StatusCode)
	}
	core := body(ask(h, http.MethodGet, "/api", "Accept", accept))
	if !strings.Contains(core, `"items":[{"metadata":{},"versions":[{"version":"v1"`) || strings.Contains(core, "apiextensions") { // rule H24
		t.Errorf("at /api: %s", core)
	}
	reg.Change([]schema.GroupResource{{Group: "parity.example", Resource: "widgets"}})
	if later := ask(h, http.MethodGet, "/apis", "Accept", accept, "If-None-Match", etag); later.StatusCode != 200 || strings.Contains(body(later), "Widget") { // rule H29
		t.Error("the definition is gone, the document is not")
	}
}

func TestChoose(t *testing.T) {
	const v2 = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, c := range []struct {
		name, accept string
		want         choice
		as           encoding
	}{
		{"nothing is asked for", "", plain, asJSON},
		{"anything", "*/*", plain, asJSON},
		{"any application type", "application/*", plain, asJSON},
		{"all three parameters", "application/json" + v2, whole, asJSON},
		{"their order does not matter", "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", whole, asJSON},
		{"nor do unknown ones, and spaces", "application/json; profile=nopeer; g=apidiscovery.k8s.io; v=v2; as=APIGroupDiscoveryList", whole, asJSON},
		{"what client-go sends", "application/json" + v2 + ",application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json", whole, asJSON},
		{"the aggregated form is preferred wherever it stands", "application/json,application/json" + v2, whole, asJSON},
		{"it is there as protobuf too (H30)", "application/vnd.kubernetes.protobuf" + v2, whole, asProtobuf},
		{"an older version alone (H28)", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", noForm, ""},
		{"an older version with a way out (H28)", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json", plain, asJSON},
		{"two of the three parameters", "application/json;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList", noForm, ""},
		{"an unknown encoding", "text/html", noMatter, ""},
		{"an unknown encoding with a way out", "text/html,application/yaml", plain, asYAML},
		{"the better quality wins", "application/yaml;q=0.5,application/json", plain, asJSON},
		{"what is refused does not count", "application/json;q=0", noMatter, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if have, as := choose(c.accept, true); have != c.want || as != c.as {
				t.Errorf("choose = %v, %q", have, as)
			}
		})
	}
	if have, _ := choose("application/json"+v2, false); have != noForm {
		t.Errorf("where there is no aggregated form: %v", have)
	}
}

func TestRefusals(t *testing.T) {
	h, _ := handler(widgets())
	const (
		missing = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}`
		types   = `application/json, application/yaml, application/vnd.kubernetes.protobuf`
		unmet   = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"only the following media types are accepted: ` + types + `","reason":"NotAcceptable","code":406}`
		unknown = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"406: Not Acceptable\n\nAvailable representations: ` + types + `","reason":"NotAcceptable","details":{},"code":406}`
		text    = "404 page not found\n"
	)
	for _, c := range []struct {
		name, method, path, accept string
		code                       int
		want                       string
	}{
		{"an unknown group (H8)", "GET", "/apis/none.example", "", 404, text},
		{"a version of an unknown group", "GET", "/apis/none.example/v1", "", 404, text},
		{"a version that a custom group does not serve", "GET", "/apis/parity.example/v2", "", 404, text},
		{"a version that a built-in group does not serve", "GET", "/apis/coordination.k8s.io/v9", "", 404, missing},
		{"an unknown core version", "GET", "/api/v9", "", 404, missing},
		{"an unknown core version, for who reads no encoding", "GET", "/api/v9", "text/html", 404, missing},
		{"something deeper in a built-in group", "GET", "/apis/coordination.k8s.io/v1/gadgets/a", "", 404, missing},
		{"a core version below /apis", "GET", "/apis/v1", "", 404, text},
		{"an unknown version of the aggregated form", "GET", "/api", "application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList", 406, unmet},
		{"an unknown encoding of a list of groups", "GET", "/apis", "text/html", 406, unmet},
		{"an unknown encoding of a custom group", "GET", "/apis/parity.example/v1", "text/html", 406, unmet},
		{"an unknown encoding of the core versions", "GET", "/api", "text/html", 406, unknown},
		{"an unknown encoding of a built-in version", "GET", "/apis/coordination.k8s.io/v1", "text/html", 406, unknown},
		{"another method", "POST", "/api/v1", "", 405, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server does not allow this method on the requested resource","reason":"MethodNotAllowed","details":{},"code":405}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := ask(h, c.method, c.path, "Accept", c.accept)
			if have := body(resp); resp.StatusCode != c.code || strings.TrimSpace(have) != strings.TrimSpace(c.want) {
				t.Errorf("have %d %s\nwant %d %s", resp.StatusCode, have, c.code, c.want)
			}
			kind := "application/json"
			if c.want == text {
				kind = "text/plain; charset=utf-8"
			}
			if have := resp.Header.Get("Content-Type"); have != kind {
				t.Errorf("Content-Type: %s", have)
			}
		})
	}
}

func TestEncodings(t *testing.T) {
	h, _ := handler()
	plain := body(ask(h, http.MethodGet, "/api/v1"))
	for _, c := range []struct {
		name, query string
		headers     []string
		indented    bool
	}{
		{"asked for in the query (H59)", "?pretty=true", nil, true},
		{"asked for in Accept", "", []string{"Accept", "application/json;pretty=1"}, true},
		{"for curl", "", []string{"User-Agent", "curl/8.0"}, true},
		{"for curl, who does not want it", "?pretty=false", []string{"User-Agent", "curl/8.0"}, false},
		{"for kubectl", "", []string{"User-Agent", "kubectl/1.37"}, false},
	} {
		t.Run("indented "+c.name, func(t *testing.T) {
			have := body(ask(h, http.MethodGet, "/api/v1"+c.query, c.headers...))
			if strings.Contains(have, "\n  \"groupVersion\"") != c.indented || tight(t, have) != tight(t, plain) {
				t.Errorf("have %.200s", have)
			}
		})
	}
	t.Run("as YAML", func(t *testing.T) {
		have, err := yaml.YAMLToJSON([]byte(body(ask(h, http.MethodGet, "/api/v1", "Accept", "application/yaml"))))
		if err != nil || tight(t, string(have)) != tight(t, plain) {
			t.Errorf("%v %.200s", err, have)
		}
	})
	t.Run("as protobuf", func(t *testing.T) {
		resp := ask(h, http.MethodGet, "/api/v1", "Accept", "application/vnd.kubernetes.protobuf")
		raw, found := strings.CutPrefix(body(resp), "k8s\x00")
		var envelope runtime.Unknown
		var list metav1.APIResourceList
		if err := envelope.Unmarshal([]byte(raw)); !found || err != nil {
			t.Fatalf("%v %v", found, err)
		}
		if err := list.Unmarshal(envelope.Raw); err != nil || len(list.APIResources) != 5 || envelope.Kind != "APIResourceList" {
			t.Errorf("%v %s %v", err, envelope.Kind, list)
		}
	})
}

func TestAggregatedAsProtobuf(t *testing.T) { // rule H30
	h, _ := handler(widgets())
	const accept = "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	resp := ask(h, http.MethodGet, "/apis", "Accept", accept)
	raw, _ := strings.CutPrefix(body(resp), "k8s\x00")
	var envelope runtime.Unknown
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := envelope.Unmarshal([]byte(raw)); err != nil {
		t.Fatal(err)
	}
	if err := list.Unmarshal(envelope.Raw); err != nil || len(list.Items) != 3 || resp.Header.Get("Content-Type") != accept {
		t.Errorf("%v %d groups %s", err, len(list.Items), resp.Header.Get("Content-Type"))
	}
}

func TestNothingIsMadeBeforeItIsAskedFor(t *testing.T) {
	h, reg := handler()
	ask(h, http.MethodGet, "/api/v1")
	ask(h, http.MethodGet, "/api/v1/")
	ask(h, http.MethodGet, "/api", "Host", "somewhere")
	first := h.kept
	if len(first.made) != 1 {
		t.Errorf("%d documents are kept, want the one that was asked for", len(first.made))
	}
	d := first.made["api/v1"]
	ask(h, http.MethodGet, "/api/v1")
	if h.kept.made["api/v1"] != d {
		t.Error("it was made again")
	}
	reg.Change(nil, widgets())
	ask(h, http.MethodGet, "/apis")
	if h.kept == first || len(h.kept.made) != 1 {
		t.Error("documents of the old catalogue are kept")
	}
}

func TestClientsReadEveryForm(t *testing.T) {
	h, _ := handler(widgets())
	server := httptest.NewServer(h)
	defer server.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	for _, legacy := range []bool{false, true} {
		t.Run(fmt.Sprintf("legacy only: %v", legacy), func(t *testing.T) {
			client := discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL})
			client.UseLegacyDiscovery = legacy
			groups, lists, err := client.ServerGroupsAndResources()
			if err != nil || len(groups) != 4 || len(lists) != 5 {
				t.Fatalf("%v: %d groups, %d versions", err, len(groups), len(lists))
			}
			mapped, err := restmapper.GetAPIGroupResources(client)
			if err != nil {
				t.Fatal(err)
			}
			mapper := restmapper.NewShortcutExpander(restmapper.NewDiscoveryRESTMapper(mapped), client, nil)
			for short, want := range map[string]string{ // rule C106
				"cm":                     "/v1, Resource=configmaps",
				"ns":                     "/v1, Resource=namespaces",
				"crd":                    "apiextensions.k8s.io/v1, Resource=customresourcedefinitions",
				"wd":                     "parity.example/v1, Resource=widgets",
				"widget":                 "parity.example/v1, Resource=widgets",
				"widgets.parity.example": "parity.example/v1, Resource=widgets",
			} {
				gvr, err := mapper.ResourceFor(schema.ParseGroupResource(short).WithVersion(""))
				if err != nil || gvr.String() != want {
					t.Errorf("%s: %s %v, want %s", short, gvr, err, want)
				}
			}
			preferred, err := client.ServerPreferredResources()
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(preferred, func(l *metav1.APIResourceList) bool { return l.GroupVersion == "parity.example/v1beta1" })
			if at >= 0 && len(preferred[at].APIResources) > 0 {
				t.Error("v1beta1 is preferred for something that v1 has")
			}
		})
	}
}
