package openapi

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Schemas returns the schemas of the built-in resources of a group version, and of what they
// refer to, by name. It reads the data anew at each call.
func Schemas(gv schema.GroupVersion) (map[string]*spec.Schema, error) {
	d, err := builtin(keyOf(gv.Group, gv.Version))
	if err != nil {
		return nil, err
	}
	schemas := make(map[string]*spec.Schema, len(d.Components.Schemas))
	for name, text := range d.Components.Schemas {
		s := &spec.Schema{}
		if err := json.Unmarshal(text, s); err != nil {
			return nil, fmt.Errorf("openapi: schema %s: %w", name, err)
		}
		schemas[name] = s
	}
	return schemas, nil
}
