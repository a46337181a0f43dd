package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// TLSConfig returns what to serve with. The certificate is the newest one at each
// handshake. Clients are asked for a certificate but not judged by it: one that is
// not ours is a 401 (rule H195), which explains itself better than a broken handshake.
func (p *PKI) TLSConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		ClientAuth: tls.RequestClientCert,
		ClientCAs:  p.Roots(), // only names whom we believe, and the name outlives renewals
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			p.Renew() // what fails is logged; the certificate at hand may still do
			return p.served.Load(), nil
		},
	}
}

// sans are the names and addresses that a certificate is for.
type sans struct {
	names     []string
	addresses []net.IP
}

func parseSANs(hosts []string) (sans, error) {
	s := sans{names: []string{"localhost"}}
	ips := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	for _, h := range hosts {
		ip, err := netip.ParseAddr(h)
		ip = ip.WithZone("").Unmap()
		name := strings.ToLower(h)
		switch {
		case err == nil && (ip.IsUnspecified() || slices.Contains(ips, ip)):
		case err == nil:
			ips = append(ips, ip)
		case h == "" || slices.Contains(s.names, name):
		case strings.ContainsFunc(h, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("/:@,", r) }):
			return s, fmt.Errorf("a certificate cannot be for %q: name a host or an address, without a port", h)
		default:
			s.names = append(s.names, name)
		}
	}
	for _, ip := range ips {
		s.addresses = append(s.addresses, ip.AsSlice())
	}
	return s, nil
}

// coveredBy tells whether c is for exactly these.
func (s sans) coveredBy(c *x509.Certificate) bool {
	return sameSet(s.names, c.DNSNames, func(n string) string { return n }) &&
		sameSet(s.addresses, c.IPAddresses, net.IP.String)
}

func sameSet[T any](a, b []T, text func(T) string) bool {
	texts := func(ts []T) []string {
		out := make([]string, len(ts))
		for i, t := range ts {
			out[i] = text(t)
		}
		slices.Sort(out)
		return out
	}
	return slices.Equal(texts(a), texts(b))
}

// A givenPair is a certificate that somebody else renews.
type givenPair struct {
	certFile, keyFile string
	certSeen, keySeen stamp
	identity          *identity
}

// A stamp is how a file looked, to see cheaply that it may have changed.
type stamp struct{ modified, sizeBytes int64 }

func stampOf(file string) (stamp, error) {
	fi, err := os.Stat(file)
	if err != nil {
		return stamp{}, err
	}
	return stamp{fi.ModTime().UnixNano(), fi.Size()}, nil
}

func openGiven(certFile, keyFile string) (*givenPair, error) {
	if certFile == "" && keyFile == "" {
		return nil, nil
	}
	if certFile == "" || keyFile == "" {
		return nil, errors.New("a certificate to serve needs its key, and a key its certificate: give both files or neither")
	}
	g := &givenPair{certFile: certFile, keyFile: keyFile}
	if _, err := g.reload(); err != nil {
		return nil, err
	}
	return g, nil
}

// reload reads the files if they changed since, and tells whether the certificate did. On
// an error the one at hand stays, and the files are read again once they change again:
// whoever replaces two files does so one after the other.
func (g *givenPair) reload() (changed bool, err error) {
	certNow, err := stampOf(g.certFile)
	if err != nil {
		return false, err
	}
	keyNow, err := stampOf(g.keyFile)
	if err != nil {
		return false, err
	}
	if certNow == g.certSeen && keyNow == g.keySeen {
		return false, nil
	}
	g.certSeen, g.keySeen = certNow, keyNow
	cert, err := os.ReadFile(g.certFile)
	if err != nil {
		return false, err
	}
	key, err := os.ReadFile(g.keyFile)
	if err != nil {
		return false, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return false, &Error{File: g.certFile, Problem: "is no certificate for the key in " + g.keyFile, Err: err,
			Remedy: "give a PEM certificate (then its chain) and the PEM key that belongs to it"}
	}
	changed = g.identity == nil || !bytes.Equal(g.identity.certPEM, cert)
	g.identity = &identity{pair: pair, certPEM: cert}
	return changed, nil
}
