package pawl_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/pawltest"
)

// lamps is the figure of how many lamps there are, "" if there is none.
func (a *api) lamps() string {
	for line := range strings.Lines(a.must("GET", "/metrics", "").text) {
		if n, ok := strings.CutPrefix(line, `apiserver_resource_objects{group="pawl.test",resource="lamps"} `); ok {
			return strings.TrimSpace(n)
		}
	}
	return ""
}

// The number of objects is right the moment a write was answered, and nothing is there of a
// resource that is not (rules S138, S139).
func TestObjectsAreCounted(t *testing.T) {
	folder := t.TempDir()
	server := pawltest.Start(t, pawl.Config{DataDir: folder})
	a := apiOf(t, server.RESTConfig(), 2)
	const path, lamp = "/apis/pawl.test/v1/namespaces/default/lamps", `{"apiVersion":"pawl.test/v1","kind":"Lamp","metadata":{"name":"NAME"}}`
	named := func(name string) string { return strings.Replace(lamp, "NAME", name, 1) }
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"before there is such a resource", func() {}, ""},
		{"before there is a lamp", func() { a.must("POST", definitions, crd("lamps", "Lamp", "Namespaced")) }, "0"},
		{"after two", func() { a.must("POST", path, named("a")); a.must("POST", path, named("b")) }, "2"},
		{"after a dry run", func() { a.must("POST", path+"?dryRun=All", named("c")) }, "2"},
		{"after one is refused", func() { a.do("POST", path, []byte(named("a"))) }, "2"},
		{"after one is changed", func() {
			a.must("PATCH", path+"/a", `{"spec":{"color":"red"}}`, "Content-Type", "application/merge-patch+json")
		}, "2"},
		{"after one is marked, which a finalizer holds", func() {
			a.must("PATCH", path+"/a", `{"metadata":{"finalizers":["x.y/a"]}}`, "Content-Type", "application/merge-patch+json")
			a.must("DELETE", path+"/a", "")
		}, "2"},
		{"after one has gone", func() { a.must("DELETE", path+"/b", "") }, "1"},
	} {
		if step.do(); a.lamps() != step.want {
			t.Errorf("%s there are %q, want %q", step.name, a.lamps(), step.want)
		}
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	a = apiOf(t, pawltest.Start(t, pawl.Config{DataDir: folder}).RESTConfig(), 2)
	if a.lamps() != "1" {
		t.Errorf("after a restart there are %q", a.lamps())
	}
	a.must("PATCH", path+"/a", `{"metadata":{"finalizers":null}}`, "Content-Type", "application/merge-patch+json")
	a.must("DELETE", definitions+"/lamps.pawl.test", "")
	for end := time.Now().Add(time.Minute); a.do("GET", path, nil).code != 404; {
		if time.Now().After(end) {
			t.Fatal("the definition does not go")
		}
	}
	if a.lamps() != "" {
		t.Errorf("of a resource that has gone there are %q", a.lamps())
	}
}
