package conversation

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// An answer is what came back for one step.
type answer struct {
	status int
	header http.Header
	body   any     // of a request, or of a watch that was refused
	events []event // of a watch
	stream bool    // a watch that was not refused
	closed bool    // the server ended the stream
	broken error   // the stream ended, but not well
	tally  map[string]int
}

// An event is one record of a watch as it came.
type event struct {
	kind   string
	object any
}

// text is the body for people; a stream has none.
func (a *answer) text() string {
	if a.stream {
		return ""
	}
	return textOf(a.body)
}

// absent stands for a value that is not there.
const absent = "<absent>"

// A mismatch is one place where an answer is not what was recorded.
type mismatch struct{ path, want, got string }

// comparison collects the mismatches of one answer.
type comparison struct {
	n     *normalizer
	check Check
	vars  vars
	found []mismatch
	err   error // the check itself is wrong
}

func (c *comparison) differ(path, want, got string) {
	c.found = append(c.found, mismatch{path, want, got})
}

// answer compares an answer with what was recorded.
func (c *comparison) answer(want *Expect, got *answer) {
	if want.Tally != nil {
		c.trees("tally", tallyTree(want.Tally), tallyTree(got.tally))
		return
	}
	if want.Status != got.status {
		c.differ("status", strconv.Itoa(want.Status), strings.TrimSpace(strconv.Itoa(got.status)+" "+got.text()))
	}
	marked := c.markAll(got) // even if nothing of it is compared: later bookmarks must know its versions
	if c.check.StatusOnly || want.Status != got.status {
		return
	}
	if got.stream {
		c.stream(want, got, marked)
	} else {
		c.content("body ", want.Body, want.Values, marked[0])
	}
	c.headers(want.Headers, got.header)
}

// markAll marks the body, or the object of each event.
func (c *comparison) markAll(got *answer) []any {
	if !got.stream {
		return []any{c.n.mark(got.body, false)}
	}
	var objects []any
	for _, e := range got.events {
		objects = append(objects, c.n.mark(e.object, e.kind == "BOOKMARK"))
	}
	return objects
}

func (c *comparison) stream(want *Expect, got *answer, objects []any) {
	if want.Body.set {
		c.differ("body", show(want.Body.tree), "a stream of events")
		return
	}
	if got.broken != nil {
		c.differ("stream", "whole events", got.broken.Error())
	}
	wantEvents, gotEvents := slices.Clone(want.Events), make([]any, len(objects))
	for i, object := range objects {
		gotEvents[i] = map[string]any{"type": got.events[i].kind, "object": c.selected(object)}
	}
	if c.check.Unordered {
		gotEvents = c.n.sorted(gotEvents).([]any)
		slices.SortStableFunc(wantEvents, func(a, b Event) int {
			return strings.Compare(c.n.sortKey(c.n.sorted(a.tree())), c.n.sortKey(c.n.sorted(b.tree())))
		})
	}
	for i := range max(len(wantEvents), len(gotEvents)) {
		path := fmt.Sprintf("events[%d]", i)
		var w, g any = absent, absent
		if i < len(gotEvents) {
			g = c.n.number(gotEvents[i])
		}
		if i < len(wantEvents) {
			w = c.recorded(wantEvents[i].tree())
		}
		c.trees(path, w, g)
	}
	if want.Closed != got.closed {
		c.differ("closed", strconv.FormatBool(want.Closed), strconv.FormatBool(got.closed))
	}
}

// tree is the event in the form that an event of an answer is given.
func (e Event) tree() any {
	content := e.Object.tree
	if e.Values != nil {
		content = valuesTree(e.Values)
	}
	return map[string]any{"type": e.Type, "object": content}
}

// content compares a body, or the values of it that the check names.
func (c *comparison) content(prefix string, body value, values map[string]value, marked any) {
	want := body.tree
	if len(c.check.Only) > 0 {
		want = valuesTree(values)
	} else if !body.set {
		want = absent
	}
	c.trees(prefix, c.recorded(want), c.n.number(c.selected(marked)))
}

// recorded is what was recorded in the form in which it is compared.
func (c *comparison) recorded(tree any) any {
	if c.check.Unordered {
		return c.n.sorted(tree)
	}
	return tree
}

