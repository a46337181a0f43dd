package lint

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPackagesSayWhatTheyAreFor sees that every package has a doc, and that it begins as
// godoc expects.
func TestPackagesSayWhatTheyAreFor(t *testing.T) {
	docs := map[string]string{} // by folder
	for _, f := range files(t) {
		if strings.HasSuffix(f.ast.Name.Name, "_test") || strings.Contains(f.path, "testdata/") {
			continue
		}
		doc := docs[f.folder()]
		if text := f.ast.Doc.Text(); text != "" {
			if doc != "" {
				t.Errorf("%s has a second package doc: one file says what the package is for", f.path)
			}
			if doc = text; !opens(f, doc) {
				t.Errorf("%s: the package doc begins with %q, and should with what it describes, as in Package %s", f.path, strings.SplitN(doc, "\n", 2)[0], f.ast.Name.Name)
			}
		}
		docs[f.folder()] = doc
	}
	for folder, doc := range docs {
		if doc == "" {
			t.Errorf("the package in %s does not say what it is for: write its package doc", folder)
		}
	}
}

// opens says whether a doc names what it describes: a package as such, a command as such or
// by its name alone.
func opens(f file, doc string) bool {
	if f.ast.Name.Name != "main" {
		return strings.HasPrefix(doc, "Package "+f.ast.Name.Name+" ")
	}
	command := path.Base(f.folder()) + " "
	return strings.HasPrefix(doc, "Command "+command) || strings.HasPrefix(doc, strings.ToUpper(command[:1])+command[1:])
}

// unwanted is what no file that people write should hold.
var unwanted = []struct {
	pattern *regexp.Regexp
	why     string
}{
	{regexp.MustCompile(`/(root|work|home)/[a-z]`), "names a folder of somebody's machine"},
	{regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|X` + `XX)\b`), "puts off what should be done, or dropped"},
}

// written are the endings of files that people write. All else is data.
var written = []string{".go", ".md", ".txtar", ".mod", ".work", ".sh", ""}

// TestNothingUnwanted reads every file that people write for what should not be there.
func TestNothingUnwanted(t *testing.T) {
	err := walk(func(p string) error {
		if !slices.Contains(written, path.Ext(p)) || strings.Contains(p, "testdata/") && path.Ext(p) == "" {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, p))
		if err != nil {
			return err
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return nil // a program that somebody built here
		}
		for n, line := range bytes.Split(text, []byte("\n")) {
			for _, u := range unwanted {
				if found := u.pattern.Find(line); found != nil {
					t.Errorf("%s:%d: %q %s", p, n+1, found, u.why)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
