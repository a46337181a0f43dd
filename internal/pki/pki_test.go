package pki

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A clock stands still until it is set.
type clock struct{ t time.Time }

func newClock() *clock                { return &clock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }
func (c *clock) now() time.Time       { return c.t }
func (c *clock) pass(d time.Duration) { c.t = c.t.Add(d) }

func open(t *testing.T, o Options) *PKI {
	t.Helper()
	p, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shown returns the certificate that a client is shown now.
func shown(t *testing.T, p *PKI) *x509.Certificate {
	t.Helper()
	pair, err := p.TLSConfig().GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestFirstStartMakesEverythingForItsOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := open(t, Options{Dir: dir})
	if err := p.WriteKubeconfig(filepath.Join(dir, "kubeconfig"), "https://127.0.0.1:7443"); err != nil {
		t.Fatal(err)
	}
	got := map[string]fs.FileMode{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		rel, _ := filepath.Rel(dir, path)
		got[filepath.ToSlash(rel)] = fi.Mode().Perm()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]fs.FileMode{
		".": 0o700, "pki": 0o700, ".gitignore": 0o600, "admin-token": 0o600, "kubeconfig": 0o600,
		"pki/ca.pem": 0o600, "pki/ca.crt": 0o600, "pki/serving.pem": 0o600, "pki/admin.pem": 0o600, "pki/accounts.key": 0o600,
	}
	for name, mode := range want {
		have, ok := got[name]
		if !ok {
			t.Errorf("%s is missing", name)
		} else if have != mode && runtime.GOOS != "windows" {
			t.Errorf("%s has mode %v, want %v", name, have, mode)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("nobody asked for %v", got)
	}
	if !strings.HasSuffix(read(t, filepath.Join(dir, ".gitignore")), "\n*\n") {
		t.Error("the folder does not keep itself out of git")
	}
	if strings.TrimSpace(read(t, filepath.Join(dir, TokenFile))) != p.AdminToken() || len(p.AdminToken()) < 40 {
		t.Error("the token on disk is not the token in use, or is short")
	}
	if strings.Contains(read(t, filepath.Join(dir, "pki/ca.crt")), "KEY") {
		t.Error("the file to be handed out holds a key")
	}
}

func TestAFolderWithSomethingInItIsNotHiddenFromGit(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	open(t, Options{Dir: dir})
	if exists(filepath.Join(dir, ".gitignore")) {
		t.Error("somebody's own folder was hidden from git")
	}
}

func TestASecondStartChangesNothing(t *testing.T) {
	dir, clock := t.TempDir(), newClock()
	first := open(t, Options{Dir: dir, Now: clock.now, Hosts: []string{"pawl.example", "10.0.0.7"}})
	clock.pass(24 * time.Hour)
	second := open(t, Options{Dir: dir, Now: clock.now, Hosts: []string{"10.0.0.7", "Pawl.Example", "0.0.0.0", "::", ""}})
	if !shown(t, first).Equal(shown(t, second)) || !bytes.Equal(first.admin.content(), second.admin.content()) ||
		!bytes.Equal(first.ca.content(), second.ca.content()) || first.AdminToken() != second.AdminToken() {
		t.Error("something was made anew")
	}
}

func TestServingCertificateCoversWhatWasAskedFor(t *testing.T) {
	dir := t.TempDir()
	p := open(t, Options{Dir: dir, Hosts: []string{"pawl.example", "10.0.0.7", "fe80::1%eth0", "localhost", "127.0.0.1"}})
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "pawl.example", "10.0.0.7", "fe80::1"} {
		if err := shown(t, p).VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	if n := len(shown(t, p).DNSNames) + len(shown(t, p).IPAddresses); n != 6 {
		t.Errorf("%d names, want 6: none twice", n)
	}
	again := open(t, Options{Dir: dir, Hosts: []string{"other.example"}})
	if err := shown(t, again).VerifyHostname("other.example"); err != nil {
		t.Error(err)
	}
	if shown(t, again).VerifyHostname("pawl.example") == nil {
		t.Error("a name that is no longer asked for is still covered")
	}
	for _, bad := range []string{"https://pawl.example", "pawl.example:7443", "a b", "a,b"} {
		if _, err := Open(Options{Hosts: []string{bad}}); err == nil || !strings.Contains(err.Error(), "without a port") {
			t.Errorf("%q: got error %v", bad, err)
		}
	}
}

func TestEveryKeyIsP256(t *testing.T) {
	p := open(t, Options{})
	for _, id := range []*identity{&p.ca, &p.serving, &p.admin} {
		if c := id.cert(); c.PublicKeyAlgorithm != x509.ECDSA || c.SignatureAlgorithm != x509.ECDSAWithSHA256 {
			t.Errorf("%s: %v, %v", c.Subject, c.PublicKeyAlgorithm, c.SignatureAlgorithm)
		}
	}
}

func TestClientCertificateNamesTheAdministrator(t *testing.T) {
	p := open(t, Options{})
	c := p.admin.cert()
	if c.Subject.CommonName != "pawl-admin" || len(c.Subject.Organization) != 1 || c.Subject.Organization[0] != "system:masters" {
		t.Errorf("got %v", c.Subject)
	}
	_, err := c.Verify(x509.VerifyOptions{Roots: p.Roots(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		t.Error(err)
	}
	_, err = c.Verify(x509.VerifyOptions{Roots: p.Roots(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if err == nil {
		t.Error("it could stand in for the server")
	}
}

func TestWhatIsDueIsRenewed(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, tt := range []struct {
		name              string
		after             time.Duration
		leaves, authority bool
	}{
		{"nothing is renewed on the first day", time.Hour, false, false},
		{"nothing is renewed while more than a third of life is left", year*2/3 - 2*time.Hour, false, false},
		{"leaves are renewed when a third of life is left", year * 2 / 3, true, false},
		{"leaves are renewed when they have expired", 2 * year, true, false},
		{"the authority is renewed when a third of its life is left", 7 * year, true, true},
		{"the authority is renewed when it has expired", 11 * year, true, true},
		{"all are renewed when the clock was set back to before they were made", -year, true, true},
	} {
		for _, how := range []string{"at start", "while running"} {
			t.Run(tt.name+" "+how, func(t *testing.T) {
				dir, clock := t.TempDir(), newClock()
				p := open(t, Options{Dir: dir, Now: clock.now})
				ca, admin, serving := p.ca, p.admin, p.serving
				clock.pass(tt.after)
				if how == "at start" {
					p = open(t, Options{Dir: dir, Now: clock.now})
				}
				now := shown(t, p)
				if got := !now.Equal(serving.cert()); got != tt.leaves {
					t.Errorf("serving certificate renewed: %v", got)
				}
				if got := !p.admin.cert().Equal(admin.cert()); got != tt.leaves {
					t.Errorf("client certificate renewed: %v", got)
				}
				if got := !p.ca.cert().Equal(ca.cert()); got != tt.authority {
					t.Errorf("authority renewed: %v", got)
				}
				if !bytes.Equal(p.ca.keyPEM, ca.keyPEM) {
					t.Error("the authority has another key: those who trust it no longer do")
				}
				if !p.Roots().Equal(poolOf(p.ca.cert())) {
					t.Error("the authority that is believed is not the one at hand")
				}
				for _, id := range []*identity{&p.serving, &p.admin} {
					if _, err := id.cert().Verify(x509.VerifyOptions{Roots: p.Roots(), CurrentTime: clock.now(),
						KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
						t.Error(err)
					}
				}
				if got := read(t, filepath.Join(dir, "pki/serving.pem")); got != string(p.serving.content()) {
					t.Error("what is served is not what is on disk")
				}
				if got := read(t, filepath.Join(dir, "pki/ca.crt")); got != string(p.ca.certPEM) {
					t.Error("ca.crt is not the authority's certificate")
				}
			})
		}
	}
}

func TestKubeconfigIsRewrittenWhenTheClientCertificateIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64 // how long the machine was asleep: timers stand still then
		p := open(t, Options{Now: func() time.Time { return time.Now().Add(time.Duration(slept.Load())) }})
		file := filepath.Join(t.TempDir(), "kubeconfig")
		if err := p.WriteKubeconfig(file, "https://127.0.0.1:7443"); err != nil {
			t.Fatal(err)
		}
		before := read(t, file)
		ctx, stop := context.WithCancel(t.Context())
		go p.Run(ctx)
		time.Sleep(time.Hour) // no time passes outside
		synctest.Wait()
		if read(t, file) != before {
			t.Error("it was rewritten for no reason")
		}
		slept.Store(int64(250 * 24 * time.Hour))
		time.Sleep(checkEvery)
		synctest.Wait()
		if read(t, file) == before {
			t.Error("it still holds the old certificate")
		}
		stop()
	})
}

func TestARenewalThatCannotBeSavedIsUsedAndReported(t *testing.T) {
	dir, clock := t.TempDir(), newClock()
	var log bytes.Buffer
	p := open(t, Options{Dir: dir, Now: clock.now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := os.RemoveAll(filepath.Join(dir, "pki")); err != nil {
		t.Fatal(err)
	}
	old := shown(t, p)
	clock.pass(400 * 24 * time.Hour)
	if shown(t, p).Equal(old) {
		t.Error("an expired certificate is served")
	}
	if !strings.Contains(log.String(), "renewing certificates") {
		t.Errorf("nobody was told; log: %s", &log)
	}
}

func TestDamageIsReportedAndNeverReplaced(t *testing.T) {
	other := open(t, Options{})
	write := func(name, content string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(name string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name, file, problem, remedy string
		harm                        func(*testing.T, string)
	}{
		{"an empty authority", "pki/ca.pem", "is damaged", "restore it from a backup", write("pki/ca.pem", "")},
		{"half an authority", "pki/ca.pem", "is damaged", "restore it from a backup", write("pki/ca.pem", string(other.ca.certPEM))},
		{"a certificate with another's key", "pki/ca.pem", "is damaged", "restore it from a backup",
			write("pki/ca.pem", string(other.ca.certPEM)+string(other.admin.keyPEM))},
		{"an authority that is none", "pki/ca.pem", "is not an authority", "restore it from a backup", write("pki/ca.pem", string(other.admin.content()))},
		{"another authority", "", "was not signed by ca.pem", "remove it and pawl makes a new one", write("pki/ca.pem", string(other.ca.content()))},
		{"no authority", "pki/ca.pem", "is missing, but ca.crt is there", "to begin anew", remove("pki/ca.pem")},
		{"a serving certificate of another", "pki/serving.pem", "was not signed by ca.pem", "remove it and pawl makes a new one", write("pki/serving.pem", string(other.serving.content()))},
		{"garbage in a client certificate", "pki/admin.pem", "is damaged", "remove it and pawl makes a new one", write("pki/admin.pem", "hello")},
		{"another authority's copy", "pki/ca.crt", "is not the certificate of ca.pem", "remove it", write("pki/ca.crt", string(other.ca.certPEM))},
		{"garbage in the copy", "pki/ca.crt", "is not the certificate of ca.pem", "remove it", write("pki/ca.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")},
		{"an empty key of the accounts", "pki/accounts.key", "does not hold one private key", "remove the file", write("pki/accounts.key", "")},
		{"a key of another kind", "pki/accounts.key", "does not hold one private key", "remove the file",
			write("pki/accounts.key", "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n-----END PRIVATE KEY-----\n")},
		{"an empty token", "admin-token", "does not hold one token", "remove the file", write("admin-token", "\n")},
		{"two tokens", "admin-token", "does not hold one token", "remove the file", write("admin-token", "one\ntwo\n")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			open(t, Options{Dir: dir})
			tt.harm(t, dir)
			before := contents(t, dir)
			_, err := Open(Options{Dir: dir})
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got error %v, want an Error", err)
			}
			if tt.file != "" && e.File != filepath.Join(dir, tt.file) || !strings.Contains(e.Problem, tt.problem) ||
				!strings.Contains(e.Remedy, tt.remedy) || !strings.HasSuffix(err.Error(), "; "+e.Hint()) {
				t.Errorf("got %v", err)
			}
			if contents(t, dir) != before {
				t.Error("something was changed")
			}
		})
	}
}

func contents(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			b.WriteString(path + "\n" + read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWhatWasRemovedOnPurposeIsMadeAnew(t *testing.T) {
	for _, name := range []string{"pki/serving.pem", "pki/admin.pem", "pki/ca.crt", "pki/accounts.key", "admin-token"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := open(t, Options{Dir: dir})
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			second := open(t, Options{Dir: dir})
			if !exists(filepath.Join(dir, name)) {
				t.Error("it was not made anew")
			}
			if !second.ca.cert().Equal(first.ca.cert()) {
				t.Error("so was the authority")
			}
		})
	}
}

func TestAFileThatOthersMayReadIsReported(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes there do not say who may read")
	}
	dir := t.TempDir()
	open(t, Options{Dir: dir})
	if err := os.Chmod(filepath.Join(dir, "pki/admin.pem"), 0o644); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	open(t, Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if n := strings.Count(log.String(), "can be read by others"); n != 1 || !strings.Contains(log.String(), "admin.pem") {
		t.Errorf("log: %s", &log)
	}
}

func TestNothingHalfWrittenIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(target, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(target, []byte("x")); err == nil {
		t.Fatal("a folder was replaced by a file")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// giveCertificate writes a certificate of another authority, for those hosts.
func giveCertificate(t *testing.T, certFile, keyFile string, hosts ...string) *x509.Certificate {
	t.Helper()
	ca := open(t, Options{})
	id, err := issueServing(&ca.ca, sans{names: hosts}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(certFile, append(id.certPEM, ca.ca.certPEM...), 0o600), os.WriteFile(keyFile, id.keyPEM, 0o600)); err != nil {
		t.Fatal(err)
	}
	return id.cert()
}

func TestAGivenCertificateIsServedAndReadAgainWhenItChanges(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	first := giveCertificate(t, certFile, keyFile, "pawl.example")
	p := open(t, Options{Dir: filepath.Join(dir, "data"), CertFile: certFile, KeyFile: keyFile})
	if !shown(t, p).Equal(first) {
		t.Error("it is not served")
	}
	if exists(filepath.Join(dir, "data/pki/serving.pem")) {
		t.Error("one of ours was made for nothing")
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := p.WriteKubeconfig(kubeconfig, "https://127.0.0.1:7443"); err != nil {
		t.Fatal(err)
	}
	before := read(t, kubeconfig)
	if !strings.Contains(before, "tls-server-name: pawl.example") {
		t.Error("the kubeconfig does not ask for the name that the certificate is for")
	}

	key := read(t, keyFile)
	second := giveCertificate(t, certFile, keyFile, "new.pawl.example")
	newKey := read(t, keyFile)
	if err := os.WriteFile(keyFile, []byte(key), 0o600); err != nil { // the certificate comes first, its key is yet to come
		t.Fatal(err)
	}
	touch(t, keyFile, 1)
	if !shown(t, p).Equal(first) {
		t.Error("half a change was taken up")
	}
	if err := os.WriteFile(keyFile, []byte(newKey), 0o600); err != nil {
		t.Fatal(err)
	}
	touch(t, keyFile, 2)
	if !shown(t, p).Equal(second) {
		t.Error("the change was not taken up")
	}
	if after := read(t, kubeconfig); after == before || !strings.Contains(after, "new.pawl.example") {
		t.Error("the kubeconfig still trusts the old one")
	}
	if err := os.Remove(certFile); err != nil {
		t.Fatal(err)
	}
	if !shown(t, p).Equal(second) {
		t.Error("it is no longer served")
	}
}

// touch gives a file a time that no write by then had: clocks of files are coarse.
func touch(t *testing.T, file string, n int) {
	t.Helper()
	at := time.Now().Add(time.Duration(n) * time.Hour)
	if err := os.Chtimes(file, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestGivenFilesThatDoNotServe(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	giveCertificate(t, certFile, keyFile, "pawl.example")
	for _, tt := range []struct{ name, cert, key, want string }{
		{"a certificate without a key", certFile, "", "give both files or neither"},
		{"a key without a certificate", "", keyFile, "give both files or neither"},
		{"a file that is not there", filepath.Join(dir, "none"), keyFile, "no such file"},
		{"the two exchanged", keyFile, certFile, "is no certificate for the key in"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Open(Options{CertFile: tt.cert, KeyFile: tt.key}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestAClientThatTrustsTheKubeconfigTrustsTheServer(t *testing.T) {
	for _, how := range []string{"our own certificate", "a given certificate for another name"} {
		t.Run(how, func(t *testing.T) {
			var o Options
			if how != "our own certificate" {
				dir := t.TempDir()
				o.CertFile, o.KeyFile = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
				giveCertificate(t, o.CertFile, o.KeyFile, "*.pawl.example")
			}
			p := open(t, o)
			config, err := p.RESTConfig("https://127.0.0.1:7443")
			if err != nil {
				t.Fatal(err)
			}
			pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(config.CAData)
			name := config.ServerName
			if name == "" {
				name = "127.0.0.1"
			}
			near, far := net.Pipe()
			server := tls.Server(far, p.TLSConfig())
			done := make(chan error, 1)
			go func() { done <- server.Handshake() }()
			client := tls.Client(near, &tls.Config{RootCAs: roots, ServerName: name, Certificates: []tls.Certificate{pair}})
			if err := client.Handshake(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if peers := server.ConnectionState().PeerCertificates; len(peers) != 1 || !peers[0].Equal(p.admin.cert()) {
				t.Errorf("the server was shown %v", peers)
			}
		})
	}
}

func BenchmarkOpenWithoutAFolder(b *testing.B) {
	for b.Loop() {
		if _, err := Open(Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
