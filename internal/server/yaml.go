package server

import (
	"bytes"
	"errors"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// fromYAML turns YAML into JSON. Members that stand twice are findings, as is nothing else
// at this point (rule H67).
func fromYAML(data []byte) (out []byte, findings []string, err error) {
	if err := checkAliases(data); err != nil {
		return data, nil, err
	}
	out, err = yaml.YAMLToJSONStrict(data)
	if err == nil {
		return out, nil, nil
	}
	loose, looseErr := yaml.YAMLToJSON(data)
	if looseErr != nil {
		return data, nil, looseErr
	}
	return loose, yamlFindings(err), nil
}

// yamlFindings takes the error of a strict parse apart.
func yamlFindings(err error) []string {
	text := strings.TrimPrefix(err.Error(), "yaml: unmarshal errors:\n")
	var found []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			found = append(found, line)
		}
	}
	return found
}

// errAliases is in the words in which the YAML library refuses the bombs that it sees.
var errAliases = errors.New("yaml: document contains excessive aliasing")

// checkAliases refuses a document that, written out, is larger than a body may be. The YAML
// library counts the nodes that aliases stand for but not their bytes: an anchor on one long
// text and half a million aliases to it fit into a body, and are hundreds of gigabytes of JSON.
func checkAliases(data []byte) error {
	if bytes.IndexByte(data, '&') < 0 || bytes.IndexByte(data, '*') < 0 {
		return nil
	}
	var doc yamlnode.Node
	if err := yamlnode.Unmarshal(data, &doc); err != nil {
		return err
	}
	if sizes := (yamlSizes{}); sizes.of(&doc) > bodyMax {
		return errAliases
	}
	return nil
}

// yamlSizes are the sizes of anchored nodes written out, those under way at 0: a node that
// contains itself is refused when it is decoded.
type yamlSizes map[*yamlnode.Node]int

// of returns how many bytes n is written out, or some number above bodyMax.
func (s yamlSizes) of(n *yamlnode.Node) int {
	if n.Kind == yamlnode.AliasNode {
		n = n.Alias
	}
	if size, known := s[n]; known {
		return size
	}
	if n.Anchor != "" {
		s[n] = 0
	}
	size := len(n.Value) + 1 // what separates it from the next
	for _, child := range n.Content {
		if size += s.of(child); size > bodyMax {
			break
		}
	}
	if n.Anchor != "" {
		s[n] = size
	}
	return size
}
