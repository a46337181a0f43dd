package server

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// reading is what the query of a list or a watch says (rule H77).
type reading struct {
	labels         labels.Selector
	fields         fields.Selector
	from           storage.From // of a list
	limit          int64
	watchFrom      storage.WatchFrom // of a watch
	bookmarks      bool
	timeoutSeconds int64
}

func (o reading) selector() storage.Selector {
	return storage.Selector{Labels: o.labels, Fields: o.fields}
}

// reading reads the query of a list or watch. What does not parse is a 400 (rule H75), what
// does not go together a 422 (rules K47, K48, H98, H111).
func (c *call) reading() (reading, error) {
	q := c.query
	var o reading
	var p parser
	o.limit = p.integer(q, "limit")
	o.timeoutSeconds = p.integer(q, "timeoutSeconds")
	o.bookmarks = p.boolean(q, "allowWatchBookmarks")
	if p.err == nil {
		o.labels, p.err = labels.Parse(q.Get("labelSelector"))
	}
	if p.err == nil {
		o.fields, p.err = fields.ParseSelector(q.Get("fieldSelector"))
	}
	if p.err == nil {
		p.err = c.checkFields(o.fields)
	}
	if p.err != nil {
		return o, apierrors.NewBadRequest(p.err.Error())
	}
	if err := c.readFrom(&o); err != nil {
		return o, err
	}
	if c.rt.name != "" { // the deprecated watch path of one object
		one := fields.OneTermEqualSelector("metadata.name", c.rt.name)
		o.fields = fields.AndSelectors(o.fields, one)
	}
	return o, nil
}

// readFrom reads where a list or a watch begins.
func (c *call) readFrom(o *reading) (err error) {
	q := c.query
	version, match, token := q.Get("resourceVersion"), q.Get("resourceVersionMatch"), q.Get("continue")
	var initial *bool
	if q.Has("sendInitialEvents") {
		b := (&parser{}).boolean(q, "sendInitialEvents")
		initial = &b
	}
	if c.rt.verb == "watch" {
		o.watchFrom, err = storage.WatchQuery{
			ResourceVersion: version, ResourceVersionMatch: match, Continue: token, SendInitialEvents: initial, AllowBookmarks: o.bookmarks,
		}.Parse()
		return c.store.WatchError(err)
	}
	list := storage.ListQuery{ResourceVersion: version, ResourceVersionMatch: match, Limit: o.limit, Continue: token, SendInitialEvents: initial}
	if c.rt.verb == "deletecollection" && o.limit == 0 {
		list.Limit = registry.DeleteCollectionPage // it always reads pages, so that a version alone means exactly that one
		o.from, _, err = list.Parse()
		return c.store.ListError(err)
	}
	o.from, o.limit, err = list.Parse()
	return c.store.ListError(err)
}

// checkFields says whether the resource can be selected by the fields of a selector (rule H83).
func (c *call) checkFields(sel fields.Selector) error {
	for _, r := range sel.Requirements() {
		known := r.Field == "metadata.name" || r.Field == "metadata.namespace" && c.res.Namespaced ||
			slices.Contains(c.ver.FieldLabels, r.Field)
		switch {
		case known:
		case c.res.Custom || len(c.ver.FieldLabels) > 0:
			return fmt.Errorf("field label not supported: %s", r.Field)
		default:
			return fmt.Errorf("%q is not a known field selector: only %q, %q", r.Field, "metadata.name", "metadata.namespace")
		}
	}
	return nil
}

// parser reads values of a query and keeps the first error.
type parser struct{ err error }

func (p *parser) integer(q url.Values, name string) int64 {
	text := q.Get(name)
	if text == "" || p.err != nil {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	p.err = err
	return n
}

// boolean reads a truth as the reference does: anything but 0 and false is true.
func (p *parser) boolean(q url.Values, name string) bool {
	v, ok := q[name]
	return ok && len(v) > 0 && v[0] != "0" && v[0] != "false"
}

// writing is what the query of a write says (rules H64, H76, H78 to H80).
type writing struct {
	dryRun     bool
	validation string // Ignore, Warn or Strict
	rebase     bool   // see onConflict
}

// writing reads the query of a create, an update or a patch.
func (c *call) writing() (writing, error) {
	q := c.query
	dryRun := q["dryRun"]
	var errs field.ErrorList
	kind := ""
	switch c.rt.verb {
	case "create":
		kind = "CreateOptions"
		errs = metav1validation.ValidateCreateOptions(&metav1.CreateOptions{DryRun: dryRun, FieldManager: q.Get("fieldManager"), FieldValidation: q.Get("fieldValidation")})
	case "update":
		kind = "UpdateOptions"
		errs = metav1validation.ValidateUpdateOptions(&metav1.UpdateOptions{DryRun: dryRun, FieldManager: q.Get("fieldManager"), FieldValidation: q.Get("fieldValidation")})
	case "patch":
		kind = "PatchOptions"
		o := &metav1.PatchOptions{DryRun: dryRun, FieldManager: q.Get("fieldManager"), FieldValidation: q.Get("fieldValidation")}
		if q.Has("force") {
			b, err := strconv.ParseBool(q.Get("force"))
			if err != nil {
				return writing{}, apierrors.NewBadRequest(err.Error())
			}
			o.Force = &b
		}
		errs = metav1validation.ValidatePatchOptions(o, c.patchType())
	}
	if len(errs) > 0 {
		return writing{}, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
	}
	o := writing{dryRun: len(dryRun) > 0, validation: q.Get("fieldValidation"), rebase: q.Has(onConflict)}
	if o.validation == "" {
		o.validation = metav1.FieldValidationWarn
	}
	return o, nil
}

// onConflict is the parameter by which the sender of an update says what is to become of it if it is
// based on an older version; onConflictRebase is its one value. The reference has no such parameter.
const (
	onConflict       = "onConflict"
	onConflictRebase = "rebase"
)

// checkOnConflict refuses the parameter where it means nothing: to ignore it would be to do what the
// sender did not want.
func (c *call) checkOnConflict() error {
	values, ok := c.query[onConflict]
	switch {
	case !ok:
		return nil
	case len(values) != 1 || values[0] != onConflictRebase:
		return apierrors.NewBadRequest(fmt.Sprintf("invalid %s %q: the only value is %q; leave it out to have an update refused that is based on an older version",
			onConflict, strings.Join(values, ","), onConflictRebase))
	case c.rt.verb != "update" && c.rt.verb != "patch":
		return apierrors.NewBadRequest(fmt.Sprintf("%s is for PUT and PATCH: this is a %s", onConflict, c.rt.verb))
	case c.applies():
		return apierrors.NewBadRequest(onConflict + " is not for an apply, which changes the fields that it names in whatever exists; leave metadata.resourceVersion out of what you apply")
	}
	return nil
}
