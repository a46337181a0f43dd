package crd

import (
	"context"
	"fmt"
	"math"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/operation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/pawl-dev/pawl/internal/metadata"
	"github.com/pawl-dev/pawl/internal/resource/crd/certain"
)

// A change is what is to be checked.
type change struct {
	now   *unstructured.Unstructured
	was   *unstructured.Unstructured // nil for a new object
	scope scope
}

type scope uint8

const (
	wholeObject scope = iota
	statusOnly
)

// check says what is wrong with an object. Rules of the schema come last, and only if
// nothing was found that could make them fail for the wrong reason (rule C76).
func (s customStrategy) check(ctx context.Context, c change) field.ErrorList {
	if errs := s.checkType(c.now); len(errs) > 0 {
		return append(errs, s.checkRest(ctx, c, nil)...)
	}
	errs := s.checkMetadata(ctx, c)
	found, err := s.checkSchema(c)
	if err != nil {
		return append(errs, field.InternalError(nil, err))
	}
	errs = append(errs, found...)
	if c.scope == wholeObject {
		errs = append(errs, s.checkSpecReplicas(c.now)...)
	}
	errs = append(errs, s.checkStatusReplicas(c.now)...)
	return append(errs, s.checkRest(ctx, c, errs)...)
}

// checkRest finds what the schema itself cannot say: about embedded objects, lists that are
// sets or maps, and rules. Errs is what was found before.
func (s customStrategy) checkRest(ctx context.Context, c change, errs field.ErrorList) field.ErrorList {
	st, err := s.schema.structural()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	var more field.ErrorList
	if c.scope == wholeObject && st.quick.Embeds() {
		more = append(more, objectmeta.Validate(ctx, nil, c.now.Object, st.Structural, false)...)
	}
	more = append(more, checkLists(st, c)...)
	if text := blocked(errs, more); text != "" {
		if rules, err := s.schema.rules(); err == nil && rules != nil {
			more = append(more, field.Invalid(nil, nil, text))
		}
		return more
	}
	return append(more, s.checkRules(ctx, st.Structural, c)...)
}

// checkType is about kind and apiVersion (rule C56).
func (s customStrategy) checkType(u *unstructured.Unstructured) field.ErrorList {
	var errs field.ErrorList
	if u.GetKind() != s.gvk.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), u.GetKind(), "must be "+s.gvk.Kind))
	}
	if gv := s.gvk.GroupVersion().String(); u.GetAPIVersion() != gv {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), u.GetAPIVersion(), "must be "+gv))
	}
	return errs
}

// checkMetadata is what the reference's strategy does too, although the registry does it as
// well: findings about an update come twice, once from each, as clients of the reference
// know them.
func (s customStrategy) checkMetadata(ctx context.Context, c change) field.ErrorList {
	if s.isMetadataFine(c) {
		return nil
	}
	path := field.NewPath("metadata")
	now, err := objectMeta(c.now)
	if err != nil {
		return field.ErrorList{field.Invalid(path, c.now.Object["metadata"], err.Error())}
	}
	if c.was == nil {
		return apivalidation.ValidateObjectMetaDeclaratively(ctx, operation.Create, now, nil,
			s.Policies.Namespaced, apivalidation.NameIsDNSSubdomain, path, true)
	}
	was, err := objectMeta(c.was)
	if err != nil {
		return field.ErrorList{field.Invalid(path, c.was.Object["metadata"], err.Error())}
	}
	return apivalidation.ValidateObjectMetaDeclaratively(ctx, operation.Update, now, was, s.Policies.Namespaced, nil, path, true)
}

// isMetadataFine says that the library would find nothing wrong with the metadata.
func (s customStrategy) isMetadataFine(c change) bool {
	now, _ := c.now.Object["metadata"].(map[string]any)
	if c.was == nil {
		return metadata.Born(now, s.Policies.Namespaced, apivalidation.NameIsDNSSubdomain)
	}
	was, _ := c.was.Object["metadata"].(map[string]any)
	return metadata.Succeeds(now, was)
}

func objectMeta(u *unstructured.Unstructured) (*metav1.ObjectMeta, error) {
	meta := &metav1.ObjectMeta{}
	content, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		return meta, nil
	}
	return meta, runtime.DefaultUnstructuredConverter.FromUnstructured(content, meta)
}

