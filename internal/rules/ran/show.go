package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/rules"
)

// A show turns the lines of a run into what a person wants to read. What a test says is kept
// until it is known whether it failed.
type show struct {
	out    io.Writer
	said   map[string]map[string][]string // by package and test
	failed bool
}

func newShow(out io.Writer) *show { return &show{out: out, said: map[string]map[string][]string{}} }

func (s *show) line(l rules.Line) {
	switch l.Action {
	case "build-output":
		fmt.Fprint(s.out, l.Output)
	case "build-fail":
		s.failed = true
	case "output":
		s.output(l)
	case "pass", "skip":
		delete(s.said[l.Package], l.Test)
	case "fail":
		s.failed = true
		s.fail(l)
	}
}

func (s *show) output(l rules.Line) {
	if l.Test == "" {
		if l.Output != "PASS\n" {
			fmt.Fprint(s.out, l.Output)
		}
		return
	}
	if s.said[l.Package] == nil {
		s.said[l.Package] = map[string][]string{}
	}
	s.said[l.Package][l.Test] = append(s.said[l.Package][l.Test], l.Output)
}

// fail shows what a test said that failed. With a package that failed it shows what its tests
// said that never ended: one of them is where it broke down.
func (s *show) fail(l rules.Line) {
	if l.Test != "" {
		s.tell(l.Package, l.Test)
		return
	}
	var unended []string
	for test := range s.said[l.Package] {
		unended = append(unended, test)
	}
	slices.Sort(unended)
	for _, test := range unended {
		s.tell(l.Package, test)
	}
	delete(s.said, l.Package)
}

// tell shows what a test said, without the marks of its beginning and of its pauses.
func (s *show) tell(pkg, test string) {
	for _, text := range s.said[pkg][test] {
		if !strings.HasPrefix(text, "=== ") {
			fmt.Fprint(s.out, text)
		}
	}
	delete(s.said[pkg], test)
}
