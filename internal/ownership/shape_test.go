package ownership

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/pawl-dev/pawl/registry"
)

func TestPublishedShapes(t *testing.T) {
	text := map[string]string{
		"Gear": gearSchema,
		"Box": `{"x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Box"}],"properties":{
			"one":{"$ref":"#/components/schemas/Part"},"other":{"allOf":[{"$ref":"#/components/schemas/Part"}],"default":{}},
			"whole":{"allOf":[{"$ref":"#/components/schemas/Part"}],"x-kubernetes-map-type":"atomic"},"self":{"$ref":"#/components/schemas/Self"},"lost":{"$ref":"#/components/schemas/Lost"}}}`,
		"Part": `{"properties":{"tags":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}}}`,
		"Self": `{"$ref":"#/components/schemas/Self"}`,
	}
	all := map[string]*spec.Schema{}
	for name, s := range text {
		all[name] = &spec.Schema{}
		if err := json.Unmarshal([]byte(s), all[name]); err != nil {
			t.Fatal(err)
		}
	}
	kind := func(name string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: name}
	}
	asked := 0
	shape := func(name string) func() registry.Shape {
		return Shape(kind(name), func() (map[string]*spec.Schema, error) { asked++; return all, nil })
	}
	at := func(s registry.Shape, path ...string) registry.Shape {
		for _, p := range path {
			if s == nil {
				return nil
			}
			if p == "[]" {
				s = s.Item()
			} else {
				s = s.Member(p)
			}
		}
		return s
	}
	gear, box := shape("Gear")(), shape("Box")()
	for _, c := range []struct {
		name  string
		shape registry.Shape
		want  string // is it atomic, is it a set, its keys
	}{
		{"an object", at(gear, "spec"), "false false []"},
		{"an atomic object", at(gear, "spec", "box"), "true false []"},
		{"a member of a map", at(gear, "spec", "free", "any"), "false false []"},
		{"a set", at(gear, "spec", "tags"), "false true []"},
		{"an atomic list", at(gear, "spec", "plain"), "false false []"},
		{"a list whose items have keys", at(gear, "spec", "parts"), "false false [name]"},
		{"something in an item", at(gear, "spec", "parts", "[]", "deep", "y"), "false false []"},
		{"something behind a reference", at(box, "one", "tags"), "false true []"},
		{"something behind a reference with a default", at(box, "other", "tags"), "false true []"},
		{"an object that is atomic where it is referred to", at(box, "whole"), "true false []"},
		{"a schema that refers to itself", at(box, "self"), "false false []"},
		{"a schema that is not there", at(box, "lost"), "false false []"},
	} {
		if c.shape == nil {
			t.Errorf("%s: nothing is known", c.name)
		} else if got := fmt.Sprint(c.shape.Atomic(), c.shape.Set(), c.shape.Keys()); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
	for name, s := range map[string]registry.Shape{
		"a member that is not declared": at(gear, "spec", "nobody"), "a member of a schema that refers to itself": at(box, "self", "x"), "a kind that is not there": shape("Lamp")(),
		"schemas that cannot be read": Shape(kind("Gear"), func() (map[string]*spec.Schema, error) { return nil, errors.New("no") })(),
	} {
		if s != nil {
			t.Errorf("%s has a shape", name)
		}
	}
	once := shape("Gear")
	asked = 0
	once()
	if again := once(); again == nil || asked != 1 {
		t.Errorf("asked for schemas %d times", asked)
	}
}
