package lint

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/pawl-dev/pawl"

// layers are the layers of pawl from the top down, each with the folders that belong to it. A
// package may import what is below it, and its own folder's packages; nothing above it, and
// nothing beside it.
var layers = [][]string{
	{"cmd/pawl", "examples"},
	{"pawltest"},
	{"."},
	{"internal/server"},
	{"internal/controller"},
	{"internal/admission", "internal/auth", "internal/pki"},
	{"internal/resource"},
	{"internal/ownership"},
	{"registry", "compat"},
	{"storage"},
	{"kv"},
	{"internal/metadata", "internal/objectjson", "internal/patch", "internal/table"}, // know forms, and nothing of pawl
	{"internal/table"}, // knows only types of objects
}

// aside are folders that belong to no layer: the tools of tests. Only tests import them.
var aside = []string{"internal/lint", "internal/conversation", "internal/rules", "internal/tally", "integration"}

// within says whether a folder is another or inside it.
func within(folder, outer string) bool {
	return folder == outer || outer != "." && strings.HasPrefix(folder, outer+"/")
}

// layerOf is the layer and the entry in it that a folder belongs to.
func layerOf(folder string) (layer int, entry string, ok bool) {
	for i, entries := range layers {
		for _, e := range entries {
			if within(folder, e) {
				return i, e, true
			}
		}
	}
	return 0, "", false
}

func isAside(folder string) bool {
	return slices.ContainsFunc(aside, func(a string) bool { return within(folder, a) })
}

// local is the folder of a package of the root module.
func local(imported string) (folder string, ok bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

// TestImportsPointDown holds the arrows between layers to one direction.
func TestImportsPointDown(t *testing.T) {
	for _, f := range files(t) {
		if isAside(f.folder()) {
			continue
		}
		if _, _, ok := layerOf(f.folder()); !ok {
			t.Errorf("%s belongs to no layer: give its folder a place in the table of this test", f.path)
			continue
		}
		for _, imported := range f.imports() {
			if to, ok := local(imported); ok {
				if why := mayNot(f.folder(), to, f.test()); why != "" {
					t.Errorf("%s imports %s: %s", f.path, to, why)
				}
			}
		}
	}
}

// mayNot says why a package in one folder may not import the one in another; "" if it may.
func mayNot(from, to string, test bool) string {
	switch upper, above, _ := layerOf(from); {
	case isAside(to) && !test:
		return "that one is a tool of tests, and products must not carry it"
	case isAside(to):
		return ""
	default:
		lower, below, ok := layerOf(to)
		switch {
		case !ok:
			return "that one belongs to no layer: give its folder a place in the table of this test"
		case above == below, upper < lower, test && onTop(to):
			return ""
		case upper == lower:
			return above + " and " + below + " stand side by side and do not know each other: what one needs of the other is given to it, by the root package"
		}
		return above + " is below " + below + ", and arrows only point down: what a lower layer needs from above is given to it as a small interface, by the root package"
	}
}

// onTop says whether a folder holds whole servers, which tests of any layer may start.
func onTop(folder string) bool { return folder == "pawltest" || folder == "." }

func TestArrowsOfTheTable(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to string
		test     bool
		refused  bool
	}{
		{"the root wires everything", ".", "kv/local", false, false},
		{"an engine knows what engines are", "kv/local", "kv", false, false},
		{"a store must not know of the server", "registry", "internal/server", false, true},
		{"the store's tests must not either", "registry", "internal/server", true, true},
		{"kv must not know of storage", "kv/mvcc", "storage", false, true},
		{"admission and auth do not know each other", "internal/admission", "internal/auth", false, true},
		{"the product carries no tool of tests", ".", "internal/conversation", false, true},
		{"a test may use one", ".", "internal/conversation", true, false},
		{"a test may start a server", "internal/controller", "pawltest", true, false},
		{"a package without a place is noticed", ".", "internal/misc", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if why := mayNot(c.from, c.to, c.test); (why != "") != c.refused {
				t.Errorf("from %s to %s: %q, refused should be %v", c.from, c.to, why, c.refused)
			}
		})
	}
}

// offers is the folder of what pawl offers to who builds on the reference's libraries. It knows them.
const offers = "compat"

// foreign are imports from outside that a folder must do without.
var foreign = []struct{ folder, imported, why string }{
	{"kv", "k8s.io/apimachinery", "a key-value store knows nothing of Kubernetes"},
	{"kv", "k8s.io/api", "a key-value store knows nothing of Kubernetes"},
	{"kv", "net/http", "HTTP ends at the server"},
	{"storage", "k8s.io/api", "storage knows objects and their metadata, and no resource"},
	{"storage", "k8s.io/apiextensions-apiserver", "storage knows objects and their metadata, and no resource"},
	{"storage", "net/http", "HTTP ends at the server"},
	{"registry", "k8s.io/api", "the registry knows strategies, and no resource"},
	{"registry", "k8s.io/apiextensions-apiserver", "the registry knows strategies, and no resource"},
	{"compat", "k8s.io/apiserver/pkg/registry", "it brings a server and etcd's client to whoever wants a storage.Interface"},
	{"compat", "k8s.io/apiserver/pkg/storage/etcd3", "it brings a server and etcd's client to whoever wants a storage.Interface"},
	{"compat", "k8s.io/apiserver/pkg/storage/storagebackend", "it brings a server and etcd's client to whoever wants a storage.Interface"},
	{"compat", "k8s.io/apiserver/pkg/util/flowcontrol", "it brings a server and etcd's client to whoever wants a storage.Interface"},
	{"internal/resource", "net/http", "HTTP ends at the server"},
	{".", "github.com/spf13/cobra", "flags end at the command"},
	{".", "k8s.io/apiserver/pkg/registry", "that is what pawl is"},
	{".", "k8s.io/apiserver/pkg/storage", "that is what pawl is"},
	{".", "k8s.io/apiserver/pkg/endpoints", "that is what pawl is"},
	{".", "k8s.io/kubernetes", "it needs replace lines, which break every program that imports pawl"},
}

// TestForeignImports keeps what belongs to one layer out of the others.
func TestForeignImports(t *testing.T) {
	for _, f := range files(t) {
		for _, rule := range foreign {
			covers := within(f.folder(), rule.folder) || rule.folder == "." && !within(f.folder(), "cmd") && !isAside(f.folder()) && !within(f.folder(), offers)
			if f.test() || !covers {
				continue
			}
			for _, imported := range f.imports() {
				if within(imported, rule.imported) {
					t.Errorf("%s imports %s: %s", f.path, imported, rule.why)
				}
			}
		}
	}
}

// The registry's one table turns errors into statuses, and needs the names of their codes. It
// takes nothing else of HTTP.
func TestRegistryKnowsOnlyStatusCodesOfHTTP(t *testing.T) {
	for _, f := range files(t) {
		if !within(f.folder(), "registry") || !slices.Contains(f.imports(), "net/http") {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "http" && !strings.HasPrefix(s.Sel.Name, "Status") {
					t.Errorf("%s uses http.%s: HTTP ends at the server, and the registry needs only its status codes", f.at(s), s.Sel.Name)
				}
			}
			return true
		})
	}
}
