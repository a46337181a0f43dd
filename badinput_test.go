package pawl_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl"
)

// A place is a resource that bad input is sent to. In requests $C is its collection, $O an
// object of it that exists, $TYPE its kind and apiVersion as members of JSON, $GR its
// name in error texts.
type place struct {
	name, kind, version, collection, resource string
	custom                                    bool
}

var places = []place{
	{"a built-in", "ConfigMap", "v1", "/api/v1/namespaces/default/configmaps", "configmaps", false},
	{"a custom resource", "Widget", "pawl.test/v1", "/apis/pawl.test/v1/namespaces/default/widgets", "widgets.pawl.test", true},
}

func (p place) fill(s string) string {
	return strings.NewReplacer(
		"$C", p.collection, "$O", p.collection+"/a", "$GR", p.resource, "$KIND", p.kind,
		"$TYPE", fmt.Sprintf(`"kind":%q,"apiVersion":%q`, p.kind, p.version), "$YAML", fmt.Sprintf("kind: %s\napiVersion: %s\n", p.kind, p.version),
	).Replace(s)
}

// A blunder is a request that should not be sent, and what is to be answered. Where a
// custom resource is answered otherwise than a built-in, custom says how.
type blunder struct {
	name         string
	method, path string
	media        string // of the body
	body         string
	code         int
	text         string // is part of the answer
	custom       *reply
}

type reply struct {
	code int
	text string
}

const (
	asYAML  = "application/yaml"
	asJSONP = "application/json-patch+json"
	asMerge = "application/merge-patch+json"
	asSMP   = "application/strategic-merge-patch+json"
	bodyMax = 3 << 20
	deep    = 100_000
)

var (
	nestedJSON = strings.Repeat("[", deep) + strings.Repeat("]", deep)
	nestedObj  = strings.Repeat(`{"a":`, deep) + "1" + strings.Repeat("}", deep)
	tooLong    = strings.Repeat(" ", bodyMax+1)
	tooLarge   = "Request entity too large: limit is 3145728"
)

// manyLaughs is the bomb that is built of lists of lists, longText the one of one long text that
// half a million aliases name: written out it would be 500 GB.
func manyLaughs() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [lol,lol,lol,lol,lol,lol,lol,lol,lol,lol]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), i-1)
	}
	return b.String()
}

func longText() string {
	const text, aliases = 1 << 20, 1 << 19
	return "a: &a " + strings.Repeat("x", text) + "\nb: [" + strings.Repeat("*a,", aliases) + "*a]\n"
}

