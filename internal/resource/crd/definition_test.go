package crd

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var strategy = Strategy{Now: func() metav1.Time { return noon }}

func TestADefinitionIsFilledIn(t *testing.T) {
	def := decoded(t, oneVersion(`{type: object}`)+"status: {storedVersions: [v0], acceptedNames: {plural: mine, kind: Mine}}\n")
	strategy.PrepareForCreate(t.Context(), def)
	got, err := DefinitionForm{}.Encode(def)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","metadata":{"name":"widgets.test.example","generation":1},` +
		`"spec":{"group":"test.example","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},"scope":"Namespaced",` +
		`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object"}}}}}],` +
		`"conversion":{"strategy":"None"}},"status":{"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":["v1"]}}`
	if string(got) != want {
		t.Errorf("rules C4, C9:\n got %s\nwant %s", got, want)
	}
	stored, fp, err := DefinitionCodec{}.Encode(def)
	if err != nil || fp != (DefinitionCodec{}).Fingerprint() || string(stored) != string(got) {
		t.Errorf("it is stored as it is sent: %s, %d, %v", stored, fp, err)
	}
	again, err := DefinitionCodec{}.Decode(stored)
	if err != nil {
		t.Fatal(err)
	}
	if twice, _ := (DefinitionForm{}).Encode(again); string(twice) != string(got) {
		t.Errorf("and read back as it was: %s", twice)
	}
}

