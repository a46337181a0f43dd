package conversation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"mime"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A tree is a decoded document: map[string]any, []any, string, json.Number,
// bool or nil, whether it came as JSON or YAML. A version may stand for a
// string while an answer is being normalized.

// A value is a recorded tree, and whether it was recorded at all.
type value struct {
	tree any
	set  bool
}

func (v *value) UnmarshalYAML(n *yaml.Node) error {
	tree, err := fromYAML(n)
	*v = value{tree: tree, set: true}
	return err
}

// A body is what a request sends: text byte for byte, or a document sent as
// JSON with the members of each object sorted by name. What the recorded
// answers say of unknown fields, in order, shows that they were sent so.
type body struct {
	node *yaml.Node
}

func (b *body) UnmarshalYAML(n *yaml.Node) error {
	b.node = n
	return nil
}

func (b body) isSet() bool { return b.node != nil }

// bytes returns the body with every string of it replaced.
func (b body) bytes(replace func(string) (string, error)) ([]byte, error) {
	if b.node.Kind == yaml.ScalarNode && b.node.ShortTag() == "!!str" {
		text, err := replace(b.node.Value)
		return []byte(text), err
	}
	var out bytes.Buffer
	err := writeJSON(&out, b.node, replace)
	return out.Bytes(), err
}

func writeJSON(out *bytes.Buffer, n *yaml.Node, replace func(string) (string, error)) error {
	switch n.Kind {
	case yaml.MappingNode:
		return writeObject(out, n, replace)
	case yaml.SequenceNode:
		out.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := writeJSON(out, item, replace); err != nil {
				return err
			}
		}
		out.WriteByte(']')
		return nil
	}
	tree, err := fromYAML(n)
	if err != nil {
		return err
	}
	if text, ok := tree.(string); ok {
		return writeString(out, text, replace)
	}
	return writeValue(out, tree)
}

func writeObject(out *bytes.Buffer, n *yaml.Node, replace func(string) (string, error)) error {
	members := slices.Collect(slices.Chunk(n.Content, 2))
	slices.SortFunc(members, func(a, b []*yaml.Node) int { return strings.Compare(a[0].Value, b[0].Value) })
	out.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := writeString(out, m[0].Value, replace); err != nil {
			return err
		}
		out.WriteByte(':')
		if err := writeJSON(out, m[1], replace); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	return nil
}

func writeString(out *bytes.Buffer, text string, replace func(string) (string, error)) error {
	text, err := replace(text)
	if err != nil {
		return err
	}
	return writeValue(out, text)
}

// writeValue appends a value as JSON, without the newline that an encoder puts after it: in YAML,
// as which some bodies are read, that would end a key.
func writeValue(out *bytes.Buffer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1)
	return nil
}

// fromYAML turns a node into a tree. Numbers keep their text where JSON allows
// it; times are strings, as in JSON.
func fromYAML(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.DocumentNode:
		return fromYAML(n.Content[0])
	case yaml.MappingNode:
		m := make(map[string]any, len(n.Content)/2)
		for i := 0; i < len(n.Content); i += 2 {
			v, err := fromYAML(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			m[n.Content[i].Value] = v
		}
		return m, nil
	case yaml.SequenceNode:
		l := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			v, err := fromYAML(item)
			if err != nil {
				return nil, err
			}
			l = append(l, v)
		}
		return l, nil
	case yaml.ScalarNode:
		return scalar(n)
	}
	return nil, fmt.Errorf("line %d: aliases are not supported", n.Line)
}

func scalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		return strconv.ParseBool(strings.ToLower(n.Value))
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value), nil
		}
		var f float64
		if err := n.Decode(&f); err != nil {
			return nil, err
		}
		if math.IsInf(f, 0) || math.IsNaN(f) {
			return n.Value, nil
		}
		return json.Number(strconv.FormatFloat(f, 'g', -1, 64)), nil
	}
	return n.Value, nil
}

// decodeBody turns the body of an answer into a tree, as its content type says.
// What does not decode is text.
func decodeBody(contentType string, raw []byte) any {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media = contentType
	}
	switch {
	case strings.Contains(media, "json"):
		if tree, err := decodeJSON(raw); err == nil {
			return tree
		}
	case strings.Contains(media, "yaml"):
		var n yaml.Node
		if yaml.Unmarshal(raw, &n) == nil && n.Kind == yaml.DocumentNode {
			if tree, err := fromYAML(&n); err == nil {
				return tree
			}
		}
	case strings.Contains(media, "protobuf"):
		return "<binary>"
	}
	return string(raw)
}

func decodeJSON(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return tree, nil
}

// textOf is a tree as a capture keeps it and a retry compares it: a string as it
// is, anything else as compact JSON.
func textOf(tree any) string {
	if s, ok := tree.(string); ok {
		return s
	}
	return asJSON(tree)
}

func asJSON(tree any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(tree); err != nil {
		return fmt.Sprintf("%#v", tree)
	}
	return strings.TrimSuffix(out.String(), "\n")
}
