package pawl_test

import (
	"fmt"
	"testing"

	"github.com/pawl-dev/pawl"
)

// An error names the resource that the request asked for, also where two groups show one object, and
// details.kind is that name and not the kind (rule S21).
func TestAnErrorNamesTheResourceOfTheRequest(t *testing.T) {
	a := newAPI(t, pawl.Config{})
	a.must("POST", definitions, crd("lamps", "Lamp", "Namespaced"))
	for _, c := range []struct{ path, group, plural string }{
		{"/api/v1/namespaces/default/configmaps/", "", "configmaps"},
		{"/api/v1/namespaces/default/events/", "", "events"},
		{"/apis/events.k8s.io/v1/namespaces/default/events/", "events.k8s.io", "events"},
		{"/apis/pawl.test/v1/namespaces/default/lamps/", "pawl.test", "lamps"},
	} {
		name := c.plural
		if c.group != "" {
			name += "." + c.group
		}
		for _, r := range []struct{ method, body, media string }{
			{"GET", "", ""}, {"DELETE", "", ""}, {"PATCH", `{"metadata":{"labels":{"a":"b"}}}`, "application/merge-patch+json"},
		} {
			got := a.do(r.method, c.path+"none", []byte(r.body), "Content-Type", r.media)
			st := got.status()
			if want := fmt.Sprintf("%s %q not found", name, "none"); got.code != 404 || st.Message != want || st.Details.Group != c.group || st.Details.Kind != c.plural {
				t.Errorf("%s %snone: %d %s", r.method, c.path, got.code, got.text)
			}
		}
	}
}
