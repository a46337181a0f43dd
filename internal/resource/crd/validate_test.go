package crd

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/warning"
)

func TestNewObjectsAreRefusedInTheseWords(t *testing.T) {
	unchecked := `<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`
	for _, c := range []struct {
		name, spec, sent string
		want             []string
	}{
		{"nothing is wrong", `{type: object, properties: {size: {type: integer}}}`, `{size: 2}`, nil},
		{"a wrong type shows the type found (rules C58, C59)", `{type: object, properties: {size: {type: integer}}}`, `{size: big}`,
			[]string{`spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"`}},
		{"an item of a list, by index", `{type: object, properties: {list: {type: array, items: {type: string}}}}`, `{list: [one, 2]}`,
			[]string{`spec.list[1]: Invalid value: "integer": spec.list[1] in body must be of type string: "integer"`}},
		{"a value of a map, by key", `{type: object, properties: {map: {type: object, additionalProperties: {type: integer}}}}`, `{map: {k: v}}`,
			[]string{`spec.map.k: Invalid value: "string": spec.map.k in body must be of type integer: "string"`}},
		{"a required field that is null", `{type: object, required: [size], properties: {size: {type: integer}}}`, `{size: null}`,
			[]string{`spec.size: Required value`}},
		{"a value outside an enum", `{type: object, properties: {c: {type: string, enum: [red, blue]}}}`, `{c: pink}`,
			[]string{`spec.c: Unsupported value: "pink": supported values: "red", "blue"`}},
		{"a pattern", `{type: object, properties: {c: {type: string, pattern: "^[a-z]{2}[0-9]+$"}}}`, `{c: X9}`,
			[]string{`spec.c: Invalid value: "X9": spec.c in body should match '^[a-z]{2}[0-9]+$'`}},
		{"a text that is too long", `{type: object, properties: {c: {type: string, maxLength: 4}}}`, `{c: xxxxx}`,
			[]string{`spec.c: Too long: may not be more than 4 bytes`}},
		{"too many items", `{type: object, properties: {l: {type: array, maxItems: 2, items: {type: string}}}}`, `{l: [a, b, c]}`,
			[]string{`spec.l: Too many: 3: must have at most 2 items`}},
		{"a number that is too small", `{type: object, properties: {a: {type: integer, minimum: 0}}}`, `{a: -1}`,
			[]string{`spec.a: Invalid value: -1: spec.a in body should be greater than or equal to 0`}},
		{"a number wider than its format (rule C60)", `{type: object, properties: {a: {type: integer, format: int32}}}`, `{a: 3000000000}`,
			[]string{`<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.a`}},
		{"int or string takes both (rule C61)", `{type: object, properties: {a: {x-kubernetes-int-or-string: true}, b: {x-kubernetes-int-or-string: true}}}`, `{a: 1, b: "1"}`, nil},
		{"an embedded resource needs apiVersion and kind (rule C48)", `{type: object, properties: {made: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}`, `{made: {kind: Thing}}`,
			[]string{`spec.made.apiVersion: Required value`}},
		{"a duplicate in a map list, at the later index (rule C67)",
			`{type: object, properties: {ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [port], items: {type: object, required: [port], properties: {port: {type: integer}, note: {type: string}}}}}}`,
			`{ports: [{port: 1}, {port: 2}, {port: 1, note: again}]}`,
			[]string{`spec.ports[2]: Duplicate value: {"port":1}`}},
		{"a duplicate in a set", `{type: object, properties: {s: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}`, `{s: [a, b, a]}`,
			[]string{`spec.s[2]: Duplicate value: "a"`}},
		{"a rule, with its message; an object shows no value (rule C72)",
			`{type: object, properties: {low: {type: integer}, high: {type: integer}}, x-kubernetes-validations: [{rule: "self.low <= self.high", message: low must not exceed high}]}`,
			`{low: 3, high: 2}`, []string{`spec: Invalid value: low must not exceed high`}},
		{"a rule without a message shows itself",
			`{type: object, properties: {low: {type: integer}}, x-kubernetes-validations: [{rule: "self.low != 13"}]}`,
			`{low: 13}`, []string{`spec: Invalid value: failed rule: self.low != 13`}},
		{"a rule with an expression, a reason and a path (rule C73)",
			`{type: object, properties: {count: {type: integer}}, x-kubernetes-validations: [{rule: "self.count <= 4", messageExpression: "self.count > 100 ? 'far too many' : 'too many'", reason: FieldValueForbidden, fieldPath: .count}]}`,
			`{count: 5}`, []string{`spec.count: Forbidden: too many`}},
		{"a rule in a map names the key",
			`{type: object, properties: {map: {type: object, maxProperties: 5, additionalProperties: {type: string, maxLength: 10, x-kubernetes-validations: [{rule: "self.startsWith('x')", message: must start with x}]}}}}`,
			`{map: {bad: ya, ok: xa}}`, []string{`spec.map[bad]: Invalid value: "ya": must start with x`}},
		{"a rule about the past does not run on a new object (rule C74)",
			`{type: object, properties: {a: {type: integer, x-kubernetes-validations: [{rule: "self == oldSelf"}]}}}`, `{a: 1}`, nil},
		{"rules are not checked while the schema itself fails (rule C76)",
			`{type: object, required: [a], properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: "self.a < 5", message: too big}]}`,
			`{a: text}`, []string{`spec.a: Invalid value: "string": spec.a in body must be of type integer: "string"`, unchecked}},
		{"they are when a value is merely out of bounds",
			`{type: object, properties: {a: {type: integer, minimum: 0}}, x-kubernetes-validations: [{rule: "self.a > 5", message: too small}]}`,
			`{a: -1}`, []string{`spec.a: Invalid value: -1: spec.a in body should be greater than or equal to 0`, `spec: Invalid value: too small`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			same(t, "errors", created(t, compiled(t, oneVersion(c.spec), "v1"), widget(c.sent)), c.want)
		})
	}
}

