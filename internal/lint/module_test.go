package lint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// heavy are modules that whoever imports pawl must not inherit.
var heavy = []struct{ path, why string }{
	{"helm.sh/helm", "a client"},
	{"k8s.io/helm", "a client"},
	{"k8s.io/kubectl", "a client"},
	{"sigs.k8s.io/controller-runtime", "a client"},
	{"sigs.k8s.io/kustomize", "a client"},
	{"go.etcd.io/etcd/server", "a server of its own"},
	{"go.etcd.io/etcd/tests", "a server of its own"},
	{"k8s.io/kubernetes", "it needs replace lines, which do not carry over to who imports us"},
}

// A modfile is what a go.mod says.
type modfile struct {
	requires map[string]string // the version of each module
	replaces []string
}

func readModfile(t *testing.T, name string) modfile {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return parseModfile(string(text))
}

// parseModfile reads the form that the go command writes: a directive a line, or a block.
func parseModfile(text string) modfile {
	m := modfile{requires: map[string]string{}}
	block := ""
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			continue
		case words[0] == ")":
			block = ""
			continue
		case words[len(words)-1] == "(":
			block = words[0]
			continue
		case block != "":
			words = append([]string{block}, words...)
		}
		switch {
		case words[0] == "require" && len(words) == 3:
			m.requires[words[1]] = words[2]
		case words[0] == "replace":
			m.replaces = append(m.replaces, strings.Join(words[1:], " "))
		}
	}
	return m
}

func TestParseModfile(t *testing.T) {
	m := parseModfile("module m\n\nrequire a v1 // indirect\nrequire (\n\tb v2\n\tc v3 // why\n)\nreplace d => ../d\nreplace (\n\te => f v4\n)\n")
	if len(m.requires) != 3 || m.requires["a"] != "v1" || m.requires["c"] != "v3" {
		t.Errorf("requires %v", m.requires)
	}
	if len(m.replaces) != 2 || m.replaces[1] != "e => f v4" {
		t.Errorf("replaces %q", m.replaces)
	}
}

// TestRootModuleIsLight keeps out of the root's go.mod what only tests need: every program
// that imports pawl inherits it.
func TestRootModuleIsLight(t *testing.T) {
	m := readModfile(t, "go.mod")
	for path := range m.requires {
		for _, h := range heavy {
			if within(path, h.path) {
				t.Errorf("go.mod requires %s (%s): whoever imports pawl would inherit it. What needs it belongs in the module integration", path, h.why)
			}
		}
	}
	for _, r := range m.replaces {
		t.Errorf("go.mod replaces %s: that breaks go install, and is not seen by who imports pawl", r)
	}
}

// A workspace takes the newer version of each module. Where integration asked for a newer one
// than the root does, the product's tests would run with what its users do not get.
func TestModulesAgree(t *testing.T) {
	product, clients := readModfile(t, "go.mod"), readModfile(t, "integration/go.mod")
	for path, version := range clients.requires {
		if ours, shared := product.requires[path]; shared && ours != version {
			t.Errorf("%s is %s in go.mod and %s in integration/go.mod: bring both to the same version", path, ours, version)
		}
	}
	for _, r := range clients.replaces {
		t.Errorf("integration/go.mod replaces %s: go.work joins the modules, and nothing else is replaced", r)
	}
}
