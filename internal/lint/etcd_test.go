package lint

import (
	"os/exec"
	"strings"
	"testing"
)

// etcdEngine is the folder that knows etcd's client. The command links it; whoever builds on pawl does so only if they import it.
const etcdEngine = "kv/etcd"

// mayLinkEtcd says whether a package of a folder may import what brings etcd's client with it.
func mayLinkEtcd(folder, imported string) bool {
	switch {
	case within(imported, "go.etcd.io/etcd"):
		return within(folder, etcdEngine)
	case within(imported, module+"/"+etcdEngine):
		return within(folder, etcdEngine) || within(folder, "cmd/pawl")
	}
	return true
}

// TestEtcdIsLinkedOnPurpose keeps etcd's client, and gRPC's with it, out of programs that do not ask for it.
func TestEtcdIsLinkedOnPurpose(t *testing.T) {
	for _, f := range files(t) {
		if f.test() || isAside(f.folder()) {
			continue
		}
		for _, imported := range f.imports() {
			if !mayLinkEtcd(f.folder(), imported) {
				t.Errorf("%s imports %s: etcd's client is for %s alone, which the command gives to the root package as a SharedStore", f.path, imported, etcdEngine)
			}
		}
	}
	list := exec.Command("go", "list", "-deps", ".", "./pawltest", "./compat", "./kv/local") // what others import, and all below
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for imported := range strings.Lines(string(out)) {
		if imported = strings.TrimSpace(imported); within(imported, "go.etcd.io/etcd") {
			t.Errorf("whoever imports pawl links %s: some import of ours brings it along", imported)
		}
	}
}

func TestWhoMayLinkEtcd(t *testing.T) {
	for _, c := range []struct {
		name             string
		folder, imported string
		may              bool
	}{
		{"the engine knows the client", "kv/etcd", "go.etcd.io/etcd/client/v3", true},
		{"the command links the engine", "cmd/pawl", module + "/kv/etcd", true},
		{"the command does not speak to etcd itself", "cmd/pawl", "go.etcd.io/etcd/client/v3", false},
		{"the root is given a store", ".", module + "/kv/etcd", false},
		{"the other engine does without", "kv/local", "go.etcd.io/etcd/api/v3/mvccpb", false},
		{"everybody may use what is not etcd's", ".", "google.golang.org/grpc", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if may := mayLinkEtcd(c.folder, c.imported); may != c.may {
				t.Errorf("%s may import %s: %v, want %v", c.folder, c.imported, may, c.may)
			}
		})
	}
}
