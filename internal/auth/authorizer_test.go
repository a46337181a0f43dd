package auth

import (
	"encoding/json"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
)

func TestMasters(t *testing.T) {
	master := somebody("root", "system:masters", "system:authenticated")
	ann := somebody("ann", "crew", "system:authenticated")
	open := []string{"/healthz", "/healthz/", "/healthz/ping", "/livez", "/livez/ping", "/readyz", "/readyz/a/b", "/version", "/version/"}
	known := []string{"/api", "/api/", "/api/v1", "/apis", "/apis/", "/apis/apps", "/apis/apps/v1", "/apis/apps/v1/", "/openapi", "/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1"}
	closed := []string{"", "/", "/metrics", "/nothing", "/debug/pprof", "/healthzz", "/healthzfoo/x", "/versions", "/version/x", "/apix", "/ap",
		"/api/v1/namespaces", "/apis/apps/v1/deployments", "/healthz/../metrics", "/healthz//", "//healthz", "/./healthz", "/openapi/../metrics", "healthz", "/HEALTHZ"}
	type ask struct {
		user User
		name string
	}
	judge := func(t *testing.T, who ask, a Attributes, want bool) {
		t.Helper()
		a.User = who.user
		if got, reason := (Masters{}).Authorize(a); got != want || reason != "" {
			t.Errorf("%s: %s %s: allowed %v, reason %q; want %v", who.name, a.Verb, a.Path+a.Resource, got, reason, want)
		}
	}
	everyone := []ask{{master, "a master"}, {ann, "somebody known"}, {anonymous, "nobody known"}, {somebody("x"), "somebody in no group"}, {nil, "nobody"}}
	for _, who := range everyone {
		for _, verb := range []string{"get", "head", "post", "put", "patch", "delete", "options", ""} {
			reads := verb == "get" || verb == "head"
			for _, p := range open {
				judge(t, who, Attributes{Verb: verb, Path: p}, who.user == User(master) || who.user != nil && reads)
			}
			for _, p := range known {
				judge(t, who, Attributes{Verb: verb, Path: p}, who.user == User(master) || who.user == User(ann) && reads)
			}
			for _, p := range closed {
				judge(t, who, Attributes{Verb: verb, Path: p}, who.user == User(master))
			}
		}
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate"} {
			judge(t, who, Attributes{Verb: verb, IsResource: true, Resource: "configmaps", Namespace: "default", Path: "/healthz"}, who.user == User(master))
		}
	}
}

// The texts are those of the recorded conversations.
func TestForbiddenIsSaidInTheWordsClientsKnow(t *testing.T) {
	for _, tt := range []struct {
		name    string
		a       Attributes
		reason  string
		message string
		details string
	}{
		{"a list at the cluster scope", Attributes{Verb: "list", IsResource: true, Resource: "namespaces"}, "",
			`namespaces is forbidden: User "ann" cannot list resource "namespaces" in API group "" at the cluster scope`,
			`{"kind":"namespaces"}`},
		{"a namespace is in itself", Attributes{Verb: "get", IsResource: true, Resource: "namespaces", Namespace: "default", Name: "default"}, "",
			`namespaces "default" is forbidden: User "ann" cannot get resource "namespaces" in API group "" in the namespace "default"`,
			`{"name":"default","kind":"namespaces"}`},
		{"an object at the cluster scope", Attributes{Verb: "get", IsResource: true, Group: "parity.example", Resource: "widgets", Name: "a"}, "",
			`widgets.parity.example "a" is forbidden: User "ann" cannot get resource "widgets" in API group "parity.example" at the cluster scope`,
			`{"name":"a","group":"parity.example","kind":"widgets"}`},
		{"a list of a group", Attributes{Verb: "list", IsResource: true, Group: "apps", Resource: "deployments"}, "",
			`deployments.apps is forbidden: User "ann" cannot list resource "deployments" in API group "apps" at the cluster scope`,
			`{"group":"apps","kind":"deployments"}`},
		{"a subresource", Attributes{Verb: "patch", IsResource: true, Group: "apps", Resource: "deployments", Subresource: "status", Namespace: "p", Name: "web"}, "",
			`deployments.apps "web" is forbidden: User "ann" cannot patch resource "deployments/status" in API group "apps" in the namespace "p"`,
			`{"name":"web","group":"apps","kind":"deployments"}`},
		{"a path", Attributes{Verb: "get", Path: "/metrics"}, "",
			`forbidden: User "ann" cannot get path "/metrics"`, `{}`},
		{"a path that looks like a page", Attributes{Verb: "get", Path: "/<b>&"}, "",
			`forbidden: User "ann" cannot get path "/&lt;b&gt;&amp;"`, `{}`},
		{"a reason", Attributes{Verb: "list", IsResource: true, Resource: "secrets", Namespace: "p"}, "ask <bob>",
			`secrets is forbidden: User "ann" cannot list resource "secrets" in API group "" in the namespace "p": ask <bob>`,
			`{"kind":"secrets"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.a.User = &user.DefaultInfo{Name: "ann"}
			got := Forbidden(tt.a, tt.reason).Status()
			details, err := json.Marshal(got.Details)
			if err != nil {
				t.Fatal(err)
			}
			if got.Message != tt.message || string(details) != tt.details || got.Code != 403 || got.Reason != "Forbidden" || got.Status != "Failure" {
				t.Errorf("got  %q %s %d %s %s\nwant %q %s", got.Message, details, got.Code, got.Reason, got.Status, tt.message, tt.details)
			}
		})
	}
	if got := Forbidden(Attributes{Verb: "get", Path: "/x"}, "").Error(); got != `forbidden: User "" cannot get path "/x"` {
		t.Errorf("for nobody: %s", got)
	}
}
