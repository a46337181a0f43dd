package crd

import (
	"testing"
)

func TestDecodingGivesAnObjectTheFormOfItsSchema(t *testing.T) {
	open := `{type: object, x-kubernetes-preserve-unknown-fields: true}`
	for _, c := range []struct {
		name     string
		spec     string
		sent     string
		want     string
		findings []string
	}{
		{
			"unknown fields are dropped at every depth and told by path (rules C46, C49)",
			`{type: object, properties: {known: {type: object, properties: {x: {type: string}}}, list: {type: array, items: {type: object, properties: {id: {type: string}}}}}}`,
			`{known: {x: "1", z: "2"}, list: [{id: a}, {id: b, more: c}], other: 1}`,
			`{"known":{"x":"1"},"list":[{"id":"a"},{"id":"b"}]}`,
			[]string{`unknown field "spec.known.z"`, `unknown field "spec.list[1].more"`, `unknown field "spec.other"`},
		},
		{
			"what preserves unknown fields keeps them, but not those of what it declares (rule C47)",
			`{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {typed: {type: object, properties: {k: {type: string}}}}}`,
			`{any: {thing: [1]}, typed: {gone: 1, k: v}}`,
			`{"any":{"thing":[1]},"typed":{"k":"v"}}`,
			[]string{`unknown field "spec.typed.gone"`},
		},
		{
			"keys of a map are part of the path",
			`{type: object, additionalProperties: {type: object, properties: {v: {type: integer}}}}`,
			`{two.dots/x: {pruned: 3, v: 2}}`,
			`{"two.dots/x":{"v":2}}`,
			[]string{`unknown field "spec.two.dots/x.pruned"`},
		},
		{
			"an embedded resource keeps its metadata, without unknown fields in it (rule C48)",
			`{type: object, properties: {made: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}`,
			`{made: {apiVersion: v1, kind: Thing, metadata: {name: x, labels: {a: b}, odd: field}, other: {k: v}}}`,
			`{"made":{"apiVersion":"v1","kind":"Thing","metadata":{"labels":{"a":"b"},"name":"x"},"other":{"k":"v"}}}`,
			[]string{`unknown field "spec.made.metadata.odd"`},
		},
		{
			"a null is dropped, or replaced by a default, unless the field may be null (rule C53)",
			`{type: object, properties: {maybe: {type: integer, default: 4, nullable: true}, plain: {type: integer}, size: {type: integer, default: 3}}}`,
			`{maybe: null, plain: null, size: null}`,
			`{"maybe":null,"size":3}`,
			nil,
		},
		{
			"a default object is itself defaulted, an absent parent is not made (rule C52)",
			`{type: object, properties: {a: {type: object, default: {}, properties: {x: {type: integer, default: 1}}}, b: {type: object, properties: {y: {type: integer, default: 2}}}}}`,
			`{}`,
			`{"a":{"x":1}}`,
			nil,
		},
		{
			"integers are exact, floats stay floats, and what is empty stays (rules H72, C116)",
			open,
			`{large: 9007199254740993, real: 1.25, none: {}, nothing: []}`,
			`{"large":9007199254740993,"none":{},"nothing":[],"real":1.25}`,
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := compiled(t, oneVersion(c.spec), "v1")
			u, findings := read(t, k, widget(c.sent))
			if got := specOf(t, u); got != c.want {
				t.Errorf("spec:\n got %s\nwant %s", got, c.want)
			}
			same(t, "findings", findings, c.findings)
		})
	}
}

func TestDecodingTellsWhatAStrictServerWouldRefuse(t *testing.T) {
	k := compiled(t, oneVersion(`{type: object, properties: {size: {type: integer}}}`), "v1")
	for _, c := range []struct {
		name     string
		sent     string
		findings []string
		err      string
	}{
		{
			"a duplicate field (rule H65)",
			`{"apiVersion":"test.example/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":1,"size":2}}`,
			[]string{`duplicate field "spec.size"`}, "",
		},
		{
			"an unknown field in metadata, before one in the spec (rule C50)",
			`{"apiVersion":"test.example/v1","kind":"Widget","metadata":{"name":"a","flavour":"x"},"spec":{"colour":"red"}}`,
			[]string{`unknown field "metadata.flavour"`, `unknown field "spec.colour"`}, "",
		},
		{
			"metadata of the wrong type is an error (rule C50)",
			`{"apiVersion":"test.example/v1","kind":"Widget","metadata":{"name":"a","labels":{"a":1}}}`,
			nil, "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
		},
		{
			"a document that is no object is an error",
			`[1]`,
			nil, "json: cannot unmarshal array into Go value of type map[string]interface {}",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, findings, err := k.Form.Decode([]byte(c.sent))
			if text := errorText(err); text != c.err {
				t.Errorf("error %q, want %q", text, c.err)
			}
			same(t, "findings", findings, c.findings)
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestAPatchMayBeOfTheseTypesInThisOrder(t *testing.T) {
	k := compiled(t, oneVersion(`{type: object}`), "v1")
	same(t, "rule C113", k.Form.Patches(),
		[]string{"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"})
}

func TestEncodingBeginsWithTypeAndMetadata(t *testing.T) {
	k := compiled(t, oneVersion(`{type: object}`)+"", "v1")
	u, _ := read(t, k, widget(`{}`))
	u.Object["data"] = "sorts before kind"
	got, err := k.Form.Encode(u)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"test.example/v1","kind":"Widget","metadata":{"name":"a","namespace":"ns"},"data":"sorts before kind","spec":{}}`
	if string(got) != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}
