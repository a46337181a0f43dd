package pawl_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
)

// counted are objects in which a number is 1, by the collection they are in.
var counted = map[string]string{
	"/api/v1/namespaces/default/configmaps": `{"metadata":{"name":"c"},"data":{"n":"1"}}`,
	shops:                                   strings.Replace(shop("", "shop:1", 1, ""), `"shop"`, `"c"`, 1),
	"/apis/pawl.test/v1/tallies":            `{"apiVersion":"pawl.test/v1","kind":"Tally","metadata":{"name":"c"},"spec":{"n":1}}`,
}

const tallies = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"tallies.pawl.test"},"spec":{"group":"pawl.test","scope":"Cluster",
	"names":{"plural":"tallies","kind":"Tally"},"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{},"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n"}},
	"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"n":{"type":"integer"}}},"status":{"type":"object","properties":{"n":{"type":"integer"}}}}}}}]}}`

const (
	tallyPath = "/apis/pawl.test/v1/tallies"

	jsonPatch      = "application/json-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
)

// Two read the number 1, and one after the other writes 2. A way to write that names what was read has the second
// refused. One that names nothing takes both: the number is 2, an increment is lost, and nobody is told.
func TestWhatNamesNoVersionIsLastWriteWins(t *testing.T) {
	const lost = http.StatusOK
	x := newAPI(t, pawl.Config{})
	x.must("POST", definitions, tallies)
	type request struct{ name, method, collection, sub, query, media, body string }
	for _, c := range []struct {
		request
		second int // how the second is answered
	}{
		{request{"a PUT that names the version", "PUT", configMaps, "", "", "", `{"metadata":{"name":"c","resourceVersion":"$READ"},"data":{"n":"2"}}`}, http.StatusConflict},
		{request{"a PUT that names none", "PUT", configMaps, "", "", "", `{"metadata":{"name":"c"},"data":{"n":"2"}}`}, lost},
		{request{"a PUT that names version 0, which is none", "PUT", configMaps, "", "", "", `{"metadata":{"name":"c","resourceVersion":"0"},"data":{"n":"2"}}`}, lost},
		{request{"a PUT of a scale that names the version", "PUT", shops, "/scale", "", "", `{"metadata":{"name":"c","namespace":"default","resourceVersion":"$READ"},"spec":{"replicas":2}}`}, http.StatusConflict},
		{request{"a PUT of a scale that names none", "PUT", shops, "/scale", "", "", `{"metadata":{"name":"c","namespace":"default"},"spec":{"replicas":2}}`}, lost},
		{request{"a PUT of a custom resource's scale that names none", "PUT", tallyPath, "/scale", "", "", `{"metadata":{"name":"c"},"spec":{"replicas":2}}`}, lost},

		{request{"a merge patch that names the version", "PATCH", configMaps, "", "", mergePatch, `{"metadata":{"resourceVersion":"$READ"},"data":{"n":"2"}}`}, http.StatusConflict},
		{request{"a merge patch that names none", "PATCH", configMaps, "", "", mergePatch, `{"data":{"n":"2"}}`}, lost},
		{request{"a merge patch that names none and may be rebased", "PATCH", configMaps, "", "&onConflict=rebase", mergePatch, `{"data":{"n":"2"}}`}, lost},
		{request{"a merge patch of a custom resource", "PATCH", tallyPath, "", "", mergePatch, `{"spec":{"n":2}}`}, lost},
		{request{"a merge patch of a status", "PATCH", tallyPath, "/status", "", mergePatch, `{"status":{"n":2}}`}, lost},
		{request{"a strategic merge patch that names the version", "PATCH", shops, "", "", strategicPatch, `{"metadata":{"resourceVersion":"$READ"},"spec":{"replicas":2}}`}, http.StatusConflict},
		{request{"a strategic merge patch that names none", "PATCH", shops, "", "", strategicPatch, `{"spec":{"replicas":2}}`}, lost},
		{request{"a merge patch of a scale", "PATCH", shops, "/scale", "", mergePatch, `{"spec":{"replicas":2}}`}, lost},

		{request{"a JSON patch that tests the number", "PATCH", configMaps, "", "", jsonPatch, `[{"op":"test","path":"/data/n","value":"1"},{"op":"replace","path":"/data/n","value":"2"}]`}, http.StatusUnprocessableEntity},
		{request{"a JSON patch that tests the version", "PATCH", configMaps, "", "", jsonPatch, `[{"op":"test","path":"/metadata/resourceVersion","value":"$READ"},{"op":"replace","path":"/data/n","value":"2"}]`}, http.StatusUnprocessableEntity},
		{request{"a JSON patch that names the version", "PATCH", configMaps, "", "", jsonPatch, `[{"op":"replace","path":"/metadata/resourceVersion","value":"$READ"},{"op":"replace","path":"/data/n","value":"2"}]`}, http.StatusConflict},
		{request{"a JSON patch that tests nothing", "PATCH", configMaps, "", "", jsonPatch, `[{"op":"replace","path":"/data/n","value":"2"}]`}, lost},

		{request{"an apply by force that names the version", "PATCH", configMaps, "", "&force=true", applyPatch, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","resourceVersion":"$READ"},"data":{"n":"2"}}`}, http.StatusConflict},
		{request{"an apply by force that names none", "PATCH", configMaps, "", "&force=true", applyPatch, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"n":"2"}}`}, lost},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := &api{t: t, host: x.host, admin: x.admin, http: x.http}
			read := versionIn(t, x.must("POST", c.collection, counted[c.collection]))
			defer x.must("DELETE", c.collection+"/c", "")
			write := func(who string) answer {
				media := c.media
				if media == "" {
					media = "application/json"
				}
				return x.do(c.method, c.collection+"/c"+c.sub+"?fieldManager="+who+c.query, []byte(strings.ReplaceAll(c.body, "$READ", read)), "Content-Type", media)
			}
			if a := write("ann"); a.code != http.StatusOK {
				t.Fatalf("the first is answered with %d %s", a.code, a.text)
			}
			if a := write("bob"); a.code != c.second {
				t.Errorf("the second is answered with %d %s", a.code, a.text)
			}
			if got := numberOf(t, x.must("GET", c.collection+"/c", "")); got != "2" {
				t.Errorf("the number is %s", got)
			}
		})
	}
}

// numberOf is the number that an object counts.
func numberOf(t *testing.T, a answer) string {
	t.Helper()
	var obj struct {
		Data         map[string]string
		Spec, Status struct{ N, Replicas int }
	}
	if err := json.Unmarshal([]byte(a.text), &obj); err != nil {
		t.Fatal(err)
	}
	if obj.Data != nil {
		return obj.Data["n"]
	}
	return fmt.Sprint(max(obj.Spec.N, obj.Spec.Replicas, obj.Status.N))
}

// Where an update has to name a version there is no last write that wins.
func TestWhatHasToNameAVersion(t *testing.T) {
	x := newAPI(t, pawl.Config{})
	x.must("POST", definitions, tallies)
	x.must("POST", tallyPath, counted[tallyPath])
	x.must("POST", configMaps, counted[configMaps])
	x.must("POST", shops, counted[shops])
	for path, body := range map[string]string{
		tallyPath + "/c":                         `{"apiVersion":"pawl.test/v1","kind":"Tally","metadata":{"name":"c"},"spec":{"n":2}}`,
		tallyPath + "/c/status":                  `{"apiVersion":"pawl.test/v1","kind":"Tally","metadata":{"name":"c"},"status":{"n":2}}`,
		configMaps + "/c?onConflict=rebase":      `{"metadata":{"name":"c"},"data":{"n":"2"}}`,
		tallyPath + "/c/scale?onConflict=rebase": `{"metadata":{"name":"c"},"spec":{"replicas":2}}`,
		shops + "/c/scale?onConflict=rebase":     `{"metadata":{"name":"c","namespace":"default","resourceVersion":"0"},"spec":{"replicas":2}}`,
	} {
		if a := x.do("PUT", path, []byte(body)); a.code != http.StatusUnprocessableEntity || !strings.Contains(a.text, "metadata.resourceVersion") {
			t.Errorf("a PUT of %s that names none is answered with %d %s", path, a.code, a.text)
		}
	}
}

// That fields have owners protects them from who wants another value, and not from who read an older one.
func TestOwnersAreNoVersions(t *testing.T) {
	x := newAPI(t, pawl.Config{})
	apply := func(manager, n string) answer {
		return x.do("PATCH", configMaps+"/c?fieldManager="+manager, []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"n":"`+n+`"}}`), "Content-Type", applyPatch)
	}
	for _, step := range []struct {
		name, manager, n string
		code             int
	}{
		{"ann makes it", "ann", "1", http.StatusCreated},
		{"bob wants another number than ann's", "bob", "2", http.StatusConflict},
		{"ann counts up", "ann", "2", http.StatusOK},
		{"ann counts up from what she read at first, and is lost", "ann", "2", http.StatusOK},
		{"bob does, and is lost: he wants what is there", "bob", "2", http.StatusOK},
		{"now it is bob's as well", "ann", "3", http.StatusConflict},
	} {
		if a := apply(step.manager, step.n); a.code != step.code || step.code == http.StatusConflict && !strings.Contains(a.text, "conflict with") {
			t.Errorf("%s: answered with %d %s", step.name, a.code, a.text)
		}
	}
	if n := numberOf(t, x.must("GET", configMaps+"/c", "")); n != "2" {
		t.Errorf("the number is %s", n)
	}
}
