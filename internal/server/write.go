package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/internal/auth"
	"github.com/pawl-dev/pawl/internal/patch"
	"github.com/pawl-dev/pawl/registry"
)

// receiveHere receives an object that is of the path's namespace: what is posted.
func (c *call) receiveHere() (runtime.Object, writing, error) {
	obj, o, err := c.receive()
	if err != nil {
		return nil, o, err
	}
	acc, err := meta.Accessor(obj)
	if err != nil {
		return nil, o, c.undecodable(err)
	}
	return obj, o, c.sameNamespace(acc)
}

// create stores a new object (section 8 of the rules).
func (c *call) create() error {
	obj, o, err := c.receiveHere()
	if err != nil {
		return err
	}
	v, err := c.store.Create(c.r.Context(), c.namespace(), obj, registry.CreateOptions{DryRun: o.dryRun})
	if err != nil {
		return err
	}
	return c.sendVersion(http.StatusCreated, v)
}

// sameNamespace refuses an object of another namespace than that of the path (rule H86).
func (c *call) sameNamespace(obj metav1.Object) error {
	if ns := obj.GetNamespace(); c.res.Namespaced && ns != "" && ns != c.rt.namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// update puts an object in the place of another (section 11 of the rules).
func (c *call) update() error {
	obj, o, err := c.receive()
	if err != nil {
		return err
	}
	acc, err := meta.Accessor(obj)
	if err != nil {
		return c.undecodable(err)
	}
	if err := c.sameName(acc); err != nil {
		return err
	}
	if err := c.sameNamespace(acc); err != nil {
		return err
	}
	c.pace(o)
	did, err := c.put(obj, registry.UpdateOptions{
		DryRun: o.dryRun, UID: acc.GetUID(), Authorize: c.mayCreate, Patch: c.scale != nil, Owned: c.scale != nil, Rebase: o.rebase,
	})
	if err != nil {
		return err
	}
	return c.sendUpdated(did)
}

// put has obj take the place of what is there.
func (c *call) put(obj runtime.Object, o registry.UpdateOptions) (registry.Updated, error) {
	if c.scale != nil {
		desire := c.through(registry.Exactly(obj))
		if o.Rebase {
			desire = naming(obj, desire)
		}
		return c.store.Update(c.r.Context(), c.namespace(), c.rt.name, desire, o)
	}
	return c.store.Replace(c.r.Context(), c.namespace(), c.rt.name, c.fresh(obj), o)
}

// naming is a Desire for an object that names the version that sent does, or none. A scale that names none
// would otherwise stand for one of the version that exists, and a rebase has to know which was read.
func naming(sent runtime.Object, desire registry.Desire) registry.Desire {
	return func(ctx context.Context, current runtime.Object) (runtime.Object, error) {
		obj, err := desire(ctx, current)
		if err != nil {
			return nil, err
		}
		from, err := meta.Accessor(sent)
		if err != nil {
			return nil, err
		}
		to, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		to.SetResourceVersion(from.GetResourceVersion())
		return obj, nil
	}
}

// fresh returns the object that was received: as it was read first, then read anew each time.
func (c *call) fresh(first runtime.Object) func() (runtime.Object, error) {
	return func() (runtime.Object, error) {
		if obj := first; obj != nil {
			first = nil
			return obj, nil
		}
		obj, _, err := c.form.Decode(c.received)
		return obj, err
	}
}

// sameName refuses an object of another name than that of the path (rule H126).
func (c *call) sameName(obj metav1.Object) error {
	if name := obj.GetName(); name != "" && name != c.rt.name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, c.rt.name))
	}
	if obj.GetName() == "" {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", c.rt.name))
	}
	return nil
}

// mayCreate asks for the right to create, which an update needs that creates (rule H208).
func (c *call) mayCreate(context.Context) error {
	rt := c.rt
	rt.verb = "create"
	attrs := rt.attributes(c.user, nil)
	if allowed, why := c.s.authorizer.Authorize(attrs); !allowed {
		return auth.Forbidden(attrs, why)
	}
	return nil
}

