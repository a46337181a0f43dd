package pki

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
)

// A Kept is a file by which clients know a server, and the server its clients.
type Kept struct {
	Name    string // in the data folder, with slashes
	Content []byte
}

// kept are the names of the files that a server must have to be the same to its clients: the
// authority, which signs whatever else there is; the key of the tokens of service accounts;
// and the administrator's token. All others are made again at the next start, so that old
// ones are as good as they were.
var kept = []string{"pki/ca.pem", "pki/" + accountKeyFile, TokenFile}

// Keep returns what a copy of the server needs to be the same to its clients.
func (p *PKI) Keep() ([]Kept, error) {
	p.mu.Lock()
	authority := p.ca.content()
	p.mu.Unlock()
	pkcs8, err := x509.MarshalPKCS8PrivateKey(p.accountKey)
	if err != nil {
		return nil, err
	}
	account := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
	return []Kept{{kept[0], authority}, {kept[1], account}, {kept[2], []byte(p.token + "\n")}}, nil
}

// take has the PKI be that of the server which kept these files.
func (p *PKI) take(files []Kept) error {
	have := map[string][]byte{}
	for _, f := range files {
		have[f.Name] = f.Content
	}
	for _, name := range kept {
		if have[name] == nil {
			return &Error{File: name, Problem: "is not among what was kept of the server", Remedy: "keep all of it, or nothing"}
		}
	}
	var err error
	if p.ca, err = parseIdentity(have[kept[0]]); err != nil {
		return &Error{File: kept[0], Problem: "is damaged", Err: err, Remedy: "keep another in its place"}
	}
	if ca := p.ca.cert(); !ca.IsCA || ca.CheckSignatureFrom(ca) != nil {
		return &Error{File: kept[0], Problem: "is not an authority that signed itself", Remedy: "keep another in its place"}
	}
	return errors.Join(p.readAccountKey(kept[1], have[kept[1]]), p.readToken(kept[2], have[kept[2]]))
}

// KeepDir does what [PKI.Keep] does with a data folder that no server has. What is missing
// there is left out: it would have been made at the next start.
func KeepDir(dir string) (found []Kept, err error) {
	if err := Check(dir); err != nil {
		return nil, err
	}
	for _, name := range kept {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, Kept{name, data})
	}
	return found, nil
}

// CheckKept returns an error unless a server can be the one that kept these files.
func CheckKept(files []Kept) error {
	if err := known(files); err != nil {
		return err
	}
	return (&PKI{}).take(files)
}

func known(files []Kept) error {
	for _, f := range files {
		if !slices.Contains(kept, f.Name) {
			return fmt.Errorf("%q is no file that a server keeps: a newer pawl may know it", f.Name)
		}
	}
	return nil
}

// Place puts files that were kept into a data folder.
func Place(dir string, files []Kept) error {
	if err := known(files); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "pki"), 0o700); err != nil {
		return err
	}
	for _, f := range files {
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(f.Name)), f.Content); err != nil {
			return err
		}
	}
	return Check(dir)
}

// Check returns what is wrong with the keys and certificates of a data folder, an [Error] for each file; nil if
// nothing is. It changes nothing, and what is missing is not wrong if it can be made again.
func Check(dir string) error {
	p := &PKI{dir: dir, log: slog.New(slog.DiscardHandler)}
	errs := []error{
		p.readIdentity("ca.pem", &p.ca), p.readIdentity("serving.pem", &p.serving), p.readIdentity("admin.pem", &p.admin),
	}
	if errors.Join(errs...) == nil {
		errs = append(errs, p.check())
	}
	if exists(p.path(accountKeyFile)) {
		errs = append(errs, p.loadAccountKey())
	}
	if exists(filepath.Join(dir, TokenFile)) {
		errs = append(errs, p.loadToken())
	}
	return errors.Join(errs...)
}
