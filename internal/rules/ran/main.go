// Command ran shows a run of tests, and says whether it proved the rules of docs/spec.
//
//	go test -json work | go run ./internal/rules/ran
//
// It shows what go test would show without -json: a line for each package, and everything that
// a test said which failed. At the end it looks for each test that a file of proofs names. One that
// did not run, was skipped or did not pass proves nothing: it is named, and the command fails,
// as it does if any test failed.
package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/pawl-dev/pawl/internal/rules"
)

func main() { os.Exit(run(os.Stdin, os.Stdout, os.Stderr, ".")) }

// run does everything, with the tree at root, and returns the status to exit with.
func run(in io.Reader, out, errs io.Writer, root string) int {
	show := newShow(out)
	results, err := rules.Read(in, show.line)
	if err != nil {
		fmt.Fprintln(errs, "ran:", err)
		return 1
	}
	specs, err := rules.Load(root)
	if err != nil {
		fmt.Fprintln(errs, "ran:", err)
		return 1
	}
	tests, unproved := map[string]rules.Test{}, 0
	for _, p := range specs {
		for _, t := range p.Tests() {
			tests[t.String()] = t
		}
	}
	idle := map[string]int{} // tests that rules rest on, by the folder of a package that ran none
	for _, t := range sorted(tests) {
		err := results.Unproved(t)
		if err == nil {
			continue
		}
		unproved++
		if !results.Ran(t.Folder) {
			idle[t.Folder]++
			continue
		}
		fmt.Fprintln(errs, "ran: a rule rests on", err)
	}
	for _, folder := range slices.Sorted(maps.Keys(idle)) {
		fmt.Fprintf(errs, "ran: no test of %s ran, and rules rest on %d of them\n", folder, idle[folder])
	}
	fmt.Fprintf(out, "%d tests ran; %d stand for rules of docs/spec, and %d of those did not pass\n", results.Count(), len(tests), unproved)
	if unproved > 0 || show.failed {
		return 1
	}
	return 0
}

func sorted(tests map[string]rules.Test) []rules.Test {
	all := make([]rules.Test, 0, len(tests))
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		all = append(all, tests[name])
	}
	return all
}
