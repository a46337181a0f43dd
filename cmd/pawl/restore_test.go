package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// pawlSays runs a command line in this process, and returns what it says.
func pawlSays(args ...string) string {
	return say(process{build: aBuild}, args)
}

func mustDo(t *testing.T, p *running, method, path string, body any, want int) config {
	t.Helper()
	var got config
	if code, err := p.do(method, path, body, &got); err != nil || code != want {
		t.Fatalf("%s %s: %d, %v, want %d", method, path, code, err, want)
	}
	return got
}

// eventually waits for another process.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(40 * time.Second); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain until ", what)
		}
	}
}

// A server is backed up while it runs, goes on under the eyes of an informer, is killed, and
// comes back without what was written since, at the same address and for the same clients.
func TestARestoredServerTellsNobodyOldNews(t *testing.T) {
	dir, restored, file := t.TempDir(), filepath.Join(t.TempDir(), "restored"), filepath.Join(t.TempDir(), "pawl.bak")
	p := startPawl(t, dir)
	changed := mustDo(t, p, "POST", configs, named("changed", "1"), http.StatusCreated)
	mustDo(t, p, "POST", configs, named("deleted", "1"), http.StatusCreated)
	if said := pawlSays("backup", "--data", dir, file); !strings.HasPrefix(said, "backed up ") {
		t.Fatalf("backup says %s", said)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup has mode %v, %v", info.Mode(), err)
	}

	// The future that is lost, and somebody who sees all of it.
	seen := inform(t, dir)
	newer := changed
	newer.Data = map[string]string{"n": "2"}
	newer = mustDo(t, p, "PUT", configs+"/changed", newer, http.StatusOK)
	if code, err := p.do("DELETE", configs+"/deleted", nil, &struct{}{}); err != nil || code != http.StatusOK {
		t.Fatal(code, err)
	}
	last := mustDo(t, p, "POST", configs, named("made", "1"), http.StatusCreated)
	eventually(t, "the informer has seen the last write", func() bool { return seen.has("made", "1") && seen.version() >= last.version() })
	p.kill(t)

	if said := pawlSays("restore", file, restored); !strings.Contains(said, "to "+restored) || strings.Contains(said, "!") {
		t.Fatalf("restore says %s", said)
	}
	p = startPawlOn(t, restored, strings.TrimPrefix(p.url, "https://"))
	client := oldClient(t, dir, p)

	for what, path := range map[string]string{
		"a watch":                        "?watch=1&resourceVersion=" + last.Metadata.ResourceVersion,
		"a watch of one object":          "/changed?watch=1&resourceVersion=" + newer.Metadata.ResourceVersion,
		"an exact list":                  "?resourceVersionMatch=Exact&resourceVersion=" + last.Metadata.ResourceVersion,
		"an exact list of what both saw": "?resourceVersionMatch=Exact&resourceVersion=" + changed.Metadata.ResourceVersion,
	} {
		if code := goneCode(t, client, what, path); code != http.StatusGone {
			t.Errorf("%s from what was lost gets %d, want 410", what, code)
		}
	}
	stale := newer
	stale.Data = map[string]string{"n": "3"}
	if code, err := client.do("PUT", configs+"/changed", stale, &struct{}{}); err != nil || code != http.StatusConflict {
		t.Errorf("a write that rests on what was lost gets %d, %v", code, err)
	}

	eventually(t, "the informer shows the restored state", func() bool {
		return seen.has("changed", "1") && seen.has("deleted", "1") && !seen.has("made", "1")
	})
	if now := seen.version(); now <= last.version() {
		t.Errorf("the informer went back from version %d to %d", last.version(), now)
	}
	list := mustDo(t, client, "GET", configs, nil, http.StatusOK)
	old := mustDo(t, client, "GET", configs+"/changed", nil, http.StatusOK)
	if old.version() != changed.version() || list.version() <= last.version() || list.version() >= 1<<53 {
		t.Errorf("the object has version %d, want %d; the list has %d, want far more than %d", old.version(), changed.version(), list.version(), last.version())
	}
	old.Data = map[string]string{"n": "4"}
	fresh := mustDo(t, client, "PUT", configs+"/changed", old, http.StatusOK)
	if fresh.version() <= list.version() {
		t.Errorf("after version %d came version %d", list.version(), fresh.version())
	}
	eventually(t, "the informer sees what comes", func() bool { return seen.has("changed", "4") })
}