func TestKindMetadataAndReplicasAreChecked(t *testing.T) {
	k := compiled(t, oneVersion(`{type: object, properties: {replicas: {type: integer}}}`,
		"subresources: {scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}"), "v1")
	for _, c := range []struct {
		name, sent string
		want       []string
	}{
		{"another kind and version (rule C56)", `{apiVersion: test.example/v9, kind: Gadget, metadata: {name: a, namespace: ns}}`,
			[]string{`kind: Invalid value: "Gadget": must be Widget`, `apiVersion: Invalid value: "test.example/v9": must be test.example/v1`}},
		{"negative replicas (rule C95)", widget(`{replicas: -1}`),
			[]string{`.spec.replicas: Invalid value: -1: should be a non-negative integer`}},
		{"too many replicas", widget(`{replicas: 2147483648}`),
			[]string{`.spec.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647`}},
	} {
		t.Run(c.name, func(t *testing.T) { same(t, "errors", created(t, k, c.sent), c.want) })
	}
	got := created(t, k, `{apiVersion: test.example/v1, kind: Widget, metadata: {name: Upper, namespace: ns}}`)
	if len(got) != 1 || !strings.HasPrefix(got[0], `metadata.name: Invalid value: "Upper": a lowercase RFC 1123 subdomain`) {
		t.Errorf("a name that is no DNS subdomain: %q", got)
	}
}

func TestAnUpdateIsNotBlamedForWhatItLeaves(t *testing.T) {
	for _, c := range []struct {
		name, spec, old, now string
		want                 []string
	}{
		{"an unchanged value that is no longer allowed (rule C64)", `{type: object, properties: {c: {type: string, enum: [red, blue]}, size: {type: integer}}}`,
			`{c: pink, size: 1}`, `{c: pink, size: 2}`, nil},
		{"a changed one is", `{type: object, properties: {c: {type: string, enum: [red, blue]}}}`,
			`{c: pink}`, `{c: green}`, []string{`spec.c: Unsupported value: "green": supported values: "red", "blue"`}},
		{"duplicates that were stored (rule C67)", `{type: object, properties: {s: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}`,
			`{s: [a, a]}`, `{s: [a, a, b, b]}`, nil},
		{"new ones are", `{type: object, properties: {s: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}`,
			`{s: [a]}`, `{s: [a, a]}`, []string{`spec.s[1]: Duplicate value: "a"`}},
		{"a rule about the past (rule C74)", `{type: object, properties: {a: {type: integer, x-kubernetes-validations: [{rule: "self == oldSelf", message: is immutable}]}}}`,
			`{a: 1}`, `{a: 2}`, []string{`spec.a: Invalid value: 2: is immutable`}},
		{"it holds when nothing changed", `{type: object, properties: {a: {type: integer, x-kubernetes-validations: [{rule: "self == oldSelf"}]}}}`,
			`{a: 1}`, `{a: 1}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			same(t, "errors", updated(t, compiled(t, oneVersion(c.spec), "v1"), widget(c.old), widget(c.now)), c.want)
		})
	}
}

// recorder keeps the warnings that the library gives through the context.
type recorder struct{ texts []string }

func (r *recorder) AddWarning(_, text string) { r.texts = append(r.texts, text) }

func TestARuleThatFailsOnUnchangedDataOnlyWarns(t *testing.T) {
	k := compiled(t, oneVersion(`{type: object, properties: {a: {type: integer, x-kubernetes-validations: [{rule: "self > 5", message: too small}]}, b: {type: integer}}}`), "v1")
	was, _ := read(t, k, widget(`{a: 1, b: 1}`))
	now, _ := read(t, k, widget(`{a: 1, b: 2}`))
	was.SetResourceVersion("1")
	now.SetResourceVersion("1")
	r := &recorder{}
	errs := k.Strategy.ValidateUpdate(warning.WithWarningRecorder(t.Context(), r), now, was)
	same(t, "errors", texts(errs), nil)
	same(t, "warnings (rule C78)", r.texts, []string{`spec.a: Invalid value: 1: too small`})
}

func TestFinalizersWithoutADomainOnlyWarn(t *testing.T) {
	k := compiled(t, oneVersion(`{type: object}`), "v1")
	with := func(names ...string) *unstructured.Unstructured {
		u, _ := read(t, k, widget(`{}`))
		u.SetFinalizers(names)
		return u
	}
	hold := `metadata.finalizers: "hold": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers`
	same(t, "a new object (rule C63)", k.Strategy.Warnings(t.Context(), with("orphan", "hold", "test.example/x", "test.example"), nil), []string{
		hold,
		`metadata.finalizers: "test.example": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers`,
	})
	same(t, "one that was there before", k.Strategy.Warnings(t.Context(), with("hold"), with("hold")), nil)
}

// statusKind declares /status, with a schema that knows what it holds.
const statusKind = head + `
  - {name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, properties: {size: {type: integer, maximum: 5}}}, status: {type: object, properties: {ready: {type: boolean}}}}}}}
