package table

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"
)

// Custom returns the columns of a custom resource: its name and those that its definition
// gives, or its age if it gives none (rule C101). Of the resource's objects only
// the content counts, as for [unstructured.Unstructured].
//
// [unstructured.Unstructured]: https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1/unstructured#Unstructured
func Custom(given []apiextensionsv1.CustomResourceColumnDefinition) *Columns {
	if len(given) == 0 {
		given = []apiextensionsv1.CustomResourceColumnDefinition{{
			Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp", Description: swagger(metav1.ObjectMeta{}, "creationTimestamp"),
		}}
	}
	cols := []column{name}
	for _, g := range given {
		doc := g.Description
		if doc == "" {
			doc = "Custom resource definition column (in JSONPath format): " + g.JSONPath // rule C103
		}
		def := metav1.TableColumnDefinition{Name: g.Name, Type: g.Type, Format: g.Format, Description: doc, Priority: g.Priority}
		cols = append(cols, column{def, newQuery(g).cell})
	}
	return columns(cols...)
}

// A query finds the cell of one column in an object.
type query struct {
	kind string

	mu   sync.Mutex // a JSONPath keeps its place while it looks
	path *jsonpath.JSONPath
}

// newQuery makes the query of a column. A path that does not parse finds nothing: none gets
// past the validation of the definition.
func newQuery(c apiextensionsv1.CustomResourceColumnDefinition) *query {
	q := &query{kind: c.Type, path: jsonpath.New(c.Name).AllowMissingKeys(true)}
	if err := q.path.Parse(fmt.Sprintf("{%s}", c.JSONPath)); err != nil {
		q.path = nil
	}
	return q
}

// cell is the first value that the path leads to, nil if there is none or it is of another
// type than the column (rule C102).
func (q *query) cell(obj runtime.Object, now time.Time) any {
	u, ok := obj.(runtime.Unstructured)
	if !ok || q.path == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	found, err := q.path.FindResults(u.UnstructuredContent())
	if err != nil || len(found) == 0 || len(found[0]) == 0 || !found[0][0].CanInterface() {
		return nil
	}
	value := found[0][0].Interface()
	if q.kind == "string" {
		return q.print(value)
	}
	return valued(q.kind, value, now)
}

// print is any value as text.
func (q *query) print(value any) any {
	var b strings.Builder
	if err := q.path.PrintResults(&b, []reflect.Value{reflect.ValueOf(value)}); err != nil {
		return nil
	}
	return b.String()
}

// valued is a value as the cell of a column of some type other than string.
func valued(kind string, value any, now time.Time) any {
	switch kind {
	case "integer":
		return integer(value)
	case "number":
		return float(value)
	case "boolean":
		if b, ok := value.(bool); ok {
			return b
		}
	case "date":
		if s, ok := value.(string); ok {
			var t metav1.Time
			if err := t.UnmarshalQueryParameter(s); err != nil {
				return "<invalid>"
			}
			return since(t, now)
		}
	}
	return nil
}

func integer(value any) any {
	switch n := value.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	case json.Number:
		if i, err := n.Int64(); err == nil {
			return i
		}
	}
	return nil
}

func float(value any) any {
	switch n := value.(type) {
	case int64:
		return float64(n)
	case float64:
		return n
	case json.Number:
		if f, err := n.Float64(); err == nil {
			return f
		}
	}
	return nil
}
