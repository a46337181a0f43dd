package pawl_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl"
)

const tables = "application/json;as=Table;g=meta.k8s.io;v=v1"

// table asks for a path as a table.
func (a *api) table(path string) metav1.Table {
	a.t.Helper()
	var got metav1.Table
	if err := json.Unmarshal([]byte(a.must("GET", path, "", "Accept", tables).text), &got); err != nil {
		a.t.Fatal(err)
	}
	return got
}

// Rules H216 and H217: whatever can be listed can be listed as a table.
func TestEverythingThatIsListedIsListedAsATable(t *testing.T) {
	a := newAPI(t, pawl.Config{})
	for gv, resources := range a.catalogue() {
		for _, r := range resources {
			if !slices.Contains(r.Verbs, "list") {
				continue
			}
			got := a.table(basePath(gv[0], gv[1]) + "/" + r.Name)
			named := slices.ContainsFunc(got.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == "Name" && c.Format == "name" })
			if got.Kind != "Table" || !named || got.ResourceVersion == "" {
				t.Errorf("%s of %v are listed as %+v", r.Name, gv, got)
			}
			for _, row := range got.Rows {
				if len(row.Cells) != len(got.ColumnDefinitions) {
					t.Errorf("a row of %s has %d cells in %d columns", r.Name, len(row.Cells), len(got.ColumnDefinitions))
				}
			}
		}
	}
}

func basePath(group, version string) string {
	if group == "" {
		return "/api/" + version
	}
	return "/apis/" + group + "/" + version
}

// Rules B75 to B77, of objects as the server stores them: with their defaults.
func TestTablesOfStoredObjects(t *testing.T) {
	a := newAPI(t, pawl.Config{})
	const containers = `"containers":[{"name":"c","image":"example.com/c:1"}]`
	for _, test := range []struct{ name, path, body, want string }{
		{"a pod that nobody runs is pending", "/api/v1/namespaces/default/pods", `{"metadata":{"name":"a"},"spec":{` + containers + `}}`,
			"a 0/1 Pending 0 - <none> <none> <none> <none>"},
		{"a service has an address", "/api/v1/namespaces/default/services", `{"metadata":{"name":"a"},"spec":{"clusterIP":"None","ports":[{"port":80}],"selector":{"app":"x"}}}`,
			"a ClusterIP None <none> 80/TCP - app=x"},
		{"a deployment waits for its replicas", "/apis/apps/v1/namespaces/default/deployments",
			`{"metadata":{"name":"a"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}},"spec":{` + containers + `}}}}`,
			"a 0/2 0 0 - c example.com/c:1 app=x"},
		{"a job that has not begun is running", "/apis/batch/v1/namespaces/default/jobs",
			`{"metadata":{"name":"a"},"spec":{"template":{"spec":{"restartPolicy":"Never",` + containers + `}}}}`, "a Running 0/1  - c example.com/c:1 "},
		{"a node says what it knows", "/api/v1/nodes", `{"metadata":{"name":"a"}}`, "a Unknown <none> -  <none> <none> <unknown> <unknown> <unknown>"},
		{"an event", "/api/v1/namespaces/default/events",
			`{"metadata":{"name":"a"},"involvedObject":{"kind":"Pod","namespace":"default","name":"p"},"reason":"R","message":"m","type":"Normal"}`,
			"- Normal R pod/p   m <unknown> 1 a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := *a
			a.t = t
			a.must("POST", test.path, test.body)
			got := a.table(test.path + "/a")
			if len(got.Rows) != 1 {
				t.Fatalf("the table of one object has %d rows", len(got.Rows))
			}
			var cells []string
			for i, cell := range got.Rows[0].Cells {
				if c := got.ColumnDefinitions[i].Name; c == "Age" || c == "Last Seen" {
					cell = "-"
				}
				cells = append(cells, fmt.Sprint(cell))
			}
			if text := strings.Join(cells, " "); !strings.HasPrefix(text, test.want) {
				t.Errorf("shows\n%s, want\n%s", text, test.want)
			}
		})
	}
}
