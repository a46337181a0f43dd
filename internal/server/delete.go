package server

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utiljson "sigs.k8s.io/json"

	"github.com/pawl-dev/pawl/registry"
)

// delete removes an object, or marks it (section 14 of the rules).
func (c *call) delete() error {
	o, err := c.deleteOptions()
	if err != nil {
		return err
	}
	if ignoresReadErrors(o) {
		if err := c.mayIgnoreReadErrors(); err != nil {
			return err
		}
	}
	did, err := c.store.Delete(c.r.Context(), c.namespace(), c.rt.name, o)
	if err != nil {
		return err
	}
	if did.Object == nil {
		c.s.respondStatus(c.w, c.look, metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusOK, Details: &metav1.StatusDetails{
			Name: c.rt.name, Kind: c.res.Kind,
		}})
		return nil
	}
	code := http.StatusOK
	if !did.Removed && o.OrphanDependents != nil && !*o.OrphanDependents {
		code = http.StatusAccepted // rule H166
	}
	if !did.Removed || c.store.Policy().ReturnDeleted {
		return c.sendVersion(code, did.Version)
	}
	c.warnings.send(c.w.Header())
	c.s.respondStatus(c.w, c.look, metav1.Status{Status: metav1.StatusSuccess, Code: 0, Details: &metav1.StatusDetails{
		Name: did.Object.GetName(), Group: c.res.Group, Kind: c.res.Plural, UID: did.Object.GetUID(),
	}})
	return nil
}

// ignoresReadErrors says whether what cannot be read is to be removed unseen (rule H170).
func ignoresReadErrors(o *metav1.DeleteOptions) bool {
	return o.IgnoreStoreReadErrorWithClusterBreakingPotential != nil && *o.IgnoreStoreReadErrorWithClusterBreakingPotential
}

// mayIgnoreReadErrors asks for the right to remove what cannot be read, which is one of its own.
func (c *call) mayIgnoreReadErrors() error {
	rt := c.rt
	rt.verb = "unsafe-delete-ignore-read-errors"
	if allowed, why := c.s.authorizer.Authorize(rt.attributes(c.user, nil)); !allowed {
		return apierrors.NewForbidden(c.store.Resource(), rt.name, fmt.Errorf("not permitted to do %q, reason: %s", rt.verb, why))
	}
	return nil
}

// deleteCollection deletes what the query picks (rule H168).
func (c *call) deleteCollection() error {
	reading, err := c.reading()
	if err != nil {
		return err
	}
	o, err := c.deleteOptions()
	if err != nil {
		return err
	}
	if ignoresReadErrors(o) {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", field.ErrorList{
			field.Invalid(field.NewPath("ignoreStoreReadErrorWithClusterBreakingPotential"), true, "is not allowed with DELETECOLLECTION, try again after removing the option"),
		})
	}
	page, err := c.store.DeleteCollection(c.r.Context(), registry.ListOptions{
		Namespace: c.namespace(), From: reading.from, Limit: reading.limit, Selector: reading.selector(),
	}, o)
	if err != nil {
		return err
	}
	return c.sendPage(page)
}

// deleteOptions returns the options of a delete. They are judged before anything is looked up:
// what nobody can mean is a 422 even where there is nothing to delete (rule H163).
func (c *call) deleteOptions() (*metav1.DeleteOptions, error) {
	o, err := c.readDeleteOptions()
	if err != nil {
		return nil, err
	}
	if errs := metav1validation.ValidateDeleteOptions(o); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	return o, nil
}

// readDeleteOptions reads the options from the body or, if that is empty, from the query (rule
// H159).
func (c *call) readDeleteOptions() (*metav1.DeleteOptions, error) {
	data, err := c.readBody()
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return deleteQuery(c.query)
	}
	media, err := bodyMedia(c.r, true)
	if err != nil {
		return nil, err
	}
	o := &metav1.DeleteOptions{}
	switch media {
	case mediaYAML:
		if data, _, err = fromYAML(data); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	case mediaProtobuf:
		return c.deleteProtobuf(data)
	}
	if err := utiljson.UnmarshalCaseSensitivePreserveInts(data, o); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("couldn't get version/kind; json parse error: %v", err))
	}
	if err := c.checkDeleteKind(o.GroupVersionKind()); err != nil {
		return nil, err
	}
	return o, nil
}

// checkDeleteKind says whether a body is DeleteOptions, of the core group, of meta.k8s.io or
// of the group of the resource.
func (c *call) checkDeleteKind(k schema.GroupVersionKind) error {
	gv := k.GroupVersion()
	known := gv.Empty() || gv.Version == "v1" && (gv.Group == "" || gv.Group == metav1.GroupName) || gv == c.form.GroupVersionKind().GroupVersion()
	if k.Kind != "" && k.Kind != "DeleteOptions" || !known {
		return apierrors.NewBadRequest(fmt.Sprintf("decoded object cannot be converted to DeleteOptions: it is %s", k))
	}
	return nil
}

func (c *call) deleteProtobuf(data []byte) (*metav1.DeleteOptions, error) {
	if c.s.protobuf == nil {
		return nil, unsupportedMedia("the body of the request was in an unknown format", []string{mediaJSON, mediaYAML})
	}
	o := &metav1.DeleteOptions{}
	_, k, err := c.s.protobuf.Decode(data, &schema.GroupVersionKind{Version: "v1", Kind: "DeleteOptions"}, o)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return o, c.checkDeleteKind(*k)
}

// deleteQuery reads the options from a query.
func deleteQuery(q url.Values) (*metav1.DeleteOptions, error) {
	o := &metav1.DeleteOptions{DryRun: q["dryRun"]}
	if text := q.Get("gracePeriodSeconds"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		o.GracePeriodSeconds = &n
	}
	if text := q.Get("orphanDependents"); text != "" {
		b := text != "0" && text != "false"
		o.OrphanDependents = &b
	}
	if text := q.Get("propagationPolicy"); text != "" {
		p := metav1.DeletionPropagation(text)
		o.PropagationPolicy = &p
	}
	if text := q.Get("ignoreStoreReadErrorWithClusterBreakingPotential"); text != "" {
		b := text != "0" && text != "false"
		o.IgnoreStoreReadErrorWithClusterBreakingPotential = &b
	}
	if uid, rv := q.Get("uid"), q.Get("resourceVersion"); uid != "" || rv != "" {
		o.Preconditions = &metav1.Preconditions{}
		if uid != "" {
			u := types.UID(uid)
			o.Preconditions.UID = &u
		}
		if rv != "" {
			o.Preconditions.ResourceVersion = &rv
		}
	}
	return o, nil
}
