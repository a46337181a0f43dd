package server

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/pawl-dev/pawl/internal/auth"
)

// readers lets everybody ask anything, and ann read config maps beside.
type readers struct{}

func (readers) Authorize(a auth.Attributes) (bool, string) {
	switch {
	case strings.HasSuffix(a.Resource, "reviews"):
		return true, ""
	case a.IsResource && a.User.GetName() == "ann" && a.Resource == "configmaps" && a.Verb == "get":
		return true, "ann reads"
	case !a.IsResource && a.Path == "/version":
		return true, ""
	}
	return false, ""
}

// listing can list rights as well.
type listing struct{ readers }

func (listing) Rules(who auth.User, namespace string) authorizationv1.SubjectRulesReviewStatus {
	return authorizationv1.SubjectRulesReviewStatus{EvaluationError: who.GetName() + " in " + namespace}
}

// oneToken knows one token.
type oneToken struct{}

func (oneToken) Authenticate(r *http.Request) (auth.User, error) {
	if r.Header.Get("Authorization") == "Bearer good" && auth.AudienceFrom(r.Context()) != "elsewhere" {
		return auth.NewUser("bob", "crew"), nil
	}
	return nil, errors.New("not known")
}

func TestReviewsAreAnsweredAndForgotten(t *testing.T) { // rules B74, H200, H205
	w := newWorld(t, readers{})
	w.server.authenticator = oneToken{}
	const authn, authz = "/apis/authentication.k8s.io/v1/", "/apis/authorization.k8s.io/v1/"
	const both = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
	for _, tt := range []struct {
		name, path, body string
		code             int
		want             string
	}{
		{"who one is", authn + "selfsubjectreviews", `{}`, 201, `"status":{"userInfo":{"username":"ann"}}`},
		{"a dry run is the same", authn + "selfsubjectreviews?dryRun=All", `{}`, 201, `"username":"ann"`},
		{"who holds a token", authn + "tokenreviews", `{"spec":{"token":"good"}}`, 201, `"status":{"authenticated":true,"user":{"username":"bob","groups":["crew"]},"audiences":["https://kubernetes.default.svc"]}`},
		{"a token that nobody knows", authn + "tokenreviews", `{"spec":{"token":"bad"}}`, 201, `"status":{"user":{}}`},
		{"a token for others is not known here", authn + "tokenreviews", `{"spec":{"token":"good","audiences":["elsewhere"]}}`, 201, `"status":{"user":{}}`},
		{"for whom a token is", authn + "tokenreviews", `{"spec":{"token":"good","audiences":["elsewhere","here"]}}`, 201, `"audiences":["here"]}`},
		{"no token at all", authn + "tokenreviews", `{}`, 400, `token is required`},
		{"whether one may", authz + "selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"get","resource":"configmaps"}}}`, 201, `"status":{"allowed":true,"reason":"ann reads"}`},
		{"whether one may not", authz + "selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"get","resource":"secrets"}}}`, 201, `"status":{"allowed":false}`},
		{"a path", authz + "selfsubjectaccessreviews", `{"spec":{"nonResourceAttributes":{"verb":"get","path":"/version"}}}`, 201, `"status":{"allowed":true}`},
		{"nothing is asked", authz + "selfsubjectaccessreviews", `{"spec":{}}`, 422, both},
		{"two things are asked", authz + "selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{},"nonResourceAttributes":{}}}`, 422, both},
		{"a name names nothing", authz + "selfsubjectaccessreviews", `{"metadata":{"name":"a"},"spec":{"resourceAttributes":{}}}`, 422, "metadata: Invalid value: {"},
		{"whether somebody else may", authz + "subjectaccessreviews", `{"spec":{"user":"bob","resourceAttributes":{"verb":"get","resource":"configmaps"}}}`, 201, `"status":{"allowed":false}`},
		{"somebody has to be named", authz + "subjectaccessreviews", `{"spec":{"resourceAttributes":{}}}`, 422, `spec.user: Invalid value: \"\": at least one of user or group must be specified`},
		{"in one namespace", authz + "namespaces/a/localsubjectaccessreviews", `{"spec":{"user":"ann","resourceAttributes":{"namespace":"a","verb":"get","resource":"configmaps"}}}`, 201, `"status":{"allowed":true`},
		{"in that namespace alone", authz + "namespaces/a/localsubjectaccessreviews", `{"spec":{"user":"ann","resourceAttributes":{"namespace":"b"}}}`, 422, "must match metadata.namespace"},
		{"a path is in no namespace", authz + "namespaces/a/localsubjectaccessreviews", `{"spec":{"user":"ann","nonResourceAttributes":{}}}`, 422, "disallowed on this kind of request"},
		{"sent to another namespace than it says", authz + "namespaces/a/localsubjectaccessreviews", `{"metadata":{"namespace":"b"}}`, 400, "does not match the namespace sent on the request"},
		{"a question for a namespace, asked of all", authz + "localsubjectaccessreviews", `{}`, 405, "does not allow this method"},
		{"all that one may, of an authorizer that cannot say", authz + "selfsubjectrulesreviews", `{"spec":{"namespace":"a"}}`, 201, `"resourceRules":[],"nonResourceRules":[],"incomplete":true`},
		{"all that one may, nowhere", authz + "selfsubjectrulesreviews", `{"spec":{}}`, 400, "no namespace on request"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := w.do("POST", tt.path, tt.body, "Content-Type", "application/json")
			if got.Code != tt.code || !strings.Contains(got.Body.String(), tt.want) {
				t.Errorf("%d %s, want %d and %s", got.Code, got.Body, tt.code, tt.want)
			}
		})
	}
}

func TestAReviewIsNoObject(t *testing.T) {
	w := newWorld(t, allowAll{})
	const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	for _, tt := range []struct {
		name, method, path string
		code               int
	}{
		{"there is no list", "GET", path, 405},
		{"there is no watch", "GET", path + "?watch=1", 405},
		{"nor is anything deleted", "DELETE", path, 405},
		{"none has a name", "GET", path + "/a", 404},
		{"none is put", "PUT", path + "/a", 404},
		{"none has a status of its own", "GET", path + "/a/status", 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := w.do(tt.method, tt.path, ""); got.Code != tt.code {
				t.Errorf("%d %s, want %d", got.Code, got.Body, tt.code)
			}
		})
	}
}

func TestAnAuthorizerThatListsIsAsked(t *testing.T) {
	got := newWorld(t, listing{}).must("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `{"spec":{"namespace":"a"}}`).Body.String()
	if !strings.Contains(got, `"evaluationError":"ann in a"`) {
		t.Error(got)
	}
}
