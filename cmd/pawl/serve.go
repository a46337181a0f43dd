package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
)

// stopMax is how long requests under way have to end after a signal. What is not answered by
// then is cut off, so that the process has ended within 10 seconds.
const stopMax = 9 * time.Second

// settings are what the flags of serve say.
type settings struct {
	dataDir         string
	listen          string
	engine          string
	etcd            etcdSettings
	kubeconfig      string
	tokenAuthFile   string
	historyDuration time.Duration
	historySize     int64 // bytes
	tlsCertFile     string
	tlsKeyFile      string
	tlsSANs         []string
	logger          *slog.Logger
	opening         func(done, total int64) // is told how much of the store is read

	logFormat string
	verbosity int
}

// A starter starts a server, and returns once it can serve. The context bounds the
// starting, not the server.
type starter func(context.Context, settings) (server, error)

// A server is one that serves.
type server interface {
	URL() string
	// Stop answers the requests under way, ends watches at a record boundary and closes
	// the store; when ctx is done first it breaks off and returns an error.
	Stop(ctx context.Context) error
	// Done is closed when the server has ended, for whatever reason; Err then says which.
	Done() <-chan struct{}
	Err() error
}

func newServe(p process) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a server",
		Long: `Run a Kubernetes API server.

On first start it makes everything it needs in the data folder: keys, certificates, a bearer token for
the administrator (DATA/admin-token), and a kubeconfig that kubectl and other clients can use at once.
Certificates are renewed before they expire.

When it can serve it prints one line on stdout that begins with "ready" and the URL.
SIGTERM or SIGINT ends it: requests under way are answered, watches end between two events,
and it exits with 0 within 10 seconds. A second signal ends it at once.

Clients come in by a certificate of DATA/pki or by a bearer token. The administrator may do
everything; users of --token-auth-file outside group system:masters may look at health, version and
discovery only.`,
		Example: `  # Serve on https://127.0.0.1:7443, and keep everything in ./pawl-data
  pawl serve

  # Use it
  KUBECONFIG=pawl-data/kubeconfig kubectl get namespaces

  # Objects in memory only, on a free port: for trying things out
  pawl serve --engine memory --data "$(mktemp -d)" --listen 127.0.0.1:0

  # Reachable from other machines
  pawl serve --listen 0.0.0.0:7443 --tls-san pawl.example.com,192.0.2.7

  # One of several servers on one etcd: whichever a client speaks to, it is the same
  pawl serve --engine etcd --etcd-endpoints http://127.0.0.1:2379

  # Add the server to your own kubeconfig, as context "pawl"
  pawl serve --kubeconfig ~/.kube/config`,
		Args:    noArguments,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return s.check(cmd) },
		RunE: ran(func(cmd *cobra.Command) error {
			s.logger = newLogger(p.stderr, s.logFormat, s.verbosity)
			p.ownLogs(s.logger, s.verbosity)
			s.opening = newMeter(p.clock, func(done, total int64) {
				s.logger.Info("reading the store", "data", s.dataDir, "percent", done*100/total, "of", sized(total))
			}).tell
			return p.serve(cmd.Context(), s)
		}),
	}
	addServeFlags(cmd, &s)
	return cmd
}

func addServeFlags(cmd *cobra.Command, s *settings) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&s.dataDir, "data", "./pawl-data", "`folder` for objects, keys and the kubeconfig")
	f.Var(newValue(&s.listen, "127.0.0.1:7443", "host:port", parseAddress), "listen", "where to listen; port 0 picks a free one")
	choice(cmd, &s.engine, "engine", "", "where objects are kept: on disk, in memory until the end, or in etcd, for several servers that are one", "local", "memory", "etcd")
	addEtcdFlags(cmd, &s.etcd)
	f.StringVar(&s.kubeconfig, "kubeconfig", "", "`file` to write a kubeconfig to; if it exists, context \"pawl\" is added (default DATA/kubeconfig)")
	f.StringVar(&s.tokenAuthFile, "token-auth-file", "", "CSV `file` with users and their bearer tokens: token,user,uid,\"group1,group2\"")
	f.Var(newValue(&s.historyDuration, "1h", "duration", parsePeriod), "history-duration", "how long past versions are kept for watches and paging; never less than 75s")
	f.Var(newValue(&s.historySize, "512Mi", "size", parseSize), "history-size", "how much memory and disk past versions older than 75s may take")
	f.StringVar(&s.tlsCertFile, "tls-cert-file", "", "PEM `file` with a certificate to serve instead of our own, then its chain; read again when it changes")
	f.StringVar(&s.tlsKeyFile, "tls-private-key-file", "", "PEM `file` with the key of --tls-cert-file")
	f.StringSliceVar(&s.tlsSANs, "tls-san", nil, "more `names` and addresses that our certificate is for")
	f.VarP(newValue(&s.verbosity, "0", "level", parseLevel), "verbosity", "v", "how much to log, from 0 to 10")
	choice(cmd, &s.logFormat, "log-format", "", "how to log", "text", "json")
	for _, err := range []error{
		cmd.MarkFlagDirname("data"), cmd.MarkFlagFilename("kubeconfig"), cmd.MarkFlagFilename("token-auth-file", "csv"),
		cmd.MarkFlagFilename("tls-cert-file", "pem", "crt"), cmd.MarkFlagFilename("tls-private-key-file", "pem", "key"),
	} {
		if err != nil {
			panic(err) // the flag exists
		}
	}
}

