package histories

import (
	"testing"

	"github.com/pawl-dev/pawl/kv/kvtest/broken"
)

// TestRings turns rings in stores of the usual seeds, or of the one that is given.
func TestRings(t *testing.T) {
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			if s.slow && !heavy() {
				t.Skip("say PAWL_HEAVY=1 or -duration")
			}
			var sum RingFigures
			open := s.open(t)
			for i := range s.runs {
				sum.Add(turn(t, plan(uint64(i+1), s.ops), open))
			}
			t.Log(sum)
		})
	}
}

// turn turns one ring, and says how to repeat it if something is wrong.
func turn(t *testing.T, p Plan, open Opener) RingFigures {
	t.Helper()
	f, problems := Ring(t, p, open)
	for _, problem := range problems {
		t.Errorf("seed %d: %s", p.Seed, problem)
	}
	if len(problems) > 0 {
		again(t, p)
	}
	return f
}

// unringed are faults that tear a ring apart, or show it torn.
var unringed = []string{
	"commits whatever the conditions are",
	"makes half of a transaction",
	"makes a transaction in two steps",
	"judges only the first condition",
	"sometimes loses an event",
	"loses in a restart what was put last",
	"acknowledges what it does not make",
}

func TestTornRingsAreFound(t *testing.T) {
	for _, name := range unringed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, f := range broken.Faults() {
				if f.Name != name {
					continue
				}
				for s := range uint64(seeds) {
					if _, problems := Ring(t, Plan{Seed: s + 1, Patience: impatience}, Broken(CutDisk, f)); len(problems) > 0 {
						t.Log(problems[0])
						return
					}
				}
				t.Fatalf("%d rings did not show it", seeds)
			}
			t.Fatal("no such fault")
		})
	}
}
