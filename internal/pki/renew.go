package pki

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"os"
	"time"
)

// checkEvery is how often [PKI.Run] looks at the clock. It looks at wall time, because a
// machine that sleeps stops the other kind.
const checkEvery = time.Minute

// Run renews what falls due, and reads a given certificate again when it changes, until
// ctx is done. What fails is logged and tried again.
func (p *PKI) Run(ctx context.Context) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.Renew()
		}
	}
}

// Renew renews what is due now, and rewrites the kubeconfigs that this concerns. A new
// certificate is in use even if it could not be saved: the error, which is also
// logged, then says so.
func (p *PKI) Renew() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed, err := p.renew()
	if changed {
		err = errors.Join(err, p.rewriteKubeconfigs())
	}
	if err != nil {
		p.log.Error("renewing certificates", "err", err)
	}
	return err
}

// renew brings all identities up to date, and tells whether anything that a
// kubeconfig holds did change. The caller holds mu.
func (p *PKI) renew() (changed bool, err error) {
	now := p.now()
	var errs []error
	note := func(did bool, err error) {
		changed = changed || did
		errs = append(errs, err)
	}
	note(p.renewAuthority(now))
	if p.ca.absent() {
		return changed, errors.Join(errs...)
	}
	if p.admin.absent() || due(p.admin.cert(), now) {
		made, err := issueAdmin(&p.ca, now)
		note(p.adopt("admin.pem", &p.admin, made, err))
	}
	switch {
	case p.given != nil:
		note(p.given.reload())
	case p.serving.absent() || due(p.serving.cert(), now) || !p.sans.coveredBy(p.serving.cert()):
		made, err := issueServing(&p.ca, p.sans, now)
		note(p.adopt("serving.pem", &p.serving, made, err))
	}
	p.publish()
	return changed, errors.Join(errs...)
}

// renewAuthority makes the authority, or renews it under its own key.
func (p *PKI) renewAuthority(now time.Time) (changed bool, err error) {
	var made identity
	switch {
	case p.ca.absent():
		made, err = newAuthority(now)
	case due(p.ca.cert(), now):
		made, err = signAuthority(p.ca.cert().Subject, p.ca.key(), now)
	default:
		return false, nil
	}
	changed, err = p.adopt("ca.pem", &p.ca, made, err)
	if changed {
		err = errors.Join(err, p.saveCopy())
	}
	return changed, err
}

// adopt puts an identity that was made in its place, and then in its file. One that cannot
// be saved is in use all the same: it is as good as any until the next start.
func (p *PKI) adopt(name string, place *identity, made identity, err error) (changed bool, _ error) {
	if err != nil {
		return false, err
	}
	*place = made
	p.log.Debug("made a certificate", "file", name, "until", made.cert().NotAfter)
	if p.dir == "" {
		return true, nil
	}
	return true, writeFile(p.path(name), made.content())
}

// publish gives readers what renew made.
func (p *PKI) publish() {
	if p.given != nil {
		p.served.Store(&p.given.identity.pair)
	} else {
		pair := p.serving.pair // a copy: a handshake may be using the one before
		p.served.Store(&pair)
	}
	if pool := p.Roots(); pool == nil || !pool.Equal(poolOf(p.ca.cert())) {
		p.roots.Store(poolOf(p.ca.cert()))
	}
}

func poolOf(c *x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c)
	return pool
}

// saveCopy writes the authority's certificate beside its key, if it is not there as it is.
func (p *PKI) saveCopy() error {
	if p.dir == "" {
		return nil
	}
	file := p.path("ca.crt")
	if have, err := os.ReadFile(file); err == nil && bytes.Equal(have, p.ca.certPEM) {
		return nil
	}
	return writeFile(file, p.ca.certPEM)
}
