package lint

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestGoInTheReadmeIsGoOfTheTree sees that what README shows as Go stands in a Go file, in code that is
// compiled or in the doc of a package: else nobody would notice when it stopped being true.
func TestGoInTheReadmeIsGoOfTheTree(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var sources []string
	err = walk(func(p string) error {
		if path.Ext(p) != ".go" {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, p))
		sources = append(sources, bare(string(text)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	blocks := goBlocks(string(readme))
	for _, block := range blocks {
		if !slices.ContainsFunc(sources, func(s string) bool { return strings.Contains(s, bare(block)) }) {
			t.Errorf("README shows this, and no Go file has it:\n%s", block)
		}
	}
	if len(blocks) < 5 {
		t.Errorf("only %d blocks of Go were found in README", len(blocks))
	}
}

// goBlocks are what stands between ```go and ```.
func goBlocks(markdown string) []string {
	var all []string
	for _, rest := range strings.Split(markdown, "```go\n")[1:] {
		block, _, _ := strings.Cut(rest, "```")
		all = append(all, block)
	}
	return all
}

// bare is Go without what depends on where it stands: indentation, and the marks of a comment.
func bare(source string) string {
	var b strings.Builder
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		if comment, ok := strings.CutPrefix(line, "//"); ok {
			line = strings.TrimSpace(comment)
		}
		b.WriteString("\n" + line)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func TestBareGo(t *testing.T) {
	in := bare("\tif x {\n\t\ty() // z\n\t}\n\nlast\n")
	for _, c := range []struct {
		name, block string
		found       bool
	}{
		{"as it stands", "if x {\n\ty() // z\n}\n", true},
		{"in a comment", "// if x {\n//\ty() // z\n", true},
		{"with something left out", "if x {\n}\n", false},
		{"a part of a line", "y()\n", false},
		{"a beginning of a line", "las\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Contains(in, bare(c.block)); got != c.found {
				t.Errorf("found %v, want %v", got, c.found)
			}
		})
	}
}

// modulesMax is how many modules the smallest program that keeps objects may be made of, pawl's own
// included. README and docs/measured.md say how many there are.
const modulesMax = 22

func TestTheSmallestProgramIsSmall(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./examples/store")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	modules = slices.Compact(modules)
	if len(modules) > modulesMax {
		t.Errorf("examples/store is of %d modules, and may be of %d:\n%s", len(modules), modulesMax, strings.Join(modules, "\n"))
	}
	for _, m := range modules {
		if m == "k8s.io/api" || m == "k8s.io/client-go" {
			t.Errorf("examples/store needs %s: who keeps objects of their own needs no others", m)
		}
	}
}
