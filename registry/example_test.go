package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// A codec says how objects of one Go type become JSON and back.
type codec struct{}

func (codec) Encode(obj runtime.Object) ([]byte, storage.Fingerprint, error) {
	data, err := json.Marshal(obj)
	return data, 1, err
}

func (codec) Decode(data []byte) (runtime.Object, error) {
	cm := &corev1.ConfigMap{}
	return cm, json.Unmarshal(data, cm)
}

func (codec) Fingerprint() storage.Fingerprint { return 1 }

// A store for a Go type, in memory and without HTTP: two people read red, and the second to
// write is refused and told why.
func Example() {
	ctx := context.Background()
	engine, err := local.Open(ctx, local.Options{Memory: true})
	if err != nil {
		panic(err)
	}
	defer engine.Close()
	colors := registry.Must(registry.Config{
		Kind:     schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Resource: schema.GroupResource{Resource: "configmaps"},
		Table:    storage.NewTable(storage.Options{Engine: engine, Resource: "configmaps", Codec: codec{}}),
		Strategy: registry.Default{},
	})

	red := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "color"}, Data: map[string]string{"is": "red"}}
	seen, err := colors.Create(ctx, "", red, registry.CreateOptions{})
	for _, color := range []string{"blue", "green"} {
		obj, _ := seen.Object()
		obj.(*corev1.ConfigMap).Data["is"] = color
		_, err = colors.Update(ctx, "", "color", registry.Exactly(obj), registry.UpdateOptions{})
		fmt.Println(color, err)
	}
	var conflict *registry.ConflictError
	if errors.As(err, &conflict) {
		why, _ := conflict.Explain(ctx)
		fmt.Println(why.Fields[0].Path, why.Fields[0].Contended)
	}
	// Output:
	// blue <nil>
	// green Operation cannot be fulfilled on configmaps "color": the object has been modified; please apply your changes to the latest version and try again
	// .data.is true
}
