package conversation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// A fake is a server that gives the recorded answers of one conversation, in
// raw form: with real uids, versions and times. It also adds what a comparison
// must not see: managed fields, explanations of conflicts, another order of what
// is compared unordered, and a wrong answer before each that is retried.
type fake struct {
	t      *testing.T
	token  string
	script []*exchange

	mu sync.Mutex // guards the rest
	at int
}

// An exchange is a step that sends something, and how often it was asked for.
type exchange struct {
	step   *Step
	fields bool // managed fields are compared
	asked  int
	first  string // the request line of the first request
}

func newFake(t *testing.T, c *Conversation, token string) *fake {
	f := &fake{t: t, token: token}
	var add func([]*Step)
	add = func(steps []*Step) {
		for _, s := range steps {
			if s.Pause == 0 {
				f.script = append(f.script, &exchange{step: s, fields: c.ManagedFields})
			}
			if s.Watch != nil {
				add(s.Watch.While)
			}
		}
	}
	add(c.Steps)
	return f
}

func (f *fake) client() *Client {
	return &Client{BaseURL: "http://recorded", Token: "t", HTTP: &http.Client{Transport: f}}
}

// unanswered are the requests of the script that never came.
func (f *fake) unanswered() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at < len(f.script) && f.script[f.at].asked > 0 {
		return len(f.script) - f.at - 1
	}
	return len(f.script) - f.at
}

func (f *fake) RoundTrip(q *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := q.Method + " " + q.URL.String()
	x := f.current(line)
	if x == nil { // the conversation cleans up after itself
		return f.respond(404, nil, []byte("{}"), nil), nil
	}
	if x.first == "" {
		x.first = line
	}
	x.asked++
	if x.step.Race != nil {
		return f.respond(x.racer(), nil, []byte("{}"), nil), nil
	}
	if x.step.Retry != nil && x.asked == 1 {
		return f.respond(503, nil, []byte("{}"), nil), nil
	}
	return f.answer(q.Context(), x)
}

// current returns the exchange that a request belongs to, and nil after the last one.
func (f *fake) current(line string) *exchange {
	for ; f.at < len(f.script); f.at++ {
		switch x := f.script[f.at]; {
		case x.asked == 0:
			return x
		case x.step.Race != nil && x.asked < x.step.Race.Count:
			return x
		case x.step.Retry != nil && (x.asked == 1 || x.hopeless() && x.first == line):
			return x
		}
	}
	return nil
}

// hopeless says that no answer is what the retry waits for: it looks for an
// element by one name and expects another.
func (x *exchange) hopeless() bool {
	for at, want := range x.step.Retry.Where {
		p, _ := parsePath(at)
		if len(p) < 2 {
			continue
		}
		if s := p[len(p)-2]; s.kind == match && s.key[0] == p[len(p)-1].name && s.value != want {
			return true
		}
	}
	return false
}

// racer is the status of the racer that has just asked.
func (x *exchange) racer() int {
	left := x.asked
	for _, status := range sortedKeys(x.step.Expect.Tally) {
		if left -= x.step.Expect.Tally[status]; left <= 0 {
			n, _ := strconv.Atoi(status)
			return n
		}
	}
	return 0
}

func (f *fake) respond(status int, header http.Header, body []byte, stream io.ReadCloser) *http.Response {
	if header == nil {
		header = http.Header{"Content-Type": {"application/json"}}
	}
	if stream == nil {
		stream = io.NopCloser(bytes.NewReader(body))
	}
	return &http.Response{StatusCode: status, Header: header, Body: stream, ProtoMajor: 1, ProtoMinor: 1}
}

