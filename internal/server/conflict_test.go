package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/internal/auth"
)

const modified = "the object has been modified; please apply your changes to the latest version and try again"

// except is an authorizer that forbids one verb.
type except string

func (e except) Authorize(a auth.Attributes) (bool, string) { return a.Verb != string(e), "" }

// contended makes an object, lets somebody else change it, and returns the version from before.
func contended(w *world, collection, first, second string) (stale string) {
	w.t.Helper()
	var obj metav1.PartialObjectMetadata
	if err := json.Unmarshal(w.must("POST", collection, first).Body.Bytes(), &obj); err != nil {
		w.t.Fatal(err)
	}
	w.must("PATCH", collection+"/a", second, "Content-Type", "application/merge-patch+json", "User-Agent", "controller/1.0")
	return obj.ResourceVersion
}

// A place is a resource that these tests write to: how it begins, what somebody changes, and what
// the refused writes say, with $RV for the version they name.
type place struct{ collection, first, second, put, patch, field string }

var places = map[string]place{
	"a built-in": {
		configMaps,
		`{"metadata":{"name":"a"},"data":{"color":"red","size":"1"}}`, `{"data":{"color":"VALUE-green"}}`,
		`{"metadata":{"name":"a","resourceVersion":"$RV"},"data":{"color":"blue","size":"1"}}`,
		`{"metadata":{"resourceVersion":"$RV"},"data":{"color":"blue"}}`, ".data.color",
	},
	"a secret": {
		"/api/v1/namespaces/default/secrets",
		`{"metadata":{"name":"a"},"stringData":{"color":"red","size":"1"}}`, `{"stringData":{"color":"VALUE-green"}}`,
		`{"metadata":{"name":"a","resourceVersion":"$RV"},"type":"Opaque","stringData":{"color":"blue","size":"1"}}`,
		`{"metadata":{"resourceVersion":"$RV"},"stringData":{"color":"blue"}}`, ".data.color",
	},
	"a custom resource": {
		"/apis/test.example/v1/namespaces/default/widgets",
		`{"apiVersion":"test.example/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"color":"red","size":1}}`, `{"spec":{"color":"VALUE-green"}}`,
		`{"apiVersion":"test.example/v1","kind":"Widget","metadata":{"name":"a","resourceVersion":"$RV"},"spec":{"color":"blue","size":1}}`,
		`{"metadata":{"resourceVersion":"$RV"},"spec":{"color":"blue"}}`, ".spec.color",
	},
}

// refused makes a write of each kind against an older version, and shows the answers to judge.
func refused(t *testing.T, may auth.Authorizer, agent string, judge func(t *testing.T, p place, st metav1.Status, h http.Header, text string)) {
	for name, p := range places {
		for method, body := range map[string]string{"PUT": p.put, "PATCH": p.patch} {
			t.Run(name+" by "+method, func(t *testing.T) {
				w := newWorld(t, may)
				stale := contended(w, p.collection, p.first, p.second)
				before := w.revision()
				headers := []string{"User-Agent", agent}
				if method == "PATCH" {
					headers = append(headers, "Content-Type", "application/merge-patch+json")
				}
				rec := w.do(method, p.collection+"/a", strings.ReplaceAll(body, "$RV", stale), headers...)
				var st metav1.Status
				if err := json.Unmarshal(rec.Body.Bytes(), &st); err != nil {
					t.Fatalf("%v in %s", err, rec.Body)
				}
				if rec.Code != http.StatusConflict || st.Reason != metav1.StatusReasonConflict || !strings.HasSuffix(st.Message, modified) {
					t.Fatalf("%d %s", rec.Code, rec.Body)
				}
				if now := w.revision(); now != before {
					t.Errorf("a refused write moved the store from %d to %d", before, now)
				}
				judge(t, p, st, rec.Header(), rec.Body.String())
			})
		}
	}
}

func TestARefusedWriteIsToldWhatChanged(t *testing.T) {
	refused(t, allowAll{}, "tester/1", func(t *testing.T, p place, st metav1.Status, h http.Header, text string) {
		if len(st.Details.Causes) != 1 {
			t.Fatalf("causes %+v, want one", st.Details.Causes)
		}
		c := st.Details.Causes[0]
		if c.Type != "FieldChanged" || c.Field != p.field || !strings.HasPrefix(c.Message, `changed by "controller" (Update, `) || !strings.HasSuffix(c.Message, "; this write changes it too") {
			t.Errorf("cause %+v", c)
		}
		if len(h.Values("Warning")) != 0 {
			t.Errorf("only kubectl is warned, not %v", h.Values("Warning"))
		}
		for _, told := range []string{"VALUE", "VkFMVUU", author.GetName() + `"`} { // plain, in base64, and who it was
			if strings.Contains(text, told) {
				t.Errorf("%q is told in %s", told, text)
			}
		}
	})
}

func TestWhoMayNotReadIsNotToldWhatChanged(t *testing.T) {
	refused(t, except("get"), "kubectl/v1.37", func(t *testing.T, _ place, st metav1.Status, h http.Header, _ string) {
		if len(st.Details.Causes) != 0 || len(h.Values("Warning")) != 0 {
			t.Errorf("causes %+v, warnings %v", st.Details.Causes, h.Values("Warning"))
		}
	})
}

func TestKubectlIsWarnedOnceOfWhatChanged(t *testing.T) {
	refused(t, allowAll{}, "kubectl/v1.37.2 (linux/amd64)", func(t *testing.T, p place, st metav1.Status, h http.Header, _ string) {
		w := h.Values("Warning")
		if len(w) != 1 || !strings.HasPrefix(w[0], `299 - "since you read it: `+p.field+" changed by") || strings.Contains(w[0], "VALUE") {
			t.Errorf("warnings %q", w)
		}
		if len(st.Details.Causes) != 1 {
			t.Errorf("the causes are told as well: %+v", st.Details.Causes)
		}
	})
}

func TestALongExplanationIsCutToOneHeader(t *testing.T) {
	w := newWorld(t, allowAll{})
	key := strings.Repeat("k", 200)
	stale := contended(w, configMaps, `{"metadata":{"name":"a"}}`, `{"data":{"`+key+`1":"x","`+key+`2":"x","`+key+`3":"x","`+key+`4":"x"}}`)
	rec := w.do("PUT", configMaps+"/a", `{"metadata":{"name":"a","resourceVersion":"`+stale+`"}}`, "User-Agent", "kubectl/v1.37.2")
	if got := rec.Header().Values("Warning"); rec.Code != http.StatusConflict || len(got) != 1 || !strings.Contains(got[0], "And 1 more fields") {
		t.Errorf("%d, warnings %q", rec.Code, got)
	}
}

func TestAnUpdateThatCreatesNeedsLeaveToCreate(t *testing.T) { // rule H208
	for _, c := range []struct {
		name string
		may  auth.Authorizer
		code int
	}{
		{"with it the object is made", allowAll{}, http.StatusCreated},
		{"without it nothing is", except("create"), http.StatusForbidden},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.may)
			before := w.revision()
			rec := w.do("PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/a", `{"metadata":{"name":"a"}}`)
			if rec.Code != c.code || (w.revision() == before) != (c.code == http.StatusForbidden) {
				t.Errorf("%d %s", rec.Code, rec.Body)
			}
		})
	}
}
