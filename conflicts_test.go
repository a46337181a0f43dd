package pawl_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl"
)

const (
	mergePatch = "application/merge-patch+json"
	shops      = "/apis/apps/v1/namespaces/default/deployments"
)

// shop is a deployment with two containers, at the version named.
func shop(version, image string, replicas int, more string) string {
	return fmt.Sprintf(`{"metadata":{"name":"shop","resourceVersion":%q%s},"spec":{"replicas":%d,"selector":{"matchLabels":{"app":"shop"}},
		"template":{"metadata":{"labels":{"app":"shop"}},"spec":{"containers":[{"name":"app","image":%q},{"name":"log","image":"log:1"}]}}}}`, version, more, replicas, image)
}

func versionIn(t testing.TB, a answer) string {
	t.Helper()
	var obj metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(a.text), &obj); err != nil || obj.ResourceVersion == "" {
		t.Fatalf("no version in %d %s: %v", a.code, a.text, err)
	}
	return obj.ResourceVersion
}

// causes are those of a Status, in one line each.
func (a answer) causes() (lines []string) {
	st := a.status()
	if st.Details == nil {
		return nil
	}
	for _, c := range st.Details.Causes {
		_, touched, _ := strings.Cut(c.Message, "; ")
		lines = append(lines, c.Field+"; "+touched)
	}
	return lines
}

// owners are the fields in managedFields that say .spec.replicas or an image, by manager.
func owners(t testing.TB, text string) map[string]string {
	t.Helper()
	var obj metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(text), &obj); err != nil {
		t.Fatal(err)
	}
	owned := map[string]string{}
	for _, e := range obj.ManagedFields {
		fields := string(e.FieldsV1.Raw)
		for _, f := range []string{`"f:image"`, `"f:replicas"`, `"f:tier"`} {
			if strings.Contains(fields, f) {
				owned[e.Manager+"/"+e.Subresource] += f
			}
		}
	}
	return owned
}

// What is written through each door to a deployment that somebody changed since it was read.
func TestEveryDoorRebases(t *testing.T) {
	const label = `,"labels":{"tier":"web"}`
	x := newAPI(t, pawl.Config{})
	for _, c := range []struct {
		name               string
		method, path, body string // $READ is the version that was read
		media              string
		want               string   // in the answer
		fields             string   // that the warning says the write changes
		owns               []string // of managers
	}{
		{"PUT", "PUT", "", shop("$READ", "shop:1", 2, label), "", `"tier":"web"`, ".metadata.labels", []string{`writer/"f:tier"`}},
		{"a merge patch", "PATCH", "", `{"metadata":{"resourceVersion":"$READ","labels":{"tier":"web"}}}`, mergePatch, `"tier":"web"`, ".metadata.labels", []string{`writer/"f:tier"`}},
		{"a JSON patch, made of what was read", "PATCH", "", `[{"op":"replace","path":"/metadata/resourceVersion","value":"$READ"},{"op":"add","path":"/metadata/labels","value":{"tier":"web"}}]`,
			"application/json-patch+json", `"tier":"web"`, ".metadata.labels", []string{`writer/"f:tier"`}},
		{"a strategic merge patch", "PATCH", "", `{"metadata":{"resourceVersion":"$READ"},"spec":{"template":{"spec":{"containers":[{"name":"log","image":"log:2"}]}}}}`,
			"application/strategic-merge-patch+json", `"log:2"`, `.spec.template.spec.containers[name="log"].image`, []string{`writer/"f:image"`}},
		{"PUT of the status", "PUT", "/status", strings.TrimSuffix(shop("$READ", "shop:9", 9, label), "}") + `,"status":{"observedGeneration":1}}`, "", `"observedGeneration":1`, ".status.observedGeneration", nil},
		{"PUT of the scale", "PUT", "/scale", `{"metadata":{"name":"shop","namespace":"default","resourceVersion":"$READ"},"spec":{"replicas":7}}`, "", `"replicas":7`, ".spec.replicas", []string{`writer/scale"f:replicas"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := &api{t: t, host: x.host, admin: x.admin, http: x.http}
			read := versionIn(t, x.must("POST", shops+"?fieldManager=maker", shop("", "shop:1", 2, "")))
			defer x.must("DELETE", shops+"/shop", "")
			x.must("PATCH", shops+"/shop?fieldManager=other", `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"shop:2"}]}}}}`, "Content-Type", "application/strategic-merge-patch+json")
			media := c.media
			if media == "" {
				media = "application/json"
			}
			path, body := shops+"/shop"+c.path+"?fieldManager=writer", strings.ReplaceAll(c.body, "$READ", read)
			if a := x.do(c.method, path, []byte(body), "Content-Type", media); a.code != http.StatusConflict ||
				!slices.Equal(a.causes(), []string{`.spec.template.spec.containers[name="app"].image; this write does not touch it`}) {
				t.Errorf("without the option it is answered with %d %s", a.code, a.text)
			}
			dry := x.do(c.method, path+"&onConflict=rebase&dryRun=All", []byte(body), "Content-Type", media)
			a := x.do(c.method, path+"&onConflict=rebase", []byte(body), "Content-Type", media)
			for _, a := range []answer{dry, a} {
				if a.code != http.StatusOK || !strings.Contains(a.text, c.want) {
					t.Fatalf("answered with %d %s", a.code, a.text)
				}
				w := a.header.Get("Warning")
				if !strings.Contains(w, "this write changes "+strings.ReplaceAll(c.fields, `"`, `\"`)) || !strings.Contains(w, `others had changed .spec.template.spec.containers[name=\"app\"].image`) {
					t.Errorf("warned %s", w)
				}
			}
			now := x.must("GET", shops+"/shop", "").text
			if !strings.Contains(now, `"shop:2"`) || strings.Contains(now, "shop:9") {
				t.Errorf("it became %s", now)
			}
			owned := owners(t, now)
			if owned["other/"] != `"f:image"` {
				t.Errorf("the other change is owned by %v", owned)
			}
			for _, o := range c.owns {
				if manager, f, _ := strings.Cut(o, `"`); owned[manager] != `"`+f {
					t.Errorf("owned by %v, want %s", owned, o)
				}
			}
		})
	}
}

