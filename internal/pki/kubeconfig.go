package pki

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ContextName is what our cluster, user and context are called in a kubeconfig.
const ContextName = "pawl"

// A kubeconfig is one that we wrote.
type kubeconfig struct{ file, server string }

// WriteKubeconfig writes a kubeconfig for the administrator of the server at that URL, with
// the certificates in it, and keeps it up to date from then on.
//
// A file that is there already is added to: the cluster, user and context named
// [ContextName] are ours and replaced, all others stay. The current context becomes ours only
// if there was none: starting a server must not change where somebody's next kubectl
// command goes. Comments in it are lost. The file is 0600 afterwards; a symbolic link to it stays one.
func (p *PKI) WriteKubeconfig(file, server string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := kubeconfig{file, server}
	if err := p.writeKubeconfig(k); err != nil {
		return err
	}
	p.kubeconfigs = append(p.kubeconfigs, k)
	return nil
}

func (p *PKI) rewriteKubeconfigs() error {
	var errs []error
	for _, k := range p.kubeconfigs {
		errs = append(errs, p.writeKubeconfig(k))
	}
	return errors.Join(errs...)
}

func (p *PKI) writeKubeconfig(k kubeconfig) error {
	file := k.file
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	have, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	config, err := clientcmd.Load(have)
	if err != nil {
		return &Error{File: k.file, Problem: "is there but is no kubeconfig", Err: err,
			Remedy: "move it away, or name another file with --kubeconfig"}
	}
	if err := p.mergeInto(config, k.server); err != nil {
		return err
	}
	want, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm() == 0o600 && bytes.Equal(have, want) {
		return nil // a start needs no room on the disk for what is there
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return writeFile(file, want)
}

// mergeInto puts our three entries into config.
func (p *PKI) mergeInto(config *clientcmdapi.Config, server string) error {
	trusted, serverName, err := p.trust(server)
	if err != nil {
		return err
	}
	cluster := clientcmdapi.NewCluster()
	cluster.Server = server
	cluster.CertificateAuthorityData = trusted
	cluster.TLSServerName = serverName
	config.Clusters[ContextName] = cluster

	user := clientcmdapi.NewAuthInfo()
	user.ClientCertificateData = p.admin.certPEM
	user.ClientKeyData = p.admin.keyPEM
	config.AuthInfos[ContextName] = user

	context := config.Contexts[ContextName]
	if context == nil {
		context = clientcmdapi.NewContext() // else its namespace stays: somebody chose it
		config.Contexts[ContextName] = context
	}
	context.Cluster, context.AuthInfo = ContextName, ContextName
	if config.CurrentContext == "" {
		config.CurrentContext = ContextName
	}
	return nil
}

// trust returns what a client of the server at that URL should trust, and the name to
// ask for if the certificate is not for the host of the URL. A given certificate is
// trusted as it is, with its chain: whoever gave it may have signed it themselves.
func (p *PKI) trust(server string) (pem []byte, serverName string, err error) {
	u, err := url.Parse(server)
	if err != nil || u.Hostname() == "" {
		return nil, "", fmt.Errorf("%q is no URL of a server: expected https://HOST:PORT", server)
	}
	if p.given == nil {
		return p.ca.certPEM, "", nil
	}
	leaf := p.given.identity.pair.Leaf
	if leaf.VerifyHostname(u.Hostname()) == nil || len(leaf.DNSNames) == 0 {
		return p.given.identity.certPEM, "", nil
	}
	return p.given.identity.certPEM, strings.Replace(leaf.DNSNames[0], "*", ContextName, 1), nil
}

// RESTConfig returns how to reach the server at that URL as its administrator.
func (p *PKI) RESTConfig(server string) (*rest.Config, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	trusted, serverName, err := p.trust(server)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: server,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:     trusted,
			CertData:   p.admin.certPEM,
			KeyData:    p.admin.keyPEM,
			ServerName: serverName,
		},
	}, nil
}
