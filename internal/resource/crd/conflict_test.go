package crd

import (
	"errors"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// A desk is where one writes to one widget of a world.
type desk struct{ *world }

// decoded reads a widget as a client would send it, at the version named.
func (d desk) decoded(spec, version string) *unstructured.Unstructured {
	d.t.Helper()
	obj, _, err := d.widgets().Version("v1").Form.Decode(toJSON(d.t, widget(spec)))
	if err != nil {
		d.t.Fatal(err)
	}
	u := obj.(*unstructured.Unstructured)
	u.SetResourceVersion(version)
	return u
}

// create makes the widget, and returns its version.
func (d desk) create(spec string) string {
	d.t.Helper()
	v, err := d.widgets().Version("v1").Store.Create(d.t.Context(), "ns", d.decoded(spec, ""), registry.CreateOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	return v.Revision().String()
}

// put writes the widget as a manager, and returns its spec as it is then.
func (d desk) put(manager, spec, version string, o registry.UpdateOptions) (string, error) {
	d.t.Helper()
	ctx := storage.WithAuthor(d.t.Context(), kv.Author{Manager: manager, Verb: "update"})
	did, err := d.widgets().Version("v1").Store.Update(ctx, "ns", "a", registry.Exactly(d.decoded(spec, version)), o)
	if err != nil {
		return "", err
	}
	obj, err := did.Version.Object()
	if err != nil {
		d.t.Fatal(err)
	}
	return specOf(d.t, obj.(*unstructured.Unstructured)), nil
}

// blamed are the fields that the explanation of a conflict names, each with who changed it.
func blamed(t *testing.T, err error) (fields []string) {
	t.Helper()
	var c *registry.ConflictError
	if !errors.As(err, &c) {
		t.Fatalf("%v is no conflict", err)
	}
	x, err := c.Explain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range x.Fields {
		fields = append(fields, f.Path+" by "+f.Manager)
	}
	return fields
}

func TestAConflictNamesItemsByTheirKeys(t *testing.T) {
	inWorld(t, func(w *world) {
		defer w.start()()
		w.define(oneVersion(`{type: object, properties: {
			ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [port], items: {type: object, required: [port], properties: {port: {type: integer}, note: {type: string}}}},
			tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}, plain: {type: array, items: {type: string}},
			all: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}}}}`))
		d := desk{w}
		seen := d.create(`{ports: [{port: 1, note: a}, {port: 2}], tags: [a], plain: [a], all: {x: a}}`)
		if _, err := d.put("editor", `{ports: [{port: 1, note: b}, {port: 2}], tags: [a, b], plain: [a, b], all: {x: b}}`, seen, registry.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		_, err := d.put("writer", `{}`, seen, registry.UpdateOptions{})
		same(t, "rule H143", blamed(t, err), []string{".spec.all by editor", ".spec.plain by editor", ".spec.ports[port=1].note by editor", `.spec.tags[="b"] by editor`})
	})
}

// Two versions of an object may be of different times of its definition. What filled in defaults then
// and prunes fields now is none of the writers.
func TestNobodyIsBlamedForWhatTheSchemaDid(t *testing.T) {
	inWorld(t, func(w *world) {
		defer w.start()()
		w.define(oneVersion(`{type: object, properties: {color: {type: string}, size: {type: integer}, old: {type: string}}}`))
		d := desk{w}
		seen := d.create(`{color: red, size: 1, old: x}`)
		w.change("widgets.test.example", func(def *apiextensionsv1.CustomResourceDefinition) {
			spec := def.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
			delete(spec.Properties, "old")
			spec.Properties["hue"] = apiextensionsv1.JSONSchemaProps{Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"dark"`)}}
			def.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
		})
		if got, err := d.put("editor", `{color: blue, size: 1}`, seen, registry.UpdateOptions{}); err != nil || got != `{"color":"blue","hue":"dark","size":1}` {
			t.Fatal(got, err)
		}
		const mine = `{color: red, size: 2, old: x}` // as it was read
		_, err := d.put("writer", mine, seen, registry.UpdateOptions{})
		same(t, "blamed", blamed(t, err), []string{".spec.color by editor"})
		if got, err := d.put("writer", mine, seen, registry.UpdateOptions{Rebase: true}); err != nil || got != `{"color":"blue","hue":"dark","size":2}` {
			t.Errorf("rebased it is %s, %v", got, err)
		}
	})
}