// An informed is an informer of the configmaps of the default namespace.
type informed struct {
	informer cache.SharedIndexInformer
	lister   corelisters.ConfigMapNamespaceLister
}

func inform(t *testing.T, dir string) informed {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	f := informers.NewSharedInformerFactoryWithOptions(kubernetes.NewForConfigOrDie(c), 0, informers.WithNamespace("default"))
	maps := f.Core().V1().ConfigMaps()
	s := informed{maps.Informer(), maps.Lister().ConfigMaps("default")}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); f.Shutdown() })
	f.StartWithContext(ctx)
	f.WaitForCacheSyncWithContext(ctx)
	return s
}

func (s informed) has(name, n string) bool {
	var c *corev1.ConfigMap
	c, err := s.lister.Get(name)
	return err == nil && c.Data["n"] == n
}

// version is the resourceVersion that the informer has come to.
func (s informed) version() uint64 {
	n, _ := strconv.ParseUint(s.informer.LastSyncResourceVersion(), 10, 64)
	return n
}

// oldClient is one that knows the server from before: by its kubeconfig, with the authority and the
// certificate or token in it.
func oldClient(t *testing.T, dir string, p *running) *running {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		t.Fatal(err)
	}
	return &running{cmd: p.cmd, url: c.Host, client: client}
}

