package conversation

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

var testNow = time.Date(2030, 5, 6, 7, 8, 9, 0, time.UTC)

func testNormalizer() *normalizer {
	n := newNormalizer(testToken, false)
	n.now = func() time.Time { return testNow }
	return n
}

const (
	u1 = "11111111-2222-4333-8444-555555555555"
	u2 = "aaaaaaaa-2222-4333-8444-555555555555"
)

func TestNormalization(t *testing.T) {
	for _, c := range []struct{ name, raw, want string }{
		{"the token in values and keys", `{"p-k3x9w2ab":"a.k3x9w2ab.b"}`, `{"p-${unique}":"a.${unique}.b"}`},
		{"uids by first appearance, members in the order of their names",
			`{"z":"` + u1 + `","a":"` + u2 + ` and ` + u1 + `"}`, `{"a":"<uid 1> and <uid 2>","z":"<uid 2>"}`},
		{"versions of objects", `{"metadata":{"resourceVersion":"9"},"x":{"metadata":{"resourceVersion":"7"}}}`,
			`{"metadata":{"resourceVersion":"<rv 1>"},"x":{"metadata":{"resourceVersion":"<rv 2>"}}}`},
		{"versions that are no versions stay", `{"a":{"metadata":{"resourceVersion":""}},"b":{"metadata":{"resourceVersion":"0"}}}`,
			`{"a":{"metadata":{"resourceVersion":""}},"b":{"metadata":{"resourceVersion":"0"}}}`},
		{"versions in texts about preconditions",
			`{"message":"the ResourceVersion in the precondition (8) does not match the ResourceVersion in record (9)","metadata":{"resourceVersion":"9"}}`,
			`{"message":"the ResourceVersion in the precondition (<rv 1>) does not match the ResourceVersion in record (<rv 2>)","metadata":{"resourceVersion":"<rv 2>"}}`},
		{"the version and continue token of a list", `{"items":[{"metadata":{"resourceVersion":"7"}}],"metadata":{"continue":"abc","resourceVersion":"7"}}`,
			`{"items":[{"metadata":{"resourceVersion":"<rv 1>"}}],"metadata":{"continue":"<continue>","resourceVersion":"<list-rv>"}}`},
		{"a list older than an item of it", `{"items":[{"metadata":{"resourceVersion":"8"}}],"metadata":{"resourceVersion":"7"}}`,
			`{"items":[{"metadata":{"resourceVersion":"<rv 1>"}}],"metadata":{"resourceVersion":"<list-rv> is 7, older than one of its items, which has 8"}}`},
		{"a table older than a row of it", `{"kind":"Table","metadata":{"resourceVersion":"7"},"rows":[{"object":{"metadata":{"resourceVersion":"8"}}}]}`,
			`{"kind":"Table","metadata":{"resourceVersion":"<table-rv> is 7, older than one of its rows, which has 8"},"rows":[{"object":{"metadata":{"resourceVersion":"<rv 1>"}}}]}`},
		{"times near now, with their fractions", `["2030-05-06T07:08:09Z","2030-05-05T07:08:09.123456Z","2030-05-06T09:08:09.5+02:00"]`, `["<time>","<time .6>","<time .1>"]`},
		{"times far from now stay", `["2030-05-01T00:00:00Z"]`, `["2030-05-01T00:00:00Z"]`},
		{"generated names everywhere", `{"metadata":{"generateName":"page-","name":"page-x7f2q"},"say":"page-x7f2q is made"}`,
			`{"metadata":{"generateName":"page-","name":"page-<generated 1>"},"say":"page-<generated 1> is made"}`},
		{"a given name beside a generateName stays", `{"metadata":{"generateName":"page-","name":"book"}}`, `{"metadata":{"generateName":"page-","name":"book"}}`},
		{"managed fields are dropped", `{"metadata":{"managedFields":[{"manager":"m"}],"name":"a"}}`, `{"metadata":{"name":"a"}}`},
		{"versions that are too old", `["too old resource version: 1 (512)"]`, `["too old resource version: <n> (<n>)"]`},
		{"versions that are too large", `["Timeout: Too large resource version: 99, current: 7"]`, `["Timeout: Too large resource version: <n>, current: <n>"]`},
		{"the explanation of a conflict is dropped", `{"details":{"causes":[{"reason":"FieldChanged"}],"name":"a"},"kind":"Status"}`, `{"details":{"name":"a"},"kind":"Status"}`},
		{"other causes stay", `{"details":{"causes":[{"reason":"FieldChanged"},{"reason":"X"}]},"kind":"Status"}`, `{"details":{"causes":[{"reason":"X"}]},"kind":"Status"}`},
		{"causes that were empty stay", `{"details":{"causes":[]},"kind":"Status"}`, `{"details":{"causes":[]},"kind":"Status"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw, err := decodeJSON([]byte(c.raw))
			if err != nil {
				t.Fatal(err)
			}
			n := testNormalizer()
			if got := asJSON(n.number(n.mark(raw, false))); got != c.want {
				t.Errorf("%s\nbecame %s\nwant   %s", c.raw, got, c.want)
			}
		})
	}
}

func TestABookmarkIsNotOlderThanAnythingSeen(t *testing.T) {
	n := testNormalizer()
	object := func(rv string) any {
		return map[string]any{"metadata": map[string]any{"resourceVersion": rv}}
	}
	n.mark(object("20"), false)
	version := func(tree any) string {
		return tree.(map[string]any)["metadata"].(map[string]any)["resourceVersion"].(string)
	}
	if got := version(n.mark(object("20"), true)); got != bookmarkVersion {
		t.Errorf("a bookmark as new as the newest object is %q", got)
	}
	if got := version(n.mark(object("19"), true)); got == bookmarkVersion {
		t.Error("a bookmark older than an object passes")
	}
}

func TestManagedFieldsAreSortedWhereTheyAreCompared(t *testing.T) {
	n := newNormalizer(testToken, true)
	raw, _ := decodeJSON([]byte(`{"metadata":{"managedFields":[
		{"operation":"Update","manager":"a"},{"operation":"Apply","manager":"b"},{"operation":"Apply","manager":"a","subresource":"status"},{"operation":"Apply","manager":"a"}]}}`))
	want := `{"metadata":{"managedFields":[{"manager":"a","operation":"Apply"},{"manager":"a","operation":"Apply","subresource":"status"},` +
		`{"manager":"b","operation":"Apply"},{"manager":"a","operation":"Update"}]}}`
	if got := asJSON(n.number(n.mark(raw, false))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestChecks(t *testing.T) {
	for _, c := range []struct {
		name, step, answer string
		want               []string // the paths that differ
	}{
		{"numbers compare by value", `expect: {status: 200, body: {a: 2, b: 2.5}}`, `{"a":2.0,"b":2.50}`, nil},
		{"a null is not nothing", `expect: {status: 200, body: {a: null}}`, `{}`, []string{"body .a"}},
		{"the order of a list counts", `expect: {status: 200, body: [1, 2]}`, `[2,1]`, []string{"body [0]", "body [1]"}},
		{"unless it is unordered", "check: {unordered: true}\nexpect: {status: 200, body: [{a: [1, 2]}, {a: [3]}]}", `[{"a":[3]},{"a":[2,1]}]`, nil},
		{"unordered uids are numbered in the sorted order", "check: {unordered: true}\nexpect: {status: 200, body: [{n: a, u: <uid 1>}, {n: b, u: <uid 2>}]}",
			`[{"n":"b","u":"` + u1 + `"},{"n":"a","u":"` + u2 + `"}]`, nil},
		{"the status alone", "check: {statusOnly: true}\nexpect: {status: 200}", `{"a":1}`, nil},
		{"a wrong status", "check: {statusOnly: true}\nexpect: {status: 201}", `{"a":1}`, []string{"status"}},
		{"some paths only", "check: {only: [.a, .b, '.l[*].n']}\nexpect: {status: 200, values: {.a: 1, .b: <absent>, '.l[*].n': [x]}}", `{"a":1,"c":2,"l":[{"n":"x"},{}]}`, nil},
		{"a path that is there and should not be", "check: {only: [.b]}\nexpect: {status: 200, values: {.b: <absent>}}", `{"b":null}`, []string{"body .b"}},
		{"some paths left out", "check: {ignore: [.b]}\nexpect: {status: 200, body: {a: 1}}", `{"a":1,"b":2}`, nil},
		{"what is left out is not numbered", "check: {ignore: [.a]}\nexpect: {status: 200, body: {b: <uid 1>}}", `{"a":"` + u1 + `","b":"` + u2 + `"}`, nil},
		{"the shape alone", "check: {shape: true}\nexpect: {status: 200, body: {a: <string>, b: <number>, c: [<bool>]}}", `{"a":"x","b":5,"c":[true]}`, nil},
		{"another shape", "check: {shape: true}\nexpect: {status: 200, body: {a: <string>}}", `{"a":5}`, []string{"body .a"}},
		{"a member too many and one too few", `expect: {status: 200, body: {a: 1}}`, `{"b":1}`, []string{"body .a", "body .b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Step
			if err := yaml.Unmarshal([]byte(c.step), &s); err != nil {
				t.Fatal(err)
			}
			s.Expect.Headers = map[string]string{"Content-Type": "application/json"}
			header := http.Header{"Content-Type": {"application/json"}}
			got := &answer{status: 200, header: header, body: decodeBody("application/json", []byte(c.answer))}
			cmp := comparison{n: testNormalizer(), check: s.Check, vars: vars{}}
			cmp.answer(&s.Expect, got)
			var paths []string
			for _, m := range cmp.found {
				paths = append(paths, m.path)
			}
			if !reflect.DeepEqual(paths, c.want) {
				t.Errorf("differences at %q, want %q: %v", paths, c.want, cmp.found)
			}
		})
	}
}

func TestHeadersAreCompared(t *testing.T) {
	for _, c := range []struct {
		name  string
		want  map[string]string
		got   http.Header
		check []string
		at    string // the headers that differ
	}{
		{"several values are joined", map[string]string{"Warning": "a | b"}, http.Header{"Warning": {"a", "b"}}, nil, ""},
		{"one that is not recorded must be absent", nil, http.Header{"Retry-After": {"1"}}, nil, "header Retry-After"},
		{"one that is recorded must be there", map[string]string{"Allow": "GET"}, nil, nil, "header Allow"},
		{"others do not matter", nil, http.Header{"Date": {"today"}}, nil, ""},
		{"unless they are checked", nil, http.Header{"Date": {"today"}}, []string{"date"}, "header Date"},
		{"an ETag is there or not", map[string]string{"ETag": "<present>", "Audit-Id": "<absent>"}, http.Header{"Etag": {"x"}}, []string{"ETag", "Audit-Id"}, ""},
		{"an Audit-Id too many", map[string]string{"Audit-Id": "<absent>"}, http.Header{"Audit-Id": {"x"}}, []string{"Audit-Id"}, "header Audit-Id"},
		{"the token is replaced", map[string]string{"Location": "/${unique}"}, http.Header{"Location": {"/" + testToken}}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmp := comparison{n: testNormalizer(), check: Check{Headers: c.check}}
			cmp.headers(c.want, c.got)
			var at []string
			for _, m := range cmp.found {
				at = append(at, m.path)
			}
			if got := strings.Join(at, " "); got != c.at {
				t.Errorf("differences at %q, want %q", got, c.at)
			}
		})
	}
}

func TestBodiesAreDecodedByTheirContentType(t *testing.T) {
	for _, c := range []struct{ name, contentType, raw, want string }{
		{"JSON", "application/json", `{"a": 1.0}`, `{"a":1.0}`},
		{"YAML", "application/yaml", "a: 1\nb: \"x\"\nc: 2030-01-01\n", `{"a":1,"b":"x","c":"2030-01-01"}`},
		{"protobuf", "application/vnd.kubernetes.protobuf", "k8s\x00", `"<binary>"`},
		{"other types are text", "text/plain; charset=utf-8", "ok\n", `"ok\n"`},
		{"what is no JSON is text", "application/json", "{", `"{"`},
	} {
		if got := asJSON(decodeBody(c.contentType, []byte(c.raw))); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
