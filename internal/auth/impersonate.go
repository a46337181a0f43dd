package auth

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/user"
)

const (
	impersonateUser  = "Impersonate-User"
	impersonateUID   = "Impersonate-Uid"
	impersonateGroup = "Impersonate-Group"
	impersonateExtra = "Impersonate-Extra-" // and then the key

	accountPrefix = "system:serviceaccount:" // and then namespace:name
	accountGroup  = "system:serviceaccounts" // and :namespace

	reviewGroup = "authentication.k8s.io"
)

// WithImpersonation puts the user whom the Impersonate headers name in the place of the one in
// the context, if that one may impersonate each value that they name (rule H207): 403 if not,
// 400 if they name no user. It belongs behind [Gate.WithAuthentication].
func (g *Gate) WithImpersonation(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wanted, err := impersonated(r.Header)
		if err == nil && wanted != nil {
			err = g.mayImpersonate(UserFrom(r.Context()), wanted)
		}
		if err != nil {
			g.fail(w, r, err)
			return
		}
		stripImpersonation(r.Header)
		if wanted != nil {
			r = r.WithContext(WithUser(r.Context(), settled(wanted)))
		}
		next.ServeHTTP(w, r)
	})
}

// impersonated returns the user whom the headers name, as they name them; nil if none does.
func impersonated(h http.Header) (*user.DefaultInfo, *apierrors.StatusError) {
	u := &user.DefaultInfo{
		Name:   h.Get(impersonateUser),
		UID:    h.Get(impersonateUID),
		Groups: slices.Clone(h[impersonateGroup]),
	}
	for name, values := range h {
		key, ok := strings.CutPrefix(name, impersonateExtra)
		if !ok {
			continue
		}
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		key = extraKey(key)
		u.Extra[key] = append(u.Extra[key], values...)
	}
	switch {
	case u.Name != "":
		return u, nil
	case u.UID != "" || u.Groups != nil || u.Extra != nil:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("requested %#v without impersonating a user name", u))
	}
	return nil, nil
}

// extraKey undoes what clients do to a key to make it fit for a header's name, which has no case.
func extraKey(s string) string {
	s = strings.ToLower(s)
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// mayImpersonate returns nil if who may impersonate each value of wanted.
func (g *Gate) mayImpersonate(who User, wanted *user.DefaultInfo) *apierrors.StatusError {
	for _, a := range toImpersonate(wanted) {
		a.User, a.Verb, a.Version, a.IsResource = who, "impersonate", "v1", true
		if allowed, reason := g.Authorizer.Authorize(a); !allowed {
			return Forbidden(a, reason)
		}
	}
	return nil
}

// toImpersonate returns what must be allowed to impersonate wanted: one for each value.
func toImpersonate(wanted *user.DefaultInfo) []Attributes {
	var as []Attributes
	if namespace, name, ok := account(wanted.Name); ok {
		as = append(as, Attributes{Resource: "serviceaccounts", Namespace: namespace, Name: name})
	} else {
		as = append(as, Attributes{Resource: "users", Name: wanted.Name})
	}
	if wanted.UID != "" {
		as = append(as, Attributes{Group: reviewGroup, Resource: "uids", Name: wanted.UID})
	}
	for _, group := range wanted.Groups {
		as = append(as, Attributes{Resource: "groups", Name: group})
	}
	for _, key := range slices.Sorted(maps.Keys(wanted.Extra)) {
		for _, value := range wanted.Extra[key] {
			as = append(as, Attributes{Group: reviewGroup, Resource: "userextras", Subresource: key, Name: value})
		}
	}
	return as
}

// settled returns wanted with the groups that go without saying.
func settled(wanted *user.DefaultInfo) User {
	u := *wanted
	if namespace, _, ok := account(u.Name); ok && len(u.Groups) == 0 {
		u.Groups = []string{accountGroup, accountGroup + ":" + namespace} // rule H198
	}
	if u.Name == user.Anonymous && !inGroup(&u, user.AllUnauthenticated) {
		u.Groups = append(u.Groups, user.AllUnauthenticated)
	}
	return authenticated(&u)
}

// account takes the user name of a service account apart (rule H198).
func account(username string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(username, accountPrefix)
	if !ok {
		return "", "", false
	}
	namespace, name, ok = strings.Cut(rest, ":")
	ok = ok && len(validation.IsDNS1123Label(namespace)) == 0 && len(validation.IsDNS1123Subdomain(name)) == 0
	return namespace, name, ok
}

func stripImpersonation(h http.Header) {
	for name := range h {
		if name == impersonateUser || name == impersonateUID || name == impersonateGroup || strings.HasPrefix(name, impersonateExtra) {
			h.Del(name)
		}
	}
}
