package resource

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
)

// A Review answers a question that is asked by creating an object: it writes the answer into
// the object, which nobody stores (rules B74, H200, H205).
type Review func(ctx context.Context, by Asker, obj runtime.Object) error

// An Asker is who asks, and what the server knows of everybody's rights.
type Asker interface {
	// User is who sent the request, and Namespace where it was sent to; "" for none.
	User() user.Info
	Namespace() string
	// Allowed tells whether somebody may do something to a resource or, if that is nil, with a
	// path that is none; and why not, if there is more to say than that nothing allows it.
	Allowed(who user.Info, resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes) (allowed bool, reason string)
	// Rules is what somebody may do in a namespace, as far as that can be listed.
	Rules(who user.Info, namespace string) authorizationv1.SubjectRulesReviewStatus
	// Holder is who holds a bearer token for an audience; nil for one that nobody knows.
	Holder(ctx context.Context, token, audience string) user.Info
}

// A Posted is what clients may post to an object through one of its doors, and what becomes of
// it (rules B51, B52).
type Posted struct {
	Form Form
	// Do does it, and returns the answer; nil to say that it is done.
	Do func(ctx context.Context, at Address, obj runtime.Object) (runtime.Object, error)
}

// An Address says to which object something is posted, and whether only to see what would
// come of it.
type Address struct {
	Namespace, Name string
	DryRun          bool
}

// Reviews reports whether r is answered and forgotten, so that there are no objects of it.
func (r *Resource) Reviews() bool { return len(r.Versions) > 0 && r.Versions[0].Review != nil }
