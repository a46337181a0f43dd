package pki

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// A server with the files that were kept of another is that other to every client: same
// authority, same administrator, same tokens of service accounts.
func TestACopyIsTheSameToItsClients(t *testing.T) {
	dir, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	p, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	running, err := p.Keep()
	if err != nil {
		t.Fatal(err)
	}
	lying, err := KeepDir(dir)
	if err != nil || !reflect.DeepEqual(running, lying) {
		t.Errorf("of a folder in use %v is kept, of the folder %v, %v", running, lying, err)
	}
	if err := Place(copied, lying); err != nil {
		t.Fatal(err)
	}
	c, err := Open(Options{Dir: copied})
	if err != nil {
		t.Fatal(err)
	}
	if c.AdminToken() != p.AdminToken() || !c.AccountKey().Equal(p.AccountKey()) || !c.Roots().Equal(p.Roots()) {
		t.Error("the copy is another server")
	}
	if err := p.admin.cert().CheckSignatureFrom(c.ca.cert()); err != nil {
		t.Errorf("the copy does not know the administrator's certificate: %v", err)
	}
	for _, k := range running {
		info, err := os.Stat(filepath.Join(copied, filepath.FromSlash(k.Name)))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", k.Name, info.Mode(), err)
		}
	}
}

func TestPlacePutsFilesNowhereElse(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"../x", "/etc/passwd", "pki/../../x", "store/x", ""} {
		if err := Place(dir, []Kept{{name, []byte("x")}}); err == nil {
			t.Errorf("%q was put somewhere", name)
		}
	}
}

func TestCheckChangesNothingAndFindsEachFile(t *testing.T) {
	empty := t.TempDir()
	if err := Check(empty); err != nil {
		t.Errorf("of nothing: %v", err)
	}
	if entries, err := os.ReadDir(empty); err != nil || len(entries) > 0 {
		t.Errorf("it made %v, %v", entries, err)
	}
	for _, name := range []string{"pki/ca.pem", "pki/serving.pem", "pki/admin.pem", "pki/accounts.key", "admin-token"} {
		dir := t.TempDir()
		if _, err := Open(Options{Dir: dir}); err != nil {
			t.Fatal(err)
		}
		if err := Check(dir); err != nil {
			t.Errorf("of a good folder: %v", err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("not what it\nwas"), 0o600); err != nil {
			t.Fatal(err)
		}
		var found *Error
		if err := Check(dir); !errors.As(err, &found) || !strings.HasSuffix(filepath.ToSlash(found.File), name) {
			t.Errorf("%s is damaged, and it says %v", name, err)
		}
		if _, err := KeepDir(dir); err == nil {
			t.Errorf("%s is damaged, and kept", name)
		}
	}
}
