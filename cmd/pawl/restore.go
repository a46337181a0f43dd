package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/kv/local"
)

func newRestore(p process) *cobra.Command {
	var engine string
	var in etcdSettings
	cmd := &cobra.Command{
		Use:   "restore FILE DIR",
		Short: "Make a data folder from a backup, or a store in etcd",
		Long: `Make the data folder DIR, which must be empty or not there, from the backup FILE ("-" is stdin). If that fails,
DIR is as it was. With --engine etcd, and no DIR, make a store in etcd, under a prefix where nothing may be. If
that fails there is nothing again; if it is broken off, no server starts there, and restoring begins anew.
It does not matter which engine the backup is of.

A server on it is the one that was backed up: clients go on with the kubeconfigs, certificates and
tokens that they have. But what was written after the backup is gone, and clients may have seen it; so the
store goes on from a resourceVersion far ahead of any that it ever gave, and all before that one counts as
compacted. A client that goes on from what was lost gets a 410 and lists anew, as after a long absence;
nobody is told old news. In a folder objects have the resourceVersions that they had; in etcd they get new ones, and
an update that names an old one gets a 409.

The server's keys are in DIR, or in etcd under the prefix: whoever can read that can do everything.`,
		Example: `  pawl restore pawl.bak /srv/pawl
  pawl serve --data /srv/pawl

  # Into etcd
  pawl restore pawl.bak --engine etcd --etcd-endpoints http://127.0.0.1:2379
  pawl serve --engine etcd --etcd-endpoints http://127.0.0.1:2379`,
		Args: func(cmd *cobra.Command, args []string) error {
			if engine == "etcd" {
				return exactly("FILE")(cmd, args)
			}
			return exactly("FILE", "DIR")(cmd, args)
		},
		PreRunE: func(cmd *cobra.Command, _ []string) error { return in.check(cmd, engine == "etcd") },
		RunE: ranWith(func(cmd *cobra.Command, args []string) error {
			ctx, done := p.untilSignal(cmd.Context())
			if engine == "etcd" {
				return done(p.restore(ctx, args[0], in.place()))
			}
			return done(p.restore(ctx, args[0], folder(args[1])))
		}),
	}
	cmd.Flags().SortFlags = false
	choice(cmd, &engine, "engine", "", "what is made: a data folder, or a store in etcd", "local", "etcd")
	addEtcdFlags(cmd, &in)
	return cmd
}

// A destination is where a backup is restored to.
type destination struct {
	name    string // for people
	serve   string // flags of serve by which it is served
	restore func(ctx context.Context, name string, in io.Reader, progress local.Progress) (local.Restored, error)
}

func folder(dir string) destination {
	return destination{dir, "--data " + dir, func(ctx context.Context, name string, in io.Reader, progress local.Progress) (local.Restored, error) {
		return pawl.Restore(ctx, dir, name, in, progress)
	}}
}

func (p process) restore(ctx context.Context, file string, to destination) error {
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
	made, err := to.restore(ctx, name, in, m.tell)
	if err != nil {
		return err
	}
	about := made.About
	if now := p.clock(); now.Before(about.Taken) {
		report(p.stderr, fmt.Errorf("this machine's clock shows %s, before the backup was taken", now.UTC().Format(time.RFC3339)), "set it before you start the server")
	}
	fmt.Fprintf(p.stdout, "restored %s of revision %d, backed up %s, to %s\n", objects(int64(about.Objects)), about.Revision, about.Taken.Format(time.RFC3339), to.name)
	fmt.Fprintf(p.stdout, "resourceVersions go on from %d; start it with: pawl serve %s\n", made.Revision, to.serve)
	return nil
}