// check sees what no flag can see alone, and settles what follows from others.
func (s *settings) check(cmd *cobra.Command) error {
	if s.dataDir == "" {
		return &usageError{"--data names no folder", `leave it out for ./pawl-data`}
	}
	if (s.tlsCertFile == "") != (s.tlsKeyFile == "") {
		return &usageError{"--tls-cert-file and --tls-private-key-file belong together", "give both, or neither to serve a certificate of our own"}
	}
	if err := s.etcd.check(cmd, s.engine == "etcd"); err != nil {
		return err
	}
	if s.engine == "etcd" && cmd.Flags().Changed("data") {
		return &usageError{"--data is given, and with --engine etcd everything is kept in etcd", "leave it out; --kubeconfig says where the kubeconfig goes"}
	}
	for _, san := range s.tlsSANs {
		if net.ParseIP(san) == nil && len(validation.IsDNS1123Subdomain(san)) > 0 && len(validation.IsWildcardDNS1123Subdomain(san)) > 0 {
			return &usageError{fmt.Sprintf("--tls-san %q is neither an address nor a name", san), "give IP addresses and DNS names, separated by commas"}
		}
	}
	if s.kubeconfig == "" {
		s.kubeconfig = filepath.Join(s.dataDir, "kubeconfig")
	}
	return nil
}

// serve runs a server until it is asked to end.
func (p process) serve(ctx context.Context, s settings) error {
	signals := p.signals()
	srv, err := p.begin(ctx, s, signals)
	if err != nil || srv == nil {
		return err
	}
	fmt.Fprintf(p.stdout, "ready %s kubeconfig %s (in %v)\n", srv.URL(), s.kubeconfig, time.Since(p.started).Round(time.Millisecond))
	select {
	case <-srv.Done():
		if err := srv.Err(); err != nil {
			return fmt.Errorf("the server ended: %w", err)
		}
		return errors.New("the server ended without being asked to")
	case sig := <-signals:
		s.logger.Info("stopping", "signal", sig.String())
		return stop(srv, signals, s.logger)
	}
}

// begin starts a server. A signal calls the start off: then there is no server, and no error
// unless something else went wrong.
func (p process) begin(ctx context.Context, s settings, signals <-chan os.Signal) (server, error) {
	ctx, callOff := context.WithCancel(ctx)
	defer callOff()
	type outcome struct {
		srv server
		err error
	}
	began := make(chan outcome, 1)
	go func() {
		srv, err := p.start(ctx, s)
		began <- outcome{srv, err}
	}()
	select {
	case got := <-began:
		return got.srv, got.err
	case sig := <-signals:
		s.logger.Info("stopping before being ready", "signal", sig.String())
		callOff()
	}
	select {
	case got := <-began:
		switch {
		case got.err == nil:
			return nil, stop(got.srv, signals, s.logger)
		case errors.Is(got.err, context.Canceled):
			return nil, nil // as asked
		}
		return nil, got.err
	case sig := <-signals:
		return nil, atOnce(sig)
	}
}

// stop ends a server gracefully, unless a signal says that there is no time for that.
func stop(srv server, signals <-chan os.Signal, logger *slog.Logger) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopMax)
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- srv.Stop(ctx) }()
	select {
	case err := <-stopped:
		if errors.Is(err, context.DeadlineExceeded) {
			logger.Warn("requests under way were cut off", "after", stopMax)
			return nil
		}
		return err
	case sig := <-signals:
		return atOnce(sig)
	}
}

// atOnce is the end by a second signal, with the code that shells give to such an end.
func atOnce(sig os.Signal) error {
	return &failure{fmt.Errorf("ended at once by a second signal (%v): requests under way were cut off", sig), codeOf(sig)}
}