func (f *fake) answer(ctx context.Context, x *exchange) (*http.Response, error) {
	s := x.step
	header := http.Header{}
	for name, text := range s.Expect.Headers {
		header[name] = strings.Split(f.raw(text, name).(string), " | ")
	}
	if s.Check.StatusOnly {
		header.Set("Content-Type", "application/json")
	}
	if s.Watch != nil && s.Expect.Status == 200 {
		return f.respond(200, header, nil, f.stream(ctx, x)), nil
	}
	tree := f.object(x, s.Expect.Body.tree, s.Expect.Values)
	return f.respond(s.Expect.Status, header, encode(header.Get("Content-Type"), tree), nil), nil
}

func encode(contentType string, tree any) []byte {
	if strings.Contains(contentType, "yaml") {
		var plain any
		if err := json.Unmarshal([]byte(asJSON(tree)), &plain); err != nil {
			panic(err)
		}
		text, err := yaml.Marshal(plain)
		if err != nil {
			panic(err)
		}
		return text
	}
	if text, ok := tree.(string); ok && !strings.Contains(contentType, "json") {
		return []byte(text)
	}
	return []byte(asJSON(tree))
}

// stream gives all events, and then ends, or stays open until ctx ends.
func (f *fake) stream(ctx context.Context, x *exchange) io.ReadCloser {
	var text bytes.Buffer
	for _, e := range x.step.Expect.Events {
		tree := f.object(x, e.Object.tree, e.Values)
		if e.Type == "BOOKMARK" {
			if at, ok := tree.(map[string]any)["metadata"].(map[string]any); ok && at["resourceVersion"] == nil {
				at["resourceVersion"] = collectionVersion
			}
		}
		text.WriteString(asJSON(map[string]any{"type": e.Type, "object": tree}) + "\n")
	}
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	go func() {
		_, _ = in.Write(text.Bytes())
		if x.step.Expect.Closed {
			in.Close()
		}
	}()
	return out
}

// object makes a raw object of what was recorded of it, with what captures and
// retries need.
func (f *fake) object(x *exchange, recorded any, values map[string]value) any {
	s := x.step
	tree := f.raw(recorded, "")
	if recorded == nil {
		tree = map[string]any{}
	}
	for _, at := range sortedKeys(values) {
		v := values[at].tree
		f.hint(tree.(map[string]any), at, v)
		if v != absent {
			tree = put(tree, f.path(at), f.raw(v, at))
		}
	}
	if s.Retry != nil {
		for at, want := range s.Retry.Where {
			if _, ok := f.path(at).get(tree); !ok && !x.hopeless() {
				tree = put(tree, f.path(at), f.raw(want, at))
			}
		}
	}
	if s.Watch == nil {
		for _, at := range s.Capture {
			if _, ok := f.path(at).get(tree); !ok {
				tree = put(tree, f.path(at), made(at))
			}
		}
	}
	return f.disguise(x, tree)
}

// hint makes an object a list or a table where only values of it are known.
func (f *fake) hint(tree map[string]any, at string, v any) {
	switch text := asJSON(v); {
	case strings.Contains(text, listVersion):
		tree["kind"] = "WidgetList"
	case strings.Contains(text, tableVersion):
		tree["kind"] = "Table"
	}
}

// made is a value for a capture of what was not recorded.
func made(at string) any {
	switch {
	case strings.HasSuffix(at, "uid"):
		return uid(99)
	case strings.HasSuffix(at, "generation"):
		return 1
	case strings.HasSuffix(at, "name"):
		return "page-abcde"
	}
	return "77" // a version, a token
}

// disguise adds what a comparison must not see.
func (f *fake) disguise(x *exchange, tree any) any {
	m, ok := tree.(map[string]any)
	if !ok {
		return tree
	}
	meta, _ := m["metadata"].(map[string]any)
	if x.fields {
		if fields, ok := meta["managedFields"].([]any); ok {
			slices.Reverse(fields)
		}
	} else if meta["uid"] != nil {
		meta["managedFields"] = []any{map[string]any{"manager": "parity", "operation": "Update"}}
	}
	if details, ok := m["details"].(map[string]any); ok && m["code"] == json.Number("409") && m["kind"] == "Status" {
		causes, _ := details["causes"].([]any)
		details["causes"] = append(causes, map[string]any{"reason": "FieldChanged", "field": "data.k"})
	}
	if x.step.Check.Unordered {
		return reversed(m)
	}
	return m
}

