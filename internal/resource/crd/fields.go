package crd

import (
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/storage"
)

// selectable returns the function that reads the selectable fields, and their labels: the
// JSON path without its leading dot. A field that is missing or null is the empty string
// (rule C98).
func selectable(declared []apiextensionsv1.SelectableField) (storage.FieldsFunc, []string) {
	if len(declared) == 0 {
		return nil, nil
	}
	labels := make([]string, len(declared))
	paths := make([][]string, len(declared))
	for i, f := range declared {
		labels[i] = strings.TrimPrefix(f.JSONPath, ".")
		paths[i] = fieldPath(f.JSONPath)
	}
	return func(obj runtime.Object) (fields.Set, error) {
		u, err := asUnstructured(obj)
		if err != nil {
			return nil, err
		}
		set := make(fields.Set, len(labels))
		for i, path := range paths {
			set[labels[i]] = printed(lookUp(u.Object, path))
		}
		return set, nil
	}, labels
}

// lookUp returns what is at path, nil if nothing is.
func lookUp(at any, path []string) any {
	for _, name := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[name]
	}
	return at
}

func printed(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}
