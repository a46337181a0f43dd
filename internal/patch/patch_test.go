package patch

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	configMap = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"one":"1","three":"3","two":"2"}}`
	account   = `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"a","finalizers":["x/one","x/two"]},` +
		`"secrets":[{"name":"s1"},{"name":"s2"}],"imagePullSecrets":[{"name":"one"}]}`
)

func TestPatches(t *testing.T) {
	for _, tt := range []struct {
		name              string
		mediaType         string
		current, document string
		want              string
		findings          []string
		typed             runtime.Object
	}{
		{name: "a JSON patch replaces, removes, adds, copies and moves",
			mediaType: JSON, current: configMap,
			document: `[{"op":"replace","path":"/data/one","value":"uno"},{"op":"remove","path":"/data/two"},{"op":"add","path":"/data/four","value":"4"},
				{"op":"copy","from":"/data/three","path":"/data/tres"},{"op":"move","from":"/data/three","path":"/data/drei"}]`,
			want: `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":{"drei":"3","four":"4","one":"uno","tres":"3"}}`},
		{name: "a JSON patch indexes lists as they are after the operations before",
			mediaType: JSON, current: `{"list":["a","b","c"]}`,
			document: `[{"op":"add","path":"/list/-","value":"d"},{"op":"add","path":"/list/0","value":"z"},
				{"op":"remove","path":"/list/2"},{"op":"replace","path":"/list/1","value":"A"}]`,
			want: `{"list":["z","A","c","d"]}`},
		{name: "a JSON patch may test before it changes",
			mediaType: JSON, current: configMap,
			document: `[{"op":"test","path":"/data/one","value":"1"},{"op":"remove","path":"/data"}]`,
			want:     `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`},
		{name: "rule H68: what is odd in a JSON patch document itself is found, and named so",
			mediaType: JSON, current: `{}`,
			document: `[{"op":"add","op":"add","path":"/a","value":1,"why":"because"}]`,
			want:     `{"a":1}`,
			findings: []string{`json patch duplicate field "[0].op"`, `json patch unknown field "[0].why"`}},
		{name: "a JSON patch of null changes nothing",
			mediaType: JSON, current: configMap, document: `null`, want: configMap},
		{name: "rule H136: in a merge patch null removes and a list replaces",
			mediaType: Merge, current: account,
			document: `{"secrets":null,"imagePullSecrets":[{"name":"three"}]}`,
			want:     `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"a","finalizers":["x/one","x/two"]},"imagePullSecrets":[{"name":"three"}]}`},
		{name: "a field that stands twice in a merge patch is found, and the last one counts",
			mediaType: Merge, current: `{}`, document: `{"data":{"k":"v","k":"w"}}`,
			want: `{"data":{"k":"w"}}`, findings: []string{`duplicate field "data.k"`}},
		{name: "a merge patch puts what does not fit where it says; decoding the result will tell",
			mediaType: Merge, current: configMap, document: `{"data":[1]}`,
			want: `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"},"data":[1]}`},
		{name: "numbers of 64 bits survive a merge patch",
			mediaType: Merge, current: `{"n":9007199254740993}`, document: `{"m":9223372036854775807}`,
			want: `{"m":9223372036854775807,"n":9007199254740993}`},
		{name: "rule H136: a strategic merge merges list items by their key, new ones first, where the type has one",
			mediaType: StrategicMerge, typed: &corev1.ServiceAccount{}, current: account,
			document: `{"imagePullSecrets":[{"name":"two"}],"secrets":[{"name":"s1","fieldPath":"new"},{"name":"s3"}]}`,
			want: `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"a","finalizers":["x/one","x/two"]},` +
				`"secrets":[{"name":"s1","fieldPath":"new"},{"name":"s3"},{"name":"s2"}],"imagePullSecrets":[{"name":"two"}]}`},
		{name: "rule H136: $patch: delete takes a list item out by its key",
			mediaType: StrategicMerge, typed: &corev1.ServiceAccount{}, current: `{"secrets":[{"name":"s1"},{"name":"s2"},{"name":"s3"}]}`,
			document: `{"secrets":[{"name":"s2","$patch":"delete"}]}`,
			want:     `{"secrets":[{"name":"s1"},{"name":"s3"}]}`},
		{name: "rule H136: $patch: replace replaces a list",
			mediaType: StrategicMerge, typed: &corev1.ServiceAccount{}, current: account,
			document: `{"metadata":null,"imagePullSecrets":null,"secrets":[{"name":"s9"},{"$patch":"replace"}]}`,
			want:     `{"kind":"ServiceAccount","apiVersion":"v1","secrets":[{"name":"s9"}]}`},
		{name: "a strategic merge treats finalizers as a set",
			mediaType: StrategicMerge, typed: &corev1.ConfigMap{}, current: `{"metadata":{"finalizers":["x/one","x/two"]}}`,
			document: `{"metadata":{"finalizers":["x/three"]}}`,
			want:     `{"metadata":{"finalizers":["x/three","x/one","x/two"]}}`},
		{name: "rule H136: $deleteFromPrimitiveList takes values out of a set, $setElementOrder orders the rest",
			mediaType: StrategicMerge, typed: &corev1.ConfigMap{}, current: `{"metadata":{"finalizers":["x/one","x/two","x/three"]}}`,
			document: `{"metadata":{"$deleteFromPrimitiveList/finalizers":["x/one"],"$setElementOrder/finalizers":["x/three","x/two"]}}`,
			want:     `{"metadata":{"finalizers":["x/three","x/two"]}}`},
		{name: "rule H136: $retainKeys drops the other keys",
			mediaType: StrategicMerge, typed: &corev1.Pod{}, current: `{"spec":{"volumes":[{"name":"v","emptyDir":{}}]}}`,
			document: `{"spec":{"volumes":[{"name":"v","$retainKeys":["name","secret"],"secret":{"secretName":"s"}}]}}`,
			want:     `{"spec":{"volumes":[{"name":"v","secret":{"secretName":"s"}}]}}`},
		{name: "a field that stands twice in a strategic merge is found, and the last one counts",
			mediaType: StrategicMerge, typed: &corev1.ConfigMap{}, current: `{}`, document: `{"data":{"k":"v"},"data":{"l":"w"}}`,
			want: `{"data":{"l":"w"}}`, findings: []string{`duplicate field "data"`}},
		{name: "a strategic merge lets an unknown field through; decoding the result will tell",
			mediaType: StrategicMerge, typed: &corev1.ConfigMap{}, current: `{}`, document: `{"dataa":{"k":"v"}}`,
			want: `{"dataa":{"k":"v"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			patched, findings, err := Apply(tt.mediaType, []byte(tt.current), []byte(tt.document), tt.typed)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := canonical(t, patched), canonical(t, []byte(tt.want)); got != want {
				t.Errorf("patched:\n got %s\nwant %s", got, want)
			}
			if got, want := strings.Join(findings, "; "), strings.Join(tt.findings, "; "); got != want {
				t.Errorf("findings: got %s, want %s", got, want)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	const invalid = "the server rejected our request due to an error in our request"
	big := `{"a":"` + strings.Repeat("x", 1<<20) + `","b":{}}`
	for _, tt := range []struct {
		name              string
		mediaType         string
		current, document string
		code              int32
		reason            metav1.StatusReason
		message           string
	}{
		{"rule H133: what is no JSON is no patch", Merge, configMap, `not json`, 400, metav1.StatusReasonBadRequest, "invalid JSON patch"},
		{"an empty body is no patch", JSON, configMap, ``, 400, metav1.StatusReasonBadRequest, "invalid JSON patch"},
		{"JSON that is nested too deep is no patch", StrategicMerge, configMap, strings.Repeat(`{"a":`, 100000) + "1" + strings.Repeat("}", 100000),
			400, metav1.StatusReasonBadRequest, "invalid JSON patch"},
		{"a list is no merge patch", Merge, configMap, `[]`, 400, metav1.StatusReasonBadRequest,
			"error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"},
		{"a text is no merge patch", Merge, configMap, `"text"`, 400, metav1.StatusReasonBadRequest,
			"error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}"},
		{"null is no merge patch", Merge, configMap, `null`, 400, metav1.StatusReasonBadRequest, "Invalid JSON Patch"},
		{"rule H133: an operation that is a number is a bad operation", JSON, configMap, `[{"op":1}]`, 400, metav1.StatusReasonBadRequest,
			"error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"},
		{"rule H133: a JSON patch whose test fails does not fit", JSON, configMap, `[{"op":"test","path":"/data/one","value":"2"}]`,
			422, metav1.StatusReasonInvalid, invalid},
		{"rule H133: a JSON patch that removes what is missing does not fit", JSON, `{"list":[1]}`, `[{"op":"remove","path":"/list/9"}]`,
			422, metav1.StatusReasonInvalid, invalid},
		{"rule H133: a JSON patch that adds past the end of a list does not fit", JSON, `{"list":[1]}`, `[{"op":"add","path":"/list/9","value":1}]`,
			422, metav1.StatusReasonInvalid, invalid},
		{"an unknown operation does not fit", JSON, configMap, `[{"op":"paint","path":"/data"}]`, 422, metav1.StatusReasonInvalid, invalid},
		{"an operation without a path does not fit", JSON, configMap, `[{"op":"remove"}]`, 422, metav1.StatusReasonInvalid, invalid},
		{"replacing the whole object by nothing does not fit, and does not panic", JSON, configMap, `[{"op":"replace","path":""}]`,
			422, metav1.StatusReasonInvalid, invalid},
		{"rule H134: 10001 operations are too many", JSON, configMap, "[" + strings.Repeat("{},", 10000) + "{}]",
			413, metav1.StatusReasonRequestEntityTooLarge, "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"},
		{"rule H134: copies that add more than 3 MiB do not fit", JSON, big,
			`[{"op":"copy","from":"/a","path":"/b/1"},{"op":"copy","from":"/a","path":"/b/2"},{"op":"copy","from":"/a","path":"/b/3"}]`,
			422, metav1.StatusReasonInvalid, invalid},
		{"a list is no strategic merge", StrategicMerge, configMap, `[]`, 400, metav1.StatusReasonBadRequest,
			"json: cannot unmarshal array into Go value of type map[string]interface {}"},
		{"rule H133: an unknown directive is a bad directive", StrategicMerge, configMap, `{"data":{"$patch":"paint"}}`,
			400, metav1.StatusReasonBadRequest, "unknown patch type: paint in map: map[$patch:paint]"},
		{"rule H133: an order that is no list is a bad directive", StrategicMerge, `{"metadata":{"finalizers":["x/one"]}}`,
			`{"metadata":{"$setElementOrder/finalizers":"x"}}`, 400, metav1.StatusReasonBadRequest, "expected a []interface {}, but received a string"},
		{"a list item without its key is told so", StrategicMerge, `{"metadata":{"ownerReferences":[{"uid":"1"}]}}`,
			`{"metadata":{"ownerReferences":[{"name":"x"}]}}`, 400, metav1.StatusReasonBadRequest, "map: map[name:x] does not contain declared merge key: uid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			patched, findings, err := Apply(tt.mediaType, []byte(tt.current), []byte(tt.document), &corev1.ConfigMap{})
			if patched != nil || findings != nil {
				t.Errorf("a refused patch left %q and %q", patched, findings)
			}
			status, ok := err.(errors.APIStatus)
			if !ok {
				t.Fatalf("the error is %v, want a status", err)
			}
			s := status.Status()
			if s.Code != tt.code || s.Reason != tt.reason || s.Message != tt.message {
				t.Errorf("got  %d %s %q\nwant %d %s %q", s.Code, s.Reason, s.Message, tt.code, tt.reason, tt.message)
			}
		})
	}
}

func TestTenThousandOperationsAreAllowed(t *testing.T) {
	document := "[" + strings.Repeat(`{"op":"add","path":"/a","value":1},`, 9999) + `{"op":"add","path":"/a","value":2}]`
	patched, _, err := Apply(JSON, []byte(`{}`), []byte(document), nil)
	if err != nil || string(patched) != `{"a":2}` {
		t.Errorf("got %s, %v", patched, err)
	}
}

func TestCopiesUpToThreeMebibytesAreAllowed(t *testing.T) {
	current := `{"a":"` + strings.Repeat("x", 1<<20-2) + `","b":{}}` // with its quotes a is one mebibyte
	document := `[{"op":"copy","from":"/a","path":"/b/1"},{"op":"copy","from":"/a","path":"/b/2"},{"op":"copy","from":"/a","path":"/b/3"}]`
	if _, _, err := Apply(JSON, []byte(current), []byte(document), nil); err != nil {
		t.Error(err)
	}
}

func TestInvalidTellsTheFindingsAtFieldPatch(t *testing.T) {
	const text = `strict decoding error: unknown field "dataa"`
	for _, tt := range []struct{ name, mediaType, message string }{
		{"a merge patch shows the patched object", Merge,
			` "" is invalid: patch: Invalid value: "{\"dataa\":1}": strict decoding error: unknown field "dataa"`},
		{"a strategic merge shows the document", StrategicMerge,
			` "" is invalid: patch: Invalid value: "map[dataa:1]": strict decoding error: unknown field "dataa"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := Invalid(tt.mediaType, []byte(`{"dataa":1}`), []byte(`{"dataa":1}`), text)
			s := err.(errors.APIStatus).Status()
			if s.Code != 422 || s.Message != tt.message || len(s.Details.Causes) != 1 || s.Details.Causes[0].Field != "patch" {
				t.Errorf("got %d %q %v", s.Code, s.Message, s.Details.Causes)
			}
		})
	}
}

