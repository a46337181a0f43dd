package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	leafLife      = 365 * 24 * time.Hour

	// backdate is how far the clock of a client may be behind ours.
	backdate = time.Hour
)

// An identity is a certificate and the key that it is about. The zero identity is absent.
type identity struct {
	pair    tls.Certificate
	certPEM []byte
	keyPEM  []byte
}

func (id *identity) absent() bool            { return id.pair.Leaf == nil }
func (id *identity) cert() *x509.Certificate { return id.pair.Leaf }
func (id *identity) key() crypto.Signer      { return id.pair.PrivateKey.(crypto.Signer) }

// due tells whether a certificate is to be renewed: a third of its life or less is left, or
// it has not begun (the clock was set back).
func due(c *x509.Certificate, now time.Time) bool {
	third := c.NotAfter.Sub(c.NotBefore) / 3
	return now.Before(c.NotBefore) || !now.Before(c.NotAfter.Add(-third))
}

// newAuthority makes an authority of its own name, so that two of them on one machine are
// never taken for each other.
func newAuthority(now time.Time) (identity, error) {
	key, err := newKey()
	if err != nil {
		return identity{}, err
	}
	mark := make([]byte, 4)
	rand.Read(mark)
	return signAuthority(pkix.Name{CommonName: "pawl-ca-" + hex.EncodeToString(mark)}, key, now)
}

// signAuthority signs key's certificate as an authority with itself.
func signAuthority(name pkix.Name, key crypto.Signer, now time.Time) (identity, error) {
	t := template(name, now, authorityLife)
	t.IsCA = true
	t.KeyUsage |= x509.KeyUsageCertSign
	return sign(t, key, t, key)
}

// issueServing makes the certificate that clients are shown.
func issueServing(ca *identity, s sans, now time.Time) (identity, error) {
	t := template(pkix.Name{CommonName: "pawl"}, now, leafLife)
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	t.DNSNames, t.IPAddresses = s.names, s.addresses
	return issue(ca, t)
}

// issueAdmin makes the certificate by which the administrator is known (rule H197).
func issueAdmin(ca *identity, now time.Time) (identity, error) {
	t := template(pkix.Name{CommonName: AdminName, Organization: []string{AdminGroup}}, now, leafLife)
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return issue(ca, t)
}

func template(name pkix.Name, now time.Time, life time.Duration) *x509.Certificate {
	return &x509.Certificate{ // the serial number is left to CreateCertificate, which draws one
		Subject:               name,
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(life),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}
}

func issue(ca *identity, t *x509.Certificate) (identity, error) {
	key, err := newKey()
	if err != nil {
		return identity{}, err
	}
	return sign(t, key, ca.cert(), ca.key())
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func sign(t *x509.Certificate, key crypto.Signer, by *x509.Certificate, byKey crypto.Signer) (identity, error) {
	der, err := x509.CreateCertificate(rand.Reader, t, by, key.Public(), byKey)
	if err != nil {
		return identity{}, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return identity{}, err
	}
	return parseIdentity(bytes.Join([][]byte{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
	}, nil))
}

// parseIdentity reads an identity from its file's content, and sees that the key is the
// certificate's.
func parseIdentity(data []byte) (identity, error) {
	pair, err := tls.X509KeyPair(data, data)
	if err != nil {
		return identity{}, err
	}
	id := identity{pair: pair}
	for rest := data; ; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			return id, nil
		}
		if b.Type == "CERTIFICATE" {
			id.certPEM = append(id.certPEM, pem.EncodeToMemory(b)...)
		} else {
			id.keyPEM = append(id.keyPEM, pem.EncodeToMemory(b)...)
		}
	}
}

func (id *identity) content() []byte { return append(bytes.Clone(id.certPEM), id.keyPEM...) }

func (p *PKI) path(name string) string { return filepath.Join(p.dir, "pki", name) }

// readIdentity reads a file of the pki folder; one that is not there leaves id absent.
func (p *PKI) readIdentity(name string, id *identity) error {
	file := p.path(name)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	p.warnIfOpen(file)
	if *id, err = parseIdentity(data); err != nil {
		return &Error{File: file, Problem: "is damaged", Err: err, Remedy: p.remedy(name)}
	}
	return nil
}

// remedy says what to do about a file that is of no use.
func (p *PKI) remedy(name string) string {
	if name == "ca.pem" {
		return "restore it from a backup, or remove " + filepath.Join(p.dir, "pki") + " and " + filepath.Join(p.dir, TokenFile) +
			" to begin anew (every certificate handed out so far is void then)"
	}
	return "restore it from a backup, or remove it and pawl makes a new one"
}

// check sees that what was read belongs together.
func (p *PKI) check() error {
	if p.ca.absent() {
		for _, name := range []string{"ca.crt", "serving.pem", "admin.pem"} {
			if exists(p.path(name)) {
				return &Error{File: p.path("ca.pem"), Problem: "is missing, but " + name + " is there", Remedy: p.remedy("ca.pem")}
			}
		}
		return nil
	}
	if ca := p.ca.cert(); !ca.IsCA || ca.CheckSignatureFrom(ca) != nil {
		return &Error{File: p.path("ca.pem"), Problem: "is not an authority that signed itself", Remedy: p.remedy("ca.pem")}
	}
	for name, id := range map[string]*identity{"serving.pem": &p.serving, "admin.pem": &p.admin} {
		if !id.absent() && id.cert().CheckSignatureFrom(p.ca.cert()) != nil {
			return &Error{File: p.path(name), Problem: "was not signed by ca.pem", Remedy: p.remedy(name)}
		}
	}
	return p.checkCopy()
}

// checkCopy sees that ca.crt, if it is there, is about the authority's key. It may be an
// older one: the process may have ended between two writes.
func (p *PKI) checkCopy() error {
	file := p.path("ca.crt")
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	foreign := &Error{File: file, Problem: "is not the certificate of ca.pem", Remedy: "remove it, and pawl writes it again from ca.pem"}
	block, _ := pem.Decode(data)
	if block == nil {
		return foreign
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		foreign.Err = err
		return foreign
	}
	if !bytes.Equal(c.RawSubjectPublicKeyInfo, p.ca.cert().RawSubjectPublicKeyInfo) {
		return foreign
	}
	return nil
}
