package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/internal/server/upkeep"
	"github.com/pawl-dev/pawl/kv/local"
)

// A place is where the server is that a command is about: in a data folder, or behind a kubeconfig.
type place struct {
	data       string
	kubeconfig string
	context    string
	offline    bool          // only if no server has the folder
	etcd       *etcdSettings // in place of all these, what is in an etcd; nil otherwise
}

func (at *place) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&at.data, "data", defaultData, "data `folder`; if a server has it, that is reached by the kubeconfig in it")
	f.StringVar(&at.kubeconfig, "kubeconfig", "", "kubeconfig `file` of a running server, in place of a folder")
	f.StringVar(&at.context, "context", "", "`name` of the context in the kubeconfig (default its current one)")
	for _, err := range []error{cmd.MarkFlagDirname("data"), cmd.MarkFlagFilename("kubeconfig")} {
		if err != nil {
			panic(err) // the flag exists
		}
	}
	cmd.MarkFlagsMutuallyExclusive("data", "kubeconfig")
}

func newBackup(p process) *cobra.Command {
	var from place
	var engine string
	var in etcdSettings
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Take a backup, of a running server too",
		Long: `Write everything that a server has into FILE ("-" is stdout): all objects as they are at one revision,
and the keys by which clients know the server and it knows them. A running server goes on serving.

A backup is whole or an error: FILE appears once everything was received and its checksums are right,
and replaces an older backup only then. It has every secret of the server in it, its keys among them; FILE
can be read by its owner alone. A stopped server's folder is backed up as it is; so is, with --engine etcd, what
servers keep in an etcd, whether or not they run. What lies outside of the data folder is not in it: files given to pawl serve as
--tls-cert-file, --tls-private-key-file and --token-auth-file.

"pawl restore" makes a data folder of it, or a store in etcd.`,
		Example: `  # Of the server that has ./pawl-data, or of the folder if none has it
  pawl backup pawl.bak

  # Of a server elsewhere, compressed
  pawl backup --kubeconfig ~/pawl.kubeconfig - | zstd > pawl.bak.zst

  # Of what is in an etcd
  pawl backup --engine etcd --etcd-endpoints http://127.0.0.1:2379 pawl.bak`,
		Args: exactly("FILE"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if engine == "etcd" {
				from.etcd = &in
			}
			return in.check(cmd, engine == "etcd")
		},
		RunE: ranWith(func(cmd *cobra.Command, args []string) error {
			ctx, done := p.untilSignal(cmd.Context())
			return done(p.backup(ctx, from, args[0]))
		}),
	}
	from.addFlags(cmd)
	cmd.Flags().BoolVar(&from.offline, "offline", false, "back up the data folder only if no server has it: then nothing is written that is not in the backup")
	choice(cmd, &engine, "engine", "", "what is backed up: a data folder or the server that has it, or what is in an etcd", "local", "etcd")
	addEtcdFlags(cmd, &in)
	for _, other := range []string{"data", "kubeconfig", "context", "offline"} {
		cmd.MarkFlagsMutuallyExclusive(other, "etcd-endpoints")
	}
	cmd.MarkFlagsMutuallyExclusive("kubeconfig", "offline")
	return cmd
}

func (p process) backup(ctx context.Context, from place, file string) error {
	if file == "-" {
		about, n, err := p.takeBackup(ctx, from, p.stdout)
		if err == nil {
			fmt.Fprintf(p.stderr, "backed up %s of revision %d (%s)\n", objects(int64(about.Objects)), about.Revision, sized(n))
		}
		return err
	}
	if err := mayReplace(file); err != nil {
		return err
	}
	var about local.About
	var n int64
	err := writeWhole(file, func(w io.Writer) (err error) {
		about, n, err = p.takeBackup(ctx, from, w)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "backed up %s of revision %d (%s) to %s\n", objects(int64(about.Objects)), about.Revision, sized(n), file)
	return nil
}

// takeBackup writes a backup to w, and says what it holds and how long it is.
func (p process) takeBackup(ctx context.Context, from place, w io.Writer) (local.About, int64, error) {
	m := p.meter("backing up", objects)
	out := &countingWriter{w: w}
	if from.etcd != nil {
		about, err := from.etcd.backup(ctx, out, m.tell)
		return about, out.n, err
	}
	if from.kubeconfig == "" {
		about, err := pawl.BackupFolder(ctx, from.data, out, p.meter("reading "+from.data, sized).tell, m.tell)
		var inUse *local.InUseError
		if !errors.As(err, &inUse) {
			return about, out.n, err
		}
		if from.offline {
			return about, 0, atRest(inUse, "stop it first, so that nothing is written that is not in the backup, or leave --offline out")
		}
		if err := from.behind(inUse); err != nil {
			return about, 0, err
		}
	}
	r, err := p.connect(from)
	if err != nil {
		return local.About{}, 0, err
	}
	answer, err := r.do(ctx, "GET", upkeep.BackupPath, nil)
	if err != nil {
		return local.About{}, 0, err
	}
	defer answer.Close()
	in := &connection{in: answer}
	about, err := local.ReadBackup(ctx, "what "+r.host+" sent", io.TeeReader(in, out), m.tell)
	if in.err != nil {
		err = fmt.Errorf("%s broke off after %s: %w", r.host, sized(out.n), in.err)
	}
	return about, out.n, err
}

// behind finds the way to the server that has the data folder.
func (at *place) behind(inUse *local.InUseError) error {
	at.kubeconfig = filepath.Join(at.data, "kubeconfig")
	if _, err := os.Stat(at.kubeconfig); err != nil {
		return atRest(inUse, "name the kubeconfig that it wrote with --kubeconfig, or stop it")
	}
	return nil
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// A connection remembers how it ended, if not as it should.
type connection struct {
	in  io.Reader
	err error
}

func (c *connection) Read(b []byte) (int, error) {
	n, err := c.in.Read(b)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// mayReplace returns an error if there is something in the place of a file that is no backup.
func mayReplace(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return &usageError{file + " is a folder", "name a file in it"}
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, 8)
	if n, _ := io.ReadFull(f, head); info.Size() > 0 && !local.IsBackup(head[:n]) {
		return &usageError{file + " is there, and is no backup", "name another file, or remove that one"}
	}
	return nil
}

// writeWhole puts a file in place once it is whole and on disk. Its owner alone may read it.
func writeWhole(file string, write func(io.Writer) error) (err error) {
	dir := filepath.Dir(file)
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(file)+".*") // made 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(tmp.Name())
		}
	}()
	err = write(tmp)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err = os.Rename(tmp.Name(), file); err != nil {
		return err
	}
	return local.OS.SyncDir(dir)
}
