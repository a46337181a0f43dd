package crd

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	instancevalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/pawl-dev/pawl/registry"
)

// Strategy is what is particular about CustomResourceDefinitions. An object of another type is
// a bug of the caller, and panics.
type Strategy struct {
	registry.Default // cluster-scoped; no update creates one, none goes without a version (rule C10)
	// Now tells the time of a condition that changes.
	Now func() metav1.Time
}

// CleanupFinalizer holds a definition until its instances are gone (rule C30).
const CleanupFinalizer = apiextensionsv1.CustomResourceCleanupFinalizer

// PrepareForCreate resets the status and begins to count (rules C4, C9).
func (Strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	def := obj.(*apiextensionsv1.CustomResourceDefinition)
	def.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	def.Generation = 1
	noteStoredVersion(def)
}

// PrepareForUpdate keeps the status, counts changes of the spec, and notes the storage version
// (rules C9, C11, C12).
func (Strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	now, was := obj.(*apiextensionsv1.CustomResourceDefinition), old.(*apiextensionsv1.CustomResourceDefinition)
	was.Status.DeepCopyInto(&now.Status)
	if !equality.Semantic.DeepEqual(now.Spec, was.Spec) {
		now.Generation = was.Generation + 1
	}
	noteStoredVersion(now)
}

// noteStoredVersion records that objects may be stored in the storage version from now on.
func noteStoredVersion(def *apiextensionsv1.CustomResourceDefinition) {
	for _, v := range def.Spec.Versions {
		if v.Storage {
			if !slices.Contains(def.Status.StoredVersions, v.Name) {
				def.Status.StoredVersions = append(def.Status.StoredVersions, v.Name)
			}
			return
		}
	}
}

// Validate checks names, versions, schemas and their rules (rules C1 to C8, C13, C14, C37 to C45,
// C54, C65 to C69, C71 to C79).
func (Strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	now, err := internal(obj.(*apiextensionsv1.CustomResourceDefinition))
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	if errs := validation.ValidateCustomResourceDefinition(ctx, now); len(errs) > 0 {
		return errs
	}
	return checkConversion(now, nil)
}

// ValidateUpdate checks the same, forgives what was wrong before, and keeps names that must not
// change (rules C10, C11, C15).
func (Strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	now, was, err := internals(obj, old)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	if errs := validation.ValidateCustomResourceDefinitionUpdate(ctx, now, was); len(errs) > 0 {
		return errs
	}
	return checkConversion(now, was)
}

func internals(obj, old runtime.Object) (now, was *apiextensions.CustomResourceDefinition, err error) {
	if now, err = internal(obj.(*apiextensionsv1.CustomResourceDefinition)); err != nil {
		return nil, nil, err
	}
	was, err = internal(old.(*apiextensionsv1.CustomResourceDefinition))
	return now, was, err
}

// checkConversion refuses what is valid but not served yet.
func checkConversion(now, was *apiextensions.CustomResourceDefinition) field.ErrorList {
	byWebhook := func(d *apiextensions.CustomResourceDefinition) bool {
		return d != nil && d.Spec.Conversion != nil && d.Spec.Conversion.Strategy == apiextensions.WebhookConverter
	}
	if !byWebhook(now) || byWebhook(was) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "conversion", "strategy"), string(now.Spec.Conversion.Strategy),
		`webhook conversion is not served yet; use "None", which changes nothing but apiVersion`)}
}

// Warnings are about formats that nothing checks, and sets that cannot be merged (rule C16); an
// update is told only of new ones.
func (Strategy) Warnings(_ context.Context, obj, old runtime.Object) []string {
	texts := definitionWarnings(obj)
	if old == nil {
		return texts
	}
	known := definitionWarnings(old)
	return slices.DeleteFunc(texts, func(t string) bool { return slices.Contains(known, t) })
}

func definitionWarnings(obj runtime.Object) []string {
	def, err := internal(obj.(*apiextensionsv1.CustomResourceDefinition))
	if err != nil {
		return nil
	}
	var formats, sets []string
	look := func(s *apiextensions.JSONSchemaProps) bool {
		formats = append(formats, unknownFormats(s)...)
		if s.XListType != nil && *s.XListType == "set" && s.Items != nil && s.Items.Schema != nil {
			if t := s.Items.Schema.Type; t == "object" || t == "array" {
				sets = append(sets, fmt.Sprintf(
					"x-kubernetes-list-type: set for items of type %q is not supported by server-side apply or CEL validation rules", t))
			}
		}
		return false
	}
	validation.HasSchemaWith(&def.Spec, func(root *apiextensions.JSONSchemaProps) bool {
		return validation.SchemaHas(root, look)
	})
	slices.Sort(sets)
	return append(formats, slices.Compact(sets)...)
}

func unknownFormats(s *apiextensions.JSONSchemaProps) []string {
	if s.Format == "" {
		return nil
	}
	node := &spec.Schema{SchemaProps: spec.SchemaProps{Format: s.Format, Type: []string{s.Type}}}
	var texts []string
	for _, f := range instancevalidation.GetUnrecognizedFormats(node, environment.DefaultCompatibilityVersion()) {
		texts = append(texts, fmt.Sprintf("unrecognized format %q", f))
	}
	return texts
}

// PrepareForDelete holds a definition that may have instances until they are gone. One that
// was never served has none, and goes at once (rules C30, C34).
func (s Strategy) PrepareForDelete(_ context.Context, obj runtime.Object) {
	def := obj.(*apiextensionsv1.CustomResourceDefinition)
	if !Served(def) {
		return
	}
	if !slices.Contains(def.Finalizers, CleanupFinalizer) {
		def.Finalizers = append(def.Finalizers, CleanupFinalizer)
	}
	SetCondition(&def.Status, apiextensionsv1.CustomResourceDefinitionCondition{
		Type:    apiextensionsv1.Terminating,
		Status:  apiextensionsv1.ConditionTrue,
		Reason:  "InstanceDeletionPending",
		Message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
	}, s.Now())
}

// Served says whether a definition is, or ever was, served (rule C27).
func Served(def *apiextensionsv1.CustomResourceDefinition) bool {
	return apihelpers.IsCRDConditionTrue(def, apiextensionsv1.NamesAccepted) ||
		apihelpers.IsCRDConditionTrue(def, apiextensionsv1.Established)
}

// StatusStrategy is the strategy of /status of definitions. Unlike that of other resources
// it lets metadata through, as the reference does: its clean-up takes the finalizer away there.
type StatusStrategy struct{ registry.Default }

// PrepareForUpdate keeps the spec.
func (StatusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	now, was := obj.(*apiextensionsv1.CustomResourceDefinition), old.(*apiextensionsv1.CustomResourceDefinition)
	was.Spec.DeepCopyInto(&now.Spec)
}

// ValidateUpdate checks the status: its stored versions may be trimmed here, down to those
// that the spec has (rule C12).
func (StatusStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	now, was, err := internals(obj, old)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return validation.ValidateUpdateCustomResourceDefinitionStatus(ctx, now, was)
}
