package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A tabled is a table as clients see it.
type tabled struct {
	Kind              string
	Metadata          metav1.ListMeta
	ColumnDefinitions []metav1.TableColumnDefinition
	Rows              []struct {
		Cells  []any
		Object json.RawMessage
	}
}

func (w *world) table(target string) tabled {
	w.t.Helper()
	var got tabled
	if err := json.Unmarshal(w.must("GET", target, "", "Accept", as(mediaJSON, asTable, "v1")).Body.Bytes(), &got); err != nil {
		w.t.Fatal(err)
	}
	return got
}

func TestARowHoldsWhatIsAskedFor(t *testing.T) { // rule H218
	w := furnished(t)
	for _, test := range []struct{ name, target, query, want string }{
		{"metadata if nothing is said", configMaps + "/a", "", `^{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{`},
		{"metadata", configMaps + "/a", "?includeObject=Metadata", `^{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{`},
		{"the object, which says its kind", configMaps, "?includeObject=Object", `"kind":"ConfigMap"`},
		{"a custom one as well", widgets, "?includeObject=Object", `"size":3`},
		{"nothing", configMaps + "/a", "?includeObject=None", `null`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := string(w.table(test.target + test.query).Rows[0].Object)
			prefix, anchored := strings.CutPrefix(test.want, "^")
			if anchored && !strings.HasPrefix(got, prefix) || !strings.Contains(got, prefix) {
				t.Errorf("holds %s, want %s", got, test.want)
			}
		})
	}
}

func TestATableSaysWhereAListIs(t *testing.T) { // rule H216
	w := furnished(t)
	page := w.table(configMaps + "?limit=1")
	if m := page.Metadata; m.Continue == "" || m.RemainingItemCount == nil || *m.RemainingItemCount != 1 || m.ResourceVersion == "" {
		t.Errorf("a page says %+v", m)
	}
	rest := w.table(configMaps + "?continue=" + page.Metadata.Continue)
	if len(rest.Rows) != 1 || rest.Rows[0].Cells[0] != "b" || rest.Metadata.ResourceVersion != page.Metadata.ResourceVersion {
		t.Errorf("the rest is %+v", rest)
	}
	one := w.table(configMaps + "/a")
	if len(one.Rows) != 1 || fmt.Sprint(one.Rows[0].Cells[:2]) != "[a 1]" || !strings.Contains(string(one.Rows[0].Object), `"resourceVersion":"`+one.Metadata.ResourceVersion+`"`) {
		t.Errorf("the table of one object is %+v", one)
	}
	if age, err := time.ParseDuration(strings.Replace(fmt.Sprint(one.Rows[0].Cells[2]), "h", "h0m", 1)); err != nil || age < 2*time.Minute || age > 10*time.Minute {
		t.Errorf("its age by a clock two minutes ahead is %v", one.Rows[0].Cells[2])
	}
}

func TestAWatchOfTablesDescribesItsColumnsOnce(t *testing.T) { // rule H117
	onBoth(t, func(t *testing.T, w *world, c *http.Client) {
		w.must("POST", configMaps, `{"metadata":{"name":"a"}}`)
		lines := w.watchLines(c, "timeoutSeconds=100&allowWatchBookmarks=true", as(mediaJSON, asTable, "v1"), func() {
			w.must("POST", configMaps, `{"metadata":{"name":"b"},"data":{"k":"v"}}`)
			w.must("DELETE", configMaps+"/b", "")
		})
		var got []string
		for i, line := range lines {
			var e struct {
				Type   string
				Object tabled
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			if described := e.Object.ColumnDefinitions != nil; described != (i == 0) {
				t.Errorf("event %d describes columns: %v", i, described)
			}
			if e.Object.Kind != asTable || len(e.Object.Rows) != 1 || e.Object.Metadata.ResourceVersion == "" {
				t.Fatalf("event %d is %s", i, line)
			}
			got = append(got, fmt.Sprint(e.Type, " ", e.Object.Rows[0].Cells[:2]))
		}
		if want := "ADDED [a 0], ADDED [b 1], DELETED [b 1], BOOKMARK [ 0], BOOKMARK [ 0]"; strings.Join(got, ", ") != want {
			t.Errorf("saw %s, want %s", strings.Join(got, ", "), want)
		}
	})
}

func TestTheMarkAtTheEndOfTheStateIsInEveryKindOfTable(t *testing.T) { // rule H110
	for _, include := range []string{"None", "Metadata", "Object"} {
		onBoth(t, func(t *testing.T, w *world, c *http.Client) {
			lines := w.watchLines(c, "timeoutSeconds=10&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&includeObject="+include, as(mediaJSON, asTable, "v1"), nil)
			if len(lines) == 0 || !strings.Contains(lines[0], `"k8s.io/initial-events-end":"true"`) {
				t.Errorf("with includeObject=%s the first event is %v", include, lines)
			}
		})
	}
}

func TestAWatchOfMetadataSendsNothingElse(t *testing.T) { // rule H118
	onBoth(t, func(t *testing.T, w *world, c *http.Client) {
		w.must("POST", configMaps, `{"metadata":{"name":"a"},"data":{"k":"v"}}`)
		lines := w.watchLines(c, "timeoutSeconds=10&allowWatchBookmarks=true", as(mediaJSON, asMetadata, "v1"), func() { w.must("DELETE", configMaps+"/a", "") })
		if len(lines) != 3 {
			t.Fatalf("saw %v", lines)
		}
		for _, line := range lines {
			if !strings.Contains(line, `"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{`) || strings.Contains(line, `"data":`) {
				t.Errorf("saw %s", line)
			}
		}
	})
}

func TestAWatchThatFailsSaysSoWhateverIsShown(t *testing.T) { // rules H58, H118
	for _, kind := range []string{asMetadata, asTable} {
		s := &stream{c: &call{look: look{media: mediaJSON, as: rendering{kind, "v1"}}}}
		s.failed(apierrors.NewResourceExpired("too old resource version: 1 (2)"))
		if got := string(s.buf); !strings.HasPrefix(got, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1",`) {
			t.Errorf("as %s: %s", kind, got)
		}
	}
}

// watchLines are the lines of a watch of configmaps, while something happens, up to its end.
func (w *world) watchLines(c *http.Client, query, accept string, while func()) []string {
	w.t.Helper()
	r, err := http.NewRequest("GET", "http://memory"+configMaps+"?watch=1&"+query, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	resp, err := c.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	if while != nil {
		while()
	}
	body := strings.TrimSuffix(readAll(w.t, resp), "\n")
	if resp.StatusCode != http.StatusOK || body == "" {
		w.t.Fatalf("%d %q", resp.StatusCode, body)
	}
	return strings.Split(body, "\n")
}

func TestTheColumnsOfEachKindFitItsObjects(t *testing.T) {
	w := furnished(t)
	for _, res := range w.catalogue.Catalogue().Resources() {
		for _, v := range res.Versions {
			c := &call{s: w.server, res: res, ver: v, form: v.Form}
			if row := c.columns().Row(v.Form.New(), time.Now()); len(row.Cells) != len(c.columns().Definitions) {
				t.Errorf("%s has %d cells in %d columns", res.GroupResource(), len(row.Cells), len(c.columns().Definitions))
			}
		}
	}
}