func valuesTree(values map[string]value) map[string]any {
	m := make(map[string]any, len(values))
	for p, v := range values {
		m[p] = v.tree
	}
	return m
}

func tallyTree(tally map[string]int) map[string]any {
	m := make(map[string]any, len(tally))
	for status, count := range tally {
		m[status] = json.Number(strconv.Itoa(count))
	}
	return m
}

// selected narrows a marked answer down to what the check asks for.
func (c *comparison) selected(marked any) any {
	for _, text := range c.check.Ignore {
		marked = c.path(text).without(marked)
	}
	if len(c.check.Only) > 0 {
		values := make(map[string]any, len(c.check.Only))
		for _, text := range c.check.Only {
			values[text] = absent
			if v, ok := c.path(text).get(marked); ok {
				values[text] = v
			}
		}
		marked = values
	}
	if c.check.Unordered {
		marked = c.n.sorted(marked)
	}
	if c.check.Shape {
		marked = kinds(marked)
	}
	return marked
}

// path parses a path of the check after replacing.
func (c *comparison) path(text string) path {
	replaced, err := c.vars.replace(text)
	if err == nil {
		var p path
		if p, err = parsePath(replaced); err == nil {
			return p
		}
	}
	c.err = err
	return nil
}

// comparedHeaders are the headers that are always compared.
var comparedHeaders = [...]string{"Content-Type", "Warning", "Retry-After", "Www-Authenticate", "Allow", "Location"}

// headers compares what was recorded of the headers. One that is not recorded must be absent.
func (c *comparison) headers(want map[string]string, got http.Header) {
	names := slices.Concat(comparedHeaders[:], c.check.Headers)
	for i, name := range names {
		names[i] = http.CanonicalHeaderKey(name)
	}
	recorded := make(map[string]string, len(want))
	for name, v := range want {
		recorded[http.CanonicalHeaderKey(name)] = v
	}
	names = append(names, slices.Collect(maps.Keys(recorded))...)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		w, ok := recorded[name]
		if !ok {
			w = absent
		}
		if g := c.header(name, got); w != g {
			c.differ("header "+name, w, g)
		}
	}
}

func (c *comparison) header(name string, got http.Header) string {
	values := got.Values(name)
	switch {
	case len(values) == 0:
		return absent
	case name == "Etag" || name == "Audit-Id":
		return "<present>"
	}
	return c.n.text(strings.Join(values, " | "))
}

// trees compares two trees and names the deepest places where they differ.
func (c *comparison) trees(path string, want, got any) {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			c.members(path, w, g)
			return
		}
	case []any:
		if g, ok := got.([]any); ok {
			c.elements(path, w, g)
			return
		}
	case json.Number:
		if g, ok := got.(json.Number); ok && sameNumber(w, g) {
			return
		}
	default:
		if _, isMap := got.(map[string]any); isMap {
			break
		}
		if _, isList := got.([]any); !isList && want == got {
			return
		}
	}
	c.differ(path, show(want), show(got))
}

func (c *comparison) members(path string, want, got map[string]any) {
	names := slices.Collect(maps.Keys(want))
	for name := range got {
		if _, ok := want[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		at := memberPath(path, name)
		if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "[") {
			at = path + name // the name is itself a path, of check.only
		}
		w, wanted := want[name]
		g, there := got[name]
		switch {
		case !wanted:
			c.differ(at, absent, show(g))
		case !there:
			c.differ(at, show(w), absent)
		default:
			c.trees(at, w, g)
		}
	}
}

func (c *comparison) elements(path string, want, got []any) {
	for i := range max(len(want), len(got)) {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case i >= len(want):
			c.differ(at, absent, show(got[i]))
		case i >= len(got):
			c.differ(at, show(want[i]), absent)
		default:
			c.trees(at, want[i], got[i])
		}
	}
}

// sameNumber compares by value: 2 is 2.0.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, errX := a.Int64()
	y, errY := b.Int64()
	if errX == nil && errY == nil {
		return x == y
	}
	f, errF := a.Float64()
	g, errG := b.Float64()
	return errF == nil && errG == nil && f == g
}

// show writes a tree for people.
func show(tree any) string {
	if tree == absent {
		return absent
	}
	return asJSON(tree)
}