func malformed() []blunder {
	unreadable := "the object provided is unrecognized (must be of type $KIND): couldn't get version/kind; json parse error: "
	return []blunder{
		{"malformed JSON is not created", "POST", "$C", "", `{"metadata":`, 400, unreadable + "unexpected end of JSON input ({\"metadata\":)", nil},
		{"malformed JSON that does not look like an object is shown in hex", "POST", "$C", "", `metadata`, 400, "(6d65746164617461)", nil},
		{"no body is not created", "POST", "$C", "", ``, 400, unreadable + "unexpected end of JSON input (<empty>)", nil},
		{"malformed JSON replaces nothing", "PUT", "$O", "", `{"metadata":`, 400, unreadable, nil},
		{"a list is no object", "POST", "$C", "", `[]`, 400, "the object provided is unrecognized", nil},
		{"a malformed JSON patch", "PATCH", "$O", asJSONP, `[{"op":`, 400, "invalid JSON patch", nil},
		{"a JSON patch that is an object", "PATCH", "$O", asJSONP, `{}`, 400, "error decoding patch: ", nil},
		{"a JSON patch of an operation that there is not", "PATCH", "$O", asJSONP, `[{"op":"frobnicate","path":"/a"}]`, 422, "the server rejected our request due to an error in our request", nil},
		{"a JSON patch that removes everything", "PATCH", "$O", asJSONP, `[{"op":"remove","path":""}]`, 422, "", nil},
		{"a malformed merge patch", "PATCH", "$O", asMerge, `{"a"`, 400, "invalid JSON patch", nil},
		{"a merge patch that is a list", "PATCH", "$O", asMerge, `[]`, 400, "error decoding patch: ", nil},
		{"a malformed strategic merge patch", "PATCH", "$O", asSMP, `{"a"`, 400, "invalid JSON patch", unsupportedPatch},
		{"a patch of no type", "PATCH", "$O", "", `{}`, 415, "415: Unsupported Media Type", unsupportedPatch},
		{"a body of an unknown type", "POST", "$C", "text/csv", `a,b`, 415, "the body of the request was in an unknown format - accepted media types include: application/json", nil},
		{"malformed options of a delete", "DELETE", "$O", "", `{"a"`, 400, "json parse error", nil},
		{"malformed options of a delete of all", "DELETE", "$C", "", `{"a"`, 400, "json parse error", nil},
		{"a delete with something else than options", "DELETE", "$O", "", `{"kind":"Pod","apiVersion":"v1"}`, 400, "DeleteOptions", nil},
		{"a delete by a policy that there is not", "DELETE", "$O", "", `{"propagationPolicy":"Maybe"}`, 422, "propagationPolicy: Unsupported value", nil},
		{"the same of what is not there", "DELETE", "$C/nothing", "", `{"propagationPolicy":"Maybe"}`, 422, "propagationPolicy: Unsupported value", nil},
		{"a dry run that is none, of what is not there", "DELETE", "$C/nothing?dryRun=Some", "", ``, 422, "dryRun: Unsupported value", nil},
		{"malformed YAML", "POST", "$C", asYAML, "a: [", 400, "the object provided is unrecognized (must be of type $KIND): yaml: ", nil},
		{"YAML with tabs", "PUT", "$O", asYAML, "a:\n\tb: c", 400, "found character that cannot start any token", nil},
		{"YAML that contains itself", "POST", "$C", asYAML, "$YAMLmetadata: {name: b}\ndata: &a\n  b: *a\n", 400, "anchor 'a' value contains itself", nil},
		{"YAML that grows out of lists", "POST", "$C", asYAML, manyLaughs(), 400, "document contains excessive aliasing", nil},
		{"YAML that grows out of a long text", "POST", "$C", asYAML, longText(), 400, "document contains excessive aliasing", nil},
		{"the same in the options of a delete", "DELETE", "$O", asYAML, longText(), 400, "document contains excessive aliasing", nil},
		{"YAML that names what there is not", "POST", "$C", asYAML, "a: *b", 400, "unknown anchor 'b' referenced", nil},
	}
}

var unsupportedPatch = &reply{415, "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json"}

