package rules

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// root is the folder of the tree, seen from this package's.
const root = "../.."

// TestEveryRuleHasItsProof holds docs/spec to its word.
func TestEveryRuleHasItsProof(t *testing.T) {
	all, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"storage", "store"} {
		if p, ok := all[name]; !ok {
			t.Errorf("docs/spec/%s.proofs is not there", name)
		} else if !p.Complete {
			t.Errorf("docs/spec/%s.proofs was complete, and says that it no longer is", name)
		}
	}
	sources := NewSources(root)
	for name, p := range all {
		spec, err := os.ReadFile(filepath.Join(root, "docs/spec", name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range check(string(spec), p) {
			t.Errorf("docs/spec/%s.proofs: %v", name, err)
		}
		for _, test := range p.Tests() {
			if err := sources.Missing(test); err != nil {
				t.Errorf("docs/spec/%s.proofs: %v", name, err)
			}
		}
		t.Log(name + ": " + tally(p))
	}
}

// tally counts the verdicts.
func tally(p Proofs) string {
	n := map[Verdict]int{}
	for _, f := range p.Proofs {
		n[f.Verdict]++
	}
	return fmt.Sprintf("%d proved, %d decided, %d open", n[Proved], n[Decided], n[Open])
}

const rulesOfAnExample = `# An example

- K1. The first. It says - K9. in the middle.
- K2. The second.
  - K2a. A part of it.
| K3 | no rule |
`

const proofsOfAnExample = `complete
# A comment.
K1 proved
	- storage TestList/"a \"page\" (K1)"/"deeper"
	- storage FuzzContinue
K2 decided: There is no such part, and
	# in the middle
	a client sees nothing of it.
	- . TestConversations
K2a proved

	- storage TestList
`

func TestWhatIsWrongWithProofsIsFound(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"nothing", "", "", ""},
		{"a rule is missing", "K2a proved\n\n\t- storage TestList\n", "", "K2a is neither proved nor decided"},
		{"a rule that is not there is named", "K2a", "K3", "line 10: K3 is no rule"},
		{"a rule stands twice", "K2 decided:", "K1 decided:", "line 6: K1 stands here a second time"},
		{"a proof names no test", "\t- storage TestList\n", "", "line 10: K2a is proved, and no test is named"},
		{"a decision names no test", "\t- . TestConversations\n", "", "line 6: K2 is decided, and no test is named"},
		{"a decision has no sentence", "There is no such part, and\n\t# in the middle\n\ta client sees nothing of it.", "No.", "line 6: K2 is decided without a sentence"},
		{"a decision breaks off", "nothing of it.", "nothing of", "line 6: K2 is decided without a sentence"},
		{"a proof argues", "K2a proved", "K2a proved: more or less", "line 10: K2a is proved, and argued about"},
		{"a complete file has an open rule", "K2a proved", "K2a open", "line 10: K2a is open"},
		{"a verdict that there is not", "K2a proved", "K2a likely", "10: a rule, and that it is proved, decided or open"},
		{"a test of no package", "- storage TestList\n", "- TestList\n", "12: a test is a folder"},
		{"a subtest that is not quoted", "- storage TestList\n", "- storage TestList/page\n", "12: a test is a folder"},
		{"a subtest that is no string", `/"deeper"`, `/"\q"`, `4: "\q" is no Go string`},
		{"no word on how far it is", "complete\n", "", "1: the first line is complete or partial"},
		{"a test before any rule", "# A comment.", "\t- storage TestList", "2: this belongs to no rule"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(proofsOfAnExample, c.old, c.new, 1)
			p, err := parseProofs(text)
			errs := []error{err}
			if err == nil {
				errs = check(rulesOfAnExample, p)
			}
			if got := errors.Join(errs...); c.want == "" && got != nil || c.want != "" && (got == nil || !strings.Contains(got.Error(), c.want)) {
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
}

func TestAPartialFileMayLeaveRulesOut(t *testing.T) {
	p, err := parseProofs("partial\nK1 open\n")
	if err != nil {
		t.Fatal(err)
	}
	if errs := check(rulesOfAnExample, p); len(errs) > 0 {
		t.Errorf("got %v", errs)
	}
}

func TestTestsAreFoundInTheSource(t *testing.T) {
	sources := NewSources(root)
	for _, c := range []struct {
		name, folder, function string
		sub                    []string
		want                   string
	}{
		{"a function", "internal/rules", "TestTestsAreFoundInTheSource", nil, ""},
		{"a case of a table", "internal/rules", "TestTestsAreFoundInTheSource", []string{"a function"}, ""},
		{"a case of a suite in another package", "kv/local", "TestMemory", []string{"a snapshot never changes"}, ""},
		{"a recording", ".", "TestConversations", []string{"list", "an empty list"}, ""},
		{"a recording whose title is quoted", ".", "TestConversations", []string{"watch", "a watch from an older object's version replays what came after"}, ""},
		{"a package that is not there", "internal/nowhere", "TestX", nil, "no such file or directory"},
		{"a function that is not there", "internal/rules", "TestNothing", nil, "there is no function TestNothing"},
		{"a function that is no test's", "internal/rules", "parseProofs", nil, "there is no function parseProofs"},
		{"a case that is not there", "kv/local", "TestMemory", []string{"a snapshot " + "changes"}, "is \"a snapshot changes\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := sources.Missing(Test{c.folder, c.function, c.sub})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestATestStandsForARuleOnlyIfItRanAndPassed(t *testing.T) {
	const run = `{"Action":"start","Package":"github.com/pawl-dev/pawl/storage"}
{"Action":"run","Package":"github.com/pawl-dev/pawl/storage","Test":"TestA"}
{"Action":"output","Package":"github.com/pawl-dev/pawl/storage","Test":"TestA","Output":"x\n"}
{"Action":"pass","Package":"github.com/pawl-dev/pawl/storage","Test":"TestA/a_\"page\"_\\x00é"}
{"Action":"pass","Package":"github.com/pawl-dev/pawl/storage","Test":"TestA"}
{"Action":"skip","Package":"github.com/pawl-dev/pawl/storage","Test":"TestB"}
{"Action":"fail","Package":"github.com/pawl-dev/pawl/storage","Test":"TestC"}
{"Action":"run","Package":"github.com/pawl-dev/pawl/storage","Test":"TestD"}
{"Action":"pass","Package":"github.com/pawl-dev/pawl","Test":"TestE"}
{"Action":"fail","Package":"github.com/pawl-dev/pawl/storage"}
`
	results, err := Read(strings.NewReader(run), func(Line) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		test Test
		want string
	}{
		{"it passed", Test{"storage", "TestA", nil}, ""},
		{"a subtest passed", Test{"storage", "TestA", []string{"a \"page\" \x00é"}}, ""},
		{"a test of the root passed", Test{".", "TestE", nil}, ""},
		{"it was skipped", Test{"storage", "TestB", nil}, `storage TestB: was skipped`},
		{"it failed", Test{"storage", "TestC", nil}, `storage TestC: did not pass`},
		{"it never ended", Test{"storage", "TestD", nil}, `storage TestD: did not run`},
		{"a subtest did not run", Test{"storage", "TestA", []string{"another"}}, `storage TestA/"another": did not run`},
		{"the same name in another package", Test{"registry", "TestA", nil}, `registry TestA: did not run`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := results.Unproved(c.test); c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if _, err := Read(strings.NewReader("ok \tstorage\n"), func(Line) {}); err == nil {
		t.Error("what is not JSON was read as a run")
	}
}
