package conversation

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// A handler answers requests and remembers them.
type handler struct {
	answer func(q *http.Request) (status int, body string)

	mu   sync.Mutex // guards seen
	seen []*http.Request
}

func (h *handler) RoundTrip(q *http.Request) (*http.Response, error) {
	h.mu.Lock()
	h.seen = append(h.seen, q)
	h.mu.Unlock()
	status, text := h.answer(q)
	var body io.ReadCloser = io.NopCloser(strings.NewReader(text))
	if q.URL.Query().Has("watch") {
		body = openStream(q.Context(), text)
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, nil
}

// openStream gives one event a second, and stays open.
func openStream(ctx context.Context, text string) io.ReadCloser {
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	go func() {
		for line := range strings.Lines(text) {
			if sleep(ctx, time.Second) != nil {
				return
			}
			_, _ = in.Write([]byte(line))
		}
	}()
	return out
}

func (h *handler) lines() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var lines []string
	for _, q := range h.seen {
		lines = append(lines, q.Method+" "+q.URL.RequestURI())
	}
	return lines
}

// replay runs one conversation of the given steps.
func replay(t *testing.T, h *handler, steps string) *Result {
	t.Helper()
	text := "topic: t\nconversations:\n- title: c\n  steps:\n" + steps
	all, err := Load(fstest.MapFS{"t.yaml": {Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return all[0].Run(t.Context(), &Client{BaseURL: "http://x/", Token: "admin", HTTP: &http.Client{Transport: h}}, testToken)
}

func always(status int, body string) func(*http.Request) (int, string) {
	return func(*http.Request) (int, string) { return status, body }
}

func TestARetryGivesUpWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler{answer: always(404, "{}")}
		began := time.Now()
		r := replay(t, h, `
  - request: {method: GET, path: /a}
    retry: {status: 200, seconds: 5}
    check: {statusOnly: true}
    expect: {status: 200}
  - request: {method: GET, path: /never}
    check: {statusOnly: true}
    expect: {status: 200}
`)
		if len(r.Differences) != 1 || r.Differences[0].Path != "status" || r.Differences[0].Step != "1" {
			t.Error(r)
		}
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("it took %v", took)
		}
		if lines := h.lines(); slices.Contains(lines, "GET /never") || len(lines) != 51 {
			t.Errorf("%d requests, the last %q", len(lines), lines[len(lines)-1])
		}
	})
}

func TestARetryWaitsForAValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		h := &handler{answer: func(*http.Request) (int, string) {
			if time.Since(began) < time.Second {
				return 200, `{"n":1}`
			}
			return 200, `{"n":0}`
		}}
		r := replay(t, h, `
  - request: {method: GET, path: /a}
    retry: {seconds: 5, where: {.n: "0"}}
    expect: {status: 200, headers: {Content-Type: application/json}, body: {n: 0}}
`)
		if !r.Passed() || len(h.lines()) != 11 {
			t.Error(r, len(h.lines()))
		}
	})
}

const twoEvents = `{"type":"ADDED","object":{"a":1}}
{"type":"MODIFIED","object":{"a":2}}
`

func TestAWatchCollectsEventsUntilThereAreEnough(t *testing.T) {
	for _, c := range []struct {
		name, watch, events string
		took                time.Duration
	}{
		{"as many as it names", "events: 1", "[{type: ADDED, object: {a: 1}}]", time.Second},
		{"and those that come while it lingers", "events: 1, linger: 1500ms", "[{type: ADDED, object: {a: 1}}, {type: MODIFIED, object: {a: 2}}]", 2500 * time.Millisecond},
		{"or until its time is over", "events: 3, timeout: 4s", "[{type: ADDED, object: {a: 1}}, {type: MODIFIED, object: {a: 2}}]", 4 * time.Second},
		{"or until the ten seconds it has by default are over", "events: 3", "[{type: ADDED, object: {a: 1}}, {type: MODIFIED, object: {a: 2}}]", 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := replay(t, &handler{answer: always(200, twoEvents)}, `
  - watch: {path: "/w?watch=1", `+c.watch+`}
    expect: {status: 200, headers: {Content-Type: application/json}, events: `+c.events+`}
`)
				if !r.Passed() || r.Took != c.took {
					t.Error(r, r.Took)
				}
			})
		})
	}
}

