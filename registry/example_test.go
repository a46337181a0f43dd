package registry_test

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/registry"
)

type Lamp struct {
	metav1.ObjectMeta `json:"metadata"`
	Color             string `json:"color"`
	Uses              int    `json:"uses"`
}

type lampStrategy struct{ registry.DefaultFor[Lamp] }

func (lampStrategy) Validate(_ context.Context, lamp, _ *Lamp) field.ErrorList {
	if lamp.Color == "" {
		return field.ErrorList{field.Required(field.NewPath("color"), "lamps shine")}
	}
	return nil
}

// A type, a strategy that is the default but for one thing, and a store of it. The second of two who
// read the same version is refused, and told why.
func Example() {
	ctx := context.Background()
	engine, _ := local.Open(ctx, local.Options{Memory: true}) // or Dir: "lamps", to keep them
	defer engine.Close()
	lamps := registry.Of[Lamp](engine, lampStrategy{})

	ann, _ := lamps.Create(ctx, &Lamp{ObjectMeta: metav1.ObjectMeta{Name: "desk"}, Color: "red"})
	bob, _ := lamps.Get(ctx, "desk")
	bob.Color = "green"
	_, err := lamps.Replace(ctx, bob)
	fmt.Println("bob:", err)
	ann.Color = "blue"
	_, err = lamps.Replace(ctx, ann)
	fmt.Println("ann:", err)

	var conflict *registry.ConflictError
	if errors.As(err, &conflict) {
		why, _ := conflict.Explain(ctx)
		fmt.Println(why.Fields[0].Path, why.Fields[0].Contended)
	}
	// Output:
	// bob: <nil>
	// ann: Operation cannot be fulfilled on lamps "desk": the object has been modified; please apply your changes to the latest version and try again
	// .color true
}