func TestARebaseThatOverlapsIsRefused(t *testing.T) {
	x := newAPI(t, pawl.Config{})
	read := versionIn(t, x.must("POST", shops, shop("", "shop:1", 2, "")))
	x.must("PUT", shops+"/shop", shop(read, "shop:2", 3, `,"labels":{"tier":"a"}`))
	before := x.must("GET", shops+"/shop", "").text
	a := x.do("PUT", shops+"/shop?onConflict=rebase", []byte(shop(read, "shop:1", 5, `,"labels":{"other":"b"}`)))
	if want := []string{".spec.replicas; this write changes it too"}; a.code != http.StatusConflict || !slices.Equal(a.causes(), want) {
		t.Errorf("answered with %d %s", a.code, a.text)
	}
	scale := `{"metadata":{"name":"shop","namespace":"default","resourceVersion":"` + read + `"},"spec":{"replicas":7}}`
	a = x.do("PUT", shops+"/shop/scale?onConflict=rebase", []byte(scale))
	if want := []string{".spec.replicas; this write changes it too"}; a.code != http.StatusConflict || !slices.Equal(a.causes(), want) {
		t.Errorf("the scale is answered with %d %s", a.code, a.text)
	}
	if now := x.must("GET", shops+"/shop", "").text; now != before {
		t.Errorf("it became %s", now)
	}
}

// The values of a secret are told neither to whom is refused nor to whom is rebased.
func TestNoValueOfASecretIsTold(t *testing.T) {
	x := newAPI(t, pawl.Config{})
	const secrets = "/api/v1/namespaces/default/secrets"
	read := versionIn(t, x.must("POST", secrets, `{"metadata":{"name":"s"},"stringData":{"a":"VALUE","b":"VALUE","c":"VALUE"}}`))
	x.must("PATCH", secrets+"/s", `{"stringData":{"b":"VALUE2"}}`, "Content-Type", mergePatch)
	send := func(query, key string) answer {
		return x.do("PATCH", secrets+"/s"+query, []byte(`{"metadata":{"resourceVersion":"`+read+`"},"stringData":{"`+key+`":"VALUE3"}}`), "Content-Type", mergePatch, "User-Agent", "kubectl/v1.37")
	}
	for query, key := range map[string]string{"": "a", "?onConflict=rebase": "b"} {
		a := send(query, key)
		if said := a.text + a.header.Get("Warning"); a.code != http.StatusConflict || len(a.causes()) != 1 || strings.Contains(said, "VkFMVU") || strings.Contains(said, "VALUE") {
			t.Errorf("%s: answered with %d %s %s", query, a.code, a.text, a.header.Get("Warning"))
		}
	}
	a := send("?onConflict=rebase", "c")
	if w := a.header.Get("Warning"); a.code != http.StatusOK || !strings.Contains(w, "changes .data.c; others had changed .data.b") || strings.Contains(w, "VALUE") || strings.Contains(w, "VkFMVU") {
		t.Errorf("warned %s, %s", w, a.text)
	}
}

