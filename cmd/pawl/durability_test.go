package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// asPawl in the environment makes this test binary be pawl.
const asPawl = "PAWL_TEST_IS_PAWL"

func TestMain(m *testing.M) {
	if os.Getenv(asPawl) != "" {
		main()
	}
	os.Exit(m.Run())
}

// killWriters is how many clients write at once while the server is killed.
const killWriters = 32

// killRounds is how often it is: PAWL_HEAVY=1 asks for all rounds.
func killRounds() int {
	if os.Getenv("PAWL_HEAVY") != "" {
		return 50
	}
	return 6
}

// TestNothingAcknowledgedIsLost kills a real server with SIGKILL, in the middle of groups
// and between two writes, and compares what is there afterwards with what the clients
// noted: nothing acknowledged is missing, what was not answered is there wholly or not at
// all, resourceVersions go on, and a watch that was open resumes and misses nothing.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	rng := chance(t)
	dir := t.TempDir()
	j := newJournal()
	writes := 0
	for round := range killRounds() {
		p := startPawl(t, dir)
		j.check(t, p, round)
		follow := j.follow(t, p)
		stop := make(chan struct{})
		var writing sync.WaitGroup
		for i := range killWriters {
			writing.Go(func() { j.write(p, i, stop) })
		}
		j.waitFor(t, killWriters+rng.IntN(20*killWriters)) // acknowledged writes of this round
		if round%5 == 4 {                                  // now and then, between two writes
			close(stop)
			writing.Wait()
			p.kill(t)
		} else {
			p.kill(t)
			close(stop)
			writing.Wait()
		}
		follow.Wait()
		writes += j.endRound()
	}
	p := startPawl(t, dir)
	j.check(t, p, killRounds())
	p.kill(t)
	t.Logf("%d rounds, %d acknowledged writes, %d events seen", killRounds(), writes, j.events)
}

// chance says when the server is killed, and how to have it say the same again.
func chance(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("PAWL_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("PAWL_SEED=%d repeats the times at which the server is killed", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// A running is a pawl in a process of its own.
type running struct {
	cmd    *exec.Cmd
	url    string
	client *http.Client
}

func startPawl(t *testing.T, dir string) *running {
	t.Helper()
	return startPawlOn(t, dir, "127.0.0.1:0")
}

func startPawlOn(t *testing.T, dir, listen string) *running {
	t.Helper()
	cmd := exec.Command(os.Args[0], "serve", "--data", dir, "--listen", listen)
	cmd.Env = append(os.Environ(), asPawl+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(line, "ready ")
	if err != nil || !ok {
		_ = cmd.Wait()
		t.Fatalf("pawl did not start: %q, %v\n%s", line, err, said.String())
	}
	url, _, _ = strings.Cut(url, " ")
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	p := &running{cmd: cmd, url: url, client: client}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	return p
}

func (p *running) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // killed, as asked
	p.client.CloseIdleConnections()
}

// do sends a request and reads the answer into out, if the server answered.
func (p *running) do(method, path string, body any, out any) (int, error) {
	return p.send(method, path, "", body, out)
}

// send is do for a body of a media type.
func (p *running) send(method, path, media string, body any, out any) (int, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequest(method, p.url+path, bytes.NewReader(data))
	if err != nil {
		return 0, err
	}
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, json.Unmarshal(answer, out)
}

// config is as much of a configmap as the test looks at.
type config struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Metadata   struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion,omitempty"`
	} `json:"metadata"`
	Data map[string]string `json:"data"`
}

func (c config) version() uint64 {
	n, _ := strconv.ParseUint(c.Metadata.ResourceVersion, 10, 64)
	return n
}
func (c config) n() int { n, _ := strconv.Atoi(c.Data["n"]); return n }

// A journal is what the clients know.
type journal struct {
	mu      sync.Mutex
	writers [killWriters]entry
	acked   atomic.Int64 // of this round
	seen    uint64       // the newest version that the watch has told
	told    [killWriters]map[int]bool
	events  int
}

// An entry is what one writer knows of its object.
type entry struct {
	acked   int    // the last number that was acknowledged
	version uint64 // and the version it was given
	tried   int    // the last number that was sent
}

func newJournal() *journal {
	j := &journal{}
	for i := range j.told {
		j.told[i] = map[int]bool{}
	}
	return j
}

const configs = "/api/v1/namespaces/default/configmaps"

