package conversation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// A Client speaks to the server under test as its administrator, who may
// impersonate. It is safe for concurrent use.
type Client struct {
	BaseURL string       // such as https://127.0.0.1:7443
	HTTP    *http.Client // nil: http.DefaultClient; it must trust the server and send no credentials of its own
	Token   string       // the administrator's bearer token

	// Patience bounds how long a step is retried, if it is not zero.
	Patience time.Duration
}

// answerTimeout is how long an answer may take.
const answerTimeout = 60 * time.Second

// A sending is a request with everything replaced.
type sending struct {
	method, path string
	header       http.Header
	auth         string // "none", a token, or "" for the administrator's
	body         []byte
}

// prepare replaces everything in a request.
func prepare(q *Request, v vars) (*sending, error) {
	s := &sending{method: q.Method, header: http.Header{"User-Agent": {"parity/1.0"}, "Accept": {"application/json"}}}
	var err error
	replace := func(text string) string {
		replaced, e := v.replace(text)
		if err == nil {
			err = e
		}
		return replaced
	}
	s.path, s.auth = replace(q.Path), replace(q.Auth)
	if q.Body.isSet() {
		s.header.Set("Content-Type", "application/json")
		body, e := q.Body.bytes(v.replace)
		if e != nil {
			return nil, e
		}
		s.body = body
	}
	if q.As != "" {
		s.header.Set("Impersonate-User", replace(q.As))
	}
	for name, text := range q.Headers {
		s.header.Set(name, replace(text))
	}
	return s, err
}

// open sends a request and returns once the headers of the answer are there.
func (c *Client) open(ctx context.Context, s *sending) (*http.Response, error) {
	var body io.Reader
	if s.body != nil {
		body = bytes.NewReader(s.body)
	}
	q, err := http.NewRequestWithContext(ctx, s.method, strings.TrimSuffix(c.BaseURL, "/")+s.path, body)
	if err != nil {
		return nil, err
	}
	for name, values := range s.header {
		switch {
		case values[0] != "":
			q.Header[name] = values
		case name == "User-Agent":
			q.Header[name] = []string{""} // net/http would send its own otherwise
		}
	}
	switch s.auth {
	case "none":
	case "":
		q.Header.Set("Authorization", "Bearer "+c.Token)
	default:
		q.Header.Set("Authorization", "Bearer "+s.auth)
	}
	return c.plain().Do(q)
}

// plain is the HTTP client, but one that shows redirects instead of following them.
func (c *Client) plain() *http.Client {
	h := http.DefaultClient
	if c.HTTP != nil {
		h = c.HTTP
	}
	plain := *h
	plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &plain
}

// exchange sends a request and reads the whole answer.
func (c *Client) exchange(ctx context.Context, s *sending) (*answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout, fmt.Errorf("no answer within %v", answerTimeout))
	defer cancel()
	response, err := c.open(ctx, s)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	body := decodeBody(response.Header.Get("Content-Type"), raw)
	return &answer{status: response.StatusCode, header: response.Header, body: body}, nil
}

// leftovers are the objects that a conversation made.
type leftovers struct {
	namespace string          // part of the path of what goes with the conversation's own namespace
	made      []string        // paths of objects, in the order they were made
	held      map[string]bool // paths of objects that were seen with finalizers
}

// note looks at an exchange for an object that was made, or that holds a finalizer.
func (l *leftovers) note(s *sending, got *answer) {
	if s.method == http.MethodGet || got.status >= 300 || strings.Contains(s.path, "dryRun=") {
		return
	}
	at, _, _ := strings.Cut(s.path, "?")
	object, _ := got.body.(map[string]any)
	meta, _ := object["metadata"].(map[string]any)
	if s.method == http.MethodPost {
		name, _ := meta["name"].(string)
		if name == "" {
			name = nameIn(s.body)
		}
		if name == "" {
			return // a review, or whatever else is not kept
		}
		at += "/" + name
	}
	if got.status == http.StatusCreated {
		l.made = append(l.made, at)
	}
	if holders, _ := meta["finalizers"].([]any); len(holders) > 0 {
		if l.held == nil {
			l.held = map[string]bool{}
		}
		l.held[l.object(at)] = true
	}
}

// object is the path of the object that a path is, or whose subresource it is.
func (l *leftovers) object(at string) string {
	longest := ""
	for _, made := range l.made {
		if strings.HasPrefix(at+"/", made+"/") && len(made) > len(longest) {
			longest = made
		}
	}
	if longest == "" {
		return at
	}
	return longest
}

// nameIn is the name of the object that a body holds. An answer may be a Table
// or protobuf and not tell it.
func nameIn(body []byte) string {
	var object struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if json.Unmarshal(body, &object) != nil {
		return ""
	}
	return object.Metadata.Name
}

// removeTimeout is how long the removal of what is left over may take.
const removeTimeout = 20 * time.Second

// remove lets go of leftover finalizers and deletes what was made, the last
// first. What lies in the conversation's namespace goes with it. The answers do
// not matter: most of it is gone already.
func (l *leftovers) remove(ctx context.Context, c *Client) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	header := func(contentType string) http.Header {
		return http.Header{"User-Agent": {"parity/1.0"}, "Accept": {"application/json"}, "Content-Type": {contentType}}
	}
	for at := range l.held {
		_, _ = c.exchange(ctx, &sending{
			method: http.MethodPatch, path: at, header: header("application/merge-patch+json"),
			body: []byte(`{"metadata":{"finalizers":null}}`),
		})
	}
	for i := len(l.made) - 1; i >= 0; i-- {
		if !strings.Contains(l.made[i], l.namespace) {
			_, _ = c.exchange(ctx, &sending{method: http.MethodDelete, path: l.made[i], header: header("application/json")})
		}
	}
}
