package openapi

import (
	"maps"
	"slices"
	"strings"
	"testing"

	kinds "github.com/pawl-dev/pawl/internal/resource/builtin"
)

// TestWhatIsServedIsPublished finds the kinds and subresources that the data knows nothing of. Add what is
// missing to published, in gen, and run go generate.
func TestWhatIsServedIsPublished(t *testing.T) {
	for _, k := range kinds.Kinds() {
		gvk := k.GroupVersionKind()
		schemas, err := Schemas(gvk.GroupVersion())
		if err != nil {
			t.Fatal(err)
		}
		described := false
		for _, s := range schemas {
			of, _ := s.Extensions["x-kubernetes-group-version-kind"].([]any)
			described = described || slices.ContainsFunc(of, func(v any) bool {
				m, _ := v.(map[string]any)
				return m["group"] == gvk.Group && m["version"] == gvk.Version && m["kind"] == gvk.Kind
			})
		}
		if !described {
			t.Errorf("%v has no schema", gvk)
		}
		d, err := builtin(keyOf(gvk.Group, gvk.Version))
		if err != nil {
			t.Fatal(err)
		}
		doors := []string{"/" + k.Plural, "/" + k.Plural + "/{name}"}
		for _, sub := range k.Subresources {
			doors = append(doors, "/"+k.Plural+"/{name}/"+sub.Name)
		}
		if k.Scaled != nil {
			doors = append(doors, "/"+k.Plural+"/{name}/scale")
		}
		for _, door := range doors {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(d.Paths)), func(path string) bool { return strings.HasSuffix(path, door) }) {
				t.Errorf("%v has no path that ends with %s", gvk, door)
			}
		}
	}
}
