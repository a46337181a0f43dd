package conversation

import (
	"crypto/sha256"
	"encoding/hex"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The recordings are what was recorded, byte for byte: SHA256SUMS was made from
// the files as they came, and whoever changes a recording has to change it too.
func TestTheRecordingsAreUntouched(t *testing.T) {
	sums, err := os.ReadFile("testdata/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for line := range strings.Lines(string(sums)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		listed[name] = sum
	}
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range append(files, "testdata/README.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(text)
		if name := filepath.Base(file); hex.EncodeToString(sum[:]) != listed[name] {
			t.Errorf("%s is not what was recorded: restore it", file)
		}
		delete(listed, filepath.Base(file))
	}
	for name := range listed {
		t.Errorf("testdata/%s is missing", name)
	}
}

// writers are the functions of package os that can change a file.
var writers = []string{
	"WriteFile", "Create", "CreateTemp", "OpenFile", "OpenRoot", "Rename", "Remove", "RemoveAll", "Truncate",
	"Link", "Symlink", "CopyFS", "StartProcess", "OpenInRoot", "Chmod",
}

// writingPackages could write behind package os.
var writingPackages = []string{"os/exec", "syscall", "io/ioutil", "unsafe", "golang.org/x/sys/unix"}

// No code here can write what a recording expects: no source file changes a file,
// except prune, which shortens the list of those that do not pass yet.
func TestNoCodeHereWritesExpectations(t *testing.T) {
	sources, _ := filepath.Glob("*.go")
	for _, source := range sources {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, source, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			if path := strings.Trim(i.Path.Value, `"`); slices.Contains(writingPackages, path) {
				t.Errorf("%s imports %s, which can write files", source, path)
			}
			if i.Path.Value == `"os"` && i.Name != nil {
				t.Errorf("%s imports os under another name, which hides what it writes", source)
			}
		}
		for _, found := range writes(file) {
			if found != `WriteFile(pendingFile)` || source != "replay_test.go" {
				t.Errorf("%s: os.%s can write an expectation", source, found)
			}
		}
	}
}

// writes lists the uses of writers, with the first argument if it is a name.
func writes(file *ast.File) (found []string) {
	argument := map[*ast.SelectorExpr]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			if ok && len(n.Args) > 0 {
				if name, ok := n.Args[0].(*ast.Ident); ok {
					argument[f] = "(" + name.Name + ")"
				}
			}
		case *ast.SelectorExpr:
			pkg, ok := n.X.(*ast.Ident)
			if ok && pkg.Name == "os" && slices.Contains(writers, n.Sel.Name) {
				found = append(found, n.Sel.Name+argument[n])
			}
		}
		return true
	})
	return found
}
