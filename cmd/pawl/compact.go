package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/internal/server/upkeep"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
)

func newCompact(p process) *cobra.Command {
	var on place
	var bound upkeep.Bound
	cmd := &cobra.Command{
		Use:   "compact (--before REVISION | --older-than DURATION)",
		Short: "Forget history, and give back its room",
		Long: `Forget past versions, of a running server or in a data folder that no server has, and give back the room
that they took. What exists now is not touched. A client that watches or reads from an older resourceVersion
gets a 410 and lists anew.

A server forgets by itself what --history-duration and --history-size of pawl serve say; this is for who cannot
wait. Unlike there, nothing is too young: --older-than 0s forgets all of the past.`,
		Example: `  pawl compact --older-than 10m
  pawl compact --kubeconfig ~/pawl.kubeconfig --before 481516`,
		Args: noArguments,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("before") && !cmd.Flags().Changed("older-than") {
				return &usageError{"say how much is to be forgotten", "--before REVISION or --older-than DURATION; --older-than 0s forgets all of the past"}
			}
			return nil
		},
		RunE: ranWith(func(cmd *cobra.Command, _ []string) error {
			ctx, done := p.untilSignal(cmd.Context())
			return done(p.compact(ctx, on, bound))
		}),
	}
	f := cmd.Flags()
	on.addFlags(cmd)
	before := &value[kv.Revision]{kind: "revision", parse: parseRevision, into: &bound.Before}
	f.Var(before, "before", "forget what only older revisions than this one need")
	age := &value[time.Duration]{kind: "duration", parse: parseAge, into: &bound.OlderThan}
	f.Var(age, "older-than", "forget what is older than this")
	cmd.MarkFlagsMutuallyExclusive("before", "older-than")
	return cmd
}

func parseRevision(s string) (kv.Revision, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 {
		return 0, errors.New("must be a resourceVersion")
	}
	return kv.Revision(n), nil
}

// parseAge accepts a time span, which may be none.
func parseAge(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, errors.New("must be a time span such as 0s, 90s or 1h30m")
	}
	return d, nil
}

func (p process) compact(ctx context.Context, on place, bound upkeep.Bound) error {
	done, err := p.forget(ctx, on, bound)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "history begins at revision %d, of %d; the store takes %s, before it took %s\n", done.Oldest, done.Newest, sized(done.Bytes), sized(done.BytesWere))
	return nil
}

func (p process) forget(ctx context.Context, on place, bound upkeep.Bound) (done pawl.Compacted, err error) {
	if on.kubeconfig == "" {
		done, err = pawl.CompactFolder(ctx, on.data, bound.Before, bound.OlderThan, p.meter("reading "+on.data, sized).tell)
		var inUse *local.InUseError
		if !errors.As(err, &inUse) {
			return done, err
		}
		if err := on.behind(inUse); err != nil {
			return done, err
		}
	}
	r, err := p.connect(on)
	if err != nil {
		return done, err
	}
	answer, err := r.do(ctx, "POST", upkeep.CompactPath, bound.Query())
	if err != nil {
		return done, err
	}
	defer answer.Close()
	return done, json.NewDecoder(answer).Decode(&done)
}
