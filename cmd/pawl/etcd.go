package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/etcd"
	"github.com/pawl-dev/pawl/kv/local"
)

// etcdSettings are what flags say of etcd.
type etcdSettings struct {
	endpoints []string
	caFile    string
	certFile  string
	keyFile   string
	prefix    string
}

func addEtcdFlags(cmd *cobra.Command, s *etcdSettings) {
	f := cmd.Flags()
	f.StringSliceVar(&s.endpoints, "etcd-endpoints", nil, "`URLs` of etcd's members, for --engine etcd")
	f.StringVar(&s.caFile, "etcd-cafile", "", "PEM `file` with the authority of etcd's certificates; without it those that the system trusts")
	f.StringVar(&s.certFile, "etcd-certfile", "", "PEM `file` with the certificate by which etcd knows this server")
	f.StringVar(&s.keyFile, "etcd-keyfile", "", "PEM `file` with the key of --etcd-certfile")
	f.StringVar(&s.prefix, "etcd-prefix", etcd.DefaultPrefix, "`prefix` of all keys in etcd; servers with the same one are one server")
	for _, name := range []string{"etcd-cafile", "etcd-certfile", "etcd-keyfile"} {
		if err := cmd.MarkFlagFilename(name, "pem", "crt", "key"); err != nil {
			panic(err) // the flag exists
		}
	}
}

// etcdMax is how long a command waits for etcd that is no server.
const etcdMax = 30 * time.Second

// check sees that the settings go together, used or not.
func (s etcdSettings) check(used bool) error {
	given := len(s.endpoints) > 0 || s.caFile != "" || s.certFile != "" || s.keyFile != "" || s.prefix != etcd.DefaultPrefix
	switch {
	case !used && given:
		return &usageError{"flags of etcd are given, and objects are not kept there", "add --engine etcd"}
	case !used:
		return nil
	case len(s.endpoints) == 0:
		return &usageError{"--engine etcd needs an etcd", "say where it is: --etcd-endpoints http://127.0.0.1:2379"}
	case (s.certFile == "") != (s.keyFile == ""):
		return &usageError{"--etcd-certfile and --etcd-keyfile belong together", "give both, or neither"}
	case strings.Trim(s.prefix, "/") == "":
		return &usageError{"--etcd-prefix names nothing", "leave it out for " + etcd.DefaultPrefix}
	}
	secret := s.caFile != "" || s.certFile != ""
	for _, e := range s.endpoints {
		switch u, err := url.Parse(e); {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "":
			return &usageError{fmt.Sprintf("--etcd-endpoints %q is no URL of a member", e), "give URLs such as http://127.0.0.1:2379, separated by commas"}
		case secret && u.Scheme == "http":
			return &usageError{fmt.Sprintf("%s is spoken to in the clear, and certificates for it are given", e), "write https, or leave the certificates out"}
		}
	}
	return nil
}

// open is how a server opens its store in etcd.
func (s etcdSettings) open(ctx context.Context, o pawl.SharedOptions) (pawl.SharedStore, error) {
	secrets, err := s.tls()
	if err != nil {
		return nil, err
	}
	opts := s.options(secrets)
	opts.Logger, opts.HistoryDuration, opts.HistorySize = o.Logger, o.HistoryDuration, o.HistorySize
	e, err := etcd.Open(ctx, opts)
	if err != nil {
		return nil, err // not e: a nil *Engine is a store that is not nil
	}
	return e, nil
}

func (s etcdSettings) options(secrets *tls.Config) etcd.Options {
	return etcd.Options{Endpoints: s.endpoints, TLS: secrets, Prefix: s.prefix}
}

// place is where a backup is restored to.
func (s etcdSettings) place() destination {
	at := strings.Join(s.endpoints, ",")
	serve := "--engine etcd --etcd-endpoints " + at
	if s.prefix != etcd.DefaultPrefix {
		serve += " --etcd-prefix " + s.prefix
	}
	for _, f := range []struct{ flag, file string }{{"--etcd-cafile", s.caFile}, {"--etcd-certfile", s.certFile}, {"--etcd-keyfile", s.keyFile}} {
		if f.file != "" {
			serve += " " + f.flag + " " + f.file
		}
	}
	return destination{s.prefix + " in etcd at " + at, serve, func(ctx context.Context, name string, in io.Reader, progress local.Progress) (local.Restored, error) {
		secrets, err := s.tls()
		if err != nil {
			return local.Restored{}, err
		}
		return pawl.RestoreShared(ctx, func(ctx context.Context, after kv.Revision, versions iter.Seq2[*kv.Version, error], beside map[string][]byte) (kv.Revision, error) {
			return etcd.Restore(ctx, s.options(secrets), after, versions, beside)
		}, name, in, progress)
	}}
}

// backup writes what is in etcd, whether or not servers have it.
func (s etcdSettings) backup(ctx context.Context, w io.Writer, progress local.Progress) (about local.About, err error) {
	bounded, cancel := context.WithTimeout(ctx, etcdMax)
	store, err := s.open(bounded, pawl.SharedOptions{})
	cancel()
	if err != nil {
		return local.About{}, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return pawl.BackupShared(ctx, store, w, progress)
}

// tls returns how etcd is known and this server is known to it, nil if neither is asked for. The certificate is read again
// for every connection, so that it can be renewed.
func (s etcdSettings) tls() (*tls.Config, error) {
	if s.caFile == "" && s.certFile == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.caFile != "" {
		pem, err := os.ReadFile(s.caFile)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &hinted{fmt.Errorf("%s holds no certificate", s.caFile), "give a PEM file with the authority that signed etcd's certificates"}
		}
	}
	if s.certFile != "" {
		load := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(s.certFile, s.keyFile)
			if err != nil {
				return nil, &hinted{fmt.Errorf("%s and %s: %w", s.certFile, s.keyFile, err), "give a PEM certificate and the PEM key that belongs to it"}
			}
			return &pair, nil
		}
		if _, err := load(); err != nil {
			return nil, err
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() }
	}
	return c, nil
}

// A hinted error says what to do.
type hinted struct {
	error
	hint string
}

func (e *hinted) Hint() string  { return e.hint }
func (e *hinted) Unwrap() error { return e.error }
