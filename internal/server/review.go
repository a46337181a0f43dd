package server

import (
	"context"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/pawl-dev/pawl/internal/auth"
	"github.com/pawl-dev/pawl/internal/resource"
)

// review answers a question about rights or identities (rules B74, H200, H205). Nothing is
// stored, so a dry run is the same.
func (c *call) review() error {
	obj, _, err := c.receiveHere()
	if err != nil {
		return err
	}
	if err := c.ver.Review(c.r.Context(), asker{c}, obj); err != nil {
		return err
	}
	return c.sendObject(http.StatusCreated, obj)
}

// An asker is the sender of a call, to a review.
type asker struct{ c *call }

var _ resource.Asker = asker{}

func (a asker) User() auth.User   { return a.c.user }
func (a asker) Namespace() string { return a.c.namespace() }

// Allowed asks the authorizer what the server itself would ask.
func (a asker) Allowed(who auth.User, at *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) (allowed bool, reason string) {
	attrs := auth.Attributes{User: who}
	switch {
	case at != nil:
		attrs.IsResource, attrs.Verb = true, at.Verb
		attrs.Group, attrs.Version, attrs.Resource, attrs.Subresource = at.Group, at.Version, at.Resource, at.Subresource
		attrs.Namespace, attrs.Name = at.Namespace, at.Name
	case path != nil:
		attrs.Verb, attrs.Path = path.Verb, path.Path
	}
	return a.c.s.authorizer.Authorize(attrs)
}

// Rules asks an authorizer that can list rights for them. Of another nothing is known but
// that it was asked.
func (a asker) Rules(who auth.User, namespace string) authorizationv1.SubjectRulesReviewStatus {
	if lists, ok := a.c.s.authorizer.(auth.Lister); ok {
		return lists.Rules(who, namespace)
	}
	return authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{},
		Incomplete: true, EvaluationError: "the authorizer in place cannot list what somebody may do",
	}
}

// Holder presents a token as its holder would to the audience.
func (a asker) Holder(ctx context.Context, token, audience string) auth.User {
	if a.c.s.authenticator == nil {
		return nil
	}
	r := (&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}).WithContext(auth.ForAudience(ctx, audience))
	who, err := a.c.s.authenticator.Authenticate(r)
	if err != nil {
		return nil // why is for the log alone, and a token is asked about to learn just this
	}
	return who
}
