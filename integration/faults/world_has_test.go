package faults

import (
	"path"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pawl-dev/pawl/integration/cutdisk"
	"github.com/pawl-dev/pawl/kv/local"
)

// What the faults are tried on has everything in it that happens to a store, in its first half, too.
func TestTheWorkloadHasEverything(t *testing.T) {
	for _, seed := range seeds() {
		for _, n := range []int{steps(), steps() / 2} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed, cutdisk.New())
				had := map[string]int{}
				var first int // the operation that removes the first segment of the store
				w.breaks(func(op cutdisk.Op) error {
					switch removes := op.Kind == cutdisk.Remove && path.Ext(op.Name) == ".seg"; {
					case removes && path.Base(op.Name) == "0000000000000002.seg":
						first = op.Number
					case removes && first > 0 && op.Number-first <= 3:
						had["removed with the first"]++
					}
					had[op.Kind.String()+" "+strings.TrimPrefix(path.Ext(op.Name), ".")]++
					return nil
				})
				w.live(n)
				sizes, expired := 0, 0
				for _, c := range w.m.commits {
					if c.author == local.Expirer {
						expired++
					}
					for _, ch := range c.changes {
						sizes = max(sizes, len(ch.value))
					}
				}
				had["commits"], had["expired"] = len(w.m.commits), expired
				had["refused"] = w.refused
				had["compacted"] = int(w.m.forgotten - 1)
				had["opened"] = w.opened
				had["in groups"] = len(w.m.commits) - had["write seg"] + had["create seg"]
				t.Logf("seed %d, %d steps: %v, the largest value has %d bytes", seed, n, had, sizes)
				for _, what := range []string{
					"create seg", "remove seg", "rename tmp", "create tmp", "remove snap", "write seg", "sync seg", "sync dir ", "reserve seg", "truncate seg",
					"commits", "expired", "refused", "compacted",
				} {
					if had[what] < 2 {
						t.Errorf("%d times: %s", had[what], what)
					}
				}
				if seed == seeds()[0] && had["removed with the first"] == 0 {
					t.Error("no segment is removed together with the store's first")
				}
				if w.opened < 2 || sizes < 4096 || had["in groups"] < 1 {
					t.Errorf("opened %d times, largest value %d, %d commits in groups", w.opened, sizes, had["in groups"])
				}
			})
		}
	}
}
