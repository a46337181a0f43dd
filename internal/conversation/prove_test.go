package conversation

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
)

const testToken = "k3x9w2ab"

// conversations is how many were recorded.
const conversations = 342

func load(t *testing.T) []*Conversation {
	t.Helper()
	all, err := Load(Recordings())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != conversations {
		t.Fatalf("%d conversations, want %d", len(all), conversations)
	}
	return all
}

// A server that gives the recorded answers passes every conversation, and a run
// leaves what was recorded as it was.
func TestARecordedServerPassesEveryConversation(t *testing.T) {
	untouched := load(t)
	for i, c := range load(t) {
		t.Run(c.ID(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, c, testToken)
				if result := c.Run(t.Context(), f.client(), testToken); !result.Passed() {
					t.Error(result)
				}
				if n := f.unanswered(); n > 0 {
					t.Errorf("%d requests never came", n)
				}
			})
			if !reflect.DeepEqual(c, untouched[i]) {
				t.Error("the run changed what was recorded")
			}
		})
	}
}

// The runner can fail: for every conversation, one value, one header and one
// status of what is expected is changed, and it must fail each time.
func TestAChangedExpectationFailsEveryConversation(t *testing.T) {
	server := load(t)
	ran := map[string]int{}
	for _, kind := range []string{"value", "header", "status"} {
		changedAll := load(t)
		for i, c := range changedAll {
			t.Run(kind+"/"+c.ID(), func(t *testing.T) {
				changes := changesOf(c)[kind]
				if len(changes) == 0 {
					return // the conversation has no such part
				}
				ran[kind]++
				seed := fnv.New64a()
				fmt.Fprint(seed, kind, c.ID())
				change := changes[rand.New(rand.NewPCG(seed.Sum64(), 1)).IntN(len(changes))]
				what := change()
				synctest.Test(t, func(t *testing.T) {
					result := c.Run(t.Context(), newFake(t, server[i], testToken).client(), testToken)
					if result.Passed() {
						t.Errorf("it passes although %s", what)
					}
				})
			})
		}
	}
	t.Logf("changed: %v", ran)
	if ran["status"] != conversations || ran["value"] < 300 || ran["header"] < 300 {
		t.Errorf("changed %v of %d conversations: the proof leaves too many out", ran, conversations)
	}
}

// A change alters one compared part of what is expected and says which.
type change func() string

// changesOf are all single changes of a conversation, by kind.
func changesOf(c *Conversation) map[string][]change {
	changes := map[string][]change{}
	var add func(string, []*Step)
	add = func(prefix string, steps []*Step) {
		for i, s := range steps {
			at := fmt.Sprintf("%s%d", prefix, i+1)
			if s.Watch != nil {
				add(at+".", s.Watch.While)
			}
			for kind, of := range s.changes() {
				for _, ch := range of {
					changes[kind] = append(changes[kind], func() string { return "step " + at + ": " + ch() })
				}
			}
		}
	}
	add("", c.Steps)
	return changes
}

func (s *Step) changes() map[string][]change {
	e := &s.Expect
	changes := map[string][]change{}
	if e.Status != 0 {
		changes["status"] = append(changes["status"], func() string { e.Status++; return "the status is another" })
	}
	for status := range e.Tally {
		changes["value"] = append(changes["value"], func() string { e.Tally[status]++; return "the tally of " + status + " is another" })
		changes["status"] = append(changes["status"], func() string {
			e.Tally["299"] = e.Tally[status]
			delete(e.Tally, status)
			return "the racers' status is not " + status
		})
	}
	if s.Check.StatusOnly || e.Tally != nil || s.Pause != 0 {
		return changes
	}
	for _, name := range sortedKeys(e.Headers) {
		changes["header"] = append(changes["header"],
			func() string { e.Headers[name] += "x"; return "header " + name + " is another" },
			func() string { delete(e.Headers, name); return "header " + name + " is not expected" })
	}
	changes["header"] = append(changes["header"], func() string { e.Headers["Location"] = "/"; return "a Location is expected" })
	add := func(ch ...change) { changes["value"] = append(changes["value"], ch...) }
	if e.Body.set {
		add(treeChanges("body", e.Body.tree, func(v any) { e.Body.tree = v })...)
	}
	add(valueChanges("", e.Values)...)
	for i := range e.Events {
		ev := &e.Events[i]
		at := fmt.Sprintf("events[%d]", i)
		add(func() string { ev.Type += "x"; return at + ".type is another" })
		if ev.Object.set {
			add(treeChanges(at, ev.Object.tree, func(v any) { ev.Object.tree = v })...)
		}
		add(valueChanges(at, ev.Values)...)
	}
	if s.Watch != nil && e.Status == 200 {
		add(func() string { e.Closed = !e.Closed; return "closed is another" })
	}
	return changes
}

func valueChanges(at string, values map[string]value) (changes []change) {
	for _, p := range sortedKeys(values) {
		changes = append(changes, treeChanges(at+p, values[p].tree, func(v any) { values[p] = value{v, true} })...)
	}
	return changes
}

// treeChanges are the changes of the leaves of a tree, the loss of each member,
// and one member or element too many.
func treeChanges(at string, tree any, set func(any)) (changes []change) {
	become := func(v any) change {
		return func() string { set(v); return fmt.Sprintf("%s is %s", at, asJSON(v)) }
	}
	switch v := tree.(type) {
	case map[string]any:
		changes = append(changes, func() string { v["extra"] = "x"; return at + " has a member more" })
		for _, name := range sortedKeys(v) {
			changes = append(changes, func() string { delete(v, name); return at + " lacks " + name })
			changes = append(changes, treeChanges(memberPath(at, name), v[name], func(n any) { v[name] = n })...)
		}
	case []any:
		changes = append(changes, become(append(slices.Clone(v), "x")))
		for i := range v {
			changes = append(changes, treeChanges(fmt.Sprintf("%s[%d]", at, i), v[i], func(n any) { v[i] = n })...)
		}
	case string:
		changes = append(changes, become(v+"x"))
	case json.Number:
		f, _ := v.Float64()
		changes = append(changes, become(json.Number(fmt.Sprint(f+1))))
	case bool:
		changes = append(changes, become(!v))
	default:
		changes = append(changes, become("x"))
	}
	return changes
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// What passes in memory passes over TLS and HTTP/2 as well, with streams that
// arrive piece by piece.
func TestTheRunnerSpeaksHTTP(t *testing.T) {
	for _, c := range load(t) {
		f := newFake(t, c, testToken)
		if c.Topic != "watch" || slices.ContainsFunc(f.script, func(x *exchange) bool { return x.step.Retry != nil }) {
			continue // a retry takes its time
		}
		t.Run(c.ID(), func(t *testing.T) {
			t.Parallel()
			server := httptest.NewUnstartedServer(http.HandlerFunc(f.serve))
			server.EnableHTTP2 = true
			server.StartTLS()
			defer server.Close()
			client := &Client{BaseURL: server.URL, Token: "t", HTTP: server.Client()}
			if result := c.Run(t.Context(), client, testToken); !result.Passed() {
				t.Error(result)
			}
		})
	}
}
