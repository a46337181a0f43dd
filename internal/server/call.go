package server

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/warning"

	"github.com/pawl-dev/pawl/internal/auth"
	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/internal/server/discovery"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// A call is one request for a resource, understood.
type call struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	rt    route
	user  auth.User
	query url.Values

	catalogue *resource.Catalogue
	res       *resource.Resource
	ver       *resource.Version
	store     *registry.Store
	form      resource.Form
	scale     *resource.Scale  // of the object, if that is what the path names
	posted    *resource.Posted // to the object, if the path names a door that takes something
	look      look
	received  []byte // the object that was sent, as the form reads it
	headed    bool   // the columns of a table have been described
	warnings  *warnings
	write     *write // if it is paced
}

// serveResource finds what is meant, and serves it.
func (s *Server) serveResource(w http.ResponseWriter, r *http.Request, rt route, user auth.User) {
	c := &call{s: s, w: w, r: r, rt: rt, user: user, catalogue: s.catalogue.Catalogue(), look: look{media: mediaJSON}}
	serve, ok := c.find()
	if !ok {
		return
	}
	var err error
	if c.query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		// What does not parse must not count as left out: a DELETE would lose its selector.
		c.fail(apierrors.NewBadRequest(fmt.Sprintf("the query of the request URL does not parse: %v", err)))
		return
	}
	o := offer{protobuf: c.form.Typed() != nil && s.protobuf != nil, metadata: s.protobuf != nil, watch: rt.verb == "watch"}
	if c.look, err = negotiate(r, o); err == nil {
		err = c.checkRendering()
	}
	if err == nil {
		err = c.checkOnConflict()
	}
	if err != nil {
		c.fail(err)
		return
	}
	ctx, cancel, err := c.deadline()
	if err != nil {
		c.fail(err)
		return
	}
	defer cancel()
	c.warnings = &warnings{}
	if c.ver.Deprecated != "" {
		c.warnings.AddWarning("", c.ver.Deprecated)
	}
	ctx = warning.WithWarningRecorder(ctx, c.warnings)
	c.r = r.WithContext(storage.WithAuthor(ctx, c.author()))
	defer c.unpace()
	if err := serve(c); err != nil {
		c.fail(err)
	}
}

// lookup finds the resource and its version in the catalogue. One that is unknown may be another server's, which this one
// has not heard of yet.
func (c *call) lookup() {
	for confirmed := c.s.confirm == nil; ; confirmed = true {
		if c.res = c.catalogue.Lookup(c.rt.group, c.rt.resource); c.res != nil {
			c.ver = c.res.Version(c.rt.version)
		}
		if c.ver != nil || confirmed {
			return
		}
		ctx, cancel := context.WithTimeout(c.r.Context(), confirmMax)
		err := c.s.confirm(ctx)
		cancel()
		if err != nil {
			return // it is as unknown as it was
		}
		c.catalogue = c.s.catalogue.Catalogue()
	}
}

// confirmMax is how long it may take to find out whether a resource exists that is not known.
const confirmMax = 5 * time.Second

// find looks the resource up and picks what serves the verb; if there is nothing it answers.
func (c *call) find() (func(*call) error, bool) {
	c.lookup()
	if c.ver == nil || c.rt.extra {
		return nil, c.notHere()
	}
	c.store, c.form = c.ver.Store, c.ver.Form
	if c.misplaced() || c.ver.Review != nil && c.rt.name != "" {
		return nil, c.notHere()
	}
	if c.rt.subresource != "" {
		sub := c.ver.Subresources[c.rt.subresource]
		if sub == nil {
			return nil, c.noSubresource()
		}
		c.store = sub.Store
		if c.posted = sub.Posted; c.posted != nil {
			c.form = c.posted.Form
		}
		if c.scale = sub.Scale; c.scale != nil {
			c.form = c.scale.Form()
		}
		if !slices.Contains(sub.Verbs, c.rt.verb) {
			return nil, c.notAllowed()
		}
	}
	if c.res.Custom && c.rt.namespace == "" && c.res.Namespaced && c.rt.verb != "list" && c.rt.verb != "watch" {
		return nil, c.notHere()
	}
	serve := verbs[c.rt.verb]
	switch {
	case serve == nil || !c.fits():
		return nil, c.notAllowed()
	case c.ver.Review != nil:
		return (*call).review, true
	case c.posted != nil:
		return (*call).post, true
	}
	return serve, true
}