func TestUnknownFieldsOfADefinitionAreTold(t *testing.T) {
	_, findings, err := DefinitionForm{}.Decode(toJSON(t, strings.Replace(head, "scope:", "validation: {}\n  scope:", 1)+"  - {name: v1, old: 1}\n"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "rule C17", findings, []string{`unknown field "spec.validation"`, `unknown field "spec.versions[0].old"`})
}

func TestNewDefinitionsAreRefusedInTheseWords(t *testing.T) {
	replaced := func(old, new string) string {
		return strings.Replace(oneVersion(`{type: object}`), old, new, 1)
	}
	for _, c := range []struct {
		name, text string
		want       []string // what the errors begin with
	}{
		{"a good one", oneVersion(`{type: object}`), nil},
		{"a name that is not plural and group (rule C1)", replaced("name: widgets.test", "name: gizmos.test"),
			[]string{`metadata.name: Invalid value: "gizmos.test.example": must be spec.names.plural+"."+spec.group`}},
		{"no version stored (rule C6)", replaced("storage: true", "storage: false"),
			[]string{`spec.versions: Invalid value:`, `status.storedVersions: Invalid value:`}},
		{"a spec without a type (rule C37)", oneVersion(`{properties: {a: {type: string}}}`),
			[]string{`spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields`}},
		{"a pattern that does not compile (rule C43)", oneVersion(`{type: string, pattern: "["}`),
			[]string{`spec.validation.openAPIV3Schema.properties[spec].pattern: Invalid value: "[": must be a valid regular expression`}},
		{"a default of the wrong type (rule C54)", oneVersion(`{type: integer, default: big}`),
			[]string{`spec.validation.openAPIV3Schema.properties[spec].default: Invalid value: "string":  in body must be of type integer: "string"`}},
		{"a list map without keys (rule C66)", oneVersion(`{type: array, x-kubernetes-list-type: map, items: {type: object, properties: {id: {type: string}}}}`),
			[]string{`spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map`}},
		{"a rule that does not compile (rule C71)", oneVersion(`{type: object, x-kubernetes-validations: [{rule: "self.b == 1"}]}`),
			[]string{`spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value:`}},
		{"a group of Kubernetes without approval (rule C13)", strings.ReplaceAll(oneVersion(`{type: object}`), "test.example", "stuff.k8s.io"),
			[]string{`metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation`}},
		{"webhook conversion without a webhook: the library's words come first (rule C87)", replaced("scope:", "conversion: {strategy: Webhook}\n  scope:"),
			[]string{`spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook`, `spec.conversion.conversionReviewVersions: Required value`}},
		{"webhook conversion, which is not served yet", replaced("scope:", "conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: \"https://a.example/x\"}}}\n  scope:"),
			[]string{`spec.conversion.strategy: Invalid value: "Webhook": webhook conversion is not served yet`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			def := decoded(t, c.text)
			strategy.PrepareForCreate(t.Context(), def)
			begins(t, texts(strategy.Validate(t.Context(), def)), c.want)
		})
	}
}

func begins(t *testing.T, got, want []string) {
	t.Helper()
	ok := len(got) == len(want)
	for i := range min(len(got), len(want)) {
		ok = ok && strings.HasPrefix(got[i], want[i])
	}
	if !ok {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
}

func TestADefinitionChangesWithinLimits(t *testing.T) {
	established := []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	second := `  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`
	for _, c := range []struct {
		name       string
		change     func(string) string
		generation int64
		stored     string
		want       []string
	}{
		{"nothing changes", func(s string) string { return s }, 3, "v1", nil},
		{"a JSON value that is only spelled differently is no change", func(s string) string {
			return strings.Replace(s, `{a: 1, b: 2}`, `{b: 2, a: 1}`, 1)
		}, 3, "v1", nil},
		{"a label is no change of the spec (rule C9)", func(s string) string {
			return strings.Replace(s, "metadata: {", "metadata: {labels: {a: b}, ", 1)
		}, 3, "v1", nil},
		{"a short name is", func(s string) string { return strings.Replace(s, "kind: Widget", "kind: Widget, shortNames: [wd]", 1) }, 4, "v1", nil},
		{"another storage version is noted (rule C11)", func(s string) string {
			return strings.Replace(s, "storage: true", "storage: false", 1) + second
		}, 4, "v1 v2", nil},
		{"the kind stays once established (rule C10)", func(s string) string { return strings.ReplaceAll(s, "Widget", "Gadget") }, 4, "v1", []string{
			`spec.names.kind: Invalid value: "Gadget": field is immutable`}},
		{"a version that may be stored stays (rule C11)", func(s string) string {
			return strings.Replace(s, "name: v1", "name: v3", 1)
		}, 4, "v1 v3", []string{`status.storedVersions[0]: Invalid value: "v1": missing from spec.versions`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := oneVersion(`{type: object, default: {a: 1, b: 2}, properties: {a: {type: integer}, b: {type: integer}}}`)
			was := valid(t, text)
			was.Generation, was.Status.Conditions, was.ResourceVersion = 3, established, "1"
			now := decoded(t, c.change(text))
			now.Generation, now.ResourceVersion = 3, "1"
			strategy.PrepareForUpdate(t.Context(), now, was)
			if now.Generation != c.generation {
				t.Errorf("generation %d, want %d", now.Generation, c.generation)
			}
			if got := strings.Join(now.Status.StoredVersions, " "); got != c.stored {
				t.Errorf("stored versions %s, want %s", got, c.stored)
			}
			begins(t, texts(strategy.ValidateUpdate(t.Context(), now, was)), c.want)
		})
	}
}

func TestStoredVersionsAreTrimmedThroughStatus(t *testing.T) {
	was := valid(t, oneVersion(`{type: object}`))
	was.Status.StoredVersions, was.ResourceVersion = []string{"v0", "v1"}, "1"
	now := was.DeepCopy()
	now.Status.StoredVersions = []string{"v1"}
	now.Spec.Names.ShortNames = []string{"wd"}
	StatusStrategy{}.PrepareForUpdate(t.Context(), now, was)
	if len(now.Spec.Names.ShortNames) > 0 {
		t.Error("/status leaves the spec alone")
	}
	same(t, "rule C12", texts(StatusStrategy{}.ValidateUpdate(t.Context(), now, was)), nil)
}

func TestADefinitionIsHeldWhileItMayHaveInstances(t *testing.T) {
	for _, c := range []struct {
		name string
		has  apiextensionsv1.CustomResourceDefinitionConditionType
		held bool
	}{
		{"one that was never served goes at once (rule C34)", apiextensionsv1.Terminating, false},
		{"an established one is held (rule C30)", apiextensionsv1.Established, true},
		{"one whose names are accepted is served already, and held (rule C27)", apiextensionsv1.NamesAccepted, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			def := valid(t, oneVersion(`{type: object}`))
			if c.has != apiextensionsv1.Terminating {
				SetCondition(&def.Status, apiextensionsv1.CustomResourceDefinitionCondition{Type: c.has, Status: apiextensionsv1.ConditionTrue}, noon)
			}
			strategy.PrepareForDelete(t.Context(), def)
			if held := len(def.Finalizers) == 1 && def.Finalizers[0] == CleanupFinalizer; held != c.held {
				t.Errorf("finalizers %v, want held: %v", def.Finalizers, c.held)
			}
			if got := isTrue(def, apiextensionsv1.Terminating); got != c.held {
				t.Errorf("Terminating %v, want %v", got, c.held)
			}
		})
	}
}

func TestADefinitionWarns(t *testing.T) {
	odd := oneVersion(`{type: object, properties: {a: {type: string, format: odd}, s: {type: array, x-kubernetes-list-type: set, items: {type: object, x-kubernetes-map-type: atomic}}}}`)
	def := valid(t, odd)
	same(t, "rule C16", strategy.Warnings(t.Context(), def, nil), []string{
		`unrecognized format "odd"`,
		`x-kubernetes-list-type: set for items of type "object" is not supported by server-side apply or CEL validation rules`,
	})
	same(t, "an update that changes neither", strategy.Warnings(t.Context(), def, def), nil)
}
