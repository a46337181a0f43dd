package pawl_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/pawltest"
)

// A listed is what these tests look at of a list.
type listed struct {
	Metadata metav1.ListMeta
	Items    []struct{ Metadata metav1.ObjectMeta }
}

func (a *api) list(path string) (l listed, names string) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(a.must("GET", path, "").text), &l); err != nil {
		a.t.Fatal(err)
	}
	var all []string
	for _, i := range l.Items {
		all = append(all, i.Metadata.Name)
	}
	return l, strings.Join(all, " ")
}

// Pages whose revision is forgotten between two of them: the client is told, is given a token to
// go on with, and may (rules K69, K70).
func TestPagesGoOnAfterTheirRevisionIsForgotten(t *testing.T) {
	server := pawltest.Start(t, pawl.Config{})
	a := apiOf(t, server.RESTConfig(), 2)
	for _, name := range []string{"a", "b", "c", "d"} {
		a.must("POST", configMaps, `{"metadata":{"name":"`+name+`"}}`)
	}
	const query = configMaps + "?fieldSelector=metadata.name!=kube-root-ca.crt&limit=1"
	first, names := a.list(query)
	if names != "a" || first.Metadata.Continue == "" {
		t.Fatalf("the first page holds %s", names)
	}
	a.must("DELETE", configMaps+"/b", "")
	a.must("POST", configMaps, `{"metadata":{"name":"aa"}}`)
	if err := server.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	ans := a.do("GET", query+"&continue="+first.Metadata.Continue, nil)
	const want = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list."
	st := ans.status()
	if ans.code != http.StatusGone || st.Reason != metav1.StatusReasonExpired || st.Message != want || st.Continue == "" {
		t.Fatalf("%d %s", ans.code, ans.text)
	}
	var got []string
	for token := st.Continue; token != ""; {
		page, names := a.list(query + "&continue=" + token)
		got, token = append(got, names), page.Metadata.Continue
		if len(got) == 1 {
			a.must("DELETE", configMaps+"/d", "") // later pages are of one state again
		}
	}
	if strings.Join(got, ",") != "aa,c,d" {
		t.Errorf("the other pages hold %q, want what is there now and what is there then", got)
	}
}

// The version of a list is that of the whole store, and moves with every write (rules K56, K122).
func TestTheVersionOfAListIsThatOfTheStore(t *testing.T) {
	a := newAPI(t, pawl.Config{})
	last := uint64(0)
	for i, write := range []string{"", configMaps, "/api/v1/namespaces/default/secrets", configMaps, "/api/v1/namespaces"} {
		if write != "" {
			a.must("POST", write, fmt.Sprintf(`{"metadata":{"name":"n%d"}}`, i))
		}
		for _, path := range []string{configMaps, configMaps + "?fieldSelector=metadata.name=n1", "/apis/batch/v1/jobs"} {
			l, _ := a.list(path)
			now, err := strconv.ParseUint(l.Metadata.ResourceVersion, 10, 64)
			if err != nil || now < max(last, 1) || write != "" && path == configMaps && now == last {
				t.Errorf("after write %d of %s, %s is at %d; it was at %d", i, write, path, now, last)
			}
			last = max(last, now)
		}
	}
}

// The mark at the end of the state tells the version of the whole store, not of the objects told,
// and comes only to those who allow bookmarks (rule K90).
func TestTheEndOfTheStateIsThatOfTheStore(t *testing.T) {
	a := newAPI(t, pawl.Config{})
	a.must("POST", "/api/v1/namespaces", `{"metadata":{"name":"quiet"}}`)
	a.must("POST", "/api/v1/namespaces/quiet/configmaps", `{"metadata":{"name":"a"}}`)
	a.must("POST", "/api/v1/namespaces/default/secrets", `{"metadata":{"name":"elsewhere"}}`)
	var elsewhere metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(a.must("GET", "/api/v1/namespaces/default/secrets/elsewhere", "").text), &elsewhere); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, query string
		marked      bool
	}{
		{"who allows bookmarks is told", "&allowWatchBookmarks=true", true},
		{"who does not is not", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, err := a.send(t.Context(), a.admin, "GET", "/api/v1/namespaces/quiet/configmaps?watch=1&timeoutSeconds=1&fieldSelector=metadata.name=a"+
				"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"+c.query, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			marks := 0
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				var e struct {
					Type   string
					Object metav1.PartialObjectMetadata
				}
				if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
					t.Fatal(err)
				}
				if e.Object.Annotations[metav1.InitialEventsAnnotationKey] != "true" {
					continue
				}
				marks++
				at, err := strconv.ParseUint(e.Object.ResourceVersion, 10, 64)
				newest, _ := strconv.ParseUint(elsewhere.ResourceVersion, 10, 64) // the server's own number
				if err != nil || at < newest || e.Type != "BOOKMARK" || e.Object.Name != "" {
					t.Errorf("marked by %s, want a bookmark at %d or later", lines.Text(), newest)
				}
			}
			if (marks == 1) != c.marked || marks > 1 {
				t.Errorf("%d marks", marks)
			}
		})
	}
}