func TestApplyingTwiceFromTheSameBytesGivesTheSame(t *testing.T) {
	current, document := []byte(account), []byte(`{"secrets":[{"name":"s3"},{"name":"s1","$patch":"delete"}],"metadata":{"finalizers":["x/three"]}}`)
	first, _, err := Apply(StrategicMerge, current, document, &corev1.ServiceAccount{})
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := Apply(StrategicMerge, current, document, &corev1.ServiceAccount{})
	if err != nil || string(first) != string(again) || string(current) != account {
		t.Errorf("first %s, then %s, %v; current %s", first, again, err, current)
	}
}

// FuzzApply checks what holds for every document: no panic, and either JSON or a status of the
// client's fault, never one of ours.
func FuzzApply(f *testing.F) {
	types := []string{JSON, Merge, StrategicMerge}
	for i, document := range []string{
		`[{"op":"replace","path":"","value":[]}]`, `{"data":{"a":null}}`, `{"metadata":{"$setElementOrder/finalizers":["x"],"finalizers":[{}]}}`,
		`[{"op":"replace","path":""}]`, `{"data":[null]}`, `{"$patch":"delete"}`,
		`[{"op":"move","from":"/metadata","path":"/metadata/name"}]`, `null`, `{"$retainKeys":["a"],"b":1}`,
		`[{"op":"test","path":"","value":null}]`, `{"a":{"a":{"a":1}}}`, `{"secrets":[{"name":{}},{"name":{}}],"$setElementOrder/secrets":[{"name":{}},{"name":{}}]}`,
		`[{"op":"add","path":"/secrets/-1","value":null},{"op":"copy","from":"/secrets","path":"/secrets/0"}]`, `[]`,
		`{"metadata":{"$deleteFromPrimitiveList/finalizers":[{}],"ownerReferences":[{"uid":"u","$patch":"merge"}]}}`,
	} {
		f.Add(byte(i), []byte(document))
	}
	f.Fuzz(func(t *testing.T, which byte, document []byte) {
		mediaType := types[int(which)%len(types)]
		patched, _, err := Apply(mediaType, []byte(account), document, &corev1.ServiceAccount{})
		if err == nil {
			if !json.Valid(patched) {
				t.Fatalf("%s of %q left %q", mediaType, document, patched)
			}
			return
		}
		status, ok := err.(errors.APIStatus)
		if !ok || status.Status().Code < 400 || status.Status().Code >= 500 {
			t.Fatalf("%s of %q: %v is not the client's fault", mediaType, document, err)
		}
	})
}

func canonical(t *testing.T, data []byte) string {
	t.Helper()
	var v any
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
