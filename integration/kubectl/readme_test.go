package kubectl

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// repository is where the README is, seen from this package.
const repository = "../.."

// TestREADME runs the sessions of the README, command by command in one shell, and compares
// what came with what the README shows: times, ports and versions apart.
func TestREADME(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	sessions := sessionsOf(string(text))
	if len(sessions) == 0 {
		t.Fatal("the README shows no session: no ```console block begins with $")
	}
	dir, bin := readmeFolder(t), readmePrograms(t)
	sh := startShell(t, dir, bin)
	for _, session := range sessions {
		for _, step := range session {
			got := sh.run(t, step.command, len(step.output))
			if want := masked(step.output); masked(got) != want {
				t.Errorf("$ %s\ncame:\n%s\nthe README shows:\n%s", step.command, masked(got), want)
			}
		}
	}
}

// A step is a command of a session, and the lines that it prints.
type step struct {
	command string
	output  []string
}

// sessionsOf finds the blocks of the README that show commands and what they print.
func sessionsOf(text string) (sessions [][]step) {
	for _, block := range regexp.MustCompile("(?ms)^```console\n(.*?)^```").FindAllStringSubmatch(text, -1) {
		var session []step
		for line := range strings.Lines(block[1]) {
			line = strings.TrimRight(line, "\n")
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				session = append(session, step{command: command})
			} else if len(session) > 0 {
				last := &session[len(session)-1]
				last.output = append(last.output, line)
			}
		}
		sessions = append(sessions, session)
	}
	return sessions
}

var masks = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`\(in [0-9.]+m?s\)`), "(in TIME)"},
}

func masked(lines []string) string {
	text := strings.Join(lines, "\n")
	for _, m := range masks {
		text = m.what.ReplaceAllString(text, m.with)
	}
	return text
}

// readmeFolder stands in for a clone: it has what the commands of the README name.
func readmeFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(repository, "examples"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// readmePrograms is a folder with pawl, built from this tree, and with a go that runs it on a
// free port where the README says "go run ./cmd/pawl serve". That the real go can build and
// run it is what building it here shows.
func readmePrograms(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "pawl"), "./cmd/pawl")
	build.Dir = repository
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building pawl: %v\n%s", err, out)
	}
	script := "#!/bin/sh\n[ \"$*\" = \"run ./cmd/pawl serve\" ] || { echo \"go $*: not in this test\" >&2; exit 2; }\nexec pawl serve --listen 127.0.0.1:0\n"
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "kubectl")); err != nil { // see TestMain
		t.Fatal(err)
	}
	return bin
}

// A shell runs commands one after another and tells what each prints.
type shell struct {
	in    *bufio.Writer
	lines chan string
}

// commandMax is how long a command of the README may take.
const commandMax = time.Minute

func startShell(t *testing.T, dir, bin string) *shell {
	t.Helper()
	cmd := exec.Command("sh")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &shell{in: bufio.NewWriter(in), lines: make(chan string)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(s.lines)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			s.lines <- sc.Text()
		}
	}()
	t.Cleanup(func() {
		fmt.Fprintln(s.in, "kill $started; wait")
		_ = s.in.Flush()
		_ = in.Close()
		for range s.lines { // what the server says when it stops
		}
		<-read
		_ = cmd.Wait()
	})
	return s
}

// run runs a command and returns the lines it prints. One in the background is given until it
// has printed as many lines as are expected of it.
func (s *shell) run(t *testing.T, command string, expected int) (printed []string) {
	t.Helper()
	const end = "--- that was all ---"
	background := strings.HasSuffix(strings.TrimSpace(command), "&")
	fmt.Fprintln(s.in, command)
	if background {
		fmt.Fprintln(s.in, "started=$!")
	} else {
		fmt.Fprintf(s.in, "echo; echo '%s'\n", end)
	}
	if err := s.in.Flush(); err != nil {
		t.Fatal(err)
	}
	timeout := time.After(commandMax)
	for !background || len(printed) < expected {
		select {
		case line, ok := <-s.lines:
			switch {
			case !ok:
				t.Fatalf("$ %s: the shell ended after %q", command, printed)
			case line == end:
				return trimmed(printed)
			}
			printed = append(printed, line)
		case <-timeout:
			t.Fatalf("$ %s: still at it after %v, having printed %q", command, commandMax, printed)
		}
	}
	return printed
}

// trimmed is without the empty line that comes before the end.
func trimmed(lines []string) []string {
	if n := len(lines); n > 0 && lines[n-1] == "" {
		return lines[:n-1]
	}
	return lines
}
