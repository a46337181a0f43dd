package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSIGTERMAnswersWhatIsUnderWay stops a real server while a PUT is still being sent and a
// watch is open (rule H214): the PUT is answered, the watch ends between two records, and
// the process exits with 0.
func TestSIGTERMAnswersWhatIsUnderWay(t *testing.T) {
	p := startPawl(t, t.TempDir())
	var made config
	if code, err := p.do(http.MethodPost, configs, named("slow", "1"), &made); err != nil || code != http.StatusCreated {
		t.Fatalf("create: %d, %v", code, err)
	}
	watch, err := p.client.Get(p.url + configs + "?watch=1")
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	lines := bufio.NewReader(watch.Body)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatalf("the watch shows nothing: %v", err)
	}

	body, sender := io.Pipe()
	answered := make(chan error, 1)
	go func() { answered <- put(p, "slow", body) }()
	whole, err := json.Marshal(named("slow", "2"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sender.Write(whole[:len(whole)/2]); err != nil { // returns once the transport has taken it
		t.Fatal(err)
	}
	inFlight(t, p)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(lines); err != nil || !wholeRecords(rest) {
		t.Errorf("the watch ended with %v after %q", err, rest)
	}
	if _, err := sender.Write(whole[len(whole)/2:]); err != nil {
		t.Errorf("the rest of the PUT was not taken: %v", err)
	}
	sender.Close()
	if err := <-answered; err != nil {
		t.Errorf("the PUT under way: %v", err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// inFlight returns once the server has begun to read the PUT: it answers requests in any
// order, and the header of the PUT was sent before this request.
func inFlight(t *testing.T, p *running) {
	t.Helper()
	for range 3 {
		resp, err := p.client.Get(p.url + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

func named(name, n string) config {
	c := config{APIVersion: "v1", Kind: "ConfigMap", Data: map[string]string{"n": n}}
	c.Metadata.Name = name
	return c
}

func put(p *running, name string, body io.Reader) error {
	req, err := http.NewRequest(http.MethodPut, p.url+configs+"/"+name, body)
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return nil
}

func wholeRecords(data []byte) bool {
	for line := range strings.Lines(string(data)) {
		if !json.Valid([]byte(line)) || !strings.HasSuffix(line, "\n") {
			return false
		}
	}
	return true
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	p := startPawl(t, t.TempDir())
	body, sender := io.Pipe()
	defer sender.Close()
	go put(p, "never", body) // it is cut off: that is the point
	if _, err := sender.Write([]byte("{")); err != nil {
		t.Fatal(err)
	}
	inFlight(t, p)
	began := time.Now()
	for range 2 {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		refusesNewOnes(t, p)
	}
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Errorf("the server ended with %v, want exit code %d", err, 128+int(syscall.SIGTERM))
	}
	if took := time.Since(began); took > stopMax {
		t.Errorf("it took %v, as long as one signal", took)
	}
}

// refusesNewOnes returns once the server takes no more connections: it has seen the signal.
func refusesNewOnes(t *testing.T, p *running) {
	t.Helper()
	fresh := *p.client
	for deadline := time.Now().Add(stopMax); time.Now().Before(deadline); {
		p.client.CloseIdleConnections()
		resp, err := fresh.Get(p.url + "/livez")
		if err != nil {
			return
		}
		resp.Body.Close()
		time.Sleep(time.Millisecond) // the server is another process: there is nothing to wait on
	}
	t.Fatal("the server still takes requests")
}

func TestAFolderHasOneServer(t *testing.T) {
	dir := t.TempDir()
	p := startPawl(t, dir)
	second := exec.Command(os.Args[0], "serve", "--data", dir, "--listen", "127.0.0.1:0")
	second.Env = append(os.Environ(), asPawl+"=1")
	out, err := second.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("the second server ended with %v, want exit code 1", err)
	}
	for _, want := range []string{"in use by another pawl", fmt.Sprintf("pid %d", p.cmd.Process.Pid), "hint:"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the second server said %q, which does not say %q", out, want)
		}
	}
}

func TestTheDataFolderIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	startPawl(t, dir)
	for path, want := range map[string]os.FileMode{"": 0o700, "kubeconfig": 0o600, "admin-token": 0o600, "pki": 0o700, "store": 0o700} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil {
			t.Error(err)
		} else if info.Mode().Perm() != want {
			t.Errorf("%q has mode %o, want %o", path, info.Mode().Perm(), want)
		}
	}
	if ignored, err := os.ReadFile(filepath.Join(dir, ".gitignore")); err != nil || !strings.Contains("\n"+string(ignored), "\n*\n") {
		t.Errorf("the folder keeps itself out of git with %q, %v", ignored, err)
	}
}