func TestRequestsCarryWhatTheRecordingSays(t *testing.T) {
	for _, c := range []struct {
		name, request string
		want          http.Header // "" must be absent
	}{
		{"the defaults", `{method: POST, path: /a, body: {k: v}}`, http.Header{"User-Agent": {"parity/1.0"}, "Accept": {"application/json"},
			"Content-Type": {"application/json"}, "Authorization": {"Bearer admin"}, "Impersonate-User": {""}}},
		{"no content type without a body", `{method: GET, path: /a}`, http.Header{"Content-Type": {""}}},
		{"replaced headers", `{method: GET, path: /a, headers: {accept: "x/${unique}"}}`, http.Header{"Accept": {"x/" + testToken}}},
		{"dropped headers", `{method: POST, path: /a, body: x, headers: {Content-Type: "", User-Agent: ""}}`, http.Header{"Content-Type": {""}, "User-Agent": {""}}},
		{"another user", `{method: GET, path: /a, as: "ann-${unique}"}`, http.Header{"Impersonate-User": {"ann-" + testToken}, "Authorization": {"Bearer admin"}}},
		{"nobody", `{method: GET, path: /a, auth: none}`, http.Header{"Authorization": {""}}},
		{"another token", `{method: GET, path: /a, auth: "t-${unique}"}`, http.Header{"Authorization": {"Bearer t-" + testToken}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &handler{answer: always(200, "{}")}
			if r := replay(t, h, "  - request: "+c.request+"\n    check: {statusOnly: true}\n    expect: {status: 200}\n"); !r.Passed() {
				t.Fatal(r)
			}
			for name := range c.want {
				if got := h.seen[0].Header.Get(name); got != c.want.Get(name) {
					t.Errorf("%s is %q, want %q", name, got, c.want.Get(name))
				}
			}
		})
	}
}

func TestBodiesAreSentAsTheyWereRecorded(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"a mapping is sorted by name and keeps its numbers", `{b: 1.0, a: [true, null, "1", "<${unique}>"]}`, `{"a":[true,null,"1","<` + testToken + `>"],"b":1.0}`},
		{"a string is sent byte for byte", `"{ ${repeat x 3}"`, `{ xxx`},
		{"the text null is text", `"null"`, `null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sent string
			h := &handler{answer: func(q *http.Request) (int, string) {
				raw, _ := io.ReadAll(q.Body)
				sent = string(bytes.ReplaceAll(raw, []byte("\n"), nil))
				return 200, "{}"
			}}
			replay(t, h, "  - request: {method: POST, path: /a, body: "+c.body+"}\n    check: {statusOnly: true}\n    expect: {status: 200}\n")
			if sent != c.want {
				t.Errorf("sent %s, want %s", sent, c.want)
			}
		})
	}
}

func TestWhatAConversationMadeIsRemoved(t *testing.T) {
	h := &handler{answer: func(q *http.Request) (int, string) {
		if q.URL.Path == "/api/v1/namespaces/p-"+testToken+"/configmaps" {
			return 201, `{"metadata":{"name":"held","finalizers":["a/b"]}}`
		}
		return 201, `{}`
	}}
	replay(t, h, `
  - request: {method: POST, path: /api/v1/namespaces, body: {metadata: {name: "p-${unique}"}}}
    check: {statusOnly: true}
    expect: {status: 201}
  - request: {method: POST, path: "/api/v1/namespaces/p-${unique}/configmaps", body: {}}
    check: {statusOnly: true}
    expect: {status: 201}
  - request: {method: POST, path: "/apis/g/v1/things?dryRun=All", body: {metadata: {name: dry}}}
    check: {statusOnly: true}
    expect: {status: 201}
  - request: {method: POST, path: /apis/g/v1/things, body: {metadata: {name: wet}}}
    check: {statusOnly: true}
    expect: {status: 201}
`)
	want := []string{
		"PATCH /api/v1/namespaces/p-" + testToken + "/configmaps/held",
		"DELETE /apis/g/v1/things/wet",
		"DELETE /api/v1/namespaces/p-" + testToken,
	}
	if got := h.lines()[4:]; !slices.Equal(got, want) {
		t.Errorf("removed by %q, want %q", got, want)
	}
}

func TestADifferenceCanBeRead(t *testing.T) {
	r := replay(t, &handler{answer: always(200, `{"data":{"k":"two"}}`)}, `
  - note: the second writer
    request: {method: GET, path: "/a/${unique}", as: ann}
    expect: {status: 200, headers: {Content-Type: application/json}, body: {data: {k: one}}}
`)
	want := `t/c: 1 differences (${unique} was k3x9w2ab)
step 1: GET /a/${unique} as ann (the second writer)
    at   body .data.k
    want "one"
    got  "two"`
	if r.String() != want {
		t.Errorf("%s\nwant\n%s", r, want)
	}
}

func TestARecordingThatIsNotUnderstoodIsRefused(t *testing.T) {
	for name, step := range map[string]string{
		"an unknown member":       "{request: {method: GET, path: /, colour: red}, check: {statusOnly: true}}",
		"two things in one step":  "{request: {method: GET, path: /}, pause: 1s, check: {statusOnly: true}}",
		"nothing in a step":       "{note: hm}",
		"a retry of a watch":      "{watch: {path: /}, retry: {seconds: 1}}",
		"a path that is none":     "{request: {method: GET, path: /}, check: {only: [x]}, expect: {values: {x: 1}}}",
		"a value not recorded":    "{request: {method: GET, path: /}, check: {only: [.x]}, expect: {status: 200}}",
		"a body not recorded":     "{request: {method: GET, path: /}, expect: {status: 200}}",
		"a race without requests": "{race: {count: 2}}",
	} {
		text := "topic: t\nconversations:\n- title: c\n  steps:\n  - " + step + "\n"
		if _, err := Load(fstest.MapFS{"t.yaml": {Data: []byte(text)}}); err == nil {
			t.Errorf("%s was loaded", name)
		}
	}
}
