package pawl_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl"
)

func TestWhoContendsIsTold(t *testing.T) {
	a := newAPI(t, pawl.Config{})
	const path = "/api/v1/namespaces/default/configmaps/"
	name := func(resourceVersion, value string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"lamp","resourceVersion":"` + resourceVersion + `"},"data":{"is":"` + value + `"}}`
	}
	first := a.must("POST", strings.TrimSuffix(path, "/"), strings.Replace(name("", "off"), `,"resourceVersion":""`, "", 1))
	var made struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal([]byte(first.text), &made); err != nil {
		t.Fatal(err)
	}
	stale := made.Metadata.ResourceVersion
	a.must("PUT", path+"lamp?fieldManager=switch", name("", "on"))
	a.must("PUT", path+"lamp?fieldManager=switch", name("", "on"))
	if got := a.do("PUT", path+"lamp?fieldManager=dimmer", []byte(name(stale, "half"))); got.code != 409 {
		t.Fatalf("a stale write: %d %s", got.code, got.text)
	}
	got := a.must("GET", "/debug/pawl/contention", "").text
	for _, want := range []string{
		`{"resource":"configmaps","namespace":"default","name":"lamp","conflicts":1,"retries":0,"unchanged":1,`,
		`{"manager":"dimmer","conflicts":1,"retries":0,"unchanged":0}`,
		`{"manager":"switch","conflicts":0,"retries":0,"unchanged":1}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	if got := a.must("GET", "/metrics", "").text; !strings.Contains(got, `pawl_contention_object_total{kind="conflict",name="lamp",namespace="default",resource="configmaps"} 1`) {
		t.Errorf("the metrics tell of no conflict:\n%s", got)
	}
}