// checkSchema applies the schema: to the whole object, or to its status (rule C62). An update
// is not blamed for what it leaves as it was (rule C64).
func (s customStrategy) checkSchema(c change) (field.ErrorList, error) {
	if c.scope == statusOnly {
		return s.checkStatus(c)
	}
	v, err := s.schema.whole()
	if err != nil || v.quick.Judge(c.now.Object) == certain.Valid {
		return nil, err
	}
	if c.was == nil {
		return validation.ValidateCustomResource(nil, c.now.Object, v), nil
	}
	both, err := s.correlate(c)
	if err != nil {
		return nil, err
	}
	return validation.ValidateCustomResourceUpdate(nil, c.now.Object, c.was.Object, v, validation.WithRatcheting(both)), nil
}

func (s customStrategy) checkStatus(c change) (field.ErrorList, error) {
	status, ok := c.now.Object["status"]
	v, err := s.schema.status()
	if !ok || err != nil || v == nil || v.quick.Judge(status) == certain.Valid {
		return nil, err
	}
	both, err := s.correlate(c)
	if err != nil {
		return nil, err
	}
	return validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, c.was.Object["status"], v,
		validation.WithRatcheting(both.Key("status"))), nil
}

// correlate pairs the parts of the two objects. What it returns remembers what it compared, and
// is used by one goroutine.
func (s customStrategy) correlate(c change) (*common.CorrelatedObject, error) {
	st, err := s.schema.structural()
	if err != nil {
		return nil, err
	}
	return common.NewCorrelatedObject(c.now.Object, c.was.Object, &model.Structural{Structural: st.Structural}), nil
}

// checkLists finds duplicates in sets and maps. If the old object had some, the new one is not
// blamed for any (rule C67).
func checkLists(st *structure, c change) field.ErrorList {
	if st.quick.Distinct(c.now.Object) == certain.Valid {
		return nil
	}
	errs := listtype.ValidateListSetsAndMaps(nil, st.Structural, c.now.Object)
	if len(errs) > 0 && c.was != nil && len(listtype.ValidateListSetsAndMaps(nil, st.Structural, c.was.Object)) > 0 {
		return nil
	}
	return errs
}

// blocked says why rules are not evaluated, "" if they are.
func blocked(found ...field.ErrorList) string {
	for _, errs := range found {
		for _, err := range errs {
			switch err.Type {
			case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
				return "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
			}
		}
	}
	return ""
}

// checkRules evaluates x-kubernetes-validations (rules C71 to C80). The library warns, through
// the context, about rules that only fail on what did not change (rule C78).
func (s customStrategy) checkRules(ctx context.Context, st *structuralschema.Structural, c change) field.ErrorList {
	rules, err := s.schema.rules()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	if rules == nil {
		return nil
	}
	var old any
	var options []cel.Option
	if c.was != nil {
		both, err := s.correlate(c)
		if err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
		old, options = c.was.Object, append(options, cel.WithRatcheting(both))
	}
	errs, _ := rules.Validate(ctx, nil, st, c.now.Object, old, celconfig.RuntimeCELCostBudget, options...)
	return errs
}

// checkSpecReplicas and checkStatusReplicas check what /scale shows, on every write (rule C95).
func (s customStrategy) checkSpecReplicas(u *unstructured.Unstructured) field.ErrorList {
	if s.scale == nil {
		return nil
	}
	return checkReplicas(u, s.scale.SpecReplicasPath)
}

func (s customStrategy) checkStatusReplicas(u *unstructured.Unstructured) field.ErrorList {
	if s.scale == nil {
		return nil
	}
	errs := checkReplicas(u, s.scale.StatusReplicasPath)
	if path := s.scale.LabelSelectorPath; path != nil {
		if text, _, err := unstructured.NestedString(u.Object, fieldPath(*path)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(*path), text, err.Error()))
		}
	}
	return errs
}

func checkReplicas(u *unstructured.Unstructured, path string) field.ErrorList {
	n, _, err := unstructured.NestedInt64(u.Object, fieldPath(path)...)
	text := ""
	switch {
	case err != nil:
		text = err.Error()
	case n < 0:
		text = "should be a non-negative integer"
	case n > math.MaxInt32:
		text = fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath(path), n, text)}
}