// write counts upwards in one object until the server is gone or stop is closed.
func (j *journal) write(p *running, i int, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		j.mu.Lock()
		e := &j.writers[i]
		e.tried++
		c := config{APIVersion: "v1", Kind: "ConfigMap", Data: map[string]string{"n": strconv.Itoa(e.tried)}}
		version := e.version
		j.mu.Unlock()
		c.Metadata.Name = fmt.Sprintf("w%d", i)
		method, path := http.MethodPost, configs
		if version > 0 {
			method, path = http.MethodPut, configs+"/"+c.Metadata.Name
			c.Metadata.ResourceVersion = strconv.FormatUint(version, 10)
		}
		var got config
		code, err := p.do(method, path, c, &got)
		if err != nil || code >= 300 {
			return
		}
		j.mu.Lock()
		e.acked, e.version = got.n(), got.version()
		j.mu.Unlock()
		j.acked.Add(1)
	}
}

// waitFor returns when so many writes of this round have been acknowledged.
func (j *journal) waitFor(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); j.acked.Load() < int64(n); {
		if time.Now().After(deadline) {
			t.Fatalf("only %d of %d writes were acknowledged in 30 s", j.acked.Load(), n)
		}
		time.Sleep(time.Millisecond) // the server is another process: there is nothing to wait on
	}
}

func (j *journal) endRound() int { return int(j.acked.Swap(0)) }

// check compares what is stored with what was acknowledged, and takes up what was not
// answered but is there.
func (j *journal) check(t *testing.T, p *running, round int) {
	t.Helper()
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []config `json:"items"`
	}
	if code, err := p.do(http.MethodGet, configs, nil, &list); err != nil || code != http.StatusOK {
		t.Fatalf("round %d: list: %d, %v", round, code, err)
	}
	stored := map[string]config{}
	for _, c := range list.Items {
		stored[c.Metadata.Name] = c
	}
	newest, _ := strconv.ParseUint(list.Metadata.ResourceVersion, 10, 64)
	for i := range j.writers {
		e := &j.writers[i]
		c, ok := stored[fmt.Sprintf("w%d", i)]
		switch {
		case !ok && e.acked > 0:
			t.Fatalf("round %d: writer %d: %d was acknowledged as version %d, and the object is gone", round, i, e.acked, e.version)
		case c.n() < e.acked:
			t.Fatalf("round %d: writer %d: %d was acknowledged as version %d, but %d is stored", round, i, e.acked, e.version, c.n())
		case c.n() > e.tried:
			t.Fatalf("round %d: writer %d: %d is stored, and only %d was ever sent", round, i, c.n(), e.tried)
		case c.n() == e.acked && c.version() != e.version:
			t.Fatalf("round %d: writer %d: %d was acknowledged as version %d, and is version %d now", round, i, e.acked, e.version, c.version())
		case newest < e.version:
			t.Fatalf("round %d: version %d was acknowledged, and the newest is %d", round, e.version, newest)
		}
		e.acked, e.version, e.tried = c.n(), c.version(), c.n()
	}
}

// follow watches from the last version it has seen, until the server is gone.
func (j *journal) follow(t *testing.T, p *running) *sync.WaitGroup {
	t.Helper()
	var done sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	path := fmt.Sprintf("%s%s?watch=1&resourceVersion=%d", p.url, configs, max(j.seen, 1))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	done.Go(func() {
		defer cancel()
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			var e struct {
				Type   string `json:"type"`
				Object config `json:"object"`
			}
			if json.Unmarshal(lines.Bytes(), &e) != nil {
				return // cut off in the middle of a line
			}
			if err := j.note(e.Type, e.Object); err != nil {
				t.Error(err)
				return
			}
		}
	})
	return &done
}

// note takes an event in, and says if one before it is missing or it came twice.
func (j *journal) note(kind string, c config) error {
	if kind == "ERROR" {
		return errors.New("the watch was not resumed: it got an error event")
	}
	if c.version() <= j.seen {
		return fmt.Errorf("the watch told version %d after version %d", c.version(), j.seen)
	}
	j.seen = c.version()
	j.events++
	i, err := strconv.Atoi(strings.TrimPrefix(c.Metadata.Name, "w"))
	if err != nil {
		return nil // not one of ours
	}
	told := j.told[i]
	if len(told) > 0 && !told[c.n()-1] {
		return fmt.Errorf("the watch told number %d of writer %d, and not number %d before it", c.n(), i, c.n()-1)
	}
	told[c.n()] = true
	return nil
}