func TestWhereOnConflictMeansNothingItIsRefused(t *testing.T) {
	x := newAPI(t, pawl.Config{})
	read := versionIn(t, x.must("POST", shops, shop("", "shop:1", 2, "")))
	const only = `the only value is \"rebase\"`
	for _, c := range []struct{ name, method, path, body, media, want string }{
		{"no value", "PUT", "/shop?onConflict=", shop(read, "shop:1", 2, ""), "", only},
		{"another value", "PUT", "/shop?onConflict=REBASE", shop(read, "shop:1", 2, ""), "", only},
		{"two values", "PUT", "/shop?onConflict=rebase&onConflict=rebase", shop(read, "shop:1", 2, ""), "", only},
		{"another value on another verb", "GET", "/shop?onConflict=x", "", "", only},
		{"GET", "GET", "/shop?onConflict=rebase", "", "", "this is a get"},
		{"a list", "GET", "?onConflict=rebase", "", "", "this is a list"},
		{"a watch", "GET", "?watch=1&onConflict=rebase", "", "", "this is a watch"},
		{"a create", "POST", "?onConflict=rebase", shop("", "shop:1", 2, ""), "", "this is a create"},
		{"a delete", "DELETE", "/shop?onConflict=rebase", "", "", "this is a delete"},
		{"a delete of all", "DELETE", "?onConflict=rebase", "", "", "this is a deletecollection"},
		{"an apply", "PATCH", "/shop?fieldManager=m&onConflict=rebase", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"shop"}}`, "application/apply-patch+yaml", "is not for an apply"},
	} {
		media := c.media
		if media == "" {
			media = "application/json"
		}
		before := x.must("GET", shops, "").text
		if a := x.do(c.method, shops+c.path, []byte(c.body), "Content-Type", media); a.code != http.StatusBadRequest || !strings.Contains(a.text, c.want) {
			t.Errorf("%s: answered with %d %s", c.name, a.code, a.text)
		}
		if x.must("GET", shops, "").text != before {
			t.Errorf("%s: something was done", c.name)
		}
	}
	if a := x.do("PUT", shops+"/shop?onConflict=rebase", []byte(shop("", "shop:1", 2, ""))); a.code != http.StatusUnprocessableEntity || !strings.Contains(a.text, "metadata.resourceVersion") {
		t.Errorf("a PUT that names no version is answered with %d %s", a.code, a.text)
	}
}

// Whatever the way to say so: who sets a field to the value that somebody else gave it meanwhile changes it, too.
func TestWhoSetsTheSameValueIsToldOfTheOther(t *testing.T) {
	const things = "/api/v1/namespaces/default/configmaps"
	want := []string{".data.hits; this write changes it too", ".data.seen; this write does not touch it"}
	for _, c := range []struct{ name, method, path, media, body string }{
		{"PUT", "PUT", "/page", "application/json", `{"metadata":{"name":"page","resourceVersion":"$READ"},"data":{"hits":"2","seen":"1"}}`},
		{"merge patch", "PATCH", "/page", mergePatch, `{"metadata":{"resourceVersion":"$READ"},"data":{"hits":"2"}}`},
		{"strategic merge patch", "PATCH", "/page", "application/strategic-merge-patch+json", `{"metadata":{"resourceVersion":"$READ"},"data":{"hits":"2"}}`},
		{"JSON patch", "PATCH", "/page", "application/json-patch+json", `[{"op":"replace","path":"/metadata/resourceVersion","value":"$READ"},{"op":"replace","path":"/data/hits","value":"2"}]`},
		{"apply", "PATCH", "/page?fieldManager=ann", "application/apply-patch+yaml", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"page","resourceVersion":"$READ"},"data":{"hits":"2"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newAPI(t, pawl.Config{})
			x.must("POST", things, `{"metadata":{"name":"page"},"data":{"seen":"1"}}`)
			read := versionIn(t, x.do("PATCH", things+"/page?fieldManager=ann", []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"page"},"data":{"hits":"1"}}`), "Content-Type", "application/apply-patch+yaml"))
			x.do("PATCH", things+"/page?fieldManager=bob", []byte(`{"data":{"hits":"2","seen":"2"}}`), "Content-Type", mergePatch)
			a := x.do(c.method, things+c.path, []byte(strings.ReplaceAll(c.body, "$READ", read)), "Content-Type", c.media)
			if a.code != http.StatusConflict || !slices.Equal(a.causes(), want) {
				t.Errorf("%d %s", a.code, a.text)
			}
		})
	}
}