func reversed(tree any) any {
	switch t := tree.(type) {
	case map[string]any:
		for name, v := range t {
			t[name] = reversed(v)
		}
	case []any:
		slices.Reverse(t)
		for i, v := range t {
			t[i] = reversed(v)
		}
	}
	return tree
}

func (f *fake) path(text string) path {
	p, err := parsePath(strings.ReplaceAll(text, "${unique}", f.token))
	if err != nil {
		f.t.Error(err)
	}
	return p
}

const collectionVersion = "900000"

func uid(n int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", n*7919, n) }

var placeholder = regexp.MustCompile(`<(uid|rv|generated) ([0-9]+)>|<time \.([0-9])>|<(time|n|continue|list-rv|table-rv|bookmark-rv)>|\$\{unique\}`)

// raw undoes the normalization. member names where a text was found.
func (f *fake) raw(tree any, member string) any {
	switch t := tree.(type) {
	case map[string]any:
		m := make(map[string]any, len(t))
		for name, v := range t {
			m[strings.ReplaceAll(name, "${unique}", f.token)] = f.raw(v, name)
		}
		return m
	case []any:
		l := make([]any, len(t))
		for i, v := range t {
			l[i] = f.raw(v, member)
		}
		return l
	case string:
		return placeholder.ReplaceAllStringFunc(t, f.rawText)
	}
	return tree
}

func (f *fake) rawText(found string) string {
	part := placeholder.FindStringSubmatch(found)
	n, _ := strconv.Atoi(part[2])
	switch {
	case found == "${unique}":
		return f.token
	case part[1] == "uid":
		return uid(n)
	case part[1] == "rv":
		return strconv.Itoa(1000 + 7*n)
	case part[1] == "generated":
		return fmt.Sprintf("x%04d", n)
	case part[3] != "":
		return time.Now().UTC().Format("2006-01-02T15:04:05." + strings.Repeat("0", int(part[3][0]-'0')) + "Z07:00")
	case found == "<time>":
		return time.Now().UTC().Format(time.RFC3339)
	case found == "<continue>":
		return "Y29udGludWU"
	case found == "<n>":
		return "12345"
	}
	return collectionVersion
}

// put returns tree with v at p, and what leads there made where it is missing.
func put(tree any, p path, v any) any {
	if len(p) == 0 {
		return v
	}
	s, rest := p[0], p[1:]
	if s.kind == member {
		m, ok := tree.(map[string]any)
		if !ok {
			m = map[string]any{}
		}
		m[s.name] = put(m[s.name], rest, v)
		return m
	}
	list, ok := tree.([]any)
	if !ok {
		list = []any{}
	}
	switch s.kind {
	case each:
		for i, item := range v.([]any) {
			if i == len(list) {
				list = append(list, map[string]any{})
			}
			list[i] = put(list[i], rest, item)
		}
	case match:
		i := s.find(list)
		if i < 0 {
			i = len(list)
			list = append(list, map[string]any{s.key[0]: s.value})
		}
		list[i] = put(list[i], rest, v)
	}
	return list
}

// serve answers as RoundTrip does, over a connection.
func (f *fake) serve(w http.ResponseWriter, q *http.Request) {
	response, err := f.RoundTrip(q)
	if err != nil {
		f.t.Error(err)
		return
	}
	defer response.Body.Close()
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(response.StatusCode)
	flush := http.NewResponseController(w)
	piece := make([]byte, 100)
	for err == nil {
		_ = flush.Flush()
		var n int
		n, err = response.Body.Read(piece)
		_, _ = w.Write(piece[:n])
	}
}
