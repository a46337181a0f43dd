package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
)

func newRestore(p process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore FILE DIR",
		Short: "Make a data folder from a backup",
		Long: `Make the data folder DIR, which must be empty or not there, from the backup FILE ("-" is stdin). If that fails,
DIR is as it was.

A server on DIR is the one that was backed up: clients go on with the kubeconfigs, certificates and
tokens that they have. Objects have the resourceVersions that they had. But what was written after the backup
is gone, and clients may have seen it; so the store goes on from a resourceVersion far ahead of any that it
ever gave, and all before that one counts as compacted. A client that goes on from what was lost gets a 410
and lists anew, as after a long absence; nobody is told old news.`,
		Example: `  pawl restore pawl.bak /srv/pawl
  pawl serve --data /srv/pawl`,
		Args: exactly("FILE", "DIR"),
		RunE: ranWith(func(cmd *cobra.Command, args []string) error {
			ctx, done := p.untilSignal(cmd.Context())
			return done(p.restore(ctx, args[0], args[1]))
		}),
	}
	return cmd
}

func (p process) restore(ctx context.Context, file, dir string) error {
	in, name := io.Reader(p.stdin), "the backup on stdin"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		in, name = f, file
	}
	m := p.meter("restoring", objects)
	made, err := pawl.Restore(ctx, dir, name, in, m.tell)
	if err != nil {
		return err
	}
	about := made.About
	if now := p.clock(); now.Before(about.Taken) {
		report(p.stderr, fmt.Errorf("this machine's clock shows %s, before the backup was taken", now.UTC().Format(time.RFC3339)), "set it before you start the server")
	}
	fmt.Fprintf(p.stdout, "restored %s of revision %d, backed up %s, to %s\n", objects(int64(about.Objects)), about.Revision, about.Taken.Format(time.RFC3339), dir)
	fmt.Fprintf(p.stdout, "resourceVersions go on from %d; start it with: pawl serve --data %s\n", made.Revision, dir)
	return nil
}
