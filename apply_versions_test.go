package pawl_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
)

// Who owns a field owns it in every version (rule C88): an apply through another version than
// the owner's is refused like any other, and nobody's entry is lost.
func TestOwnersAreKnownInEveryVersion(t *testing.T) {
	x := newAPI(t, pawl.Config{})
	version := func(name, storage string) string {
		return `{"name":"` + name + `","served":true,"storage":` + storage + `,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}}}}}`
	}
	x.must(http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"mills.example.com"},"spec":{"group":"example.com","scope":"Cluster",
		"names":{"kind":"Mill","plural":"mills"},"versions":[`+version("v1", "true")+`,`+version("v2", "false")+`]}}`)
	apply := func(version, manager, spec string) string {
		a := x.do(http.MethodPatch, "/apis/example.com/"+version+"/mills/m?fieldManager="+manager,
			[]byte(`{"apiVersion":"example.com/`+version+`","kind":"Mill","metadata":{"name":"m"},"spec":`+spec+`}`), "Content-Type", "application/apply-patch+yaml")
		return a.text
	}
	apply("v1", "owner", `{"a":"1"}`)
	if refused := apply("v2", "other", `{"a":"2"}`); !strings.Contains(refused, `conflict with \"owner\"`) {
		t.Errorf("an apply through v2 of what owner applied through v1: %s", refused)
	}
	apply("v2", "other", `{"b":"2"}`)
	x.must(http.MethodPatch, "/apis/example.com/v2/mills/m?fieldManager=third", `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", "application/merge-patch+json")
	var mill struct {
		Metadata struct {
			ManagedFields []struct{ Manager, APIVersion string }
		}
	}
	if err := json.Unmarshal([]byte(x.must(http.MethodGet, "/apis/example.com/v1/mills/m", "").text), &mill); err != nil {
		t.Fatal(err)
	}
	owners := map[string]string{}
	for _, e := range mill.Metadata.ManagedFields {
		owners[e.Manager] = e.APIVersion
	}
	for manager, version := range map[string]string{"owner": "example.com/v1", "other": "example.com/v2", "third": "example.com/v2"} {
		if owners[manager] != version {
			t.Errorf("%s is remembered with version %q, want %q; all: %v", manager, owners[manager], version, owners)
		}
	}
}
