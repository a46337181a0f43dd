package auth

import (
	"context"
	"slices"

	"k8s.io/apiserver/pkg/authentication/user"
)

// A User is somebody who sends requests. It is not changed once it is made.
type User = user.Info

// NewUser returns somebody of that name, in those groups.
func NewUser(name string, groups ...string) User {
	return &user.DefaultInfo{Name: name, Groups: groups}
}

// anonymous is who sends a request without credentials (rule H199).
var anonymous = &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}

// Anonymous returns who sends a request without credentials (rule H199).
func Anonymous() User { return anonymous }

// authenticated returns u in group system:authenticated, unless it is somebody to
// whom that does not apply (rule H199).
func authenticated(u User) User {
	groups := u.GetGroups()
	if u.GetName() == user.Anonymous || inGroup(u, user.AllAuthenticated) || inGroup(u, user.AllUnauthenticated) {
		return u
	}
	return &user.DefaultInfo{
		Name:   u.GetName(),
		UID:    u.GetUID(),
		Groups: append(slices.Clone(groups), user.AllAuthenticated),
		Extra:  u.GetExtra(),
	}
}

func inGroup(u User, group string) bool { return slices.Contains(u.GetGroups(), group) }

type userKey struct{}

// WithUser returns a context in which u is who sent the request.
func WithUser(ctx context.Context, u User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// UserFrom returns who sent the request, nil if nobody said.
func UserFrom(ctx context.Context) User {
	u, _ := ctx.Value(userKey{}).(User)
	return u
}
