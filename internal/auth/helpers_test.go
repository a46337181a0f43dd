package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// An authority signs certificates that are good for a day around noon.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB, name string) *authority {
	return (&authority{}).sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, KeyUsage: x509.KeyUsageCertSign})
}

// sign returns c signed by a, or by itself if a is nobody yet.
func (a *authority) sign(t testing.TB, c *x509.Certificate) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.BasicConstraintsValid = true
	if c.NotAfter.IsZero() {
		c.NotBefore, c.NotAfter = noon.Add(-12*time.Hour), noon.Add(12*time.Hour)
	}
	by, byKey := a.cert, a.key
	if by == nil {
		by, byKey = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, key.Public(), byKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

// client returns a client certificate for that user.
func (a *authority) client(t testing.TB, name string, groups ...string) *x509.Certificate {
	return a.sign(t, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}).cert
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// certificates knows those whom a signed, at noon.
func (a *authority) certificates() *Certificates {
	pool := a.pool()
	return NewCertificates(func() *x509.CertPool { return pool }, func() time.Time { return noon })
}

func request(method, path string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func withCertificates(r *http.Request, certs ...*x509.Certificate) *http.Request {
	r.TLS = &tls.ConnectionState{PeerCertificates: certs}
	return r
}

func tokens(t testing.TB, ts ...Token) *Tokens {
	t.Helper()
	a, err := NewTokens(ts...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func somebody(name string, groups ...string) User {
	return NewUser(name, groups...)
}
