package crd

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

var noon = metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

// head is what all definitions of these tests begin with.
const head = `
metadata: {name: widgets.test.example}
spec:
  group: test.example
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
`

// oneVersion is a definition with the schema of a spec, and more lines for the version.
func oneVersion(spec string, more ...string) string {
	return head + "  - {name: v1, served: true, storage: true, " + strings.Join(append(more, ""), ", ") +
		"schema: {openAPIV3Schema: {type: object, properties: {spec: " + spec + "}}}}\n"
}

// decoded reads a definition as a client would send it.
func decoded(t testing.TB, text string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	obj, _, err := DefinitionForm{}.Decode(toJSON(t, text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return obj.(*apiextensionsv1.CustomResourceDefinition)
}

// valid reads a definition and checks it as a new one.
func valid(t testing.TB, text string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	def := decoded(t, text)
	s := Strategy{Now: func() metav1.Time { return noon }}
	s.PrepareForCreate(t.Context(), def)
	if errs := s.Validate(t.Context(), def); len(errs) > 0 {
		t.Fatalf("%v in\n%s", errs, text)
	}
	return def
}

func compiled(t testing.TB, text, version string) *Kind {
	t.Helper()
	k, err := Compile(valid(t, text), version)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func toJSON(t testing.TB, text string) []byte {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return data
}

// widget is a widget with that spec, and more top-level fields.
func widget(spec string, more ...string) string {
	return "{apiVersion: test.example/v1, kind: Widget, metadata: {name: a, namespace: ns}, spec: " + strings.Join(append([]string{spec}, more...), ", ") + "}"
}

// read decodes an object as one that a client sent.
func read(t testing.TB, k *Kind, text string) (*unstructured.Unstructured, []string) {
	t.Helper()
	obj, findings, err := k.Form.Decode(toJSON(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*unstructured.Unstructured), findings
}

// specOf returns the spec of an object as JSON.
func specOf(t testing.TB, u *unstructured.Unstructured) string {
	t.Helper()
	data, err := json.Marshal(u.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// created is what validation says about a new object.
func created(t testing.TB, k *Kind, text string) []string {
	t.Helper()
	u, _ := read(t, k, text)
	k.Strategy.PrepareForCreate(t.Context(), u)
	return texts(k.Strategy.Validate(t.Context(), u))
}

// updated is what validation says about a change.
func updated(t testing.TB, k *Kind, old, text string) []string {
	t.Helper()
	was, _ := read(t, k, old)
	was.SetResourceVersion("1")
	now, _ := read(t, k, text)
	now.SetResourceVersion("1")
	k.Strategy.PrepareForUpdate(context.Background(), now, was)
	return texts(k.Strategy.ValidateUpdate(t.Context(), now, was))
}

func texts(errs field.ErrorList) []string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Error())
	}
	return out
}

func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}
