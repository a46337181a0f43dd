package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const widgets = "/apis/test.example/v1/namespaces/default/widgets"

// as is an Accept clause.
func as(media, kind, version string) string {
	return media + ";as=" + kind + ";g=meta.k8s.io;v=" + version
}

// furnished is a world with two configmaps and a widget, in which it is two minutes later than
// it is.
func furnished(t *testing.T) *world {
	w := newWorld(t, allowAll{})
	w.server.now = func() time.Time { return time.Now().Add(2 * time.Minute) }
	w.must("POST", configMaps, `{"metadata":{"name":"a","labels":{"is":"first"}},"data":{"k":"v"}}`)
	w.must("POST", configMaps, `{"metadata":{"name":"b"},"data":{"k":"v"}}`)
	w.must("POST", widgets, `{"apiVersion":"test.example/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":3}}`)
	return w
}

// A said is what an answer says of itself.
type said struct {
	Kind, APIVersion, Message string
	Items, Rows               []json.RawMessage
}

func TestAnAnswerLooksAsAccepted(t *testing.T) { // rules H51 to H58
	w := furnished(t)
	for _, test := range []struct {
		name, target, accept string
		want                 string // status, kind, version and number of items or rows
	}{
		{"a table of one object has one row", configMaps + "/a", as(mediaJSON, "Table", "v1"), "200 Table meta.k8s.io/v1 1"},
		{"a table of a list has a row for each", configMaps, as(mediaJSON, "Table", "v1"), "200 Table meta.k8s.io/v1 2"},
		{"a table of nothing has none", "/api/v1/namespaces/none/configmaps", as(mediaJSON, "Table", "v1"), "200 Table meta.k8s.io/v1 0"},
		{"tables come in the older version", configMaps, as(mediaJSON, "Table", "v1beta1"), "200 Table meta.k8s.io/v1beta1 2"},
		{"tables come as YAML", configMaps, as(mediaYAML, "Table", "v1"), "200 Table meta.k8s.io/v1 2"},
		{"any media type will do", configMaps, as("*/*", "Table", "v1"), "200 Table meta.k8s.io/v1 2"},
		{
			"there are no tables in protobuf, so the next best is taken", configMaps,
			as(mediaProtobuf, "Table", "v1") + "," + as(mediaJSON, "Table", "v1"), "200 Table meta.k8s.io/v1 2",
		},
		{
			"what kubectl says of all it prints", widgets,
			as(mediaJSON, "Table", "v1") + "," + as(mediaJSON, "Table", "v1beta1") + "," + mediaJSON, "200 Table meta.k8s.io/v1 1",
		},
		{"metadata of one object", configMaps + "/a", as(mediaJSON, asMetadata, "v1"), "200 PartialObjectMetadata meta.k8s.io/v1 0"},
		{"metadata of a list", configMaps, as(mediaJSON, asMetadataList, "v1"), "200 PartialObjectMetadataList meta.k8s.io/v1 2"},
		{"metadata in the older version", widgets, as(mediaYAML, asMetadataList, "v1beta1"), "200 PartialObjectMetadataList meta.k8s.io/v1beta1 1"},
		{"the metadata of a list of none", "/api/v1/namespaces/none/configmaps", as(mediaJSON, asMetadataList, "v1"), "200 PartialObjectMetadataList meta.k8s.io/v1 0"},
		{"an unknown rendering is skipped", configMaps, as(mediaJSON, "Poem", "v1") + "," + mediaJSON, "200 ConfigMapList v1 2"},
		{"an unknown version is skipped", configMaps, as(mediaJSON, "Table", "v9") + "," + mediaJSON, "200 ConfigMapList v1 2"},
		{"another group is skipped", configMaps, mediaJSON + ";as=Table;g=other;v=v1," + mediaJSON, "200 ConfigMapList v1 2"},
		{"a version without a kind is skipped", configMaps, mediaJSON + ";v=v1;g=meta.k8s.io," + mediaJSON, "200 ConfigMapList v1 2"},
		{"with nothing left it is not acceptable", configMaps, as(mediaJSON, "Poem", "v1"), "406 Status v1 0"},
		{"a table in protobuf alone is not", configMaps, as(mediaProtobuf, "Table", "v1"), "406"},
		{"a failure is not made a table", configMaps + "/none", as(mediaJSON, "Table", "v1"), "404 Status v1 0"},
		{"nor metadata", configMaps + "/none", as(mediaJSON, asMetadata, "v1"), "404 Status v1 0"},
		{"a row has no other objects than there are", configMaps + "?includeObject=Half", as(mediaJSON, "Table", "v1"), "400 Status v1 0"},
		{"who wants no table is not asked what is in it", configMaps + "?includeObject=Half", mediaJSON, "200 ConfigMapList v1 2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rec := w.do("GET", test.target, "", "Accept", test.accept)
			got := fmt.Sprint(rec.Code)
			if !strings.HasPrefix(rec.Body.String(), "k8s\x00") {
				var s said
				if err := yaml.Unmarshal(rec.Body.Bytes(), &s); err != nil {
					t.Fatal(err)
				}
				got += fmt.Sprintf(" %s %s %d", s.Kind, s.APIVersion, len(s.Items)+len(s.Rows))
				if rec.Code == http.StatusOK && strings.Contains(rec.Body.String(), "null") {
					t.Errorf("says %s", rec.Body)
				}
			}
			if got != test.want {
				t.Errorf("got %s: %s, want %s", got, rec.Body, test.want)
			}
		})
	}
}

