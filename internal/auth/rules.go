package auth

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// A Lister is an [Authorizer] that can say all that somebody may do.
type Lister interface {
	Authorizer
	// Rules is what somebody may do in a namespace, and with paths that are no resources. What
	// it does not list Authorize may still allow if the answer says that it is incomplete.
	Rules(who User, namespace string) authorizationv1.SubjectRulesReviewStatus
}

var _ Lister = Masters{}

// selfReviews are what everybody who is known may create: the questions about oneself (rule
// H205).
var selfReviews = map[string][]string{
	"authentication.k8s.io": {"selfsubjectreviews"},
	"authorization.k8s.io":  {"selfsubjectaccessreviews", "selfsubjectrulesreviews"},
}

// Rules implements [Lister].
func (Masters) Rules(who User, _ string) authorizationv1.SubjectRulesReviewStatus {
	s := authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{}}
	if inGroup(who, user.SystemPrivilegedGroup) {
		s.ResourceRules = append(s.ResourceRules, authorizationv1.ResourceRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
		s.NonResourceRules = append(s.NonResourceRules, authorizationv1.NonResourceRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}})
	}
	paths := []string{"/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*", "/version", "/version/"}
	if inGroup(who, user.AllAuthenticated) {
		for _, group := range []string{"authentication.k8s.io", "authorization.k8s.io"} {
			s.ResourceRules = append(s.ResourceRules, authorizationv1.ResourceRule{Verbs: []string{"create"}, APIGroups: []string{group}, Resources: selfReviews[group]})
		}
		paths = append(paths, "/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*")
	}
	s.NonResourceRules = append(s.NonResourceRules, authorizationv1.NonResourceRule{Verbs: []string{"get", "head"}, NonResourceURLs: paths})
	return s
}
