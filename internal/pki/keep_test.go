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

// Without a folder, too, a server can be the same as another: both are known by either's clients.
func TestTwoServersOfOneIdentity(t *testing.T) {
	one, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	files, err := one.Keep()
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(Options{Kept: files, Hosts: []string{"other.example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	if other.AdminToken() != one.AdminToken() || !other.AccountKey().Equal(one.AccountKey()) || !other.Roots().Equal(one.Roots()) {
		t.Error("it is another server")
	}
	for _, id := range []identity{other.serving, other.admin} {
		if err := id.cert().CheckSignatureFrom(one.ca.cert()); err != nil {
			t.Errorf("%s is not known to the first: %v", id.cert().Subject, err)
		}
	}
	for name, wrong := range map[string]struct {
		options Options
		says    string
	}{
		"a folder besides":     {Options{Kept: files, Dir: t.TempDir()}, "not from both"},
		"a file that is left":  {Options{Kept: files[1:]}, "ca.pem is not among"},
		"a damaged authority":  {Options{Kept: []Kept{{kept[0], []byte("x")}, files[1], files[2]}}, "ca.pem is damaged"},
		"no authority":         {Options{Kept: []Kept{{kept[0], one.admin.content()}, files[1], files[2]}}, "is not an authority"},
		"a damaged key":        {Options{Kept: []Kept{files[0], {kept[1], []byte("x")}, files[2]}}, "accounts.key does not hold"},
		"a token that is none": {Options{Kept: []Kept{files[0], files[1], {kept[2], []byte("a b")}}}, "admin-token does not hold"},
	} {
		if _, err := Open(wrong.options); err == nil || !strings.Contains(err.Error(), wrong.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
