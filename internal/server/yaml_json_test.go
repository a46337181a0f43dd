package server

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// asYAML reads a document as YAML, as the reference does with every one.
func asYAML(t *testing.T, doc []byte) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		t.Fatalf("%q is no YAML: %v", doc, err)
	}
	var out map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &out); err != nil {
		t.Fatalf("%q: %v", doc, err)
	}
	return out
}

func TestADocumentIsReadAsJSONOnlyIfYAMLSaysTheSame(t *testing.T) {
	for _, tt := range []struct {
		name, doc string
		json      bool
	}{
		{"what clients send", `{"apiVersion":"v1","metadata":{"name":"a","labels":{"a/b":"c-d"}},"spec":{"n":-12,"b":true,"z":null,"l":[1,"x",[],{}]}}`, true},
		{"JSON with room in it", "{ \"a\": [ 1 ,\n 2 ] }\n", true},
		{"a colon after a space", `{"a" :1}`, false},
		{"a colon in the next line, which YAML refuses", "{\"a\"\n:1}", false},
		{"a text before a line end that is no name", "{\"a\":\"b\"\n}", true},
		{"a text with escapes that both know", `{"a":"q\" s\\ n\n t\t"}`, true},
		{"texts that YAML without quotes would take for something else", `{"a":"yes","b":"0x10","c":"~","d":"1e3","e":"2026-01-01","f":"# no comment","g":"*a","no":"&b"}`, true},
		{"a long text", `{"a":"` + strings.Repeat("word ", 1000) + `"}`, true},
		{"a name that is too long for YAML", `{"` + strings.Repeat("a", 1100) + `": 1}`, false},
		{"a key that makes YAML merge", `{"<<":{"a":1}}`, false},
		{"an escape that is not among the usual", `{"a":"\u0041"}`, false},
		{"text that is not ASCII", `{"a":"é"}`, false},
		{"a number with a fraction", `{"a":1.0}`, false},
		{"a number with an exponent", `{"a":1e3}`, false},
		{"zero with a sign", `{"a":-0}`, false},
		{"a number that may be too large", `{"a":1234567890123456}`, false},
		{"a tab between things", "{\"a\":\t1}", false},
		{"a member that stands twice", `{"a":1,"a":2}`, false},
		{"YAML", "a: 1\n", false},
		{"flow YAML that is no JSON", `{a: 1}`, false},
		{"JSON with more behind it", `{"a":1} {}`, false},
		{"null", `null`, false},
		{"a list", `[1]`, false},
		{"nothing", ``, false},
		{"a text without an end", `{"a`, false},
		{"an escape without an end", `{"a\`, false},
	} {
		got, ok := asJSON([]byte(tt.doc))
		if ok != tt.json {
			t.Errorf("%s: read as JSON: %v", tt.name, ok)
		}
		if ok && !reflect.DeepEqual(got, asYAML(t, []byte(tt.doc))) {
			t.Errorf("%s: %v, but YAML says %v", tt.name, got, asYAML(t, []byte(tt.doc)))
		}
	}
}

// randomValue is JSON of all sorts, the odd ones rare.
func randomValue(r *rand.Rand, depth int) any {
	texts := []string{"a", "", "x y", "true", "null", "-", "1", "a: b", "- a", "# c", "<<", "a\"b", "back\\slash", "two\nlines", "tab\t", "{", "[", "'", "%", "@", "`", "!t", "&a", "*a", "?", ": ", "é", "~"}
	switch n := r.IntN(10); {
	case depth > 0 && n < 3:
		m := map[string]any{}
		for range r.IntN(4) {
			m[texts[r.IntN(len(texts))]] = randomValue(r, depth-1)
		}
		return m
	case depth > 0 && n < 5:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, randomValue(r, depth-1))
		}
		return list
	case n < 7:
		return texts[r.IntN(len(texts))]
	}
	return []any{nil, true, false, 0, 7, -7, 123456789012345, 1.5, 1e30}[r.IntN(9)]
}

func TestRandomJSONIsTheSameAsYAML(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	read := 0
	for range 4000 {
		doc, err := json.Marshal(map[string]any{"a": randomValue(r, 4), "b": randomValue(r, 2)})
		if err != nil {
			t.Fatal(err)
		}
		got, ok := asJSON(doc)
		if !ok {
			continue
		}
		read++
		if want := asYAML(t, doc); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %v, but YAML says %v", doc, got, want)
		}
	}
	if read < 800 {
		t.Errorf("only %d of 4000 were read as JSON", read)
	}
}