// goneCode is the code of an answer, or of the event that a watch begins with.
func goneCode(t *testing.T, p *running, what, path string) int {
	t.Helper()
	resp, err := p.client.Get(p.url + configs + path)
	if err != nil {
		t.Fatal(what, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode
	}
	var event struct {
		Object metav1.Status `json:"object"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&event); err != nil {
		t.Fatal(what, err)
	}
	return int(event.Object.Code)
}

func TestUpkeepOfAFolderAndOfItsServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	file := filepath.Join(t.TempDir(), "pawl.bak")
	p := startPawl(t, dir)
	for i := range 20 {
		mustDo(t, p, "POST", configs, named(fmt.Sprint("c", i), "1"), http.StatusCreated)
	}
	newest := mustDo(t, p, "GET", configs, nil, http.StatusOK)
	expect := func(what, said string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(said, w) {
				t.Errorf("%s says\n%swant %q", what, said, w)
			}
		}
	}
	expect("check of a server", pawlSays("check", dir), "is in use by a server (pid ", "! pawl: hint: stop it first", "[exit 1]")
	expect("compact of a server", pawlSays("compact", "--data", dir, "--older-than", "0s"), "history begins at revision "+newest.Metadata.ResourceVersion+", of "+newest.Metadata.ResourceVersion)
	expect("compact of the future", pawlSays("compact", "--data", dir, "--before", "999999"), "400 Bad Request: kv: compact: no such revision yet", "[exit 1]")
	expect("backup of a server", pawlSays("backup", "--kubeconfig", filepath.Join(dir, "kubeconfig"), file), "backed up ", " of revision "+newest.Metadata.ResourceVersion)
	p.kill(t)
	expect("backup without a server", pawlSays("backup", "--kubeconfig", filepath.Join(dir, "kubeconfig"), file), "nobody answers at "+p.url, "[exit 1]")
	expect("check", pawlSays("check", dir), " at revision "+newest.Metadata.ResourceVersion, "closed     no: the server was killed")
	expect("backup of a folder", pawlSays("backup", "--data", dir, file), "backed up ", " of revision "+newest.Metadata.ResourceVersion)
	expect("compact of a folder", pawlSays("compact", "--data", dir, "--older-than", "0s"), "history begins at revision "+newest.Metadata.ResourceVersion)
	var report struct {
		Problems []any          `json:"problems"`
		Objects  int            `json:"objects"`
		Tables   map[string]int `json:"tables"`
		Closed   bool           `json:"closed"`
	}
	said := pawlSays("check", dir, "-o", "json")
	if err := json.Unmarshal([]byte(said), &report); err != nil || len(report.Problems) > 0 || report.Tables["default/core/configmaps"] != 20 || !report.Closed {
		t.Errorf("check -o json says %s: %v", said, err)
	}

	if err := os.WriteFile(filepath.Join(dir, "pki", "ca.pem"), []byte("?"), 0o600); err != nil {
		t.Fatal(err)
	}
	snapshots, err := filepath.Glob(filepath.Join(dir, "store", "snap", "*.snap"))
	if err != nil || len(snapshots) != 1 {
		t.Fatal(snapshots, err)
	}
	data, err := os.ReadFile(snapshots[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2]++
	if err := os.WriteFile(snapshots[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	expect("check of damage", pawlSays("check", dir), "is damaged in 2 places", snapshots[0]+", at byte ", "a block's checksum is wrong",
		"! pawl: hint: restore the folder from a backup: nothing else holds",
		"objects    it cannot be told how many, because of the damage", "ca.pem: is damaged: ", "! pawl: hint: restore it from a backup", "[exit 1]")
	damaged := pawlSays("backup", "--data", dir, file)
	expect("backup of damage", damaged, "[exit 1]")
	expect("the older backup is still there", pawlSays("restore", file, filepath.Join(t.TempDir(), "again")), "restored ")
}

func TestABackupThatIsNotWholeLeavesNothing(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	p := startPawl(t, dir)
	file := filepath.Join(out, "pawl.bak")
	if said := pawlSays("backup", "--data", dir, file); !strings.HasPrefix(said, "backed up ") {
		t.Fatal(said)
	}
	p.kill(t)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, whole[:len(whole)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	into := filepath.Join(out, "restored")
	if said := pawlSays("restore", file, into); !strings.Contains(said, "it ends too early") || !strings.Contains(said, "hint: it is not a whole backup") {
		t.Errorf("restoring it says %s", said)
	}
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) != 1 {
		t.Errorf("it left %v, %v", entries, err)
	}
}

// A server that breaks off in the middle of a backup, or sends something else, leaves no file, and an
// older backup is as it was.
func TestAServerThatBreaksOff(t *testing.T) {
	dir := t.TempDir()
	send := func(http.ResponseWriter) {}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { send(w) }))
	defer srv.Close()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: srv.URL}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pawl.bak")
	if err := os.WriteFile(file, []byte("pawl bak, an older one"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		send func(http.ResponseWriter)
		want string
	}{
		"in the middle": {func(w http.ResponseWriter) {
			fmt.Fprint(w, "pawl bak")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, srv.URL + " broke off after 8 bytes: unexpected EOF"},
		"something else": {func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") }, "this is not the head of a backup"},
		"no such path":   {func(w http.ResponseWriter) { http.Error(w, "?", http.StatusNotFound) }, "see that --kubeconfig and --context name a pawl"},
		"forbidden": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","message":"you may not"}`)
		}, "answers 403 Forbidden: you may not"},
	} {
		send = c.send
		if said := pawlSays("backup", "--kubeconfig", kubeconfig, "--context", "c", file); !strings.Contains(said, c.want) || !strings.HasSuffix(said, "[exit 1]\n") {
			t.Errorf("%s: it says %s, want %q", name, said, c.want)
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "pawl bak, an older one" {
		t.Errorf("the older backup is %q, %v", data, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("it left %v, %v", entries, err)
	}
}