// Many who read the same version write a field each, at once: all are written.
func TestManyAreRebasedAtOnce(t *testing.T) {
	const writers = 16
	x := newAPI(t, pawl.Config{})
	const things = "/api/v1/namespaces/default/configmaps"
	read := versionIn(t, x.must("POST", things, `{"metadata":{"name":"a"},"data":{"seed":"x"}}`))
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			body := fmt.Sprintf(`{"metadata":{"name":"a","resourceVersion":%q},"data":{"seed":"x","k%d":"v"}}`, read, i)
			a, err := x.try(x.admin, "PUT", things+fmt.Sprintf("/a?onConflict=rebase&fieldManager=w%d", i), []byte(body))
			if err != nil || a.code != http.StatusOK {
				t.Errorf("writer %d: %d %s, %v", i, a.code, a.text, err)
			}
		})
	}
	all.Wait()
	var got struct {
		Data     map[string]string
		Metadata metav1.ObjectMeta
	}
	if err := json.Unmarshal([]byte(x.must("GET", things+"/a", "").text), &got); err != nil || len(got.Data) != writers+1 {
		t.Errorf("%d keys, %v", len(got.Data), err)
	}
	if len(got.Metadata.ManagedFields) < 10 { // older entries of updaters are put together
		t.Errorf("managed by %d", len(got.Metadata.ManagedFields))
	}
}

// Many count up one field, each from what they read, and beside it one of their own. What both changed
// is never put together, not even if both made it the same: no increment is lost.
func TestRebasingLosesNoIncrement(t *testing.T) {
	const writers, each = 8, 5
	x := newAPI(t, pawl.Config{})
	const things = "/api/v1/namespaces/default/configmaps"
	x.must("POST", things, `{"metadata":{"name":"a"},"data":{"n":"0"}}`)
	count := func(i int) (counted bool, err error) {
		a, err := x.try(x.admin, "GET", things+"/a", nil)
		if err != nil {
			return false, err
		}
		var obj struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
			Data     map[string]string `json:"data"`
		}
		var n int
		if err := json.Unmarshal([]byte(a.text), &obj); err != nil {
			return false, err
		}
		if _, err := fmt.Sscan(obj.Data["n"], &n); err != nil {
			return false, err
		}
		obj.Data["n"], obj.Data[fmt.Sprint("own", i)] = fmt.Sprint(n+1), fmt.Sprint(n)
		body, err := json.Marshal(obj)
		if err != nil {
			return false, err
		}
		a, err = x.try(x.admin, "PUT", things+"/a?onConflict=rebase", body)
		if err == nil && a.code != http.StatusOK && a.code != http.StatusConflict {
			err = fmt.Errorf("%d %s", a.code, a.text)
		}
		return a.code == http.StatusOK, err
	}
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for won := 0; won < each; {
				counted, err := count(i)
				if err != nil {
					t.Errorf("writer %d: %v", i, err)
					return
				}
				if counted {
					won++
				}
			}
		})
	}
	all.Wait()
	if now := x.must("GET", things+"/a", "").text; !strings.Contains(now, fmt.Sprintf(`"n":"%d"`, writers*each)) {
		t.Errorf("%d were acknowledged, and it is %s", writers*each, now)
	}
}
