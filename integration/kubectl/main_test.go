package kubectl

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
)

// TestMain makes this test binary kubectl as well: a script's kubectl is the binary itself,
// run once more, in a process of its own with the script's environment.
func TestMain(m *testing.M) {
	testscript.Main(leakless{m}, map[string]func(){"kubectl": kubectl})
}

// A leakless is the tests of a package, which must leave no goroutine behind.
type leakless struct{ *testing.M }

func (l leakless) Run() int {
	code := l.M.Run()
	if code != 0 {
		return code
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "goroutines are left after all servers have stopped:", err)
		return 1
	}
	return 0
}

// kubectl is kubectl: the one that is linked in, or the one that $KUBECTL names.
func kubectl() {
	if path := os.Getenv("KUBECTL"); path != "" {
		os.Exit(run(path))
	}
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		cmdutil.CheckErr(err) // prints it, and exits as kubectl does
	}
	os.Exit(0)
}

// run runs another program in place of this one, and returns its exit code.
func run(path string) int {
	c := exec.Command(path, os.Args[1:]...)
	c.Env = append(os.Environ(), "KUBECTL=") // in case that one asks as well
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := c.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "KUBECTL:", err)
		return 1
	}
	return 0
}
