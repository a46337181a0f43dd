package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/kv"
)

// rot puts what cannot be read in the place of a config map.
func (w *world) rot(name string) {
	w.t.Helper()
	txn := kv.Txn{Ops: []kv.Op{kv.Put("default/core/configmaps/default/"+name, []byte("rotten"))}}
	if _, err := w.engine.Commit(w.t.Context(), txn); err != nil {
		w.t.Fatal(err)
	}
}

// What a client sees of an object that cannot be read (rules K23, K43, K62, K63).
func TestAnObjectThatCannotBeReadIsNamed(t *testing.T) {
	const unsafe = "?ignoreStoreReadErrorWithClusterBreakingPotential=true"
	for _, c := range []struct {
		name, method, path string
		code               int
		text               string
	}{
		{"a get fails", "GET", "/a", 500, "corrupt object: default/a"},
		{"a list fails as a whole", "GET", "", 500, `"message":"failed to read one or more configmaps from the storage: storage: corrupt object: default/a`},
		{"a list in pages fails", "GET", "?limit=1", 500, `"reason":"StorageReadError"`},
		{"a list of other objects does not", "GET", "?fieldSelector=metadata.name=sound", 200, `"name":"sound"`},
		{"a delete fails", "DELETE", "/a", 500, "corrupt object: default/a"},
		{"a delete that ignores it succeeds", "DELETE", "/a" + unsafe, 200, `"status":"Success","details":{"name":"a","kind":"ConfigMap"}`},
		{"the same of what can be read is refused", "DELETE", "/sound" + unsafe, 409, "unsafe deletion is not allowed because the object is decodable from storage"},
		{"the same of a collection is refused", "DELETE", unsafe, 422, "ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: is not allowed with DELETECOLLECTION, try again after removing the option"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, allowAll{})
			w.must("POST", configMaps, `{"metadata":{"name":"sound"}}`)
			w.rot("a")
			rec := w.do(c.method, configMaps+c.path, "")
			if rec.Code != c.code || !strings.Contains(rec.Body.String(), c.text) {
				t.Errorf("%d %s\nwant %d %s", rec.Code, rec.Body, c.code, c.text)
			}
		})
	}
	t.Run("ignoring it is a right of its own", func(t *testing.T) {
		w := newWorld(t, except("unsafe-delete-ignore-read-errors"))
		w.rot("a")
		rec := w.do("DELETE", configMaps+"/a"+unsafe, "")
		if rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), `configmaps \"a\" is forbidden: not permitted to do \"unsafe-delete-ignore-read-errors\", reason: `) {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
	})
}

// A watch that comes upon an object that cannot be read says so in one event, and ends (rules
// K81 to K83, K85).
func TestAWatchOfWhatCannotBeReadSaysSoAndEnds(t *testing.T) {
	for _, c := range []struct {
		name, query, want string
	}{
		{"it came to be", "", "500 corrupt object: default/a"},
		{"it was there already", "&fieldSelector=metadata.name=b", ""},
		{"it was there already, and is told as the state", "state", "500 corrupt object: default/a"},
		{"it went", "gone", "500 saw a DELETED event, but object data is corrupt - "},
		{"it went, and a selector has to look at it", "gone&labelSelector=x=y", "500 saw a DELETED event, but object data is corrupt - "},
	} {
		t.Run(c.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, w *world, client *http.Client) {
				before := w.revision()
				w.rot("a")
				query := c.query
				if rest, ok := strings.CutPrefix(query, "gone"); ok {
					query, before = rest, w.revision()
					if _, err := w.engine.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Delete("default/core/configmaps/default/a")}}); err != nil {
						t.Fatal(err)
					}
				}
				w.must("POST", configMaps, `{"metadata":{"name":"b"}}`)
				from := "&resourceVersion=" + kv.Revision(before).String()
				if query == "state" {
					query, from = "", ""
				}
				resp, err := client.Get("http://memory" + configMaps + "?watch=1&timeoutSeconds=5" + from + query)
				if err != nil {
					t.Fatal(err)
				}
				lines := strings.Split(strings.TrimSpace(readAll(t, resp)), "\n")
				if c.want == "" {
					if len(lines) != 1 || !strings.HasPrefix(lines[0], `{"type":"ADDED"`) {
						t.Errorf("told %q", lines)
					}
					return
				}
				code, text, _ := strings.Cut(c.want, " ")
				if len(lines) != 1 || !strings.HasPrefix(lines[0], `{"type":"ERROR","object":{"kind":"Status"`) ||
					!strings.Contains(lines[0], `"code":`+code) || !strings.Contains(lines[0], text) {
					t.Errorf("told %q, want one error that says %s", lines, c.want)
				}
				if deleted := strings.Contains(c.want, "DELETED"); deleted != strings.Contains(lines[0], `"reason":"StorageReadError"`) {
					t.Errorf("told %q", lines)
				}
			})
		})
	}
}
