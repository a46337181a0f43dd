package compat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apistorage "k8s.io/apiserver/pkg/storage"

	corev1 "k8s.io/api/core/v1"

	"github.com/pawl-dev/pawl/kv"
)

func TestWhatAStoreCannotBeMadeOf(t *testing.T) {
	engine := memory(t)
	for _, c := range []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"no engine", func(o *Options) { o.Engine = nil }, "needs an engine"},
		{"no codec", func(o *Options) { o.Codec = nil }, "needs a codec"},
		{"no way to make an object", func(o *Options) { o.NewFunc = nil }, "needs a function"},
		{"no prefix", func(o *Options) { o.ResourcePrefix = "" }, "resourcePrefix cannot be empty"},
		{"a prefix of everything", func(o *Options) { o.ResourcePrefix = "/" }, "resourcePrefix cannot be /"},
		{"a prefix that does not start at the root", func(o *Options) { o.ResourcePrefix = "configmaps" }, "resourcePrefix needs to start from /"},
		{"a prefix with an empty part", func(o *Options) { o.ResourcePrefix = "/a//b" }, "empty parts"},
		{"a prefix with dots", func(o *Options) { o.ResourcePrefix = "/a/../b" }, "dots"},
		{"a long prefix", func(o *Options) { o.ResourcePrefix = "/a/b/c" }, "more than two parts"},
		{"a prefix with the keys of another", func(o *Options) { o.ResourcePrefix = "/core/configmaps" }, "share its keys"},
		{"a space in two parts", func(o *Options) { o.Space = "my/server" }, "no engine has keys"},
	} {
		o := options(engine)
		c.change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// Two resources, and two spaces, have nothing of each other.
func TestStoresOfOneEngineAreSeparate(t *testing.T) {
	engine := memory(t)
	of := func(prefix, space string) *Store {
		o := options(engine)
		o.ResourcePrefix, o.Space = prefix, space
		return newStore(t, o)
	}
	for _, s := range []*Store{of("/configmaps", ""), of("/configmaps/", "other"), of("/example.com/configmaps", ""), of("/configmaps.example.com", "")} {
		key := s.prefix + "a/color"
		if err := s.Get(t.Context(), key, apistorage.GetOptions{}, newConfigMap()); !apistorage.IsNotFound(err) {
			t.Errorf("%s in %s is there before it is made: %v", key, s.keys, err)
		}
		if err := s.Create(t.Context(), key, configMap("a", "color", "red"), nil, 0); err != nil {
			t.Error(err)
		}
		if stats, err := s.Stats(t.Context()); err != nil || stats.ObjectCount != 1 {
			t.Errorf("%s holds %+v, %v", s.keys, stats, err)
		}
	}
}

type failed struct {
	kv.Engine
	err error
}

func (f failed) Err() error { return f.err }

func TestAStoreIsReadyWhileItsEngineTakesWrites(t *testing.T) {
	engine := &failed{Engine: memory(t)}
	s := newStore(t, options(engine))
	if err := s.ReadinessCheck(); err != nil {
		t.Error(err)
	}
	engine.err = errors.New("the disk is full")
	if err := s.ReadinessCheck(); !errors.Is(err, engine.err) {
		t.Errorf("got %v", err)
	}
}

func TestTheRevisionOfTheOldestState(t *testing.T) { // rules K120, K122
	engine := memory(t)
	s := newStore(t, options(engine))
	if got := s.CompactRevision(); got != 0 {
		t.Errorf("nothing was forgotten, and %d is", got)
	}
	create(t, s, "one", "red")
	create(t, s, "two", "red")
	now, err := s.GetCurrentResourceVersion(t.Context())
	if err != nil || now != 3 {
		t.Errorf("the revision is %d, %v", now, err)
	}
	if err := engine.Compact(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if got := s.CompactRevision(); got != 2 {
		t.Errorf("what was before 2 is forgotten, not before %d", got)
	}
}

func TestSizesAreAskedForOnce(t *testing.T) { // rule K121
	s := newStore(t, options(memory(t)))
	keys := func(context.Context) ([]string, error) { return nil, nil }
	if err := s.EnableResourceSizeEstimation(nil); err == nil {
		t.Error("no function will do")
	}
	if err := s.EnableResourceSizeEstimation(keys); err != nil {
		t.Error(err)
	}
	if err := s.EnableResourceSizeEstimation(keys); err == nil {
		t.Error("twice will do")
	}
}

// Objects without Go types can be read too.
func TestUnstructuredObjects(t *testing.T) {
	o := options(memory(t))
	o.Codec = unstructured.UnstructuredJSONScheme
	s := newStore(t, o)
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "a", "name": "color"}, "data": map[string]any{"is": "red"},
	}}
	out := &unstructured.Unstructured{}
	if err := s.Create(t.Context(), "/configmaps/a/color", made, out, 0); err != nil || out.GetResourceVersion() == "" {
		t.Fatalf("made %v, %v", out, err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("v1")
	list.SetKind("ConfigMapList")
	if err := s.GetList(t.Context(), "/configmaps", apistorage.ListOptions{Recursive: true, Predicate: apistorage.Everything}, list); err != nil || len(list.Items) != 1 || list.Items[0].GetName() != "color" {
		t.Errorf("listed %v, %v", list.Items, err)
	}
	if err := s.Delete(t.Context(), "/configmaps/a/color", out, nil, apistorage.ValidateAllObjectFunc, nil, apistorage.DeleteOptions{}); err != nil || out.GetName() != "color" {
		t.Errorf("deleted %v, %v", out, err)
	}
}

func TestAListNeedsAListToFill(t *testing.T) {
	s := newStore(t, options(memory(t)))
	opts := apistorage.ListOptions{Recursive: true, Predicate: apistorage.Everything}
	if err := s.GetList(t.Context(), "/configmaps", opts, &corev1.ConfigMap{}); err == nil {
		t.Error("a config map will do")
	}
	list := &corev1.ConfigMapList{}
	if err := s.GetList(t.Context(), "/configmaps", opts, list); err != nil || list.Items == nil {
		t.Errorf("an empty list is %v, %v", list.Items, err) // rule K57
	}
}

// A watch cache ignores the limit at version 0. The storage behind it does not, and is what a store
// stands for.
func TestALimitHoldsWhateverTheVersion(t *testing.T) {
	s := newStore(t, options(memory(t)))
	create(t, s, "one", "red")
	create(t, s, "two", "red")
	for _, version := range []string{"", "0", "3"} {
		list := &corev1.ConfigMapList{}
		pred := apistorage.Everything
		pred.Limit = 1
		err := s.GetList(t.Context(), "/configmaps", apistorage.ListOptions{Recursive: true, ResourceVersion: version, Predicate: pred}, list)
		if err != nil || len(list.Items) != 1 || list.Continue == "" || list.RemainingItemCount == nil || *list.RemainingItemCount != 1 {
			t.Errorf("at %q: %+v, %v", version, list.ListMeta, err)
		}
	}
	bad := apistorage.ListOptions{Recursive: true, ResourceVersion: "1", ResourceVersionMatch: metav1.ResourceVersionMatch("Most"), Predicate: apistorage.Everything}
	if err := s.GetList(t.Context(), "/configmaps", bad, &corev1.ConfigMapList{}); err == nil {
		t.Error("a match that nobody knows will do")
	}
}

// What does not matter to a list may be there all the same (rules K49 to K51).
func TestOptionsThatDoNotMatterToAList(t *testing.T) {
	s := newStore(t, options(memory(t)))
	create(t, s, "one", "red")
	create(t, s, "two", "red")
	pages := apistorage.Everything
	pages.Limit = 1
	first := &corev1.ConfigMapList{}
	if err := s.GetList(t.Context(), "/configmaps", apistorage.ListOptions{Recursive: true, Predicate: pages}, first); err != nil {
		t.Fatal(err)
	}
	if err := s.GuaranteedUpdate(t.Context(), "/configmaps/a/one", newConfigMap(), false, nil, paint("green"), nil); err != nil {
		t.Fatal(err)
	}
	goOn := apistorage.Everything
	goOn.Continue = first.Continue
	for _, c := range []struct {
		name, key, want string
		opts            apistorage.ListOptions
	}{
		{"how a version matches, without one", "/configmaps", "[one is green two is red]",
			apistorage.ListOptions{Recursive: true, ResourceVersionMatch: metav1.ResourceVersionMatchExact, Predicate: apistorage.Everything}},
		{"how a version matches, with a token", "/configmaps", "[two is red]",
			apistorage.ListOptions{Recursive: true, ResourceVersionMatch: metav1.ResourceVersionMatchExact, Predicate: goOn}},
		{"a token, for one object", "/configmaps/a/one", "[one is green]", apistorage.ListOptions{Predicate: goOn}},
	} {
		list := &corev1.ConfigMapList{}
		if err := s.GetList(t.Context(), c.key, c.opts, list); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		var names []string
		for _, cm := range list.Items {
			names = append(names, cm.Name+" is "+cm.Data["is"])
		}
		if fmt.Sprint(names) != c.want {
			t.Errorf("%s: %v, want %s", c.name, names, c.want)
		}
	}
}
