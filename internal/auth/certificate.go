package auth

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
)

// maxRemembered is how many verified certificates are remembered.
const maxRemembered = 1024

// Certificates knows the holders of client certificates: the user is the common name,
// the groups are the organizations (rule H197).
//
// Verifying a chain costs two signatures, several times what serving a small object does, and
// clients send thousands of requests with one certificate. So what was verified is
// remembered while the chain is valid and the roots are the same.
type Certificates struct {
	roots func() *x509.CertPool
	now   func() time.Time

	mu       sync.RWMutex // guards verified
	verified map[[sha256.Size]byte]verified
}

// A verified certificate is a user for as long as from and until say.
type verified struct {
	user        User
	from, until time.Time
	roots       *x509.CertPool
}

// NewCertificates returns an authenticator that believes those whom the roots at that time
// have signed. Roots must return the same pool until it changes.
func NewCertificates(roots func() *x509.CertPool, now func() time.Time) *Certificates {
	return &Certificates{roots: roots, now: now, verified: map[[sha256.Size]byte]verified{}}
}

// Authenticate implements [Authenticator].
func (cs *Certificates) Authenticate(r *http.Request) (User, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, nil
	}
	leaf, now, roots := r.TLS.PeerCertificates[0], cs.now(), cs.roots()
	print := sha256.Sum256(leaf.Raw)
	cs.mu.RLock()
	v, ok := cs.verified[print]
	cs.mu.RUnlock()
	if ok && v.roots == roots && !now.Before(v.from) && !now.After(v.until) {
		return v.user, nil
	}
	v, err := verify(r.TLS.PeerCertificates, roots, now)
	if err != nil {
		return nil, fmt.Errorf("client certificate %q (serial number %v): %w", leaf.Subject, leaf.SerialNumber, err)
	}
	v.user = &user.DefaultInfo{
		Name:   leaf.Subject.CommonName,
		Groups: leaf.Subject.Organization,
		Extra:  map[string][]string{user.CredentialIDKey: {"X509SHA256=" + hex.EncodeToString(print[:])}},
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.verified) >= maxRemembered {
		clear(cs.verified) // rare enough that who is forgotten need not be chosen
	}
	cs.verified[print] = v
	return v.user, nil
}

// verify says for how long the first of certs, with the help of the others, is to be believed.
func verify(certs []*x509.Certificate, roots *x509.CertPool, now time.Time) (verified, error) {
	o := x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if len(certs) > 1 {
		o.Intermediates = x509.NewCertPool()
		for _, c := range certs[1:] {
			o.Intermediates.AddCert(c)
		}
	}
	chains, err := certs[0].Verify(o)
	if err != nil {
		return verified{}, err
	}
	if certs[0].Subject.CommonName == "" {
		return verified{}, errors.New("it names nobody: the common name is empty")
	}
	v := verified{from: certs[0].NotBefore, until: certs[0].NotAfter, roots: roots}
	for _, c := range chains[0] {
		if c.NotBefore.After(v.from) {
			v.from = c.NotBefore
		}
		if c.NotAfter.Before(v.until) {
			v.until = c.NotAfter
		}
	}
	return v, nil
}