func mistyped() []blunder {
	return []blunder{
		{"another kind is not created", "POST", "$C", "", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"b"}}`, 400, "Secret in version \"v1\" cannot be handled as a ConfigMap", &reply{400, "the API version in the data (v1) does not match the expected API version (pawl.test/v1)"}},
		{"another kind of the same version", "PUT", "$O", "", `{"kind":"Gadget","apiVersion":"$V","metadata":{"name":"a"}}`, 400, `no kind "Gadget" is registered for version "v1" in scheme`, &reply{422, ""}},
		{"another version", "POST", "$C", "", `{"kind":"$KIND","apiVersion":"example.com/v7","metadata":{"name":"b"}}`, 400, "the API version in the data (example.com/v7) does not match the expected API version (", nil},
		{"another version in an update", "PUT", "$O", "", `{"kind":"$KIND","apiVersion":"v9","metadata":{"name":"a"}}`, 400, "the API version in the data (v9) does not match the expected API version (", nil},
		{"a patch to another version", "PATCH", "$O", asMerge, `{"apiVersion":"v9"}`, 400, "the API version in the data (v9) does not match", nil},
		{"another name", "PUT", "$O", "", `{$TYPE,"metadata":{"name":"b"}}`, 400, "the name of the object (b) does not match the name on the URL (a)", nil},
		{"another namespace", "POST", "$C", "", `{$TYPE,"metadata":{"name":"b","namespace":"other"}}`, 400, "the namespace of the provided object does not match the namespace sent on the request", nil},
		{"a patch to another name", "PATCH", "$O", asMerge, `{"metadata":{"name":"b"}}`, 400, "the name of the object (b) does not match the name on the URL (a)", nil},
		{"a member of the wrong type", "POST", "$C", "", `{$TYPE,"metadata":{"name":7}}`, 400, "cannot be handled as a $KIND", nil},
		{"no name at all", "POST", "$C", "", `{$TYPE,"metadata":{}}`, 422, "name or generateName is required", nil},
		{"a name that is none", "POST", "$C", "", `{$TYPE,"metadata":{"name":"A/b"}}`, 422, "metadata.name: Invalid value: \"A/b\"", nil},
		{"a member that stands twice, if one is strict", "POST", "$C?fieldValidation=Strict", "", `{$TYPE,"metadata":{"name":"b","name":"c"}}`, 400, `strict decoding error: duplicate field "metadata.name"`, nil},
		{"the same in YAML", "POST", "$C?fieldValidation=Strict", asYAML, "$YAMLmetadata:\n  name: b\n  name: c\n", 400, `key "name" already set in map`, nil},
	}
}

func unknownFields() []blunder {
	const unknown = `unknown field "bogus"`
	body := `{$TYPE,"metadata":{"name":"NAME"},"bogus":1}`
	create, update := strings.Replace(body, "NAME", "b", 1), strings.Replace(body, "NAME", "a", 1)
	version := strings.Replace(update, `"name":"a"`, `"name":"a","resourceVersion":"$RV"`, 1)
	merge, ops := `{"bogus":1}`, `[{"op":"add","path":"/bogus","value":1}]`
	return []blunder{
		{"a strict create", "POST", "$C?fieldValidation=Strict", "", create, 400, `$KIND in version "v1" cannot be handled as a $KIND: strict decoding error: ` + unknown, nil},
		{"a strict update", "PUT", "$O?fieldValidation=Strict", "", version, 400, `strict decoding error: ` + unknown, nil},
		{"a strict JSON patch", "PATCH", "$O?fieldValidation=Strict", asJSONP, ops, 422, `strict decoding error: ` + unknown, nil},
		{"a strict JSON patch that says too much", "PATCH", "$O?fieldValidation=Strict", asJSONP, `[{"op":"add","path":"/metadata/labels","value":{},"x":1}]`, 422, `json patch unknown field "[0].x"`, nil},
		{"a strict merge patch", "PATCH", "$O?fieldValidation=Strict", asMerge, merge, 422, `strict decoding error: ` + unknown, nil},
		{"a strict strategic merge patch", "PATCH", "$O?fieldValidation=Strict", asSMP, merge, 422, `strict decoding error: ` + unknown, unsupportedPatch},
		{"validation of a kind that there is not", "POST", "$C?fieldValidation=strict", "", create, 422, `fieldValidation: Unsupported value: "strict"`, nil},
		{"and in an update", "PUT", "$O?fieldValidation=x", "", version, 422, `fieldValidation: Unsupported value: "x"`, nil},
		{"and in a patch", "PATCH", "$O?fieldValidation=x", asMerge, merge, 422, `fieldValidation: Unsupported value: "x"`, nil},
	}
}

func outsized() []blunder {
	var bs []blunder
	for _, c := range [][3]string{{"POST", "$C", ""}, {"POST", "$C", asYAML}, {"PUT", "$O", ""}, {"PATCH", "$O", asJSONP}, {"PATCH", "$O", asMerge}, {"DELETE", "$O", ""}, {"DELETE", "$C", ""}} {
		bs = append(bs, blunder{"a body of more than 3 MiB to " + c[0] + " " + c[2], c[0], c[1], c[2], tooLong, 413, tooLarge, nil})
	}
	for _, n := range []string{nestedJSON, nestedObj} {
		bs = append(bs,
			blunder{"nested too deep in JSON", "POST", "$C", "", `{$TYPE,"metadata":{"name":"b"},"data":` + n + `}`, 400, "exceeded max depth", nil},
			blunder{"nested too deep in an update", "PUT", "$O", "", `{$TYPE,"metadata":{"name":"a"},"data":` + n + `}`, 400, "exceeded max depth", nil},
			blunder{"nested too deep in YAML", "POST", "$C", asYAML, `{$TYPE,"metadata":{"name":"b"},"data":` + n + `}`, 400, "exceeded max depth of 10000", nil},
			blunder{"nested too deep in a JSON patch", "PATCH", "$O", asJSONP, `[{"op":"add","path":"/x","value":` + n + `}]`, 400, "invalid JSON patch", nil},
			blunder{"nested too deep in a merge patch", "PATCH", "$O", asMerge, `{"data":` + n + `}`, 400, "invalid JSON patch", nil},
			blunder{"nested too deep in a strategic merge patch", "PATCH", "$O", asSMP, `{"data":` + n + `}`, 400, "invalid JSON patch", unsupportedPatch},
			blunder{"nested too deep in the options of a delete", "DELETE", "$O", "", `{"x":` + n + `}`, 400, "exceeded max depth", nil},
		)
	}
	many := "[" + strings.Repeat(`{"op":"test","path":"/kind","value":1},`, 10000) + `{"op":"test","path":"/kind","value":1}]`
	return append(bs, blunder{"a JSON patch of too many operations", "PATCH", "$O", asJSONP, many, 413, "The allowed maximum operations in a JSON patch is 10000, got 10001", nil})
}

func queries() []blunder {
	list := func(name, query string, code int, text string) blunder {
		return blunder{name, "GET", "$C?" + query, "", "", code, text, nil}
	}
	return []blunder{
		list("a label selector that does not parse", "labelSelector=a+in+(", 400, "unable to parse requirement"),
		list("a label that is none", "labelSelector=-a%3Db", 400, "unable to parse requirement"),
		list("a field selector that does not parse", "fieldSelector=metadata.name", 400, "invalid selector"),
		list("a field that cannot be selected", "fieldSelector=data.x%3Dy", 400, ""),
		list("a watch by a label selector that does not parse", "watch=1&labelSelector=a+in+(", 400, "unable to parse requirement"),
		list("a malformed version to list", "resourceVersion=x", 400, "invalid resource version"),
		list("a negative version to list", "resourceVersion=-1", 400, "invalid resource version"),
		list("a match without a version", "resourceVersionMatch=Exact", 422, "resourceVersionMatch is forbidden unless resourceVersion is provided"),
		list("a match that there is not", "resourceVersion=1&resourceVersionMatch=Roughly", 422, "Unsupported value"),
		list("sendInitialEvents on a list", "sendInitialEvents=true", 422, "sendInitialEvents is forbidden for list"),
		list("sendInitialEvents without a match", "watch=1&sendInitialEvents=true", 422, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
		list("a malformed version to watch from", "watch=1&resourceVersion=x", 500, `resourceVersion: Invalid value: "x"`),
		list("a limit that is no number", "limit=ten", 400, `strconv.ParseInt: parsing "ten": invalid syntax`),
		list("a limit that is too large", "limit=9223372036854775808", 400, "value out of range"),
		list("a timeout that is no number", "watch=1&timeoutSeconds=soon", 400, `parsing "soon": invalid syntax`),
		list("a deadline that is no duration", "timeout=soon", 400, "invalid timeout specified in the request URL"),
		list("a token that is none", "continue=x!", 400, "continue key is not valid"),
		list("a token of another server", "continue=e30", 400, "continue key is not valid"),
		list("a token that leads elsewhere", "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi9zZWNyZXRzIn0", 400, "continue key is not valid: ../../secrets"),
		list("a token and a version", "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0&resourceVersion=5", 400, "specifying resource version is not allowed when using continue"),
		list("a query that does not parse", "labelSelector=%zz", 400, "the query of the request URL does not parse"),
		{"a delete of all by what does not parse", "DELETE", "$C?labelSelector=%zz", "", "", 400, "the query of the request URL does not parse", nil},
		{"a delete of all by two that a semicolon parts", "DELETE", "$C?labelSelector=a;b", "", "", 400, "the query of the request URL does not parse", nil},
		{"a delete of all by a selector that does not parse", "DELETE", "$C?labelSelector=a+in+(", "", "", 400, "unable to parse requirement", nil},
		{"a grace period that is no number", "DELETE", "$O?gracePeriodSeconds=soon", "", "", 400, `parsing "soon": invalid syntax`, nil},
		{"a propagation that there is not", "DELETE", "$O?propagationPolicy=Sideways", "", "", 422, "propagationPolicy", nil},
		{"a dry run of something else", "DELETE", "$O?dryRun=Some", "", "", 422, "dryRun", nil},
		{"a dry run of all and of something else", "POST", "$C?dryRun=All&dryRun=Some", "", `{$TYPE,"metadata":{"name":"b"}}`, 422, "dryRun", nil},
		{"a manager with a long name", "POST", "$C?fieldManager=" + strings.Repeat("m", 129), "", `{$TYPE,"metadata":{"name":"b"}}`, 422, "fieldManager", nil},
		{"a manager that cannot be printed", "PATCH", "$O?fieldManager=%00", asMerge, `{}`, 422, "fieldManager", nil},
		{"force on a merge patch", "PATCH", "$O?force=true", asMerge, `{}`, 422, "may not be specified for non-apply patch", nil},
		{"force that is no truth", "PATCH", "$O?force=maybe", asMerge, `{}`, 400, "strconv.ParseBool", nil},
		{"a deadline of a write that is no duration", "POST", "$C?timeout=x", "", `{$TYPE,"metadata":{"name":"b"}}`, 400, "invalid timeout specified in the request URL", nil},
	}
}

func versions() []blunder {
	future := `"resourceVersion":"999999999"`
	return []blunder{
		{"a malformed version to get", "GET", "$O?resourceVersion=x", "", "", 500, `resourceVersion: Invalid value: "x"`, nil},
		{"an update of a malformed version", "PUT", "$O", "", `{$TYPE,"metadata":{"name":"a","resourceVersion":"x"}}`, 500, `strconv.ParseUint: parsing "x": invalid syntax`, nil},
		{"an update of a version to come", "PUT", "$O", "", `{$TYPE,"metadata":{"name":"a",` + future + `}}`, 409, "the object has been modified; please apply your changes to the latest version and try again", nil},
		{"a patch of a version to come", "PATCH", "$O", asMerge, `{"metadata":{` + future + `}}`, 409, "the object has been modified", nil},
		{"a patch of a malformed version", "PATCH", "$O", asMerge, `{"metadata":{"resourceVersion":"x"}}`, 500, `parsing "x": invalid syntax`, nil},
		{"a create of a version", "POST", "$C", "", `{$TYPE,"metadata":{"name":"b","resourceVersion":"1"}}`, 500, "resourceVersion should not be set on objects to be created", nil},
		{"a delete of a version to come", "DELETE", "$O", "", `{"preconditions":{` + future + `}}`, 409, "the ResourceVersion in the precondition (999999999) does not match the ResourceVersion in record", nil},
		{"a delete of a malformed version", "DELETE", "$O", "", `{"preconditions":{"resourceVersion":"x"}}`, 409, "the ResourceVersion in the precondition (x) does not match", nil},
		{"a delete of another object of that name", "DELETE", "$O", "", `{"preconditions":{"uid":"u"}}`, 409, "the UID in the precondition (u) does not match the UID in record", nil},
		{"an update of another object of that name", "PUT", "$O", "", `{$TYPE,"metadata":{"name":"a","uid":"u","resourceVersion":"$RV"}}`, 409, "Precondition failed: UID in precondition: u, UID in object meta: ", nil},
	}
}

func bytesAndPaths() []blunder {
	get := func(name, path string, code int, text string) blunder {
		return blunder{name, "GET", path, "", "", code, text, nil}
	}
	return []blunder{
		{"a name that is no UTF-8", "POST", "$C", "", "{$TYPE,\"metadata\":{\"name\":\"b\xff\"}}", 422, "metadata.name: Invalid value", nil},
		{"a label that is no UTF-8", "POST", "$C", "", "{$TYPE,\"metadata\":{\"name\":\"b\",\"labels\":{\"\xfe\":\"\xff\"}}}", 422, "metadata.labels: Invalid value", nil},
		{"half a character in JSON", "POST", "$C", "", `{$TYPE,"metadata":{"name":"\ud800"}}`, 422, "metadata.name: Invalid value", nil},
		{"YAML that is no UTF-8", "POST", "$C", asYAML, "$YAMLmetadata: {name: \"b\xff\"}", 400, "yaml: ", nil},
		{"a patch that is no UTF-8", "PATCH", "$O", asMerge, "{\"metadata\":{\"labels\":{\"\xff\":\"x\"}}}", 422, "metadata.labels: Invalid value", nil},
		{"YAML in UTF-16", "POST", "$C", asYAML, "\xff\xfea\x00:\x00\x00\xd8", 400, "", nil},
		get("a path that is no UTF-8", "$C/%ff%fe", 404, "not found"),
		get("a name with a zero byte", "$C/a%00b", 404, "not found"),
		get("a name that is a dot", "$C/%2e", 400, `Name parameter invalid: ".": may not be '.'`),
		get("a name that leads up", "$C/%2e%2e", 400, `Name parameter invalid: "..": may not be '..'`),
		get("a path that leads up", "$C/../../../namespaces", 404, ""),
		get("a name with a slash", "$C/a%2fb%2fc%2fd", 404, ""),
		get("a namespace that leads up", "/api/v1/namespaces/%2e%2e/configmaps/a", 404, "not found"),
		get("a path with nothing in the middle", "/api/v1//namespaces", 404, "404 page not found"),
		get("a namespace without a name", "/api/v1/namespaces//configmaps/a", 404, ""),
		get("a path that names nothing", "/nowhere", 404, "404 page not found"),
		get("a path that names nothing after all", "/healthz/../nowhere", 404, "404 page not found"),
		get("a group that there is not", "/apis/no.such.group/v1/things", 404, "404 page not found"),
		get("a version that there is not", "/apis/pawl.test/v9/widgets", 404, "404 page not found"),
		get("a resource that there is not", "/api/v1/things", 404, "the server could not find the requested resource"),
		get("an object that there is not", "$C/zz", 404, `$GR "zz" not found`),
		get("a subresource that there is not", "$O/scale", 404, ""),
		get("more than a subresource", "$O/status/x/y", 404, ""),
		{"an unknown object to delete", "DELETE", "$C/zz", "", "", 404, `$GR "zz" not found`, nil},
		{"an unknown object to patch", "PATCH", "$C/zz", asMerge, "{}", 404, `$GR "zz" not found`, nil},
	}
}

func methods() []blunder {
	var bs []blunder
	for _, m := range []string{"OPTIONS", "TRACE", "PROPFIND", "LINK", "get", "list", "DELETECOLLECTION", "Watch"} {
		for _, path := range []string{"$C", "$O"} {
			bs = append(bs, blunder{m + " means nothing to " + path, m, path, "", "", 405, "the server does not allow this method on the requested resource",
				&reply{405, strings.ToLower(m) + ` is not supported on resources of kind "widgets.pawl.test"`}})
		}
	}
	no := func(name, method, path string, custom string) blunder {
		return blunder{name, method, path, asMerge, "{}", 405, "the server does not allow this method on the requested resource", &reply{405, custom}}
	}
	bs = append(bs,
		no("POST to an object", "POST", "$O", "create is not supported"),
		no("PUT of a collection", "PUT", "$C", "update is not supported"),
		no("PATCH of a collection", "PATCH", "$C", "patch is not supported"),
		blunder{"a delete over all namespaces", "DELETE", "/api/v1/configmaps", "", "", 405, "the server does not allow this method on the requested resource", nil},
		blunder{"a custom one as well", "DELETE", "/apis/pawl.test/v1/widgets", "", "", 404, "", nil},
		blunder{"a POST to discovery", "POST", "/apis", "", "{}", 405, "", nil},
	)
	return bs
}

func blunders() map[string][]blunder {
	return map[string][]blunder{
		"malformed": malformed(), "mistyped": mistyped(), "unknown fields": unknownFields(), "outsized": outsized(),
		"queries": queries(), "versions": versions(), "bytes and paths": bytesAndPaths(), "methods": methods(),
	}
}

// commit makes a blunder, and says what is wrong with the answer.
func (a *api) commit(p place, b blunder, version string) string {
	r := strings.NewReplacer("$RV", version, "$V", p.version)
	want := reply{b.code, b.text}
	if p.custom && b.custom != nil {
		want = *b.custom
	}
	var headers []string
	if b.media != "" {
		headers = []string{"Content-Type", b.media}
	}
	got := a.do(b.method, p.fill(b.path), []byte(r.Replace(p.fill(b.body))), headers...)
	text := got.text
	if st := got.status(); st.Kind == "Status" {
		text = st.Message
	}
	if got.code != want.code || !strings.Contains(text, p.fill(want.text)) {
		return fmt.Sprintf("%s %.300s: %d %.600s\nwant %d …%s…", b.method, p.fill(b.path), got.code, got.text, want.code, p.fill(want.text))
	}
	if st := got.status(); got.code >= 400 && st.Kind == "Status" && int(st.Code) != got.code {
		return fmt.Sprintf("the code is %d, and the Status says %d", got.code, st.Code)
	}
	return ""
}

// grownMaxBytes is how much larger the process may be after all bad input has been sent again.
const grownMaxBytes = 6 << 20

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestBadInputIsRefusedAndChangesNothing(t *testing.T) {
	a := newAPI(t, pawl.Config{})
	a.must("POST", definitions, crd("widgets", "Widget", "Namespaced"))
	version := map[string]string{}
	for _, p := range places {
		a.must("POST", p.collection, p.fill(`{$TYPE,"metadata":{"name":"a"}}`))
		version[p.name] = a.do("GET", p.fill("$O"), nil).resourceVersion()
	}
	before := a.state()
	for name, bs := range blunders() {
		t.Run(name, func(t *testing.T) {
			for _, p := range places {
				for _, b := range bs {
					t.Run(p.name+": "+b.name, func(t *testing.T) {
						if wrong := a.commit(p, b, version[p.name]); wrong != "" {
							t.Error(wrong)
						}
					})
				}
			}
			if after := a.state(); after != before {
				t.Errorf("something changed: before\n%.2000s\nafter\n%.2000s", before, after)
			}
		})
	}
	heap, threads := heapBytes(), runtime.NumGoroutine()
	for range 2 {
		for _, bs := range blunders() {
			for _, p := range places {
				for _, b := range bs {
					a.commit(p, b, version[p.name])
				}
			}
		}
	}
	if now := heapBytes(); now > heap+grownMaxBytes {
		t.Errorf("the heap grew from %d KiB to %d KiB", heap>>10, now>>10)
	}
	if now := runtime.NumGoroutine(); now > threads+10 {
		t.Errorf("%d goroutines have become %d", threads, now)
	}
	if after := a.state(); after != before {
		t.Error("something changed the second time")
	}
}

func (a answer) resourceVersion() string {
	_, rest, _ := strings.Cut(a.text, `"resourceVersion":"`)
	version, _, _ := strings.Cut(rest, `"`)
	return version
}