var verbs = map[string]func(*call) error{
	"get": (*call).get, "list": (*call).list, "watch": (*call).watch, "create": (*call).create, "update": (*call).update,
	"patch": (*call).patch, "delete": (*call).delete, "deletecollection": (*call).deleteCollection,
}

// misplaced reports whether the path puts the resource where it is not: in a namespace
// although it has none, or one object of it in no namespace (rules H6, H7).
func (c *call) misplaced() bool {
	ns := c.rt.namespace
	if c.rt.resource == "namespaces" && c.rt.group == "" {
		ns = ""
	}
	return !c.res.Namespaced && ns != "" || c.res.Namespaced && ns == "" && c.rt.name != ""
}

// methods are those that mean something. Others have a verb as well, for authorization, and
// that may be the name of one that they do not stand for.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// fits reports whether method, verb and path go together (rules H4, H6, H20). A built-in is not
// asked for with HEAD, and a watch never: it would show nothing, for an hour.
func (c *call) fits() bool {
	switch {
	case !slices.Contains(methods, c.r.Method):
		return false
	case c.r.Method == http.MethodHead && (!c.res.Custom || c.rt.verb == "watch"):
		return false
	}
	if c.ver.Review != nil && c.rt.verb != "create" {
		return false
	}
	named, ns := c.rt.name != "", c.rt.namespace != "" || !c.res.Namespaced
	switch c.rt.verb {
	case "create":
		return named == (c.posted != nil) && ns
	case "update", "patch", "delete":
		return named
	case "deletecollection":
		return ns && !c.res.NoDeleteCollection
	}
	return true
}

// notHere answers a request for a resource that does not exist.
func (c *call) notHere() bool {
	discovery.NotFound(c.w, c.r, c.catalogue)
	return false
}

// noSubresource answers a request for a subresource that is not declared (rules H9, C97).
func (c *call) noSubresource() bool {
	if c.res.Custom {
		c.fail(apierrors.NewNotFound(c.res.GroupResource(), c.rt.name))
		return false
	}
	return c.notHere()
}

// notAllowed answers a method that the resource does not have (rule H10).
func (c *call) notAllowed() bool {
	if c.res.Custom {
		c.fail(apierrors.NewMethodNotSupported(c.res.GroupResource(), c.rt.verb))
		return false
	}
	c.fail(status(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		"the server does not allow this method on the requested resource", &metav1.StatusDetails{}))
	return false
}

// namespace returns the namespace of the objects that the call is about.
func (c *call) namespace() string {
	if !c.res.Namespaced {
		return ""
	}
	return c.rt.namespace
}

// deadline bounds the call (rules H81, H213), and the time that the client may take for the
// answer; a watch has bounds of its own.
func (c *call) deadline() (context.Context, context.CancelFunc, error) {
	if c.rt.verb == "watch" {
		ctx, cancel := context.WithCancel(c.r.Context())
		return ctx, cancel, nil
	}
	limit := readTimeout
	if c.rt.verb != "get" && c.rt.verb != "list" {
		limit = writeTimeout
	}
	if t := c.query.Get("timeout"); t != "" {
		d, err := time.ParseDuration(t)
		if err != nil {
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("invalid timeout specified in the request URL: %v", err))
		}
		if d > 0 && d < limit {
			limit = d
		}
	}
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(limit + answerMax))
	ctx, cancel := context.WithTimeout(c.r.Context(), limit)
	return ctx, cancel, nil
}

// managerMax is how long the name of a field manager may be, in bytes (rule H78).
const managerMax = 128

// author says who is to be remembered for what the call writes (rule H150).
func (c *call) author() kv.Author {
	manager := c.query.Get("fieldManager")
	if manager == "" {
		manager, _, _ = strings.Cut(c.r.UserAgent(), "/")
	}
	manager = cutRunes(strings.Map(printable, manager), managerMax) // a delete's is checked nowhere else
	if manager == "" {
		manager = "unknown"
	}
	verb := c.rt.verb
	if verb == "deletecollection" {
		verb = "delete"
	}
	return kv.Author{User: c.user.GetName(), Manager: manager, Verb: verb, Subresource: c.rt.subresource}
}

func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return -1
}
