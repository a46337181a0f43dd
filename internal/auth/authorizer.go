package auth

import (
	"fmt"
	"path"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Attributes are what a request would do, and who would do it.
type Attributes struct {
	User User
	Verb string // get, list, create, …; for a path that is no resource, the method in lower case (rule H4)

	// IsResource tells whether a resource is meant: if so by the fields up to Name, else by Path.
	IsResource  bool
	Group       string
	Version     string
	Resource    string // the plural
	Subresource string
	Namespace   string // for a request for a namespace itself, that namespace: /api/v1/namespaces/x has namespace x and name x
	Name        string // also a name given only by a field selector (rule H4)

	Path string // of the URL, as it was sent
}

// An Authorizer says who may do what. It is safe for concurrent use.
type Authorizer interface {
	// Authorize tells whether a may be done, and why not if there is more to
	// say than that nothing allows it.
	Authorize(a Attributes) (allowed bool, reason string)
}

// Masters is the law where there are no roles: group system:masters may do everything
// (rule H202); others may read what says whether the server lives and which it is, and, if
// it is known who they are, what it serves, and ask who they are and what they may do (rule
// H205). All else is forbidden.
type Masters struct{}

// Authorize implements [Authorizer].
func (Masters) Authorize(a Attributes) (allowed bool, reason string) {
	switch {
	case a.User == nil:
		return false, ""
	case inGroup(a.User, user.SystemPrivilegedGroup):
		return true, ""
	case a.IsResource && a.Verb == "create" && a.Subresource == "" && slices.Contains(selfReviews[a.Group], a.Resource):
		return inGroup(a.User, user.AllAuthenticated), ""
	case a.IsResource || a.Verb != "get" && a.Verb != "head":
		return false, ""
	}
	switch purposeOf(a.Path) {
	case health, version:
		return true, ""
	case discovery:
		return inGroup(a.User, user.AllAuthenticated), ""
	}
	return false, ""
}

// A purpose is what a path that names no resource is for.
type purpose uint8

const (
	other     purpose = iota
	health            // is the server alive and ready
	version           // which server is it
	discovery         // what does it serve
)

// purposeOf says what a path is for. A path that is not in its shortest form is for nothing
// in particular: it might be taken for another once somebody has shortened it.
func purposeOf(p string) purpose {
	p = strings.TrimSuffix(p, "/")
	if !strings.HasPrefix(p, "/") || path.Clean(p) != p {
		return other
	}
	parts := strings.Split(p[1:], "/")
	switch first, depth := parts[0], len(parts); {
	case first == "healthz" || first == "livez" || first == "readyz":
		return health
	case p == "/version":
		return version
	case first == "api" && depth <= 2, first == "apis" && depth <= 3, first == "openapi":
		return discovery // below these depths are resources
	}
	return other
}

// isOpen tells whether a path is for those, too, who present no credential (rule H36).
func isOpen(p string) bool {
	is := purposeOf(p)
	return is == health || is == version
}

// escapeHTML keeps a message from looking like a page to a browser that is shown it; the
// reference does so in this message alone.
var escapeHTML = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Forbidden returns the 403 for what may not be done, in the words of rule H204.
func Forbidden(a Attributes, reason string) *apierrors.StatusError {
	text := escapeHTML.Replace(cannot(a))
	if reason != "" {
		text += ": " + reason
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name, fmt.Errorf("%s", text))
}

func cannot(a Attributes) string {
	name := ""
	if a.User != nil {
		name = a.User.GetName()
	}
	if !a.IsResource {
		return fmt.Sprintf("User %q cannot %s path %q", name, a.Verb, a.Path)
	}
	resource, where := a.Resource, "at the cluster scope"
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	if a.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	return fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", name, a.Verb, resource, a.Group, where)
}
