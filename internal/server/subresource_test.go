package server

import (
	"strings"
	"testing"
)

func TestWhatIsPostedToAPod(t *testing.T) { // rules B51, B52
	const pods = "/api/v1/namespaces/a/pods"
	const toN1 = `{"metadata":{"name":"p","labels":{"zone":"z"},"annotations":{"by":"me"}},"target":{"kind":"Node","name":"n1"}}`
	const eviction = `{"metadata":{"name":"p"}}`
	const pod = `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	const gated = `{"metadata":{"name":"p"},"spec":{"schedulingGates":[{"name":"g"}],"containers":[{"name":"c","image":"i"}]}}`
	for _, tt := range []struct {
		name, pod, door, body string
		code                  int
		says, leaves          string // the answer, and a GET of the pod afterwards
	}{
		{"a binding puts it on a node, with what it brings", pod, "binding", toN1, 201, `"status":"Success","code":201`, `"nodeName":"n1"`},
		{"its labels", pod, "binding", toN1, 201, ``, `"labels":{"zone":"z"},"annotations":{"by":"me"}`},
		{"its status says so", pod, "binding", toN1, 201, ``, `{"type":"PodScheduled","status":"True"`},
		{"its generation stays", pod, "binding", toN1, 201, ``, `"generation":1`},
		{"a dry run binds nothing", pod, "binding?dryRun=All", toN1, 201, `Success`, `"phase":"Pending","qosClass"`},
		{"a pod that waits for its gates is not bound", gated, "binding", toN1, 409, `pod p has non-empty .spec.schedulingGates`, ``},
		{"a binding under another name", pod, "binding", `{"metadata":{"name":"q"},"target":{"name":"n1"}}`, 400, `name in URL does not match name in Binding object`, ``},
		{"a binding to nothing", pod, "binding", `{"metadata":{"name":"p"},"target":{}}`, 422, `target.name: Required value`, ``},
		{"a binding to something else", pod, "binding", `{"metadata":{"name":"p"},"target":{"kind":"Pod","name":"x"}}`, 422, `target.kind: Unsupported value`, ``},
		{"a binding of a pod that has since changed", pod, "binding", `{"metadata":{"name":"p","resourceVersion":"1"},"target":{"name":"n1"}}`, 409, `the object has been modified`, ``},
		{"a binding of another pod of that name", pod, "binding", `{"metadata":{"name":"p","uid":"x"},"target":{"name":"n1"}}`, 409, `Precondition failed: UID in precondition: x`, ``},
		{"an eviction deletes it", pod, "eviction", eviction, 201, `"status":"Success","code":201`, `"reason":"NotFound"`},
		{"an eviction names its kind in another group", pod, "eviction", `{"kind":"Eviction","apiVersion":"policy/v1","metadata":{"name":"p"}}`, 201, ``, `"reason":"NotFound"`},
		{"a dry run evicts nothing", pod, "eviction?dryRun=All", eviction, 201, `Success`, `"phase":"Pending"`},
		{"nor does one that the eviction asks for", pod, "eviction", `{"metadata":{"name":"p"},"deleteOptions":{"dryRun":["All"]}}`, 201, `Success`, `"phase":"Pending"`},
		{"an eviction of another pod of that name", pod, "eviction", `{"metadata":{"name":"p"},"deleteOptions":{"preconditions":{"uid":"x"}}}`, 409, `does not match the UID in record`, `"phase":"Pending"`},
		{"an eviction under another name", pod, "eviction", `{"metadata":{"name":"q"}}`, 400, `name in URL does not match name in Eviction object`, ``},
		{"something that is no eviction", pod, "eviction", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"}}`, 400, `does not match the expected API version (policy/v1)`, ``},
		{"in another namespace than the path", pod, "eviction", `{"metadata":{"name":"p","namespace":"b"}}`, 400, `does not match the namespace sent on the request`, ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, allowAll{})
			w.must("POST", pods, tt.pod)
			got := w.do("POST", pods+"/p/"+tt.door, tt.body, "Content-Type", "application/json")
			if got.Code != tt.code || !strings.Contains(got.Body.String(), tt.says) {
				t.Errorf("%d %s, want %d and %s", got.Code, got.Body, tt.code, tt.says)
			}
			if left := w.do("GET", pods+"/p", "").Body.String(); !strings.Contains(left, tt.leaves) {
				t.Errorf("it left %s, want %s", left, tt.leaves)
			}
		})
	}
}

func TestAPodIsBoundOnce(t *testing.T) {
	w := newWorld(t, allowAll{})
	w.must("POST", "/api/v1/namespaces/a/pods", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	bind := func(node string) string {
		return w.do("POST", "/api/v1/namespaces/a/pods/p/binding", `{"metadata":{"name":"p"},"target":{"name":"`+node+`"}}`).Body.String()
	}
	bind("n1")
	if got := bind("n2"); !strings.Contains(got, `Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n1\"`) {
		t.Error(got)
	}
}

func TestDoorsThatTakeSomethingShowNothing(t *testing.T) {
	w := newWorld(t, allowAll{})
	w.must("POST", "/api/v1/namespaces/a/pods", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	for _, tt := range []struct {
		name, method, path string
		code               int
	}{
		{"a binding is not read", "GET", "pods/p/binding", 405},
		{"nor put", "PUT", "pods/p/eviction", 405},
		{"nor deleted", "DELETE", "pods/p/eviction", 405},
		{"nothing is posted to a status", "POST", "pods/p/status", 405},
		{"nor to a pod", "POST", "pods/p", 405},
		{"what is not there is not evicted", "POST", "pods/q/eviction", 404},
		{"there is no such door", "POST", "pods/p/window", 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := w.do(tt.method, "/api/v1/namespaces/a/"+tt.path, `{"metadata":{"name":"q"}}`); got.Code != tt.code {
				t.Errorf("%d %s, want %d", got.Code, got.Body, tt.code)
			}
		})
	}
}
