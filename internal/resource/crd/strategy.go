package crd

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/internal/objectjson"
	"github.com/pawl-dev/pawl/registry"
)

// A customStrategy is what is particular about one version of a custom resource. An object
// that is no Unstructured is a bug of the caller, and panics.
type customStrategy struct {
	registry.Default
	gvk       schema.GroupVersionKind
	schema    *versionSchema
	hasStatus bool
	scale     *apiextensionsv1.CustomResourceSubresourceScale // nil if not declared
}

func newCustomStrategy(d *definition, v *apiextensionsv1.CustomResourceDefinitionVersion) customStrategy {
	s := customStrategy{
		// Neither created nor overwritten by an update that names no version (rule C111).
		Default: registry.Default{Policies: registry.Policy{
			Namespaced: d.Spec.Scope == apiextensionsv1.NamespaceScoped,
		}},
		gvk:    d.gvk(v.Name),
		schema: d.schemas[v.Name],
	}
	if sub := v.Subresources; sub != nil {
		s.hasStatus, s.scale = sub.Status != nil, sub.Scale
	}
	return s
}

// PrepareForCreate drops the status if it has its own endpoint (rules C91, H174).
func (s customStrategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	u := obj.(*unstructured.Unstructured)
	if s.hasStatus {
		delete(u.Object, "status")
	}
	u.SetGeneration(1)
}

// PrepareForUpdate keeps the stored status if it has its own endpoint, and counts changes of
// anything but metadata (rules C91, C112).
func (s customStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	now, was := obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured)
	if s.hasStatus {
		setStatus(now, was)
	}
	if !sameButMetadata(now.Object, was.Object) {
		now.SetGeneration(was.GetGeneration() + 1)
	}
}

// setStatus makes the status of to that of from, or none if from has none.
func setStatus(to, from *unstructured.Unstructured) {
	if status, ok := from.Object["status"]; ok {
		to.Object["status"] = runtime.DeepCopyJSONValue(status)
	} else {
		delete(to.Object, "status")
	}
}

func sameButMetadata(a, b map[string]any) bool {
	return membersBesideMetadata(a) == membersBesideMetadata(b) && holdsAllButMetadata(a, b)
}

func membersBesideMetadata(a map[string]any) int {
	if _, ok := a["metadata"]; ok {
		return len(a) - 1
	}
	return len(a)
}

// holdsAllButMetadata says whether b has all that a has.
func holdsAllButMetadata(a, b map[string]any) bool {
	for k, v := range a {
		if k == "metadata" {
			continue
		}
		if w, ok := b[k]; !ok || !objectjson.Equal(v, w) {
			return false
		}
	}
	return true
}

// Validate checks everything (rules C56 to C61, C67, C71 to C77).
func (s customStrategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return s.check(ctx, change{now: obj.(*unstructured.Unstructured), scope: wholeObject})
}

// ValidateUpdate checks everything, the stored status included, but forgives what was wrong
// before and is unchanged (rules C62, C64, C78).
func (s customStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return s.check(ctx, change{now: obj.(*unstructured.Unstructured), was: old.(*unstructured.Unstructured), scope: wholeObject})
}

// Warnings are about names of new finalizers that others might use too (rule C63).
func (s customStrategy) Warnings(_ context.Context, obj, old runtime.Object) []string {
	var had []string
	if old != nil {
		had = old.(*unstructured.Unstructured).GetFinalizers()
	}
	added := slices.Clone(obj.(*unstructured.Unstructured).GetFinalizers())
	added = slices.DeleteFunc(added, func(f string) bool { return slices.Contains(had, f) })
	slices.Sort(added)
	var warnings []string
	for _, f := range slices.Compact(added) {
		warnings = append(warnings, finalizerWarnings(f)...)
	}
	return warnings
}

// standardFinalizers are those that Kubernetes itself uses without a domain.
var standardFinalizers = []string{
	metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents, string(corev1.FinalizerKubernetes),
}

func finalizerWarnings(name string) []string {
	var texts []string
	for _, text := range utilvalidation.IsQualifiedName(name) {
		texts = append(texts, fmt.Sprintf("metadata.finalizers: %q: %s", name, text))
	}
	if strings.Contains(name, "/") || slices.Contains(standardFinalizers, name) {
		return texts
	}
	path := ""
	if strings.Contains(name, ".") {
		path = " including a path (/)"
	}
	return append(texts, fmt.Sprintf(
		"metadata.finalizers: %q: prefer a domain-qualified finalizer name%s to avoid accidental conflicts with other finalizer writers", name, path))
}

// A statusStrategy is the strategy of /status: whatever else is written, only the status
// changes (rules C91, H173, H175).
type statusStrategy struct{ customStrategy }

func newStatusStrategy(main customStrategy) statusStrategy {
	main.Policies.KeepMetadata = true
	return statusStrategy{main}
}

// PrepareForUpdate keeps everything that is stored but the status, and of the metadata what
// says who manages which field.
func (s statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	now, was := obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured)
	sent := now.Object
	now.Object = make(map[string]any, len(was.Object))
	for name, value := range was.Object {
		if name != "status" {
			now.Object[name] = runtime.DeepCopyJSONValue(value)
		}
	}
	if status, ok := sent["status"]; ok {
		now.Object["status"] = status
	}
	keepManagers(now, sent)
}

// keepManagers gives to the managedFields of from, or none if from has none.
func keepManagers(to *unstructured.Unstructured, from map[string]any) {
	unstructured.RemoveNestedField(to.Object, "metadata", "managedFields")
	meta, _ := from["metadata"].(map[string]any)
	if managers, ok := meta["managedFields"]; ok {
		if kept, ok := to.Object["metadata"].(map[string]any); ok {
			kept["managedFields"] = managers
		}
	}
}

// ValidateUpdate checks the status and the rules (rule C62).
func (s statusStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return s.check(ctx, change{now: obj.(*unstructured.Unstructured), was: old.(*unstructured.Unstructured), scope: statusOnly})
}

// Warnings returns none: the finalizers are those that are stored.
func (statusStrategy) Warnings(context.Context, runtime.Object, runtime.Object) []string { return nil }
