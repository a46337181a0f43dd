package histories

import (
	"slices"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/kv/kvtest/broken"
)

// unseen are the faults that no history shows: they lie in what clients do not do, or cannot
// tell. The tests of package kvtest find them.
var unseen = []string{
	"answers with no revision if nothing is asked",
	"takes what breaks the rules",
	"refuses what is large",
	"keeps the caller's slice",
	"takes an empty value for none",
	"loses the slot of what was just written",
	"says what it likes of a revision that does not come",
	"watches what cannot be named",
	"forgets what is to come",
	"lets only some keys go",
	"forgets history after it was closed",
	"lets reads wait on when it is closed",
	"takes writes, it says, after it was closed",
	"takes no writes, it says, from the beginning",
	"cannot be closed twice",
	"never tires of waiting",
	"wakes everybody all the time",
}

// orderless are the faults after which there is no order of what was answered. Porcupine
// alone must find these.
var orderless = []string{
	"commits whatever the conditions are",
	"judges only the first condition",
	"takes what exists for absent if it must be",
	"takes what was deleted for what it was",
	"refuses what holds",
	"names the last key in a conflict",
	"makes what it refuses",
	"judges nothing if nothing is to change",
	"makes half of a transaction",
	"makes a transaction in two steps",
	"acknowledges what it does not make",
	"refuses what it makes",
	"makes a commit twice",
	"answers with an earlier revision",
	"answers a refusal before what it lost to can be read",
	"says that it deletes what is absent",
	"sometimes reads a state that is not the latest",
	"leaves out the last of a list",
	"begins a list after the key that is named",
	"loses in a restart what was put last",
	"forgets in a restart what is to expire",
	"begins anew with the revisions after a restart",
}

// seeds is how many runs a fault has to show itself in. Most do in the first.
const seeds = 40

// impatience is how long what must come is waited for in a store that may be broken.
const impatience = time.Second

func TestBrokenStoresAreFound(t *testing.T) {
	var names []string
	for _, f := range broken.Faults() {
		names = append(names, f.Name)
		if slices.Contains(unseen, f.Name) {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			order := slices.Contains(orderless, f.Name)
			for s := range uint64(seeds) {
				res := Check(t, Plan{Seed: s + 1, Patience: impatience}, Broken(CutDisk, f), nil)
				if len(res.Order) > 0 || !order && len(res.Problems()) > 0 {
					return
				}
			}
			t.Errorf("%d runs did not show it", seeds)
		})
	}
	for _, name := range slices.Concat(unseen, orderless) {
		if !slices.Contains(names, name) {
			t.Errorf("no such fault: %q", name)
		}
	}
}
