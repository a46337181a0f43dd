package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
)

// accountKeyFile is the name of the file with the key that signs tokens of service accounts.
const accountKeyFile = "accounts.key"

// AccountKey returns the key that signs the tokens of service accounts (rule H198). It is not
// renewed: tokens are short-lived, and a new key voids them all.
func (p *PKI) AccountKey() *ecdsa.PrivateKey { return p.accountKey }

// loadAccountKey reads the key, or makes one if there is none.
func (p *PKI) loadAccountKey() error {
	file := p.path(accountKeyFile)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if p.accountKey, err = newKey(); err != nil {
			return err
		}
		pkcs8, err := x509.MarshalPKCS8PrivateKey(p.accountKey)
		if err != nil {
			return err
		}
		return writeFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	}
	if err != nil {
		return err
	}
	p.warnIfOpen(file)
	return p.readAccountKey(file, data)
}

// readAccountKey takes the key from the content of its file.
func (p *PKI) readAccountKey(file string, data []byte) error {
	block, _ := pem.Decode(data)
	if block != nil {
		key, _ := x509.ParsePKCS8PrivateKey(block.Bytes)
		p.accountKey, _ = key.(*ecdsa.PrivateKey)
	}
	if p.accountKey == nil || p.accountKey.Curve != elliptic.P256() {
		return &Error{File: file, Problem: "does not hold one private key on P-256",
			Remedy: "put the key back, or remove the file and pawl makes a new one, which voids all tokens of service accounts"}
	}
	return nil
}
