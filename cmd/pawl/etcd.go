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
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/etcd"
	"github.com/pawl-dev/pawl/kv/local"
)

// etcdSettings are what flags say of etcd.
type etcdSettings struct {
	endpoints    []string
	caFile       string
	certFile     string
	keyFile      string
	user         string
	passwordFile string
	prefix       string
}

// etcdFlags are the names of the flags for etcd.
var etcdFlags = []string{"etcd-endpoints", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "etcd-user", "etcd-password-file", "etcd-prefix"}

func addEtcdFlags(cmd *cobra.Command, s *etcdSettings) {
	f := cmd.Flags()
	f.StringSliceVar(&s.endpoints, "etcd-endpoints", nil, "`URLs` of etcd's members, for --engine etcd")
	f.StringVar(&s.caFile, "etcd-cafile", "", "PEM `file` with the authority of etcd's certificates; without it those that the system trusts")
	f.StringVar(&s.certFile, "etcd-certfile", "", "PEM `file` with the certificate by which etcd knows this server, and its user")
	f.StringVar(&s.keyFile, "etcd-keyfile", "", "PEM `file` with the key of --etcd-certfile")
	f.StringVar(&s.user, "etcd-user", "", "`name` of etcd's user, where etcd goes by passwords")
	f.StringVar(&s.passwordFile, "etcd-password-file", "", "`file` with the password of --etcd-user")
	f.StringVar(&s.prefix, "etcd-prefix", etcd.DefaultPrefix, "`prefix` of all keys in etcd; servers with the same one are one server")
	if err := cmd.MarkFlagFilename("etcd-password-file"); err != nil {
		panic(err) // the flag exists
	}
	for _, name := range []string{"etcd-cafile", "etcd-certfile", "etcd-keyfile"} {
		if err := cmd.MarkFlagFilename(name, "pem", "crt", "key"); err != nil {
			panic(err) // the flag exists
		}
	}
}

// etcdMax is how long a command waits for etcd that is no server.
const etcdMax = 30 * time.Second

// check sees that the settings go together, used or not, and settles how they are written. Nobody was asked anything yet.
func (s *etcdSettings) check(cmd *cobra.Command, used bool) error {
	if given := slices.IndexFunc(etcdFlags, cmd.Flags().Changed); !used && given >= 0 {
		return &usageError{"--" + etcdFlags[given] + " is given, and objects are not kept in etcd", "add --engine etcd"}
	}
	switch {
	case !used:
		return nil
	case len(s.endpoints) == 0:
		return &usageError{"--engine etcd needs an etcd", "say where it is: --etcd-endpoints http://127.0.0.1:2379"}
	case (s.certFile == "") != (s.keyFile == ""):
		return &usageError{"--etcd-certfile and --etcd-keyfile belong together", "give both, or neither"}
	case (s.user == "") != (s.passwordFile == ""):
		return &usageError{"--etcd-user and --etcd-password-file belong together", "give both, or neither; a certificate names its user by itself"}
	}
	if err := s.checkPrefix(); err != nil {
		return err
	}
	return s.checkEndpoints()
}

// checkPrefix sees that the prefix is one that nobody mistakes for another, or that lies in what another pawl keeps.
func (s *etcdSettings) checkPrefix() error {
	given := s.prefix
	s.prefix = strings.TrimRight(s.prefix, "/")
	odd := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }
	switch {
	case s.prefix == "":
		return &usageError{"--etcd-prefix names nothing", "leave it out for " + etcd.DefaultPrefix}
	case s.prefix[0] != '/' || path.Clean(s.prefix) != s.prefix || strings.ContainsFunc(s.prefix, odd):
		return &usageError{fmt.Sprintf("--etcd-prefix %q is no path", given), `give one that begins with "/" and has neither spaces nor empty parts, such as ` + etcd.DefaultPrefix}
	}
	for _, part := range strings.Split(s.prefix, "/") {
		if slices.Contains(etcd.Parts(), part) {
			return &usageError{fmt.Sprintf("--etcd-prefix %q may lie in what another pawl keeps: each has a part %q of its own", given, part), "call that part otherwise"}
		}
	}
	return nil
}

