package kubectl

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/pawltest"
)

var update = flag.Bool("update", false, "rewrite what scripts compare with to what came")

// TestScripts runs each script against a server of its own. With -update the text
// that a script compares with is rewritten to what came; read the diff before you commit it.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		Setup:              setup,
		RequireUniqueNames: true,
		UpdateScripts:      *update,
		Condition:          condition,
	})
}

// condition knows linked: kubectl is the one in this binary, and not what $KUBECTL names.
func condition(name string) (bool, error) {
	if name == "linked" {
		return os.Getenv("KUBECTL") == "", nil
	}
	return false, fmt.Errorf("no condition is called %s", name)
}

// setup starts the server of one script. It ends with the script's test; kubectl finds it
// in the kubeconfig that the server writes for its administrator.
func setup(e *testscript.Env) error {
	home := filepath.Join(e.WorkDir, ".home")
	kubeconfig := filepath.Join(home, "kubeconfig")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	srv := pawltest.Start(e.T().(testing.TB), pawl.Config{Kubeconfig: kubeconfig})
	e.Setenv("HOME", home)
	e.Setenv("KUBECONFIG", kubeconfig)
	e.Setenv("SERVER", srv.URL())
	// The definitions and samples of real projects, PROJECT/crds and PROJECT/valid.
	projects, err := filepath.Abs(filepath.Join("..", "realcrds", "testdata"))
	if err != nil {
		return err
	}
	e.Setenv("PROJECTS", projects)
	if path := os.Getenv("KUBECTL"); path != "" {
		// A script runs in a folder of its own, with an environment of its own.
		path, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		e.Setenv("KUBECTL", path)
	}
	return nil
}
