package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/kv/local"
)

// defaultData is the data folder of whoever names none.
const defaultData = "./pawl-data"

// findingsMax is how many problems are told in words; -o json tells all.
const findingsMax = 20

func newCheck(p process) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Verify a data folder",
		Long: `Read every byte of a data folder (default ` + defaultData + `) that no server has, and say what it holds
and all that is wrong with it: which file, where in it, what, and what can be done. Nothing is changed.

More is looked at than a server does when it starts: each snapshot is compared with what the log says
there was at that time, each change with what it replaced, and keys and certificates with each other;
and each object is looked at, whether it can be read.

The exit code is 1 if anything is damaged. What was being written when a server was killed is not
damage: it was not acknowledged, the next start cuts it off, and it is told as a note.`,
		Example: `  pawl check
  pawl check /srv/pawl -o json`,
		Args: atMost(1),
		RunE: ranWith(func(cmd *cobra.Command, args []string) error {
			dir := defaultData
			if len(args) > 0 {
				dir = args[0]
			}
			ctx, done := p.untilSignal(cmd.Context())
			return done(p.check(ctx, dir, output))
		}),
		ValidArgsFunction: folders,
	}
	choice(cmd, &output, "output", "o", "how to say it", "text", "json")
	return cmd
}

func (p process) check(ctx context.Context, dir, output string) error {
	m := p.meter("checking "+dir, sized)
	report, err := pawl.CheckFolder(ctx, dir, m.tell)
	if err != nil {
		return atRest(err, "stop it first, or take a backup of it and check that")
	}
	if output == "json" {
		e := json.NewEncoder(p.stdout)
		e.SetIndent("", "  ")
		if err := e.Encode(report); err != nil {
			return err
		}
	} else {
		p.tellFindings(report)
		tellReport(p.stdout, report, p.clock())
	}
	if n := len(report.Problems); n > 0 {
		return &failure{code: exitFailure, err: fmt.Errorf("%s is damaged in %s", dir, counted(int64(n), "place", "places"))}
	}
	return nil
}

// atRest explains that a folder has a server, with what to do instead.
func atRest(err error, hint string) error {
	var inUse *local.InUseError
	if !errors.As(err, &inUse) {
		return err
	}
	who := "a server"
	if inUse.PID != 0 {
		who = fmt.Sprintf("a server (pid %d)", inUse.PID)
	}
	return &usageError{fmt.Sprintf("%s is in use by %s", inUse.Dir, who), hint}
}

// tellFindings reports the problems one by one.
func (p process) tellFindings(r *local.Report) {
	for i, f := range r.Problems {
		if i == findingsMax {
			report(p.stderr, fmt.Errorf("and %d more", len(r.Problems)-i), "-o json tells all")
			return
		}
		report(p.stderr, errors.New(where(f)), f.Advice)
	}
}

func where(f local.Finding) string {
	if f.Offset == 0 {
		return f.File + ": " + f.What
	}
	return fmt.Sprintf("%s, at byte %d: %s", f.File, f.Offset, f.What)
}

// tellReport says what a store holds.
func tellReport(w io.Writer, r *local.Report, now time.Time) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("store", "%s", r.Dir)
	damaged := len(r.Problems) > 0
	if damaged && r.Objects == 0 {
		line("objects", "it cannot be told how many, because of the damage; the newest revision found is %d", r.Newest)
	} else {
		line("objects", "%s in %s, %s, at revision %d", grouped(int64(r.Objects)), counted(int64(len(r.Tables)), "resource", "resources"), sized(r.ObjectBytes), r.Newest)
	}
	line("history", "from revision %d%s", r.Oldest, when(r.Since, now))
	line("log", "%s, %s, %s%s", counted(int64(len(r.Segments)), "file", "files"), sized(r.LogBytes), counted(int64(r.Commits), "commit", "commits"), last(r.LastCommit, now))
	line("snapshots", "%s, %s%s", counted(int64(len(r.Snapshots)), "file", "files"), sized(r.SnapshotBytes), newestSnapshot(r, now))
	switch {
	case r.Closed || len(r.Segments) == 0:
		line("closed", "in good order")
	case damaged:
		line("closed", "no, as far as can be told")
	default:
		line("closed", "no: the server was killed, or its machine stopped; what it acknowledged is there all the same")
	}
	for _, n := range r.Notes {
		line("note", "%s", where(n))
	}
}

func newestSnapshot(r *local.Report, now time.Time) string {
	if len(r.Snapshots) == 0 {
		return ""
	}
	s := r.Snapshots[len(r.Snapshots)-1]
	return fmt.Sprintf(", the newest of revision %d%s", s.Revision, when(s.Time, now))
}

func last(t, now time.Time) string {
	if s := when(t, now); s != "" {
		return ", the last" + s
	}
	return ""
}

// when says when something was; nothing if that is not known.
func when(t, now time.Time) string {
	if t.Unix() <= 0 {
		return ""
	}
	return fmt.Sprintf(" at %s (%v ago)", t.UTC().Format(time.RFC3339), now.Sub(t).Round(time.Second))
}
