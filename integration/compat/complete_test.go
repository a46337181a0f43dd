package compat

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// reference is the package whose tests these are.
const reference = "k8s.io/apiserver/pkg/storage/testing"

// skipped are functions of the reference that are not run, each with the reason. There are fewer than
// three, and a maintainer of the reference would accept each.
var skipped = map[string]string{}

// TestNothingOfTheReferenceIsLeftOut reads the source of the package that we link, and sees that each
// of its exported functions that runs a test or a benchmark is called here: a test by the trial of
// its name, which TestReference runs.
func TestNothingOfTheReferenceIsLeftOut(t *testing.T) {
	if len(skipped) >= 3 {
		t.Errorf("%d functions are skipped, and at most two may be", len(skipped))
	}
	pkg, err := build.Import(reference, ".", build.FindOnly)
	if err != nil {
		t.Fatal(err)
	}
	runners := runnersIn(t, parse(t, pkg.Dir, func(name string) bool { return !strings.HasSuffix(name, "_test.go") }))
	if len(runners) < 50 {
		t.Fatalf("only %d functions found in %s: %v", len(runners), pkg.Dir, runners)
	}
	here := parse(t, ".", func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	run := callsIn(here)
	for _, name := range slices.Sorted(maps.Keys(runners)) {
		switch why := skipped[name]; {
		case why != "" && run[name]:
			t.Errorf("%s is run, and is said to be skipped", name)
		case why == "" && !run[name]:
			t.Errorf("%s.%s is not run: write a trial of that name, or say in skipped why not", reference, name)
		}
	}
	for name := range skipped {
		if !runners[name] {
			t.Errorf("%s is skipped, and the reference has no such function", name)
		}
	}
}

func parse(t *testing.T, dir string, wanted func(name string) bool) []*ast.File {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no source in %s: %v", dir, err)
	}
	var files []*ast.File
	for _, name := range names {
		if !wanted(filepath.Base(name)) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// runnersIn returns the exported functions that take a test or a benchmark and begin with Run.
func runnersIn(t *testing.T, files []*ast.File) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Run") && takesTest(fn.Type) {
				found[fn.Name.Name] = true
			}
		}
	}
	return found
}

// takesTest reports whether a parameter is of a type of package testing.
func takesTest(fn *ast.FuncType) bool {
	return slices.ContainsFunc(fn.Params.List, func(p *ast.Field) bool {
		typ := p.Type
		if star, ok := typ.(*ast.StarExpr); ok {
			typ = star.X
		}
		sel, ok := typ.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		x, ok := sel.X.(*ast.Ident)
		return ok && x.Name == "testing"
	})
}

// callsIn returns the functions of the reference that are called by a trial of their name, or by a
// benchmark.
func callsIn(files []*ast.File) map[string]bool {
	called := map[string]bool{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit: // a trial: its name, how it is run, its function
				if len(n.Elts) != 3 {
					break
				}
				name, ok := n.Elts[0].(*ast.BasicLit)
				if !ok || name.Kind != token.STRING {
					break
				}
				of, _, _ := strings.Cut(strings.Trim(name.Value, `"`), "/")
				called[of] = called[of] || calls(n.Elts[2])[of]
			case *ast.FuncDecl:
				if strings.HasPrefix(n.Name.Name, "Benchmark") {
					maps.Copy(called, calls(n.Body))
				}
			}
			return true
		})
	}
	return called
}

// calls returns the functions of the reference that are called in a piece of code.
func calls(n ast.Node) map[string]bool {
	found := map[string]bool{}
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "storagetesting" {
				found[sel.Sel.Name] = true
			}
		}
		return true
	})
	return found
}

// What counts as a function that runs a test, and as a trial that calls one.
func TestHowRunnersAndTrialsAreFound(t *testing.T) {
	file := func(src string) []*ast.File {
		f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package p\n"+src, 0)
		if err != nil {
			t.Fatal(err)
		}
		return []*ast.File{f}
	}
	for _, c := range []struct{ name, src, want string }{
		{"one that takes a test", `func RunTestX(ctx context.Context, t *testing.T) {}`, "RunTestX"},
		{"one that takes either", `func RunY(t testing.TB) {}`, "RunY"},
		{"one that takes neither", `func RunZ(t string, x other.T) {}`, ""},
		{"one of another name", `func TestX(t *testing.T) {}`, ""},
	} {
		if got := strings.Join(slices.Sorted(maps.Keys(runnersIn(t, file(c.src)))), " "); got != c.want {
			t.Errorf("%s: found %q, want %q", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		name, src string
		want      bool
	}{
		{"a trial that calls it", `var x = []trial{{"RunTestX", beside, func() { storagetesting.RunTestX() }}}`, true},
		{"a trial with a variant", `var x = []trial{{"RunTestX/b", beside, func() { storagetesting.RunTestX() }}}`, true},
		{"a trial that calls another", `var x = []trial{{"RunTestX", beside, func() { storagetesting.RunTestY() }}}`, false},
		{"a benchmark", `func BenchmarkX() { storagetesting.RunTestX() }`, true},
		{"a function that nothing runs", `func x() { storagetesting.RunTestX() }`, false},
	} {
		if got := callsIn(file(c.src))["RunTestX"]; got != c.want {
			t.Errorf("%s: found %t, want %t", c.name, got, c.want)
		}
	}
}
