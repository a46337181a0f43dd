package server

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/pawl-dev/pawl/internal/patch"
	"github.com/pawl-dev/pawl/registry"
)

// apply is a server-side apply: the document says which fields its manager wants, and how
// (section 13 of the rules).
func (c *call) apply(doc []byte, o writing) error {
	config, err := decodeApplied(doc, o)
	if err != nil {
		return err
	}
	did, err := c.store.Update(c.r.Context(), c.namespace(), c.rt.name, c.through(c.applied(config, o)), registry.UpdateOptions{
		DryRun: o.dryRun, Patch: true, Owned: true, Create: c.rt.subresource == "", Authorize: c.mayCreate,
	})
	if err != nil {
		return err
	}
	return c.sendUpdated(did)
}

// decodeApplied reads the document, which is YAML and so may be JSON (rules H69, H139).
func decodeApplied(doc []byte, o writing) (*unstructured.Unstructured, error) {
	if o.validation == metav1.FieldValidationStrict {
		if _, err := yaml.YAMLToJSONStrict(doc); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding patch: %v", err))
		}
	}
	data, err := yaml.YAMLToJSON(doc)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	config := &unstructured.Unstructured{}
	if err := utiljson.UnmarshalCaseSensitivePreserveInts(data, &config.Object); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	if config.Object == nil {
		config.Object = map[string]any{}
	}
	return config, nil
}

// applied is the Desire of an apply: what exists, or nothing, merged with what is wanted.
func (c *call) applied(config *unstructured.Unstructured, o writing) registry.Desire {
	manager := c.query.Get("fieldManager")
	force, err := strconv.ParseBool(c.query.Get("force"))
	force = force && err == nil
	return func(_ context.Context, current runtime.Object) (runtime.Object, error) {
		if uid := config.GetUID(); current == nil && uid != "" {
			return nil, apierrors.NewConflict(c.res.GroupResource(), c.rt.name, fmt.Errorf(
				"uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
		}
		merged, err := c.owners().Apply(current, config.DeepCopy(), manager, force)
		if err != nil {
			return nil, err
		}
		data, err := c.form.Encode(merged)
		if err != nil {
			return nil, err
		}
		obj, findings, err := c.form.Decode(data)
		if err != nil {
			return nil, patch.Invalid(string(c.patchType()), data, nil, err.Error())
		}
		if err := c.findings(findings, o); err != nil {
			return nil, err
		}
		acc, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		if err := c.sameName(acc); err != nil {
			return nil, err
		}
		return obj, c.sameNamespace(acc)
	}
}
