package etcd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An Authority issues certificates: to members, and to clients, whose common names are etcd's users.
type Authority struct {
	File string // with its certificate

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

// Secrets are a certificate and its key, in files.
type Secrets struct{ Cert, Key string }

// NewAuthority returns an authority that nobody else knows.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	key := newKey(t)
	now := time.Now()
	text := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "etcd's authority"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	a := &Authority{File: filepath.Join(t.TempDir(), "ca.pem"), key: key, pool: x509.NewCertPool()}
	der, err := x509.CreateCertificate(rand.Reader, text, text, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	writePEM(t, a.File, "CERTIFICATE", der)
	return a
}

// Issue returns a certificate for somebody at this machine, client or server, which is good for an hour.
func (a *Authority) Issue(t testing.TB, name string) Secrets {
	t.Helper()
	key := newKey(t)
	now := time.Now()
	text := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, text, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := Secrets{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	writePEM(t, s.Cert, "CERTIFICATE", der)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, s.Key, "PRIVATE KEY", private)
	return s
}

// TLS is how a client with these secrets speaks to members that the authority knows.
func (a *Authority) TLS(t testing.TB, s Secrets) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(s.Cert, s.Key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: a.pool, Certificates: []tls.Certificate{pair}}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
