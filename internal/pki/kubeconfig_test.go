package pki

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

const somebodys = `apiVersion: v1
kind: Config
current-context: work
clusters:
- name: work
  cluster: {server: "https://work.example:6443"}
contexts:
- name: work
  context: {cluster: work, user: me}
users:
- name: me
  user: {token: secret}
`

const ours = `apiVersion: v1
kind: Config
current-context: pawl
clusters:
- name: pawl
  cluster: {server: "https://127.0.0.1:1", tls-server-name: old}
contexts:
- name: pawl
  context: {cluster: pawl, user: pawl, namespace: mine}
users:
- name: pawl
  user: {token: secret}
`

func TestKubeconfigIsMerged(t *testing.T) {
	for _, tt := range []struct {
		name, before, current, namespace string
		contexts                         []string
	}{
		{"a new file is ours", "", "pawl", "", []string{"pawl"}},
		{"a file with nothing in it becomes ours", "apiVersion: v1\nkind: Config\n", "pawl", "", []string{"pawl"}},
		{"somebody's contexts stay, and the current one stays current", somebodys, "work", "", []string{"pawl", "work"}},
		{"somebody's contexts stay, and ours becomes current if none was", strings.Replace(somebodys, "current-context: work", "", 1), "pawl", "", []string{"pawl", "work"}},
		{"what was ours is replaced, but not the namespace somebody chose", ours, "pawl", "mine", []string{"pawl"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "sub", "config")
			if tt.before != "" {
				if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(tt.before), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			p := open(t, Options{})
			if err := p.WriteKubeconfig(file, "https://127.0.0.1:7443"); err != nil {
				t.Fatal(err)
			}
			if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
				t.Errorf("mode %v, error %v", fi.Mode(), err)
			}
			got, err := clientcmd.LoadFromFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got.CurrentContext != tt.current {
				t.Errorf("current context is %q, want %q", got.CurrentContext, tt.current)
			}
			if names := slices.Sorted(maps.Keys(got.Contexts)); !slices.Equal(names, tt.contexts) {
				t.Errorf("contexts are %v, want %v", names, tt.contexts)
			}
			if c := got.Contexts["pawl"]; c.Namespace != tt.namespace || c.Cluster != "pawl" || c.AuthInfo != "pawl" {
				t.Errorf("our context is %+v", c)
			}
			if c := got.Clusters["pawl"]; c.Server != "https://127.0.0.1:7443" || c.TLSServerName != "" || string(c.CertificateAuthorityData) != string(p.ca.certPEM) {
				t.Errorf("our cluster is %+v", c)
			}
			if u := got.AuthInfos["pawl"]; u.Token != "" || string(u.ClientCertificateData) != string(p.admin.certPEM) || string(u.ClientKeyData) != string(p.admin.keyPEM) {
				t.Errorf("our user is %+v", u)
			}
			if u := got.AuthInfos["me"]; strings.Contains(tt.before, "name: me") && (u == nil || u.Token != "secret") {
				t.Errorf("somebody's user is %+v", u)
			}
		})
	}
}

func TestKubeconfigThatIsNoneIsLeftAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte("dear diary"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := open(t, Options{}).WriteKubeconfig(file, "https://127.0.0.1:7443")
	if err == nil || !strings.Contains(err.Error(), "move it away, or name another file with --kubeconfig") {
		t.Errorf("got error %v", err)
	}
	if got := read(t, file); got != "dear diary" {
		t.Errorf("it says %q now", got)
	}
}

func TestKubeconfigBehindALinkIsReplacedAndNotTheLink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte(somebodys), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip("no links here:", err)
	}
	if err := open(t, Options{}).WriteKubeconfig(link, "https://127.0.0.1:7443"); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Lstat(link); err != nil || fi.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is gone")
	}
	if got := read(t, file); !strings.Contains(got, "name: pawl") {
		t.Error("the file was not written")
	}
}

func TestKubeconfigNeedsTheURLOfAServer(t *testing.T) {
	p := open(t, Options{})
	for _, bad := range []string{"", "127.0.0.1:7443", "https://", "https://%zz"} {
		if err := p.WriteKubeconfig(filepath.Join(t.TempDir(), "config"), bad); err == nil || !strings.Contains(err.Error(), "expected https://HOST:PORT") {
			t.Errorf("%q: got error %v", bad, err)
		}
	}
}

func TestKubeconfigThatSaysItAlreadyIsNotWritten(t *testing.T) {
	p, file := open(t, Options{}), filepath.Join(t.TempDir(), "config")
	write := func() os.FileInfo {
		t.Helper()
		if err := p.WriteKubeconfig(file, "https://127.0.0.1:7443"); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	first := write()
	if !os.SameFile(first, write()) {
		t.Error("it was written again")
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if again := write(); again.Mode().Perm() != 0o600 {
		t.Errorf("a file that others may read is left so: %v", again.Mode())
	}
}