// TestWhatIsLetPass is input that is odd and no error: it is answered as the reference does.
func TestWhatIsLetPass(t *testing.T) {
	a := newAPI(t, pawl.Config{})
	a.must("POST", definitions, crd("widgets", "Widget", "Namespaced"))
	for _, p := range places {
		a.must("POST", p.collection, p.fill(`{$TYPE,"metadata":{"name":"a"}}`))
	}
	before := a.state()
	for _, c := range []struct {
		name, method, path, media, body string
		code                            int
		warning, text                   string
	}{
		{"an unknown field of a create is warned of", "POST", "$C?dryRun=All", "", `{$TYPE,"metadata":{"name":"b"},"bogus":1}`, 201, `299 - "unknown field \"bogus\""`, ""},
		{"if that is asked for", "POST", "$C?dryRun=All&fieldValidation=Warn", "", `{$TYPE,"metadata":{"name":"b"},"bogus":1}`, 201, `299 - "unknown field \"bogus\""`, ""},
		{"and ignored if that is", "POST", "$C?dryRun=All&fieldValidation=Ignore", "", `{$TYPE,"metadata":{"name":"b"},"bogus":1}`, 201, "", ""},
		{"an unknown field of an update is warned of", "PUT", "$O?dryRun=All", "", `{$TYPE,"metadata":{"name":"a","resourceVersion":"$RV"},"bogus":1}`, 200, `299 - "unknown field \"bogus\""`, ""},
		{"and ignored if that is asked for", "PUT", "$O?dryRun=All&fieldValidation=Ignore", "", `{$TYPE,"metadata":{"name":"a","resourceVersion":"$RV"},"bogus":1}`, 200, "", ""},
		{"an unknown field of a merge patch is warned of", "PATCH", "$O?dryRun=All", asMerge, `{"bogus":1}`, 200, `299 - "unknown field \"bogus\""`, ""},
		{"and ignored if that is asked for, too", "PATCH", "$O?dryRun=All&fieldValidation=Ignore", asMerge, `{"bogus":1}`, 200, "", ""},
		{"an unknown field of a JSON patch is warned of", "PATCH", "$O?dryRun=All", asJSONP, `[{"op":"add","path":"/bogus","value":1}]`, 200, `299 - "unknown field \"bogus\""`, ""},
		{"and may be ignored", "PATCH", "$O?dryRun=All&fieldValidation=Ignore", asJSONP, `[{"op":"add","path":"/bogus","value":1}]`, 200, "", ""},
		{"annotations that are no UTF-8 are mended", "POST", "$C?dryRun=All", "", "{$TYPE,\"metadata\":{\"name\":\"b\",\"annotations\":{\"a\":\"x\xff\"}}}", 201, "", "x\ufffd"},
		{"a negative limit is none", "GET", "$C?limit=-1", "", "", 200, "", `"name":"a"`},
		{"of two limits the first counts", "GET", "$C?limit=1&limit=x", "", "", 200, "", `"name":"a"`},
		{"unknown parameters mean nothing", "GET", "$C?colour=red", "", "", 200, "", `"name":"a"`},
		{"shards are unknown (S129)", "GET", "$C?shardSelector=nonsense", "", "", 200, "", `"name":"a"`},
		{"a watch takes no notice of pages (S127)", "GET", "$C?watch=1&timeoutSeconds=1&limit=1&continue=nonsense", "", "", 200, "", `"name":"a"`},
		{"a slash at the end means nothing", "GET", "$C/", "", "", 200, "", `"name":"a"`},
		{"a timeout of less than nothing is none", "GET", "$C?timeout=-5s", "", "", 200, "", `"name":"a"`},
	} {
		for _, p := range places {
			t.Run(p.name+": "+c.name, func(t *testing.T) {
				version := a.do("GET", p.fill("$O"), nil).resourceVersion()
				got := a.do(c.method, p.fill(c.path), []byte(strings.ReplaceAll(p.fill(c.body), "$RV", version)), "Content-Type", c.media)
				if warning := got.header.Get("Warning"); got.code != c.code || warning != c.warning || !strings.Contains(got.text, c.text) {
					t.Errorf("%d, warning %q, %.500s", got.code, warning, got.text)
				}
			})
		}
	}
	if a.state() != before {
		t.Error("something changed")
	}
}

