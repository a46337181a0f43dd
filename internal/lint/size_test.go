package lint

import (
	"go/ast"
	"testing"
)

// linesMax is how long a function may be. What is longer holds a decision that wants a name
// of its own.
const linesMax = 70

// long are the functions that are longer, and how long each may be. The list only shrinks.
var long = map[string]int{}

// TestNothingGrowsBig holds functions to a length that can be read in one go.
func TestNothingGrowsBig(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range files(t) {
		if f.test() || ast.IsGenerated(f.ast) {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			lines := f.set.Position(fn.End()).Line - f.set.Position(fn.Pos()).Line + 1
			name := f.folder() + "." + nameOf(fn)
			may := max(linesMax, long[name])
			if lines > may {
				t.Errorf("%s: %s has %d lines, and may have %d: look for the decision inside it", f.at(fn), name, lines, may)
			}
			if most, listed := long[name]; listed {
				seen[name] = true
				if lines < most {
					t.Errorf("%s has %d lines now: write that in the list in place of %d, or strike it off at %d", name, lines, most, linesMax)
				}
			}
		}
	}
	for name := range long {
		if !seen[name] {
			t.Errorf("%s is gone: strike it off the list", name)
		}
	}
}

// nameOf is a function's name, with its receiver's type.
func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	of := fn.Recv.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}
