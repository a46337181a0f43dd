package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// root is the folder of the tree, seen from this package's.
const root = "../.."

// A file is one Go file of the tree.
type file struct {
	path string // from the root, with slashes
	ast  *ast.File
	set  *token.FileSet
}

func (f file) folder() string { return path.Dir(f.path) }
func (f file) test() bool     { return strings.HasSuffix(f.path, "_test.go") }

// at is where a node is, as an editor wants it.
func (f file) at(n ast.Node) string {
	return f.path + ":" + strconv.Itoa(f.set.Position(n.Pos()).Line)
}

// imports are the paths that the file imports.
func (f file) imports() []string {
	var all []string
	for _, i := range f.ast.Imports {
		p, _ := strconv.Unquote(i.Path.Value) // the parser has seen to it
		all = append(all, p)
	}
	return all
}

// goFiles parses every Go file of both modules, once.
var goFiles = sync.OnceValues(func() ([]file, error) {
	set := token.NewFileSet()
	var all []file
	err := walk(func(p string) error {
		if path.Ext(p) != ".go" {
			return nil
		}
		f, err := parser.ParseFile(set, filepath.Join(root, p), nil, parser.ParseComments|parser.SkipObjectResolution)
		all = append(all, file{p, f, set})
		return err
	})
	return all, err
})

func files(t *testing.T) []file {
	t.Helper()
	all, err := goFiles()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// walk visits the files that people write. What tools and servers leave behind is passed over.
func walk(visit func(string) error) error {
	return fs.WalkDir(os.DirFS(root), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", "pawl-data"}, d.Name()):
			return fs.SkipDir
		case d.Type().IsRegular():
			return visit(p)
		}
		return nil
	})
}