// TestTheFutureIsWaitedFor asks for versions that will not come; each waits 3 seconds, all at
// once (rule H102).
func TestTheFutureIsWaitedFor(t *testing.T) {
	t.Parallel()
	a := newAPI(t, pawl.Config{})
	a.must("POST", definitions, crd("widgets", "Widget", "Namespaced"))
	var waiting sync.WaitGroup
	for _, p := range places {
		a.must("POST", p.collection, p.fill(`{$TYPE,"metadata":{"name":"a"}}`))
		for path, code := range map[string]int{
			"$O?resourceVersion=99999999": 504, "$C?resourceVersion=99999999": 504,
			"$C?resourceVersion=99999999&resourceVersionMatch=Exact": 504, "$C?resourceVersion=99999999&limit=1": 504,
			"$C?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99999999": 200, // one event says why
		} {
			waiting.Go(func() {
				got, err := a.try(a.admin, "GET", p.fill(path), nil)
				if err != nil || got.code != code || !strings.Contains(got.text, "Too large resource version: 99999999, current: ") || !strings.Contains(got.text, "ResourceVersionTooLarge") {
					t.Errorf("%s: %v, %d %s", p.fill(path), err, got.code, got.text)
				}
			})
		}
	}
	waiting.Wait()
}

func TestAnEnormousHeaderIsRefused(t *testing.T) {
	a := newAPI(t, pawl.Config{})
	conn, err := tls.Dial("tcp", strings.TrimPrefix(a.host, "https://"), a.http.Transport.(*http.Transport).TLSClientConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		_, _ = io.WriteString(conn, "GET /api/v1/configmaps HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "+a.admin+"\r\nX-Big: ")
		_, _ = io.WriteString(conn, strings.Repeat("x", 2<<20)+"\r\n\r\n") // fails once the server has seen enough
	}()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 431 ") {
		t.Errorf("%q, %v", line, err)
	}
	a.must("GET", "/api/v1/configmaps", "")
}
