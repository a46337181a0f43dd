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

	"github.com/pawl-dev/pawl/internal/objectjson"
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
		DryRun: o.dryRun, Patch: true, Reads: c.scale == nil, Owned: true, Create: c.rt.subresource == "", Authorize: c.mayCreate,
	})
	if err != nil {
		return err
	}
	return c.sendUpdated(did)
}

// decodeApplied reads the document, which is YAML and so may be JSON (rules H69, H139).
func decodeApplied(doc []byte, o writing) (*unstructured.Unstructured, error) {
	if content, ok := asJSON(doc); ok {
		return &unstructured.Unstructured{Object: content}, nil
	}
	if err := checkAliases(doc); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
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
		merged, err := c.owners().Apply(current, config, manager, force)
		if err != nil {
			return nil, err
		}
		obj, err := c.decodeMerged(merged, current, o)
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
		return obj, c.sameNamespace(acc)
	}
}

// A fitting form can say that writing an object and reading that would leave it as it is, and find
// nothing wrong in it.
type fitting interface{ Fits(obj runtime.Object) bool }

// decodeMerged reads what came of an apply as what a client sends is read. What that would leave as it
// is, is taken as it is, unless it is current itself, or part of it is.
func (c *call) decodeMerged(merged, current runtime.Object, o writing) (runtime.Object, error) {
	if f, ok := c.form.(fitting); ok && apart(merged, current) && f.Fits(merged) {
		return merged, nil
	}
	data, err := c.form.Encode(merged)
	if err != nil {
		return nil, err
	}
	obj, findings, err := c.form.Decode(data)
	if err != nil {
		return nil, patch.Invalid(string(c.patchType()), data, nil, err.Error())
	}
	return obj, c.findings(findings, o)
}

// apart says that two objects without a Go type share neither themselves nor their metadata, which
// is all of an object that is ever changed in place.
func apart(a, b runtime.Object) bool {
	x, xok := a.(*unstructured.Unstructured)
	y, yok := b.(*unstructured.Unstructured)
	if !xok || !yok {
		return false
	}
	xm, xok := x.Object["metadata"].(map[string]any)
	ym, yok := y.Object["metadata"].(map[string]any)
	return xok && yok && !objectjson.Same(x.Object, y.Object) && !objectjson.Same(xm, ym)
}