// checkEndpoints sees that the endpoints are URLs of members that can all be spoken to in the same way.
func (s *etcdSettings) checkEndpoints() error {
	secret := s.caFile != "" || s.certFile != ""
	var clean, schemes []string
	for _, e := range s.endpoints {
		u, err := url.Parse(strings.TrimSpace(e))
		switch {
		case err == nil && u.User != nil:
			return &usageError{"--etcd-endpoints names a user", "give --etcd-user and --etcd-password-file"}
		case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
			return &usageError{fmt.Sprintf("--etcd-endpoints %q is no URL of a member", e), "give URLs such as http://127.0.0.1:2379, separated by commas"}
		case u.Port() == "":
			return &usageError{fmt.Sprintf("--etcd-endpoints %q names no port", e), "say where etcd listens to clients; mostly that is port 2379"}
		case secret && u.Scheme == "http":
			return &usageError{fmt.Sprintf("%s is spoken to in the clear, and certificates for it are given", e), "write https, or leave the certificates out"}
		}
		clean, schemes = append(clean, u.Scheme+"://"+u.Host), append(schemes, u.Scheme)
	}
	slices.Sort(schemes)
	if len(slices.Compact(schemes)) > 1 {
		return &usageError{"--etcd-endpoints are http and https", "give the URLs by which all members are spoken to in the same way"}
	}
	s.endpoints = s.endpoints[:0:0]
	for _, e := range clean {
		if !slices.Contains(s.endpoints, e) {
			s.endpoints = append(s.endpoints, e)
		}
	}
	return nil
}

// open is how a server opens its store in etcd.
func (s etcdSettings) open(ctx context.Context, o pawl.SharedOptions) (pawl.SharedStore, error) {
	opts, err := s.options()
	if err != nil {
		return nil, err
	}
	opts.Logger, opts.HistoryDuration, opts.HistorySize = o.Logger, o.HistoryDuration, o.HistorySize
	e, err := etcd.Open(ctx, opts)
	if err != nil {
		return nil, err // not e: a nil *Engine is a store that is not nil
	}
	return e, nil
}

func (s etcdSettings) options() (etcd.Options, error) {
	secrets, err := s.tls()
	if err != nil {
		return etcd.Options{}, err
	}
	password, err := s.password()
	return etcd.Options{Endpoints: s.endpoints, TLS: secrets, User: s.user, Password: password, Prefix: s.prefix}, err
}

// password returns what is in the file of the password, "" if there is none: without the end of its line.
func (s etcdSettings) password() (string, error) {
	if s.passwordFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(s.passwordFile)
	if err != nil {
		return "", fmt.Errorf("--etcd-password-file: %w", err)
	}
	word := strings.TrimRight(string(text), "\r\n")
	if word == "" || strings.ContainsAny(word, "\r\n") {
		return "", &hinted{fmt.Errorf("%s holds no password", s.passwordFile), "give a file with the password of etcd's user, and nothing else, in one line"}
	}
	return word, nil
}

// place is where a backup is restored to.
func (s etcdSettings) place() destination {
	at := strings.Join(s.endpoints, ",")
	serve := "--engine etcd --etcd-endpoints " + at
	if s.prefix != etcd.DefaultPrefix {
		serve += " --etcd-prefix " + s.prefix
	}
	for _, f := range []struct{ flag, value string }{{"--etcd-cafile", s.caFile}, {"--etcd-certfile", s.certFile}, {"--etcd-keyfile", s.keyFile},
		{"--etcd-user", s.user}, {"--etcd-password-file", s.passwordFile}} {
		if f.value != "" {
			serve += " " + f.flag + " " + f.value
		}
	}
	return destination{s.prefix + " in etcd at " + at, serve, func(ctx context.Context, name string, in io.Reader, progress local.Progress) (local.Restored, error) {
		opts, err := s.options()
		if err != nil {
			return local.Restored{}, err
		}
		return pawl.RestoreShared(ctx, func(ctx context.Context, after kv.Revision, versions iter.Seq2[*kv.Version, error], beside map[string][]byte) (kv.Revision, error) {
			return etcd.Restore(ctx, opts, after, versions, beside)
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
			return nil, fmt.Errorf("--etcd-cafile: %w", err)
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
