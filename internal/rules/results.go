package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"unicode"
)

// Results are what became of each test of a run: pass, fail or skip, by package and name.
type Results map[string]map[string]string

// A Line is one line of what go test -json writes.
type Line struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// Read calls each with every line of what go test -json wrote to r, and returns the results.
func Read(r io.Reader, each func(Line)) (Results, error) {
	got := Results{}
	dec := json.NewDecoder(r)
	for {
		var l Line
		switch err := dec.Decode(&l); {
		case errors.Is(err, io.EOF):
			return got, nil
		case err != nil:
			return got, fmt.Errorf("this is not what go test -json writes: %w", err)
		}
		switch l.Action {
		case "pass", "fail", "skip":
			if l.Test != "" {
				if got[l.Package] == nil {
					got[l.Package] = map[string]string{}
				}
				got[l.Package][l.Test] = l.Action
			}
		}
		each(l)
	}
}

// Unproved says why a test proves nothing in this run, nil if it ran and passed.
func (r Results) Unproved(t Test) error {
	switch action, ran := r[packageIn(t.Folder)][t.name()]; {
	case !ran:
		return fmt.Errorf("%v: did not run", t)
	case action == "skip":
		return fmt.Errorf("%v: was skipped", t)
	case action != "pass":
		return fmt.Errorf("%v: did not pass", t)
	}
	return nil
}

// Ran reports whether any test of the package in a folder ran.
func (r Results) Ran(folder string) bool { return len(r[packageIn(folder)]) > 0 }

// Count returns how many tests ran, subtests among them.
func (r Results) Count() int {
	n := 0
	for _, tests := range r {
		n += len(tests)
	}
	return n
}

func packageIn(folder string) string { return path.Join(module, folder) }

// name is the name of a test as go test tells it.
func (t Test) name() string {
	name := t.Func
	for _, s := range t.Sub {
		name += "/" + told(s)
	}
	return name
}

// told is the name of a subtest as go test tells it: without white space, and with what cannot
// be printed escaped.
func told(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case unicode.IsSpace(r):
			b.WriteByte('_')
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}
