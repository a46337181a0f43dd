package local_test

import (
	"context"
	"fmt"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
)

// Two writers have read the same version. The first to write wins; the other is told so.
func Example() {
	ctx := context.Background()
	store, err := local.Open(ctx, local.Options{Memory: true})
	if err != nil {
		panic(err)
	}
	defer store.Close()

	const color = "default/core/configmaps/ns/color"
	write := func(who, value string, saw kv.Revision) kv.Revision {
		done, err := store.Commit(ctx, kv.Txn{
			Author:     kv.Author{User: who},
			Conditions: []kv.Condition{{Key: color, At: saw}},
			Ops:        []kv.Op{kv.Put(color, []byte(value))},
		})
		if err != nil {
			fmt.Println(err)
		}
		return done.Revision
	}
	seen := write("ada", "red", kv.Absent)
	write("bob", "blue", seen)
	write("ada", "green", seen)

	// What happened is still known.
	w, err := store.Watch(color, 1)
	if err != nil {
		panic(err)
	}
	defer w.Stop()
	for {
		e, ok, err := w.Next()
		if err != nil || !ok {
			break // Wait would tell when there is more
		}
		fmt.Printf("%v: %s made it %s\n", e.Version.Revision, e.Version.By().User, e.Version.Value)
	}
	// Output:
	// kv: commit: conflict on default/core/configmaps/ns/color: caller saw revision 2, now 3
	// 2: ada made it red
	// 3: bob made it blue
}
