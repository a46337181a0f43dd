package rules

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Verdict says what stands for a rule.
type Verdict string

// The verdicts of a [Proof].
const (
	Proved  Verdict = "proved"  // its tests fail if pawl does not do what the rule says
	Decided Verdict = "decided" // pawl does something else, which its tests show
	Open    Verdict = "open"    // nobody has looked yet
)

// A Proof is what stands for one rule.
type Proof struct {
	Rule    string
	Verdict Verdict
	Why     string // of a decision
	Tests   []Test
	Line    int
}

// A Test is a test that stands for a rule.
type Test struct {
	Folder string   // of its package, from the root of the tree
	Func   string   // the name of the function
	Sub    []string // the names of subtests, from the outermost on
}

// String is the test as it stands in a file of proofs.
func (t Test) String() string {
	text := t.Folder + " " + t.Func
	for _, s := range t.Sub {
		text += "/" + strconv.Quote(s)
	}
	return text
}

// Proofs are what a file says of the rules of one specification.
type Proofs struct {
	Complete bool
	Proofs   []Proof
}

// Tests returns every test that is named, once.
func (p Proofs) Tests() []Test {
	var all []Test
	for _, proof := range p.Proofs {
		for _, t := range proof.Tests {
			if !slices.ContainsFunc(all, func(o Test) bool { return o.String() == t.String() }) {
				all = append(all, t)
			}
		}
	}
	return all
}

// Load reads the proofs of all specifications in the tree at root, by the name of each.
func Load(root string) (map[string]Proofs, error) {
	files, err := filepath.Glob(filepath.Join(root, "docs/spec/*.proofs"))
	if err != nil {
		return nil, err
	}
	all := map[string]Proofs{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		p, err := parseProofs(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s:%w", f, err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".proofs")] = p
	}
	return all, nil
}

var (
	ruleLine  = regexp.MustCompile(`^\s*- ([A-Z][0-9]+[a-z]?)\. `)
	proofLine = regexp.MustCompile(`^([A-Z][0-9]+[a-z]?) (proved|decided|open)(?:: (.+))?$`)
	testLine  = regexp.MustCompile(`^- (\S+) ((?:Test|Fuzz|Example)\w+)((?:/"(?:[^"\\]|\\.)*")*)$`)
	subtest   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// ruleNames returns the rules of a specification, in order.
func ruleNames(spec string) []string {
	var all []string
	for line := range strings.Lines(spec) {
		if m := ruleLine.FindStringSubmatch(line); m != nil {
			all = append(all, m[1])
		}
	}
	return all
}

// parseProofs reads a file of proofs. Its errors begin with the number of a line.
func parseProofs(text string) (Proofs, error) {
	var p Proofs
	lines := strings.Split(text, "\n")
	switch lines[0] {
	case "complete":
		p.Complete = true
	case "partial":
	default:
		return p, errors.New("1: the first line is complete or partial")
	}
	for i, line := range lines[1:] {
		var err error
		switch bare := strings.TrimSpace(line); {
		case bare == "" || bare[0] == '#':
		case bare == line:
			err = p.begin(line, i+2)
		case len(p.Proofs) == 0:
			err = errors.New("this belongs to no rule")
		default:
			err = p.Proofs[len(p.Proofs)-1].goOn(bare)
		}
		if err != nil {
			return p, fmt.Errorf("%d: %w", i+2, err)
		}
	}
	return p, nil
}

func (p *Proofs) begin(line string, number int) error {
	m := proofLine.FindStringSubmatch(line)
	if m == nil {
		return fmt.Errorf("a rule, and that it is proved, decided or open, is looked for in %q", line)
	}
	p.Proofs = append(p.Proofs, Proof{Rule: m[1], Verdict: Verdict(m[2]), Why: m[3], Line: number})
	return nil
}

// goOn takes one more line about a rule: a test, or more of the sentence.
func (p *Proof) goOn(line string) error {
	if line[0] != '-' {
		p.Why = strings.TrimSpace(p.Why + " " + line)
		return nil
	}
	m := testLine.FindStringSubmatch(line)
	if m == nil {
		return fmt.Errorf("a test is a folder, a function and quoted names of subtests, as in - storage TestList/%q; not %q", "a page", line)
	}
	t := Test{Folder: m[1], Func: m[2]}
	for _, quoted := range subtest.FindAllString(m[3], -1) {
		name, err := strconv.Unquote(quoted)
		if err != nil {
			return fmt.Errorf("%s is no Go string", quoted)
		}
		t.Sub = append(t.Sub, name)
	}
	p.Tests = append(p.Tests, t)
	return nil
}

// check says what is wrong with the proofs of a specification, as far as the two files tell.
func check(spec string, p Proofs) []error {
	var errs []error
	wrong := func(f Proof, format string, args ...any) {
		errs = append(errs, fmt.Errorf("line %d: %s %s", f.Line, f.Rule, fmt.Sprintf(format, args...)))
	}
	names, seen := ruleNames(spec), map[string]bool{}
	if len(names) == 0 {
		errs = append(errs, errors.New("the specification has no rules"))
	}
	for _, f := range p.Proofs {
		switch {
		case !slices.Contains(names, f.Rule):
			wrong(f, "is no rule")
		case seen[f.Rule]:
			wrong(f, "stands here a second time")
		}
		seen[f.Rule] = true
		switch f.Verdict {
		case Proved:
			if f.Why != "" {
				wrong(f, "is proved, and argued about: if pawl does what the rule says its tests are enough, else it is decided")
			}
		case Decided:
			if len(strings.Fields(f.Why)) < 5 || !strings.HasSuffix(f.Why, ".") {
				wrong(f, "is decided without a sentence that says what pawl does instead")
			}
		case Open:
			if p.Complete {
				wrong(f, "is open, and the file says that it is complete")
			}
		}
		if f.Verdict != Open && len(f.Tests) == 0 {
			wrong(f, "is %s, and no test is named", f.Verdict)
		}
	}
	for _, name := range names {
		if p.Complete && !seen[name] {
			errs = append(errs, fmt.Errorf("%s is neither proved nor decided", name))
		}
	}
	return errs
}
