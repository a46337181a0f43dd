package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedTest is a test in a table of documentation, and the folder of its package if that is named.
var namedTest = regexp.MustCompile("(?:([a-z/]+) )?`(Test\\w+)`")

// The tests that docs/conflicts.md names for the steps of an update are there.
func TestTheStepsOfAnUpdateHaveTheirTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/conflicts.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n## Where each step lives\n")
	if !found {
		t.Fatal("docs/conflicts.md does not say where each step lives")
	}
	sources := NewSources(root)
	steps := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "-") || strings.Contains(cells[1], "step of the reference") {
			continue
		}
		steps++
		tests := namedTest.FindAllStringSubmatch(cells[3], -1)
		if len(tests) == 0 {
			t.Errorf("%s has no test", strings.TrimSpace(cells[1]))
		}
		for _, m := range tests {
			folder := m[1]
			switch folder {
			case "":
				folder = "registry"
			case "pawl":
				folder = "."
			}
			if err := sources.Missing(Test{Folder: folder, Func: m[2]}); err != nil {
				t.Errorf("%s: %v", strings.TrimSpace(cells[1]), err)
			}
		}
	}
	if steps < 14 {
		t.Errorf("there are %d steps; an update has more", steps)
	}
}
