package pki

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// AdminName is the user name of the administrator.
	AdminName = "pawl-admin"
	// AdminGroup is the group of the administrator, which may do everything (rule H202).
	AdminGroup = "system:masters"

	// TokenFile is where in the data folder the administrator's token is.
	TokenFile = "admin-token"
)

// Options say what to keep, and where.
type Options struct {
	// Dir is the data folder. Without one nothing is kept on disk.
	Dir string
	// Kept are the files of a server that this one is to be the same as; see [PKI.Keep]. They go without a folder.
	Kept []Kept

	// Hosts are names and addresses that the serving certificate covers beside localhost,
	// 127.0.0.1 and ::1. Unspecified addresses (0.0.0.0, ::) and empty ones are passed over.
	Hosts []string

	// CertFile and KeyFile, given together, name a certificate (with its chain) to
	// serve instead of one of ours. They are read again when they change.
	CertFile, KeyFile string

	// Now is the clock; time.Now if it is nil.
	Now func() time.Time

	// Logger hears of renewals, and of those that failed. Nil means silence.
	Logger *slog.Logger
}

// A PKI holds the keys and certificates of one server. It is safe for concurrent use.
type PKI struct {
	dir   string
	sans  sans
	given *givenPair // nil: we serve a certificate of our own
	now   func() time.Time
	log   *slog.Logger
	token string

	accountKey *ecdsa.PrivateKey

	served atomic.Pointer[tls.Certificate]
	roots  atomic.Pointer[x509.CertPool]

	mu          sync.Mutex // guards what follows; held while it is renewed and written
	ca          identity
	serving     identity
	admin       identity
	kubeconfigs []kubeconfig
}

// Open reads what the data folder holds, makes what is missing and renews what is due.
func Open(o Options) (*PKI, error) {
	p := &PKI{dir: o.Dir, now: o.Now, log: o.Logger}
	if p.now == nil {
		p.now = time.Now
	}
	if p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if p.sans, err = parseSANs(o.Hosts); err != nil {
		return nil, err
	}
	if p.given, err = openGiven(o.CertFile, o.KeyFile); err != nil {
		return nil, err
	}
	if err := p.load(o.Kept); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.renew(); err != nil {
		return nil, err
	}
	if err := p.saveCopy(); err != nil {
		return nil, err
	}
	return p, nil
}

// load reads what is on disk or was kept, makes the token, and leaves absent what is to be made.
func (p *PKI) load(given []Kept) error {
	switch {
	case len(given) > 0 && p.dir != "":
		return errors.New("a server has its keys from a folder or from another server, not from both")
	case len(given) > 0:
		return p.take(given)
	case p.dir == "":
		p.token = newToken()
		var err error
		p.accountKey, err = newKey()
		return err
	}
	if err := PrepareFolder(p.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(p.dir, "pki"), 0o700); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		into *identity
	}{{"ca.pem", &p.ca}, {"serving.pem", &p.serving}, {"admin.pem", &p.admin}} {
		if err := p.readIdentity(f.name, f.into); err != nil {
			return err
		}
	}
	if err := p.check(); err != nil {
		return err
	}
	if err := p.loadAccountKey(); err != nil {
		return err
	}
	return p.loadToken()
}

// PrepareFolder makes the data folder dir if there is none: readable by nobody else, and
// kept out of git, because it will hold keys. A folder that has something in it is left as it is.
func PrepareFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, ".gitignore"), []byte("# Keys and data: not for version control.\n*\n"))
}

// loadToken reads the administrator's token, or makes one.
func (p *PKI) loadToken() error {
	file := filepath.Join(p.dir, TokenFile)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		p.token = newToken()
		return writeFile(file, []byte(p.token+"\n"))
	}
	if err != nil {
		return err
	}
	p.warnIfOpen(file)
	return p.readToken(file, data)
}

// readToken takes the token from the content of its file.
func (p *PKI) readToken(file string, data []byte) error {
	p.token = strings.TrimSpace(string(data))
	if p.token == "" || strings.ContainsFunc(p.token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return &Error{File: file, Problem: "does not hold one token on one line",
			Remedy: "put the token back, or remove the file and pawl makes a new one"}
	}
	return nil
}

// newToken returns 256 bits that nobody can guess, in characters that need no quoting.
func newToken() string {
	b := make([]byte, 32)
	rand.Read(b) // never fails: it ends the process rather than return less
	return base64.RawURLEncoding.EncodeToString(b)
}

// AdminToken returns the bearer token of the administrator.
func (p *PKI) AdminToken() string { return p.token }

// Roots returns the authority whose client certificates are believed, as it is now. The
// pool must not be changed; a renewal brings another.
func (p *PKI) Roots() *x509.CertPool { return p.roots.Load() }