func TestMetadataOfTheWrongShapeIsRefusedBeforeAnythingIsDone(t *testing.T) { // rule H55
	w := furnished(t)
	for _, test := range []struct{ name, method, target, kind, want string }{
		{"a list is no object", "GET", configMaps, asMetadata, "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"},
		{"an object is no list", "GET", configMaps + "/a", asMetadataList, "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)"},
		{
			"a custom resource is of no Go type", "GET", widgets, asMetadata,
			"you requested PartialObjectMetadata, but the requested object is a list (*unstructured.UnstructuredList)",
		},
		{"what is deleted together is a list", "DELETE", configMaps, asMetadata, "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"},
		{
			"what is deleted alone is none", "DELETE", configMaps + "/a", asMetadataList,
			"you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)",
		},
		{"events are of one object", "GET", configMaps + "?watch=1", asMetadataList, "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rec := w.do(test.method, test.target, "", "Accept", as(mediaJSON, test.kind, "v1"))
			var s said
			if err := json.Unmarshal(rec.Body.Bytes(), &s); err != nil {
				t.Fatal(err)
			}
			if rec.Code != http.StatusNotAcceptable || s.Message != test.want {
				t.Errorf("got %d %s, want 406 %s", rec.Code, s.Message, test.want)
			}
		})
	}
	w.must("GET", configMaps+"/a", "")
}

func TestWritesAnswerAsAccepted(t *testing.T) {
	for _, kind := range []string{asMetadata, asTable} {
		w := furnished(t)
		for _, test := range []struct{ name, method, target, body, contentType string }{
			{"a create", "POST", configMaps, `{"metadata":{"name":"c","labels":{"is":"new"}}}`, mediaJSON},
			{"a dry run", "POST", configMaps + "?dryRun=All", `{"metadata":{"name":"d","labels":{"is":"new"}}}`, mediaJSON},
			{"an update", "PUT", configMaps + "/a", `{"metadata":{"name":"a","labels":{"is":"new"}}}`, mediaJSON},
			{"a patch", "PATCH", configMaps + "/b", `{"metadata":{"labels":{"is":"new"},"finalizers":["x.y/z"]}}`, "application/merge-patch+json"},
			{"a delete that leaves the object", "DELETE", configMaps + "/b", "", mediaJSON},
			{"the end of an object", "PATCH", configMaps + "/b", `{"metadata":{"finalizers":null}}`, "application/merge-patch+json"},
		} {
			t.Run(test.name+" as "+kind, func(t *testing.T) {
				rec := w.must(test.method, test.target, test.body, "Accept", as(mediaJSON, kind, "v1"), "Content-Type", test.contentType)
				var s said
				if err := json.Unmarshal(rec.Body.Bytes(), &s); err != nil {
					t.Fatal(err)
				}
				if s.Kind != kind || !strings.Contains(rec.Body.String(), `"is":"new"`) || strings.Contains(rec.Body.String(), `"data":`) {
					t.Errorf("answers %s", rec.Body)
				}
			})
		}
		rec := w.must("DELETE", configMaps+"/a", "", "Accept", as(mediaJSON, kind, "v1"))
		if body := rec.Body.String(); !strings.Contains(body, `"kind":"Status"`) || !strings.Contains(body, `"status":"Success"`) {
			t.Errorf("a Success is not made a %s: %s", kind, body)
		}
	}
}

func TestMetadataComesInProtobufOfCustomResourcesToo(t *testing.T) { // rules H53, H55
	w := furnished(t)
	decode := func(target, kind, version string, into runtime.Object) {
		t.Helper()
		rec := w.must("GET", target, "", "Accept", as(mediaProtobuf, kind, version)+","+mediaJSON)
		if got := rec.Header().Get("Content-Type"); got != mediaProtobuf {
			t.Fatalf("is %s", got)
		}
		var unknown runtime.Unknown
		if err := unknown.Unmarshal(rec.Body.Bytes()[4:]); err != nil {
			t.Fatal(err)
		}
		if unknown.Kind != kind || unknown.APIVersion != "meta.k8s.io/"+version {
			t.Errorf("is a %s %s", unknown.APIVersion, unknown.Kind)
		}
		if err := into.(interface{ Unmarshal([]byte) error }).Unmarshal(unknown.Raw); err != nil {
			t.Fatal(err)
		}
	}
	var one metav1.PartialObjectMetadata
	decode(widgets+"/w", asMetadata, "v1", &one)
	if one.Name != "w" || one.ResourceVersion == "" || one.UID == "" {
		t.Errorf("says %+v", one)
	}
	var list metav1.PartialObjectMetadataList
	decode(widgets, asMetadataList, "v1", &list)
	if len(list.Items) != 1 || list.Items[0].Name != "w" || list.ResourceVersion == "" {
		t.Errorf("says %+v", list)
	}
	var old metav1beta1.PartialObjectMetadataList
	decode(configMaps, asMetadataList, "v1beta1", &old)
	if len(old.Items) != 2 || old.Items[0].Labels["is"] != "first" || old.ResourceVersion == "" {
		t.Errorf("says %+v", old)
	}
	if rec := w.do("GET", widgets, "", "Accept", mediaProtobuf); rec.Code != http.StatusNotAcceptable {
		t.Errorf("whole custom resources in protobuf: %d", rec.Code)
	}
}
