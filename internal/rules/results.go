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

// Results are what became of each test of a run.
type Results map[string]string // by package and name, as [Test.key] makes them: pass, fail or skip

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
				got[l.Package+" "+l.Test] = l.Action
			}
		}
		each(l)
	}
}

// Unproved says why a test proves nothing in this run, nil if it ran and passed.
func (r Results) Unproved(t Test) error {
	switch action, ran := r[t.key()]; {
	case !ran:
		return fmt.Errorf("%v: did not run", t)
	case action == "skip":
		return fmt.Errorf("%v: was skipped", t)
	case action != "pass":
		return fmt.Errorf("%v: did not pass", t)
	}
	return nil
}

// key is the package and the name of a test as go test tells them.
func (t Test) key() string {
	name := t.Func
	for _, s := range t.Sub {
		name += "/" + told(s)
	}
	return path.Join(module, t.Folder) + " " + name
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
