package pawl_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/pawltest"
)

// A server in memory is backed up and comes back on disk: same objects, same versions, and
// clients with the configuration that they had get in.
func TestAServerInMemoryComesBackOnDisk(t *testing.T) {
	srv := pawltest.Start(t, pawl.Config{})
	before := srv.RESTConfig()
	account, err := kubernetes.NewForConfigOrDie(before).CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := srv.Backup(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := pawl.Restore(t.Context(), dir, "backup", &b, nil); err != nil {
		t.Fatal(err)
	}
	again := pawltest.Start(t, pawl.Config{DataDir: dir})
	before.Host = again.URL()
	got, err := kubernetes.NewForConfigOrDie(before).CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
	if err != nil || got.UID != account.UID || got.ResourceVersion != account.ResourceVersion {
		t.Errorf("the account is %v %s, %v; it was %v %s", got.UID, got.ResourceVersion, err, account.UID, account.ResourceVersion)
	}
}

func TestHistoryIsForgottenOverHTTP(t *testing.T) {
	srv := pawltest.Start(t, pawl.Config{})
	client, err := rest.HTTPClientFor(srv.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Post(srv.URL()+"/pawl/compact?older-than=0s", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var done pawl.Compacted
	if err := json.NewDecoder(resp.Body).Decode(&done); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	if done.Oldest == 0 || done.Oldest != done.Newest {
		t.Errorf("it says %+v", done)
	}
}

// What a server cannot read is found in a folder, and how it is got rid of; all that a server writes by itself is sound.
func TestAFolderIsCheckedForObjectsThatCannotBeRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	srv := pawltest.Start(t, pawl.Config{DataDir: dir})
	if err := srv.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	report, err := pawl.CheckFolder(t.Context(), dir, nil)
	if err != nil || len(report.Problems) > 0 || report.Objects == 0 {
		t.Fatalf("of what a server made: %+v, %v", report, err)
	}
	e, err := local.Open(t.Context(), local.Options{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	const key = "pawl/core/configmaps/default/broken"
	if _, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(key, []byte("no object"))}}); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	report, err = pawl.CheckFolder(t.Context(), dir, nil)
	if err != nil || len(report.Problems) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	if p := report.Problems[0]; !strings.HasPrefix(p.What, key) || !strings.Contains(p.Advice, "ignoreStoreReadErrorWithClusterBreakingPotential") {
		t.Errorf("it finds %+v", p)
	}
}
