package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

const (
	exitOK      = 0
	exitFailure = 1 // it could not be done
	exitUsage   = 2 // it was not understood
	exitSignal  = 128
)

// A process is what the command has of the world. Nothing here is used by another way.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	signals        func() <-chan os.Signal // those that ask for an end, which from then on do not bring it
	started        time.Time
	clock          func() time.Time
	build          func() (*debug.BuildInfo, bool)
	version        string // of the release, "" if this is none
	start          starter
	ownLogs        func(*slog.Logger, int) // points logs that a process has only one of at this one
}

// run does what args ask for, reports what went wrong, and returns the exit code.
func run(ctx context.Context, p process, args []string) int {
	root := newRoot(p)
	root.SetArgs(args)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	at, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	var failed *failure
	if errors.As(err, &failed) {
		report(p.stderr, failed.err, hintOf(failed.err))
		return failed.code
	}
	// Whatever stops a command before it runs is a matter of how it was called.
	hint := hintOf(err)
	if hint == "" {
		hint = seeHelp(at)
	}
	report(p.stderr, err, hint)
	return exitUsage
}

// A failure is the error of a command that ran.
type failure struct {
	err  error
	code int
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// ran makes a command's error a failure.
func ran(do func(*cobra.Command) error) func(*cobra.Command, []string) error {
	return ranWith(func(cmd *cobra.Command, _ []string) error { return do(cmd) })
}

// ranWith does what ran does for a command with arguments.
func ranWith(do func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		err := do(cmd, args)
		var failed *failure
		if err == nil || errors.As(err, &failed) {
			return err
		}
		return &failure{err, exitFailure}
	}
}

// untilSignal returns a context that ends with a signal, and what makes of how the work ended the
// error of a command that was ended by one.
func (p process) untilSignal(ctx context.Context) (context.Context, func(error) error) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := p.signals()
	go func() {
		select {
		case sig := <-signals:
			cancel(&interrupted{sig})
		case <-ctx.Done():
		}
	}()
	return ctx, func(err error) error {
		var by *interrupted
		if errors.As(context.Cause(ctx), &by) && err != nil {
			err = &failure{by, codeOf(by.sig)}
		}
		cancel(nil)
		return err
	}
}

// interrupted is the cause of an end by a signal.
type interrupted struct{ sig os.Signal }

func (i *interrupted) Error() string { return fmt.Sprintf("ended by a signal (%v)", i.sig) }

// codeOf is the code that shells give to an end by a signal.
func codeOf(sig os.Signal) int {
	if n, ok := sig.(syscall.Signal); ok {
		return exitSignal + int(n)
	}
	return exitFailure
}

// hintOf returns what an error says can be done about it, "" if it does not say.
func hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return "stop what listens there, or choose another --listen (port 0 picks a free one)"
	}
	return ""
}

// report writes an error for people. An error with a hint may end in it, so that it is of use
// to those who print errors in one line; here the hint has a line of its own.
func report(w io.Writer, err error, hint string) {
	text := strings.TrimPrefix(err.Error(), "pawl: ") // the package's name, which is ours
	if hint != "" {
		text = strings.TrimSuffix(text, "; "+hint)
	}
	for line := range strings.Lines(strings.TrimSpace(text)) {
		fmt.Fprintf(w, "pawl: %s\n", strings.TrimRight(line, "\n"))
	}
	if hint != "" {
		fmt.Fprintf(w, "pawl: hint: %s\n", hint)
	}
}

// A usageError is a mistake in how a command was called, with what to do about it.
type usageError struct{ text, hint string }

func (e *usageError) Error() string { return e.text }
func (e *usageError) Hint() string  { return e.hint }

func newRoot(p process) *cobra.Command {
	root := &cobra.Command{
		Use:   "pawl",
		Short: "A Kubernetes API server in one process",
		Long: `Pawl is a Kubernetes-compatible API server in one process: custom resources, watches,
finalizers and optimistic concurrency for kubectl and every other client, without a cluster.

A write that was made against an older version is refused, and told what changed since and by whom.`,
		Example: `  pawl serve
  KUBECONFIG=pawl-data/kubeconfig kubectl get namespaces`,
		Args:                       knownCommand,
		RunE:                       showHelp,
		DisableFlagsInUseLine:      true,
		SilenceErrors:              true,
		SilenceUsage:               true,
		DisableSuggestions:         true, // ours are hints
		SuggestionsMinimumDistance: 2,
	}
	root.AddCommand(newServe(p), newBackup(p), newRestore(p), newCheck(p), newCompact(p), newVersion(p))
	root.SetHelpCommand(newHelp(root))
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Args, completion.RunE, completion.DisableFlagsInUseLine = knownCommand, showHelp, true
	}
	return root
}

// showHelp is what a command does that only has subcommands.
func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

func seeHelp(cmd *cobra.Command) string { return fmt.Sprintf("see %q", cmd.CommandPath()+" --help") }

// noArguments refuses arguments to a command that takes none.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &usageError{fmt.Sprintf("%q takes no arguments, but got %q", cmd.CommandPath(), args[0]), seeHelp(cmd)}
}

// exactly refuses anything but one argument of each name.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return &usageError{fmt.Sprintf("%q needs %s", cmd.CommandPath(), strings.Join(names[len(args):], " and ")), seeHelp(cmd)}
		case len(args) > len(names):
			return &usageError{fmt.Sprintf("%q takes %s, but got %q besides", cmd.CommandPath(), strings.Join(names, " and "), args[len(names)]), seeHelp(cmd)}
		}
		return nil
	}
}

// atMost refuses more than n arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		return &usageError{fmt.Sprintf("%q takes no more than %s, but got %q besides", cmd.CommandPath(), counted(int64(n), "argument", "arguments"), args[n]), seeHelp(cmd)}
	}
}

// folders completes names of folders.
func folders(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// knownCommand refuses arguments to a command that only has subcommands.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	e := &usageError{fmt.Sprintf("unknown command %q", args[0]), seeHelp(cmd)}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		e.hint = fmt.Sprintf("did you mean %q?", cmd.CommandPath()+" "+near[0])
	}
	return e
}

func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command",
		Args: func(_ *cobra.Command, args []string) error {
			if at, rest, err := root.Find(args); err != nil {
				return err
			} else if len(rest) > 0 {
				return knownCommand(at, rest)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			at, _, err := root.Find(args)
			if err != nil {
				return err
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
			if at, rest, err := root.Find(args); err == nil && len(rest) == 0 {
				for _, c := range at.Commands() {
					if c.IsAvailableCommand() {
						names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}
