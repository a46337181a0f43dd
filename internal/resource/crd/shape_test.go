package crd

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/internal/objectjson"
)

// reshapedObjects are objects that need nothing, and much.
var reshapedObjects = []string{
	`{apiVersion: test.example/v1, kind: Widget, metadata: {name: a, generation: 2}, spec: {size: 1, tags: [a], any: {x: [1, {y: 2}]}, map: {k: {n: 1}}}}`,
	`{apiVersion: test.example/v1, kind: Widget, metadata: {name: a, creationTimestamp: null, resourceVersion: "", labels: {}}, spec: {size: null, hue: null, tags: null, list: [{n: 1}, null, {}]}, status: {}}`,
	`{apiVersion: test.example/v1, kind: Widget, metadata: {name: a, labels: {a: b}, unknown: 1}, spec: {unknown: 2, list: [{unknown: 3}], map: {k: {unknown: 4}}}, top: 5}`,
	`{apiVersion: test.example/v1, kind: Widget, metadata: {name: a, labels: {a: 7}, generation: "x"}, spec: {size: x}}`,
	`{apiVersion: 7, kind: Widget, spec: [1]}`,
	`{metadata: null, spec: {may: null, any: null, deep: {}}}`,
}

// What is done quickly must be what is done thoroughly.
func TestShapingIsTheSameQuicklyAndThoroughly(t *testing.T) {
	k := compiled(t, oneVersion(`{type: object, properties: {
		size: {type: integer, default: 3}, hue: {type: string}, may: {type: string, nullable: true}, tags: {type: array, items: {type: string}},
		any: {type: object, x-kubernetes-preserve-unknown-fields: true}, map: {type: object, additionalProperties: {type: object, properties: {n: {type: integer, default: 1}}}},
		list: {type: array, items: {type: object, properties: {n: {type: integer, default: 2}}}}, deep: {type: object, properties: {x: {type: object, default: {y: 1}, properties: {y: {type: integer}, z: {type: integer, default: 7}}}}}}}`), "v1")
	schema := k.Form.(*form).schema
	st, err := schema.structural()
	if err != nil {
		t.Fatal(err)
	}
	r, quick := rand.New(rand.NewPCG(9, 9)), 0
	for n := range 3000 {
		u, err := objectjson.DecodeLast(toJSON(t, reshapedObjects[n%len(reshapedObjects)]))
		if err != nil {
			t.Fatal(err)
		}
		disturb(r, u)
		for _, from := range []source{client, store} {
			a, b := runtime.DeepCopyJSON(u), runtime.DeepCopyJSON(u)
			if st.fill(runtime.DeepCopyJSON(u), from, nil) {
				quick++
			}
			gotUnknown, gotErr := schema.shape(a, from)
			wantUnknown, wantErr := st.reshape(b, from)
			if !reflect.DeepEqual(a, b) && wantErr == nil || fmt.Sprint(gotUnknown, gotErr) != fmt.Sprint(wantUnknown, wantErr) {
				t.Fatalf("%v from %d becomes\n%v, %v, %v, but thoroughly\n%v, %v, %v", u, from, a, gotUnknown, gotErr, b, wantUnknown, wantErr)
			}
		}
	}
	if quick < 500 {
		t.Errorf("only %d objects were done quickly", quick)
	}
}

// disturb drops fields here and there, or makes them null.
func disturb(r *rand.Rand, m map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(m)) { // in one order, so that the seed tells everything
		value := m[name]
		switch r.IntN(12) {
		case 0:
			delete(m, name)
		case 1:
			m[name] = nil
		default:
			if inner, ok := value.(map[string]any); ok {
				disturb(r, inner)
			}
		}
	}
}
