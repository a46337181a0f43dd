package registry_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
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

// A type, a strategy that is the default but for one thing, and a store of it. Of two who read the same
// version the second to write is refused, and told why.
func Example() {
	ctx := context.Background()
	engine, err := local.Open(ctx, local.Options{Memory: true}) // or Dir: "lamps", to keep them
	if err != nil {
		panic(err)
	}
	defer engine.Close()
	lamps := registry.Of[Lamp](engine, lampStrategy{})

	ann, err := lamps.Create(ctx, &Lamp{ObjectMeta: metav1.ObjectMeta{Name: "desk"}, Color: "red"})
	fmt.Println("ann:", ann.Color, err)
	bob, err := lamps.Get(ctx, "desk")
	bob.Color = "green"
	bob, err = lamps.Replace(ctx, bob)
	fmt.Println("bob:", bob.Color, err)

	ann.Color = "blue"
	_, err = lamps.Replace(ctx, ann)
	fmt.Println("ann:", err)
	var conflict *registry.ConflictError
	if errors.As(err, &conflict) {
		why, _ := conflict.Explain(ctx)
		fmt.Println(why.Fields[0].Path, "was changed, and ann changes it too:", why.Fields[0].Contended)
	}
	// Output:
	// ann: red <nil>
	// bob: green <nil>
	// ann: Operation cannot be fulfilled on lamps "desk": the object has been modified; please apply your changes to the latest version and try again
	// .color was changed, and ann changes it too: true
}

// Update asks again about what others wrote in between, until its change lands.
func ExampleCollection_Update() {
	ctx := context.Background()
	engine, _ := local.Open(ctx, local.Options{Memory: true})
	defer engine.Close()
	lamps := registry.Of[Lamp](engine, lampStrategy{})
	lamps.Create(ctx, &Lamp{ObjectMeta: metav1.ObjectMeta{Name: "desk"}, Color: "red"})

	// Many at once, and no use is lost.
	var people sync.WaitGroup
	for range 20 {
		people.Go(func() {
			lamps.Update(ctx, "desk", func(lamp *Lamp) error { lamp.Uses++; return nil })
		})
	}
	people.Wait()
	lamp, _ := lamps.Get(ctx, "desk")
	fmt.Println(lamp.Uses)

	// What the strategy does not allow is not written.
	_, err := lamps.Update(ctx, "desk", func(lamp *Lamp) error { lamp.Color = ""; return nil })
	fmt.Println(err)

	// Somebody is always quicker: the update gives up, and says what it lost to.
	_, err = lamps.Update(ctx, "desk", func(lamp *Lamp) error {
		lamps.Update(ctx, "desk", func(lamp *Lamp) error { lamp.Uses++; return nil })
		lamp.Uses = 0
		return nil
	}, registry.UpdateOptions{Attempts: 3})
	var lost *registry.LostError
	if errors.As(err, &lost) {
		why, _ := lost.Conflict.Explain(ctx)
		fmt.Println(lost.Attempts, why.Fields[0].Path)
	}
	// Output:
	// 20
	// Lamp "desk" is invalid: color: Required value: lamps shine
	// 3 .uses
}

// A watch is a range over what is there, and then over what changes.
func ExampleCollection_Watch() {
	ctx := context.Background()
	engine, _ := local.Open(ctx, local.Options{Memory: true})
	defer engine.Close()
	lamps := registry.Of[Lamp](engine, lampStrategy{})
	lamps.Create(ctx, &Lamp{ObjectMeta: metav1.ObjectMeta{Name: "desk"}, Color: "red"})

	go lamps.Update(ctx, "desk", func(lamp *Lamp) error { lamp.Color = "blue"; return nil })
	for event, err := range lamps.Watch(ctx) {
		if err != nil {
			panic(err)
		}
		if event.Object.Color == "blue" {
			fmt.Println(event.Object.Name, "is blue")
			break
		}
	}
	// Output: desk is blue
}

// An account of which nobody may take more than there is.
type Account struct {
	metav1.ObjectMeta `json:"metadata"`
	Balance           int `json:"balance"`
}

type accountStrategy struct{ registry.DefaultFor[Account] }

func (accountStrategy) Validate(_ context.Context, a, _ *Account) field.ErrorList {
	if a.Balance < 0 {
		return field.ErrorList{field.Invalid(field.NewPath("balance"), a.Balance, "there is no credit")}
	}
	return nil
}

// Several objects, of several kinds, change together or not at all. Whoever stands in the way is named.
func ExampleTransact() {
	ctx := context.Background()
	engine, _ := local.Open(ctx, local.Options{Memory: true})
	defer engine.Close()
	accounts := registry.Of[Account](engine, accountStrategy{})
	lamps := registry.Of[Lamp](engine, lampStrategy{})
	accounts.Create(ctx, &Account{ObjectMeta: metav1.ObjectMeta{Name: "ann"}, Balance: 50})
	accounts.Create(ctx, &Account{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})

	add := func(n int) func(*Account) error {
		return func(a *Account) error { a.Balance += n; return nil }
	}
	buy := func(name string) error {
		_, err := registry.Transact(ctx,
			lamps.Creates(&Lamp{ObjectMeta: metav1.ObjectMeta{Name: name}, Color: "red"}),
			accounts.Updates("shop", add(30)),
			accounts.Updates("ann", add(-30)))
		return err
	}
	fmt.Println(buy("desk"))
	fmt.Println(buy("shelf"))

	shop, _ := accounts.Get(ctx, "shop")
	all, _ := lamps.List(ctx)
	fmt.Println(len(all.Items), "lamp for", shop.Balance)
	// Output:
	// <nil>
	// member 2 of the transaction, update accounts "ann": Account "ann" is invalid: balance: Invalid value: -10: there is no credit
	// 1 lamp for 30
}

// The history of an object says who changed what, and what it was.
func ExampleCollection_History() {
	ctx := context.Background()
	engine, _ := local.Open(ctx, local.Options{Memory: true})
	defer engine.Close()
	lamps := registry.Of[Lamp](engine, lampStrategy{})
	as := func(user string) context.Context { return storage.WithAuthor(ctx, kv.Author{User: user}) }

	red, _ := lamps.Create(as("ann"), &Lamp{ObjectMeta: metav1.ObjectMeta{Name: "desk"}, Color: "red"})
	lamps.Update(as("bob"), "desk", func(lamp *Lamp) error { lamp.Color = "blue"; return nil })
	lamps.Delete(as("eve"), "desk")

	for step, err := range lamps.History(ctx, "desk") {
		if err != nil {
			panic(err)
		}
		lamp, _ := step.Object()
		fmt.Println(step.Type, "by", step.Author.User, step.Fields, lamp.Color)
	}
	was, _ := lamps.At(ctx, "desk", red.ResourceVersion)
	fmt.Println("it was", was.Color)
	// Output:
	// DELETED by eve [] blue
	// MODIFIED by bob [.color] blue
	// ADDED by ann [] red
	// it was red
}
