// Package document holds OpenAPI documents by their parts: the paths and the schemas of an
// OpenAPI v3 document stay the JSON they were, so that documents are filtered, merged and
// written without what is inside being read.
//
// What OpenAPI v2 says is made of v3, see [Swagger].
package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Document is an OpenAPI v3 document. Its zero value is an empty one. The JSON in it is
// compact.
type Document struct {
	OpenAPI    string                     `json:"openapi"`
	Info       json.RawMessage            `json:"info"`
	Paths      map[string]json.RawMessage `json:"paths"`
	Components Components                 `json:"components"`
}

// Components are the named parts that paths refer to.
type Components struct {
	Schemas         map[string]json.RawMessage `json:"schemas,omitempty"`
	SecuritySchemes json.RawMessage            `json:"securitySchemes,omitempty"`
}

// Parse reads the JSON of an OpenAPI v3 document, which must be compact.
func Parse(data []byte) (*Document, error) {
	d := &Document{}
	if err := json.Unmarshal(data, d); err != nil {
		return nil, fmt.Errorf("openapi: not an OpenAPI v3 document: %w", err)
	}
	return d, nil
}

// JSON returns the document as it is sent. Equal documents give equal bytes.
func (d *Document) JSON() ([]byte, error) { return json.Marshal(d) }

// Add puts the paths and schemas of other into d. What d has already stays: the parts
// that documents share, such as ObjectMeta, are alike.
func (d *Document) Add(other *Document) {
	if d.OpenAPI == "" {
		d.OpenAPI, d.Info = other.OpenAPI, other.Info
	}
	if d.Components.SecuritySchemes == nil {
		d.Components.SecuritySchemes = other.Components.SecuritySchemes
	}
	d.Paths = addMissing(d.Paths, other.Paths)
	d.Components.Schemas = addMissing(d.Components.Schemas, other.Components.Schemas)
}

func addMissing(to, from map[string]json.RawMessage) map[string]json.RawMessage {
	if to == nil {
		to = make(map[string]json.RawMessage, len(from))
	}
	for name, part := range from {
		if _, has := to[name]; !has {
			to[name] = part
		}
	}
	return to
}

// Keep drops the paths that keep does not want, and the schemas that then nothing refers to.
func (d *Document) Keep(keep func(path string) bool) {
	maps.DeleteFunc(d.Paths, func(path string, _ json.RawMessage) bool { return !keep(path) })
	used := map[string]bool{}
	todo := slices.Collect(maps.Values(d.Paths))
	for len(todo) > 0 {
		part := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, name := range references(part) {
			if !used[name] {
				used[name] = true
				todo = append(todo, d.Components.Schemas[name])
			}
		}
	}
	maps.DeleteFunc(d.Components.Schemas, func(name string, _ json.RawMessage) bool { return !used[name] })
}

const schemaPrefix = "#/components/schemas/"

// references returns the names of the schemas that part refers to. A quote in a text is
// written \", so what it looks for cannot be in one.
func references(part []byte) (names []string) {
	const before = `"$ref":"` + schemaPrefix
	for {
		_, after, found := bytes.Cut(part, []byte(before))
		if !found {
			return names
		}
		end := bytes.IndexByte(after, '"')
		if end < 0 {
			return names
		}
		names = append(names, string(after[:end]))
		part = after[end:]
	}
}

// MediaTypes rewrites the media types of d: of each map of media types, those that drop names
// are left out. The path is given so that the patch types of a resource can be told.
func (d *Document) MediaTypes(drop func(path, mediaType string) bool) error {
	for path, item := range d.Paths {
		var tree map[string]any
		if err := json.Unmarshal(item, &tree); err != nil {
			return fmt.Errorf("openapi: path %s: %w", path, err)
		}
		dropContent(tree, func(mediaType string) bool { return drop(path, mediaType) })
		tight, err := json.Marshal(tree)
		if err != nil {
			return fmt.Errorf("openapi: path %s: %w", path, err)
		}
		d.Paths[path] = tight
	}
	return nil
}

// dropContent goes through a tree, and drops from each member called content.
func dropContent(tree any, drop func(mediaType string) bool) {
	switch t := tree.(type) {
	case map[string]any:
		for name, member := range t {
			if content, ok := member.(map[string]any); ok && name == "content" {
				maps.DeleteFunc(content, func(mediaType string, _ any) bool { return drop(mediaType) })
			}
			dropContent(member, drop)
		}
	case []any:
		for _, element := range t {
			dropContent(element, drop)
		}
	}
}

// Route tells which resource and subresource a path of the document of a group version is
// about; both are empty for the root itself. Root is "/api/v1" or "/apis/GROUP/VERSION". It
// is not ok for what no server of today serves: paths elsewhere, and the old watch paths (rule
// H12).
func Route(root, path string) (resource, subresource string, ok bool) {
	rest, found := strings.CutPrefix(path, root+"/")
	if !found {
		return "", "", false
	}
	segments := strings.Split(rest, "/")
	if segments[0] == "watch" {
		return "", "", false
	}
	if len(segments) > 2 && segments[0] == "namespaces" && segments[1] == "{namespace}" {
		segments = segments[2:]
	}
	if len(segments) > 2 {
		subresource = segments[2]
	}
	return segments[0], subresource, true
}
