package auth

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
)

const unauthorized = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}` + "\n"

// newGate lets in root, who is a master, and ann, who is not, by token.
func newGate(t *testing.T) *Gate {
	return &Gate{
		Authenticator: Union{newAuthority(t, "ours").certificates(), tokens(t,
			Token{"root", somebody("root", "system:masters")}, Token{"ann", somebody("ann")})},
		Authorizer: Masters{},
	}
}

// A behind is what is behind a gate: it remembers whom and what it saw.
type behind struct {
	user   User
	header http.Header
}

func (b *behind) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	b.user, b.header = UserFrom(r.Context()), r.Header.Clone()
}

func TestWithAuthentication(t *testing.T) {
	ann := somebody("ann", "system:authenticated")
	for _, tt := range []struct {
		name, path, header string
		user               User // nil: 401
	}{
		{"who presents nothing may see health (rule H36)", "/readyz", "", anonymous},
		{"who presents nothing may see the version", "/version", "", anonymous},
		{"who presents nothing may not see discovery", "/apis", "", nil},
		{"who presents nothing may not see objects", "/api/v1/namespaces", "", nil},
		{"who presents nothing may not see metrics", "/metrics", "", nil},
		{"who presents nothing may not see what does not exist", "/nothing", "", nil},
		{"who presents nothing gets nowhere by a detour", "/healthz/../metrics", "", nil},
		{"who presents what nobody knows may not even see health (rule H195)", "/healthz", "Bearer none", nil},
		{"who presents what nobody knows may see nothing", "/api", "Bearer none", nil},
		{"who is known is seen behind it", "/api/v1/namespaces", "Bearer ann", ann},
		{"who is known is known on open paths too", "/healthz", "Bearer ann", ann},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var seen behind
			r, w := request("GET", tt.path), httptest.NewRecorder()
			if tt.header != "" {
				r.Header.Set("Authorization", tt.header)
			}
			newGate(t).WithAuthentication(&seen).ServeHTTP(w, r)
			if tt.user == nil {
				if seen.user != nil || w.Code != 401 || w.Body.String() != unauthorized || w.Header().Get("Content-Type") != "application/json" {
					t.Errorf("got %d %v %s; behind it was %v", w.Code, w.Header(), w.Body, seen.user)
				}
				return
			}
			if w.Code != 200 || !reflect.DeepEqual(seen.user, tt.user) {
				t.Errorf("got %d, user %v, want %v", w.Code, seen.user, tt.user)
			}
		})
	}
}

func TestCredentialsGoNoFurther(t *testing.T) {
	var seen behind
	r := request("GET", "/api", "Authorization", "Bearer root", "X-Remote-User", "eve", "X-Remote-Group", "system:masters", "X-Remote-Uid", "1",
		"X-Remote-Extra-Scopes", "all", "Impersonate-User", "ann", "Impersonate-Group", "crew", "Impersonate-Uid", "1", "Impersonate-Extra-A", "b", "User-Agent", "kubectl")
	g := newGate(t)
	g.WithAuthentication(g.WithImpersonation(&seen)).ServeHTTP(httptest.NewRecorder(), r)
	if want := (http.Header{"User-Agent": {"kubectl"}}); !reflect.DeepEqual(seen.header, want) {
		t.Errorf("behind the gate: %v", seen.header)
	}
	if r.Header.Get("Authorization") != "" {
		t.Error("whoever logs the request afterwards sees the token")
	}
}

func TestUnknownSendersLoseTheirConnection(t *testing.T) {
	for _, tt := range []struct {
		name, token string
		major       int
		want        string
	}{
		{"of HTTP/2, if nobody knows them", "", 2, "close"},
		{"of HTTP/2, but not if they are known", "Bearer ann", 2, ""},
		{"not of HTTP/1", "", 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, path := range []string{"/healthz", "/api"} {
				r, w := request("GET", path), httptest.NewRecorder()
				r.ProtoMajor = tt.major
				if tt.token != "" {
					r.Header.Set("Authorization", tt.token)
				}
				newGate(t).WithAuthentication(&behind{}).ServeHTTP(w, r)
				if got := w.Header().Get("Connection"); got != tt.want {
					t.Errorf("%s: Connection: %q, want %q", path, got, tt.want)
				}
			}
		})
	}
}

func TestRefusedCredentialsAreLoggedWithoutThem(t *testing.T) {
	var log bytes.Buffer
	g := newGate(t)
	g.Logger = slog.New(slog.NewTextHandler(&log, nil))
	g.WithAuthentication(&behind{}).ServeHTTP(httptest.NewRecorder(), request("GET", "/api", "Authorization", "Bearer hunter2"))
	if !strings.Contains(log.String(), "a credential was refused") || strings.Contains(log.String(), "hunter2") {
		t.Errorf("log: %s", &log)
	}
	log.Reset()
	g.WithAuthentication(&behind{}).ServeHTTP(httptest.NewRecorder(), request("GET", "/api"))
	if log.Len() > 0 {
		t.Errorf("log for no credential: %s", &log)
	}
}

func TestRefusalsCanBeAnsweredByTheServer(t *testing.T) {
	var got *apierrors.StatusError
	g := newGate(t)
	g.Fail = func(w http.ResponseWriter, _ *http.Request, err *apierrors.StatusError) { got = err }
	g.WithAuthentication(&behind{}).ServeHTTP(httptest.NewRecorder(), request("GET", "/api"))
	if !apierrors.IsUnauthorized(got) {
		t.Errorf("got %v", got)
	}
}

func TestWithImpersonation(t *testing.T) {
	for _, tt := range []struct {
		name    string
		who     string // whose token
		headers []string
		user    User   // nil: refused
		refused string // in these words
	}{
		{"nobody is impersonated unless asked for", "ann", nil, somebody("ann", "system:authenticated"), ""},
		{"an empty name asks for nobody", "ann", []string{"Impersonate-User", ""}, somebody("ann", "system:authenticated"), ""},
		{"a master may be anybody, who is then authenticated (rule H207)", "root", []string{"Impersonate-User", "bob"}, somebody("bob", "system:authenticated"), ""},
		{"a master loses their own groups", "root", []string{"Impersonate-User", "root"}, somebody("root", "system:authenticated"), ""},
		{"groups, uid and extra are taken over", "root",
			[]string{"Impersonate-User", "bob", "Impersonate-Group", "crew", "Impersonate-Group", "cooks", "Impersonate-Uid", "u1", "Impersonate-Extra-Scopes", "a", "Impersonate-Extra-Scopes", "b", "Impersonate-Extra-Acme.com%2fproject", "p"},
			&user.DefaultInfo{Name: "bob", UID: "u1", Groups: []string{"crew", "cooks", "system:authenticated"}, Extra: map[string][]string{"scopes": {"a", "b"}, "acme.com/project": {"p"}}}, ""},
		{"a key that cannot be unescaped is taken as it is", "root", []string{"Impersonate-User", "bob", "Impersonate-Extra-A%zz", "x"},
			&user.DefaultInfo{Name: "bob", Groups: []string{"system:authenticated"}, Extra: map[string][]string{"a%zz": {"x"}}}, ""},
		{"a service account is in its groups (rule H198)", "root", []string{"Impersonate-User", "system:serviceaccount:p:bot"},
			somebody("system:serviceaccount:p:bot", "system:serviceaccounts", "system:serviceaccounts:p", "system:authenticated"), ""},
		{"a service account with other groups is in those", "root", []string{"Impersonate-User", "system:serviceaccount:p:bot", "Impersonate-Group", "crew"},
			somebody("system:serviceaccount:p:bot", "crew", "system:authenticated"), ""},
		{"a name that only begins like a service account's is a name", "root", []string{"Impersonate-User", "system:serviceaccount:P_:bot"},
			somebody("system:serviceaccount:P_:bot", "system:authenticated"), ""},
		{"nobody can be impersonated too, and is not authenticated", "root", []string{"Impersonate-User", "system:anonymous"},
			somebody("system:anonymous", "system:unauthenticated"), ""},
		{"whoever is said not to be authenticated is not", "root", []string{"Impersonate-User", "bob", "Impersonate-Group", "system:unauthenticated"},
			somebody("bob", "system:unauthenticated"), ""},

		{"others may be nobody but themselves", "ann", []string{"Impersonate-User", "bob"}, nil,
			`403 users "bob" is forbidden: User "ann" cannot impersonate resource "users" in API group "" at the cluster scope`},
		{"not even themselves by that way", "ann", []string{"Impersonate-User", "ann"}, nil, `403 users "ann" is forbidden`},
		{"nor a master", "ann", []string{"Impersonate-User", "root", "Impersonate-Group", "system:masters"}, nil, `403 users "root" is forbidden`},
		{"nor a service account", "ann", []string{"Impersonate-User", "system:serviceaccount:p:bot"}, nil,
			`403 serviceaccounts "bot" is forbidden: User "ann" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "p"`},
		{"groups without a name are a bad request", "root", []string{"Impersonate-Group", "crew"}, nil,
			`400 requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"crew"}, Extra:map[string][]string(nil)} without impersonating a user name`},
		{"a uid without a name is a bad request", "root", []string{"Impersonate-Uid", "1"}, nil, "400 requested"},
		{"extra without a name is a bad request", "root", []string{"Impersonate-Extra-A", "b"}, nil, "400 requested"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var seen behind
			var refused string
			g := newGate(t)
			g.Fail = func(_ http.ResponseWriter, _ *http.Request, err *apierrors.StatusError) {
				refused = http.StatusText(int(err.ErrStatus.Code))
				refused = map[string]string{"Forbidden": "403 ", "Bad Request": "400 "}[refused] + err.Error()
			}
			r := request("GET", "/api", append(tt.headers, "Authorization", "Bearer "+tt.who)...)
			g.WithAuthentication(g.WithImpersonation(&seen)).ServeHTTP(httptest.NewRecorder(), r)
			if !strings.HasPrefix(refused, tt.refused) || (refused == "") != (tt.refused == "") {
				t.Errorf("refused: %q, want %q", refused, tt.refused)
			}
			if !reflect.DeepEqual(seen.user, tt.user) {
				t.Errorf("user %#v, want %#v", seen.user, tt.user)
			}
		})
	}
}

// A lawOf allows what it lists.
type lawOf []Attributes

func (l lawOf) Authorize(a Attributes) (bool, string) {
	a.User = nil
	for _, allowed := range l {
		if a == allowed {
			return true, ""
		}
	}
	return false, "not on the list"
}

func TestEachImpersonatedValueMustBeAllowed(t *testing.T) {
	to := func(group, resource, sub, name string) Attributes {
		return Attributes{Verb: "impersonate", IsResource: true, Group: group, Version: "v1", Resource: resource, Subresource: sub, Name: name}
	}
	all := lawOf{
		to("", "users", "", "bob"), to("", "groups", "", "crew"), to("", "groups", "", "cooks"),
		to("authentication.k8s.io", "uids", "", "u1"),
		to("authentication.k8s.io", "userextras", "scopes", "a"), to("authentication.k8s.io", "userextras", "scopes", "b"),
	}
	headers := []string{"Authorization", "Bearer ann", "Impersonate-User", "bob", "Impersonate-Group", "crew", "Impersonate-Group", "cooks",
		"Impersonate-Uid", "u1", "Impersonate-Extra-Scopes", "a", "Impersonate-Extra-Scopes", "b"}
	ask := func(law lawOf) (seen behind, answer string) {
		g := newGate(t)
		g.Authorizer = law
		w := httptest.NewRecorder()
		g.WithAuthentication(g.WithImpersonation(&seen)).ServeHTTP(w, request("GET", "/api", headers...))
		return seen, w.Body.String()
	}
	if seen, answer := ask(all); seen.user == nil {
		t.Errorf("all is allowed, but: %s", answer)
	}
	for i := range all {
		law := append(append(lawOf{}, all[:i]...), all[i+1:]...)
		seen, answer := ask(law)
		if seen.user != nil || !strings.Contains(answer, `\"`+all[i].Name+`\" is forbidden`) || !strings.Contains(answer, ": not on the list") {
			t.Errorf("without %v: user %v, %s", all[i], seen.user, answer)
		}
	}
}

func TestNobodyIsInAnEmptyContext(t *testing.T) {
	if u := UserFrom(t.Context()); u != nil {
		t.Errorf("got %v", u)
	}
	if u := UserFrom(WithUser(t.Context(), Anonymous())); u.GetName() != "system:anonymous" {
		t.Errorf("got %v", u)
	}
}
