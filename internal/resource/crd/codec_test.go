package crd

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pawl-dev/pawl/storage"
)

// twoVersions has v1, stored, and v2.
const twoVersions = head + `
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, old: {type: string}}}}}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, hue: {type: string, default: red}}}}}}}
`

func TestObjectsAreStoredInOneVersionAndReadInAny(t *testing.T) {
	v1, v2 := compiled(t, twoVersions, "v1"), compiled(t, twoVersions, "v2")
	stored := func(k *Kind, version, spec string) string {
		u, _ := read(t, k, strings.Replace(widget(spec), "example/v1", "example/"+version, 1))
		data, _, err := k.Codec.Encode(u)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	const start = `{"apiVersion":"test.example/v1","kind":"Widget","metadata":{"name":"a","namespace":"ns"},"spec":`
	for _, c := range []struct{ name, got, want string }{
		{"v1 is stored as it is (rule C83)", stored(v1, "v1", `{size: 1, old: x}`), start + `{"old":"x","size":1}}`},
		{"v2 is stored as v1, which does not know hue (rules C82, C83)", stored(v2, "v2", `{size: 1, hue: blue}`), start + `{"size":1}}`},
	} {
		if c.got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, c.got, c.want)
		}
	}

	obj, err := v2.Codec.Decode([]byte(start + `{"old":"x","size":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	u := obj.(*unstructured.Unstructured)
	if got := u.GetAPIVersion() + specOf(t, u); got != `test.example/v2{"size":1}` {
		t.Errorf("v1 read as v2 is pruned by v2, whose defaults are for what is written in it (rule C82): got %s", got)
	}

	_, err = v1.Codec.Decode([]byte(`{"apiVersion":"test.example/v0","kind":"Widget","metadata":{"name":"a"}}`))
	if err == nil || !strings.Contains(err.Error(), `stored as "test.example/v0"`) {
		t.Errorf("a version that no longer exists is told, not guessed: %v", err)
	}
}

func TestReadingForgivesWhatWasStored(t *testing.T) {
	k := compiled(t, oneVersion(`{type: object, properties: {size: {type: integer}}}`), "v1")
	obj, err := k.Codec.Decode([]byte(`{"apiVersion":"test.example/v1","kind":"Widget","metadata":{"name":"a","labels":7,"odd":1},"spec":{"size":1,"x":2}}`))
	if err != nil {
		t.Fatal(err)
	}
	u := obj.(*unstructured.Unstructured)
	got, _ := k.Form.Encode(u)
	want := `{"apiVersion":"test.example/v1","kind":"Widget","metadata":{"generation":1,"name":"a"},"spec":{"size":1}}`
	if string(got) != want {
		t.Errorf("wrong metadata is dropped, a missing generation is 1 (rules C46, C50, C112):\n got %s\nwant %s", got, want)
	}
}

func TestFingerprintsSayWhatMayBeSentAsItIs(t *testing.T) {
	narrow := oneVersion(`{type: object, properties: {size: {type: integer}}}`)
	wide := oneVersion(`{type: object, properties: {size: {type: integer}, hue: {type: string}}}`)
	if a, b := compiled(t, narrow, "v1").Codec.Fingerprint(), compiled(t, narrow, "v1").Codec.Fingerprint(); a != b || a == storage.Unfit {
		t.Errorf("the same schema has the same fingerprint: %d, %d", a, b)
	}
	if a, b := compiled(t, narrow, "v1").Codec.Fingerprint(), compiled(t, wide, "v1").Codec.Fingerprint(); a == b {
		t.Error("another schema prunes other fields, and must have another fingerprint")
	}
	if compiled(t, twoVersions, "v2").Codec.Fingerprint() != storage.Unfit {
		t.Error("what is stored is never v2, and must be decoded to be sent as v2")
	}

	k := compiled(t, oneVersion(`{type: object, properties: {size: {type: integer, default: 3}}}`), "v1")
	for _, c := range []struct {
		name string
		drop bool
		want storage.Fingerprint
	}{
		{"an object with all its defaults may be sent as stored", false, k.Codec.Fingerprint()},
		{"one that lost a default may not, for reading would show it (rule C51)", true, storage.Unfit},
	} {
		u, _ := read(t, k, widget(`{}`))
		if c.drop {
			unstructured.RemoveNestedField(u.Object, "spec", "size")
		}
		if _, got, err := k.Codec.Encode(u); err != nil || got != c.want {
			t.Errorf("%s: fingerprint %d, %v; want %d", c.name, got, err, c.want)
		}
	}
}

func TestSelectableFieldsAreReadAsText(t *testing.T) {
	k := compiled(t, oneVersion(`{type: object, properties: {name: {type: string}, size: {type: integer}, active: {type: boolean}}}`,
		"selectableFields: [{jsonPath: .spec.name}, {jsonPath: .spec.size}, {jsonPath: .spec.active}]"), "v1")
	same(t, "labels (rule C98)", k.FieldLabels, []string{"spec.name", "spec.size", "spec.active"})
	u, _ := read(t, k, widget(`{size: 3, active: true}`))
	set, err := k.Fields(u)
	if err != nil {
		t.Fatal(err)
	}
	if got := set.String(); got != "spec.active=true,spec.name=,spec.size=3" {
		t.Errorf("a missing field is the empty string: %s", got)
	}
}

func TestADeprecatedVersionSaysWhichToUse(t *testing.T) {
	text := head + `
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1beta1, served: true, storage: false, deprecated: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1alpha1, served: true, storage: false, deprecated: true, deprecationWarning: "old, use v1", schema: {openAPIV3Schema: {type: object}}}
  - {name: v3, served: true, storage: false, deprecated: true, schema: {openAPIV3Schema: {type: object}}}
`
	for version, want := range map[string]string{
		"v1":       "",
		"v1beta1":  "test.example/v1beta1 Widget is deprecated; use test.example/v1 Widget",
		"v1alpha1": "old, use v1",
		"v3":       "test.example/v3 Widget is deprecated",
	} {
		if got := compiled(t, text, version).Deprecated; got != want {
			t.Errorf("%s (rule C89): got %q, want %q", version, got, want)
		}
	}
}

func TestAKindPublishesItsSchema(t *testing.T) {
	doc, err := compiled(t, oneVersion(`{type: object, properties: {size: {type: integer}}}`), "v1").OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	if doc.Components.Schemas["example.test.v1.Widget"] == nil {
		t.Error("the model is called by the reversed group (rule C107)")
	}
	if doc.Paths.Paths["/apis/test.example/v1/namespaces/{namespace}/widgets/{name}"] == nil {
		t.Error("the paths are there")
	}
}