// sendUpdated answers with what an update left: the object, also if it went (rule H128). Who had it
// rebased is told what that came to.
func (c *call) sendUpdated(did registry.Updated) error {
	c.write.succeeded()
	if did.Rebased != nil {
		c.warnings.tell(did.Rebased.String())
	}
	switch {
	case did.Removed != nil:
		return c.sendObject(http.StatusOK, did.Removed)
	case did.Created:
		return c.sendVersion(http.StatusCreated, did.Version)
	}
	return c.sendVersion(http.StatusOK, did.Version)
}

// patchType is the media type of a patch, without parameters.
func (c *call) patchType() types.PatchType {
	media, err := mediaOf(c.r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return types.PatchType(media)
}

// applies reports whether the call is a server-side apply.
func (c *call) applies() bool {
	return c.patchType() == types.ApplyYAMLPatchType && c.rt.verb == "patch"
}

// patch changes an object (section 12 of the rules).
func (c *call) patch() error {
	media := string(c.patchType())
	if !slices.Contains(c.form.Patches(), media) || c.applies() && c.owners() == nil {
		return c.noSuchPatch()
	}
	doc, err := c.readBody()
	if err != nil {
		return err
	}
	o, err := c.writing()
	if err != nil {
		return err
	}
	c.pace(o)
	if c.applies() {
		return c.apply(doc, o)
	}
	if err := patch.Check(media, doc); err != nil {
		return err
	}
	did, err := c.store.Update(c.r.Context(), c.namespace(), c.rt.name, c.through(c.patched(media, doc, o)), registry.UpdateOptions{
		DryRun: o.dryRun, Patch: true, Reads: c.scale == nil, Owned: c.scale != nil, Rebase: o.rebase,
	})
	if err != nil {
		return err
	}
	return c.sendUpdated(did)
}

// noSuchPatch is the answer to a patch of a type that the resource does not take (rule H129).
// For built-ins the router of the reference answers, in words of its own.
func (c *call) noSuchPatch() error {
	if c.res.Custom {
		return unsupportedMedia("the body of the request was in an unknown format", c.form.Patches())
	}
	return status(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "415: Unsupported Media Type", &metav1.StatusDetails{})
}

// patched is the Desire of a patch: what exists, with the patch applied. It may run several
// times; what it warns of is told once.
func (c *call) patched(media string, doc []byte, o writing) registry.Desire {
	return func(_ context.Context, current runtime.Object) (runtime.Object, error) {
		if current == nil {
			return nil, apierrors.NewNotFound(c.res.GroupResource(), c.rt.name)
		}
		old, err := meta.Accessor(current)
		if err != nil {
			return nil, err
		}
		before, err := c.form.Encode(current)
		if err != nil {
			return nil, err
		}
		after, findings, err := patch.Apply(media, before, doc, c.form.Typed())
		if err != nil {
			return nil, err
		}
		obj, err := c.decodePatched(media, doc, after, findings, o)
		if err != nil {
			return nil, err
		}
		acc, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		if err := c.sameName(acc); err != nil {
			return nil, err
		}
		if ns := acc.GetNamespace(); ns != old.GetNamespace() && ns != "" {
			return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
		}
		return obj, nil
	}
}

// decodePatched reads what came of a patch. What strict validation finds is a 422 here (rule
// H68).
func (c *call) decodePatched(media string, doc, data []byte, findings []string, o writing) (runtime.Object, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, patch.Invalid(media, data, doc, err.Error())
	}
	if _, err := c.typeOf(data); err != nil {
		return nil, err
	}
	obj, more, err := c.form.Decode(data)
	if err != nil {
		return nil, patch.Invalid(media, data, doc, err.Error())
	}
	findings = append(findings, more...)
	if len(findings) > 0 && o.validation == metav1.FieldValidationStrict {
		return nil, patch.Invalid(media, data, doc, strictText(findings))
	}
	return obj, c.findings(findings, o)
}
