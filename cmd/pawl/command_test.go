package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write what the command says now into testdata; read the diff before you commit it")

// aBuild is a build that is the same on every machine.
func aBuild() (*debug.BuildInfo, bool) {
	return &debug.BuildInfo{
		Main: debug.Module{Path: "github.com/pawl-dev/pawl", Version: "v0.1.0"},
		Deps: []*debug.Module{{Path: "k8s.io/apimachinery", Version: "v0.37.2"}},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123456789abcdef0123"},
			{Key: "vcs.time", Value: "2026-03-01T12:00:00Z"},
			{Key: "vcs.modified", Value: "true"},
		},
	}, true
}

// inUse is an error that says what to do.
type inUse struct{}

func (inUse) Error() string { return "data/ is in use by another pawl (pid 4121); " + inUse{}.Hint() }
func (inUse) Hint() string  { return "stop that one, or give this one its own --data" }

// failingToStart is a starter for commands that go wrong: how depends on the folder.
func failingToStart(_ context.Context, s settings) (server, error) {
	switch s.dataDir {
	case "taken":
		return nil, fmt.Errorf("pawl: %w", inUse{})
	case "port":
		return nil, fmt.Errorf("cannot listen on 127.0.0.1:7443: %w", os.NewSyscallError("bind", syscall.EADDRINUSE))
	case "long":
		return nil, errors.New("the first line\nand the second")
	}
	return nil, errors.New("it does not start")
}

// say runs one command line, and returns what a person at a terminal would see: lines of
// stderr are marked with "! ", and an exit code that is not 0 comes last.
func say(p process, args []string) string {
	var out, errs bytes.Buffer
	p.stdout, p.stderr = &out, &errs
	if p.signals == nil {
		p.signals = func() <-chan os.Signal { return nil }
	}
	if p.clock == nil {
		p.clock = time.Now
	}
	p.ownLogs = func(*slog.Logger, int) {}
	code := run(context.Background(), p, args)
	text := out.String()
	for line := range strings.Lines(errs.String()) {
		text += strings.TrimRight("! "+line, " \n") + "\n"
	}
	if code != 0 {
		text += fmt.Sprintf("[exit %d]\n", code)
	}
	return strings.ReplaceAll(strings.ReplaceAll(text, runtime.Version(), "GOVERSION"), runtime.GOOS+"/"+runtime.GOARCH, "PLATFORM")
}

// TestCommandLines runs each line of testdata/*.txt that begins with "$ ", and compares what
// it says with what follows. Lines that begin with "# " say what is shown.
func TestCommandLines(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata:", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(string(data), "\r\n", "\n") // git may have made it so
			got := replay(t, text)
			if got == text {
				return
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s: %s\nto take it up: go test ./cmd/pawl -run TestCommandLines -rewrite", file, firstDifference(text, got))
		})
	}
}

var block = regexp.MustCompile(`(?m)^((?:# .*\n)*)\$ pawl ?(.*)\n`)

// replay returns text with what each command says now.
func replay(t *testing.T, text string) string {
	var b strings.Builder
	for i, m := range block.FindAllStringSubmatch(text, -1) {
		if i > 0 {
			b.WriteString("\n")
		}
		p := process{build: aBuild, start: failingToStart}
		b.WriteString(m[0])
		b.WriteString(say(p, words(m[2])))
	}
	if b.Len() == 0 {
		t.Error("there is no command in it")
	}
	return b.String()
}

// words splits a command line at spaces; "" is an empty word.
func words(line string) []string {
	ws := strings.Fields(line)
	for i := range ws {
		if ws[i] == `""` {
			ws[i] = ""
		}
	}
	return ws
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

func TestAReleaseIsNamedByWhoeverKnowsBest(t *testing.T) {
	none := func() (*debug.BuildInfo, bool) { return nil, false }
	local := func() (*debug.BuildInfo, bool) { return &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, true }
	for _, tt := range []struct {
		name, linker string
		build        func() (*debug.BuildInfo, bool)
		want         string
	}{
		{"the linker's word counts most", "v1.2.3", aBuild, "v1.2.3"},
		{"then the Go tool's", "", aBuild, "v0.1.0"},
		{"a build from a working copy has no version", "", local, "devel"},
		{"neither has one that nobody knows about", "", none, "devel"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := (process{version: tt.linker, build: tt.build}).release().Version; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
