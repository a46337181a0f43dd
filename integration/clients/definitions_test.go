package clients

import (
	"context"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pawl-dev/pawl/pawltest"
)

var wheels = schema.GroupVersionResource{Group: "ratchet.example", Version: "v1", Resource: "wheels"}

// wheelDefinition defines wheels: teeth are counted, 12 unless said otherwise, at least one.
func wheelDefinition() *apiextensionsv1.CustomResourceDefinition {
	least := 1.0
	properties := func(p map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: p}
	}
	root := properties(map[string]apiextensionsv1.JSONSchemaProps{
		"spec": properties(map[string]apiextensionsv1.JSONSchemaProps{
			"teeth": {Type: "integer", Minimum: &least, Default: &apiextensionsv1.JSON{Raw: []byte("12")}},
			"steps": {Type: "integer"},
		}),
		"status": properties(map[string]apiextensionsv1.JSONSchemaProps{"at": {Type: "integer"}}),
	})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: named(wheels.GroupResource().String()),
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: wheels.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "wheels", Singular: "wheel", Kind: "Wheel", ListKind: "WheelList"},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &root},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// wheel is a wheel as a client writes it.
func wheel(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": wheels.GroupVersion().String(), "kind": "Wheel",
		"metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

// defined makes the definition of wheels and returns clients of both.
func defined(ctx context.Context, t *testing.T, config *rest.Config) (clientset.Interface, dynamic.NamespaceableResourceInterface) {
	t.Helper()
	config = unthrottled(config)
	definitions, err := clientset.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := definitions.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, wheelDefinition(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return definitions, objects.Resource(wheels)
}

// A definition is usable the moment the call that created it returns: there is no waiting in
// this test, and none in what it calls.
func TestDefinitionIsUsableAtOnce(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	_, all := defined(ctx, t, pawltest.New(t))
	got, err := all.Namespace("default").Create(ctx, wheel("first", map[string]any{}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if teeth, _, _ := unstructured.NestedInt64(got.Object, "spec", "teeth"); teeth != 12 {
		t.Errorf("a wheel that is told nothing has %d teeth, want the default 12", teeth)
	}
}

// The dynamic client leads a custom object through its life (spec/http.md H65, H173-H175, H178).
func TestDynamic(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	_, all := defined(ctx, t, pawltest.New(t))
	c := all.Namespace("default")
	seen, err := c.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()

	first, err := c.Create(ctx, wheel("first", map[string]any{"steps": int64(1)}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if teeth, _, _ := unstructured.NestedInt64(first.Object, "spec", "teeth"); teeth != 12 {
		t.Errorf("a wheel that is told nothing has %d teeth, want the default 12", teeth)
	}
	_, err = c.Create(ctx, wheel("bald", map[string]any{"teeth": int64(0)}), metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("a wheel without teeth: %v, want invalid", err)
	}
	turned := statusWritten(ctx, t, c, first)
	if _, err := c.Update(ctx, first, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update from before the status was written: %v, want a conflict", err)
	}
	got, err := c.Patch(ctx, "first", types.MergePatchType, []byte(`{"spec":{"steps":2},"status":{"at":9}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if at, _, _ := unstructured.NestedInt64(got.Object, "status", "at"); at != 3 || got.GetGeneration() != turned.GetGeneration()+1 {
		t.Errorf("a patch of the object left status.at %d and generation %d, want 3 and %d", at, got.GetGeneration(), turned.GetGeneration()+1)
	}
	if err := c.Delete(ctx, "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Modified, watch.Deleted} {
		if got := next(ctx, t, string(want), seen.ResultChan()); got.Type != want {
			t.Errorf("the watch saw %s, want %s", got.Type, want)
		}
	}
}

func statusWritten(ctx context.Context, t *testing.T, c dynamic.ResourceInterface, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	o = o.DeepCopy()
	o.Object["status"] = map[string]any{"at": int64(3)}
	o.Object["spec"] = map[string]any{"steps": int64(77)} // is not status, and must not be written
	got, err := c.UpdateStatus(ctx, o, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if steps, _, _ := unstructured.NestedInt64(got.Object, "spec", "steps"); steps != 1 {
		t.Errorf("writing the status left spec.steps %d, want 1", steps)
	}
	return got
}

// A definition that goes takes its objects with it (spec/crd.md C30-C36): made again, it has
// none, and until then its path names nothing.
func TestDefinitionTakesItsObjectsWithIt(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	clients, all := defined(ctx, t, pawltest.New(t))
	definitions := clients.ApiextensionsV1().CustomResourceDefinitions()
	if _, err := all.Namespace("default").Create(ctx, wheel("first", map[string]any{}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	seen, err := definitions.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + wheels.GroupResource().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer seen.Stop()
	if err := definitions.Delete(ctx, wheels.GroupResource().String(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for next(ctx, t, "the definition to go", seen.ResultChan()).Type != watch.Deleted {
	}
	if _, err := all.Namespace("default").List(ctx, metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a list of what is not defined: %v, want not found", err)
	}
	if _, err := definitions.Create(ctx, wheelDefinition(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := all.Namespace("default").List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("a definition made again has %v (%v), want nothing", list, err)
	}
}
