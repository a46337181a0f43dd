package rules

import (
	"fmt"
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
)

const module = "github.com/pawl-dev/pawl"

// Sources are the tests of a tree, as their source tells. It reads each package once.
type Sources struct {
	root     string
	packages map[string]*source // by folder
}

// A source is what the Go files of one package hold.
type source struct {
	tests    map[string]bool // functions that go test runs
	literals map[string]bool // strings, and the names of test data
	imports  []string        // folders of pawl's packages that its tests import
}

// NewSources returns the sources of the tree at root.
func NewSources(root string) *Sources {
	return &Sources{root: root, packages: map[string]*source{}}
}

// Missing says what of a test cannot be found, nil if all of it is there. The name of a
// subtest is found if it stands as a string in the package, or in one of pawl's that its tests
// import, since a suite is often a package of its own; or in their test data, as the name of a
// file or as a title.
func (s *Sources) Missing(t Test) error {
	p, err := s.load(t.Folder)
	if err != nil {
		return fmt.Errorf("%v: %w", t, err)
	}
	if !p.tests[t.Func] {
		return fmt.Errorf("%v: there is no function %s in %s", t, t.Func, t.Folder)
	}
	for _, name := range t.Sub {
		found, err := s.holds(p, name)
		if err != nil {
			return fmt.Errorf("%v: %w", t, err)
		}
		if !found {
			return fmt.Errorf("%v: no string in %s, or in what its tests import, is %q", t, t.Folder, name)
		}
	}
	return nil
}

func (s *Sources) holds(p *source, name string) (bool, error) {
	if p.literals[name] {
		return true, nil
	}
	for _, folder := range p.imports {
		other, err := s.load(folder)
		if err != nil {
			return false, err
		}
		if other.literals[name] {
			return true, nil
		}
	}
	return false, nil
}

func (s *Sources) load(folder string) (*source, error) {
	if p, ok := s.packages[folder]; ok {
		return p, nil
	}
	p := &source{tests: map[string]bool{}, literals: map[string]bool{}}
	dir := filepath.Join(s.root, filepath.FromSlash(folder))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if path.Ext(e.Name()) != ".go" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.read(f, strings.HasSuffix(e.Name(), "_test.go"))
	}
	if err := p.readData(filepath.Join(dir, "testdata")); err != nil {
		return nil, err
	}
	s.packages[folder] = p
	return p, nil
}

// read takes in one Go file.
func (p *source) read(f *ast.File, test bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if test && n.Recv == nil {
				p.tests[n.Name.Name] = true
			}
		case *ast.ImportSpec:
			if folder, ok := folderOf(n.Path.Value); ok && test && !slices.Contains(p.imports, folder) {
				p.imports = append(p.imports, folder)
			}
		case *ast.BasicLit:
			if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				p.literals[s] = true
			}
		}
		return true
	})
}

// folderOf is the folder of an imported package of pawl's.
func folderOf(quoted string) (string, bool) {
	imported, err := strconv.Unquote(quoted)
	if err != nil {
		return "", false
	}
	return strings.CutPrefix(imported, module+"/")
}

// readData takes in the names of test data, and in recordings the topics and titles.
func (p *source) readData(dir string) error {
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		p.literals[strings.TrimSuffix(d.Name(), path.Ext(d.Name()))] = true
		if path.Ext(d.Name()) != ".yaml" {
			return nil
		}
		text, err := os.ReadFile(file)
		for line := range strings.Lines(string(text)) {
			if title, ok := strings.CutPrefix(line, "- title: "); ok {
				title = strings.TrimSpace(title)
				if plain, err := strconv.Unquote(title); err == nil {
					title = plain
				}
				p.literals[title] = true
			}
		}
		return err
	})
	if os.IsNotExist(err) {
		return nil
	}
	return err
}
