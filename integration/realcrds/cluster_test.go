package realcrds

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pawl-dev/pawl/pawltest"
)

// namespace is where objects of kinds that have namespaces live.
const namespace = "default"

// definitions is the resource of definitions.
var definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// strict is how objects are made here: what a schema does not know is refused, not dropped.
var strict = metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}

// A cluster is a server of its own that knows the definitions of one project.
type cluster struct {
	project string
	client  dynamic.Interface
	kinds   map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition
}

// start starts a server that knows no definition yet.
func start(t testing.TB, project string) *cluster {
	t.Helper()
	config := rest.CopyConfig(pawltest.New(t))
	config.QPS = -1 // a test has no neighbours
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{project: project, client: client, kinds: map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition{}}
}

// install makes all definitions of the project, and keeps what the server answered.
func (c *cluster) install(ctx context.Context, t testing.TB) {
	t.Helper()
	for _, file := range files(t, c.project, "crds") {
		made, err := c.client.Resource(definitions).Create(ctx, read(t, file), strict)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		def := typed(t, made)
		c.kinds[schema.GroupKind{Group: def.Spec.Group, Kind: def.Spec.Names.Kind}] = def
	}
}

// definition is what the server says of a definition now.
func (c *cluster) definition(ctx context.Context, t testing.TB, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	u, err := c.client.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return typed(t, u)
}

// typed is a definition as its Go type.
func typed(t testing.TB, u *unstructured.Unstructured) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	def := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, def); err != nil {
		t.Fatal(err)
	}
	return def
}

// of is the client for objects like u.
func (c *cluster) of(t testing.TB, u *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	gvk := u.GroupVersionKind()
	def, ok := c.kinds[gvk.GroupKind()]
	if !ok {
		t.Fatalf("no definition of %s knows %s", c.project, gvk.GroupKind())
	}
	return c.resource(def, gvk.Version)
}

func (c *cluster) resource(def *apiextensionsv1.CustomResourceDefinition, version string) dynamic.ResourceInterface {
	all := c.client.Resource(schema.GroupVersionResource{Group: def.Spec.Group, Version: version, Resource: def.Spec.Names.Plural})
	if def.Spec.Scope == apiextensionsv1.ClusterScoped {
		return all
	}
	return all.Namespace(namespace)
}

// files are the paths of a project's files of one sort.
func files(t testing.TB, project, sort string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", project, sort, "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s has no files in %s: %v", project, sort, err)
	}
	return paths
}

// sample is the valid object of a project in the file of that name.
func sample(t testing.TB, project, name string) *unstructured.Unstructured {
	t.Helper()
	return read(t, filepath.Join("testdata", project, "valid", name+".yaml"))
}

func read(t testing.TB, path string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &u.Object); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return u
}

// An edit puts a value in a place of an object; no value takes away what is there. A place is
// written as messages write it, spec.listeners[0].port.
type edit struct {
	at    string
	value any
}

// on makes the edit.
func (e edit) on(t testing.TB, u *unstructured.Unstructured) {
	t.Helper()
	steps := stepsTo(e.at)
	last := len(steps) - 1
	parent, ok := descend(u.Object, steps[:last])
	if !ok {
		t.Fatalf("the sample has no %s to edit", e.at)
	}
	if list, ok := parent.([]any); ok {
		n, _ := strconv.Atoi(steps[last])
		list[n] = e.value
		return
	}
	if e.value == nil {
		delete(parent.(map[string]any), steps[last])
		return
	}
	parent.(map[string]any)[steps[last]] = e.value
}

// at is what an object has in a place, nil if nothing.
func at(u *unstructured.Unstructured, place string) any {
	found, _ := descend(u.Object, stepsTo(place))
	return found
}

// stepsTo are the names and the numbers that lead to a place.
func stepsTo(place string) []string {
	return strings.FieldsFunc(place, func(r rune) bool { return strings.ContainsRune(".[]", r) })
}

func descend(v any, steps []string) (any, bool) {
	for _, step := range steps {
		switch x := v.(type) {
		case map[string]any:
			v = x[step]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n >= len(x) {
				return nil, false
			}
			v = x[n]
		default:
			return nil, false
		}
	}
	return v, v != nil
}

// sorted are the definitions of a cluster in the order of their names.
func (c *cluster) sorted() []*apiextensionsv1.CustomResourceDefinition {
	all := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(c.kinds))
	for _, def := range c.kinds {
		all = append(all, def)
	}
	slices.SortFunc(all, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