`

func TestStatusHasItsOwnDoor(t *testing.T) {
	k := compiled(t, statusKind, "v1")
	made, _ := read(t, k, widget(`{size: 1}`, `status: {ready: true}`))
	k.Strategy.PrepareForCreate(t.Context(), made)
	if made.Object["status"] != nil || made.GetGeneration() != 1 {
		t.Errorf("create drops the status and begins to count (rules C91, H174): %v", made.Object)
	}

	stored, _ := read(t, k, widget(`{size: 1}`, `status: {ready: true}`))
	stored.SetGeneration(4)
	stored.SetResourceVersion("7")
	for _, c := range []struct {
		name, sent string
		status     bool
		want       string
		generation int64
	}{
		{"the main door keeps the stored status, and counts a change of the spec (rule C112)",
			widget(`{size: 2}`, `status: {ready: false}`), false, `{"size":2} true`, 5},
		{"a status alone is no change there", widget(`{size: 1}`, `status: {ready: false}`), false, `{"size":1} true`, 4},
		{"/status changes nothing else (rules H173, H175)", widget(`{size: 2}`, `status: {ready: false}`), true, `{"size":1} false`, 4},
		{"/status without a status takes it away", widget(`{size: 2}`), true, `{"size":1} <nil>`, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, _ := read(t, k, strings.Replace(c.sent, "name: a", "name: a, labels: {new: label}", 1))
			u.SetGeneration(4)
			s := k.Strategy
			if c.status {
				s = k.Status
			}
			s.PrepareForUpdate(t.Context(), u, stored)
			ready := lookUp(u.Object, []string{"status", "ready"})
			if got := specOf(t, u) + " " + textOf(ready); got != c.want || u.GetGeneration() != c.generation {
				t.Errorf("got %s, generation %d; want %s, generation %d", got, u.GetGeneration(), c.want, c.generation)
			}
			if has := len(u.GetLabels()) > 0; has == c.status {
				t.Errorf("labels change at the main door alone: %v", u.GetLabels())
			}
		})
	}
}

func textOf(v any) string {
	switch v {
	case nil:
		return "<nil>"
	case true:
		return "true"
	}
	return "false"
}

func TestAStatusWriteIsCheckedForTheStatus(t *testing.T) {
	k := compiled(t, statusKind, "v1")
	was, _ := read(t, k, widget(`{size: 9}`)) // no longer allowed
	was.SetResourceVersion("1")
	for _, c := range []struct {
		name, status string
		want         []string
	}{
		{"the spec is none of its business (rule C62)", `{ready: true}`, nil},
		{"the status is", `{ready: maybe}`, []string{`status.ready: Invalid value: "string": ready in body must be of type boolean: "string"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			now, _ := read(t, k, widget(`{size: 9}`, "status: "+c.status))
			k.Status.PrepareForUpdate(t.Context(), now, was)
			same(t, "errors", texts(k.Status.ValidateUpdate(t.Context(), now, was)), c.want)
		})
	}
}

func TestWithoutItsOwnDoorStatusIsAnOrdinaryField(t *testing.T) {
	k := compiled(t, oneVersion(`{type: object}, status: {type: object, properties: {ready: {type: boolean}}}`), "v1")
	if k.Status != nil {
		t.Fatal("/status is not declared")
	}
	was, _ := read(t, k, widget(`{}`, `status: {ready: true}`))
	now, _ := read(t, k, widget(`{}`, `status: {ready: false}`))
	was.SetGeneration(1)
	now.SetGeneration(1)
	k.Strategy.PrepareForUpdate(t.Context(), now, was)
	if now.GetGeneration() != 2 || textOf(lookUp(now.Object, []string{"status", "ready"})) != "false" {
		t.Errorf("it changes and counts (rule C91): %v", now.Object)
	}
}
