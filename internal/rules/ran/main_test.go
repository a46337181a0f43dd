package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	began  = `{"Action":"run","Package":"github.com/pawl-dev/pawl/storage","Test":"TestA"}` + "\n"
	said   = `{"Action":"output","Package":"github.com/pawl-dev/pawl/storage","Test":"TestA","Output":"=== RUN   TestA\n"}` + "\n" + `{"Action":"output","Package":"github.com/pawl-dev/pawl/storage","Test":"TestA","Output":"    it says so\n"}` + "\n"
	passed = `{"Action":"pass","Package":"github.com/pawl-dev/pawl/storage","Test":"TestA"}` + "\n"
	failed = `{"Action":"fail","Package":"github.com/pawl-dev/pawl/storage","Test":"TestA"}` + "\n"
	ok     = `{"Action":"output","Package":"github.com/pawl-dev/pawl/storage","Output":"PASS\n"}` + "\n" + `{"Action":"output","Package":"github.com/pawl-dev/pawl/storage","Output":"ok  \tstorage\n"}` + "\n" + `{"Action":"pass","Package":"github.com/pawl-dev/pawl/storage"}` + "\n"
	bad    = `{"Action":"output","Package":"github.com/pawl-dev/pawl/storage","Output":"FAIL\tstorage\n"}` + "\n" + `{"Action":"fail","Package":"github.com/pawl-dev/pawl/storage"}` + "\n"
	unmade = `{"ImportPath":"storage","Action":"build-output","Output":"no such type\n"}` + "\n" + `{"ImportPath":"storage","Action":"build-fail"}` + "\n"
)

func TestRunsAreShownAndJudged(t *testing.T) {
	const counted = "1 tests ran; 1 stand for rules of docs/spec, and 0 of those did not pass\n"
	for _, c := range []struct {
		name, proofs, run string
		code              int
		out, errs         string
	}{
		{"what passes says nothing but that", "TestA", began + said + passed + ok, 0, "ok  \tstorage\n" + counted, ""},
		{"what fails is heard", "TestA", began + said + failed + bad, 1, "    it says so\nFAIL\tstorage\n", "ran: a rule rests on storage TestA: did not pass\n"},
		{"what never ends is heard", "TestA", began + said + bad, 1, "FAIL\tstorage\n    it says so\n", "ran: no test of storage ran, and rules rest on 1 of them\n"},
		{"a test that did not run proves nothing", "TestB", began + said + passed + ok, 1, "", "ran: a rule rests on storage TestB: did not run\n"},
		{"a package that did not run is named once", "TestA", strings.ReplaceAll(began+passed+ok, "pawl/storage", "pawl/registry"), 1, "", "ran: no test of storage ran, and rules rest on 1 of them\n"},
		{"what cannot be built fails", "TestA", began + passed + unmade, 1, "no such type\n" + counted, ""},
		{"a failure that no rule rests on is one", "TestA", began + passed + bad, 1, "FAIL\tstorage\n" + counted, ""},
		{"what is no run", "TestA", "ok\n", 1, "", "ran: this is not what go test -json writes: invalid character 'o' looking for beginning of value\n"},
		{"proofs that cannot be read", "Nothing", began + passed + ok, 1, "", "a test is a folder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.MkdirAll(filepath.Join(root, "docs/spec"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, "docs/spec/a.proofs"), []byte("partial\nK1 proved\n\t- storage "+c.proofs+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			var out, errs strings.Builder
			if code := run(strings.NewReader(c.run), &out, &errs, root); code != c.code {
				t.Errorf("exits with %d, want %d", code, c.code)
			}
			if !strings.HasPrefix(out.String(), c.out) {
				t.Errorf("shows\n%s\nwant\n%s", out.String(), c.out)
			}
			if c.errs == "" && errs.Len() > 0 || !strings.Contains(errs.String(), c.errs) {
				t.Errorf("complains\n%s\nwant\n%s", errs.String(), c.errs)
			}
		})
	}
}
