package etcd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// apartEnv says to a process of a test which member it is.
const apartEnv = "PAWL_TEST_IS_MEMBER"

// ready is what a member says once it can be spoken to.
const ready = "the member is ready"

// A Process is a member in a process of its own, which can be stopped in the middle of what it does.
type Process struct {
	URL string

	t   testing.TB
	cmd *exec.Cmd
	end io.Closer
}

// A place is what a process is told of the member that it is.
type place struct{ Name, Dir, Client, Peer, Cluster string }

// StartApart starts an etcd of n members, which ends with the test. Each is a process of this test's program that runs the test of that
// name only, which has to call ServeApart.
func StartApart(t testing.TB, n int, test string) []*Process {
	t.Helper()
	places, cluster := make([]place, n), make([]string, n)
	for i := range places {
		name := fmt.Sprintf("m%d", i)
		places[i] = place{Name: name, Dir: filepath.Join(t.TempDir(), name), Client: at(t)[0].String(), Peer: at(t)[0].String()}
		cluster[i] = name + "=" + places[i].Peer
	}
	all, said := make([]*Process, n), make([]io.Reader, n)
	for i, p := range places {
		p.Cluster = strings.Join(cluster, ",")
		told, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		m := &Process{URL: p.Client, t: t, cmd: exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v")}
		m.cmd.Env = append(os.Environ(), apartEnv+"="+string(told))
		in, err := m.cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if said[i], err = m.cmd.StdoutPipe(); err != nil {
			t.Fatal(err)
		}
		if err := m.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		m.end, all[i] = in, m
		t.Cleanup(m.quit)
	}
	for i := range all {
		lines := bufio.NewScanner(said[i])
		for !strings.Contains(lines.Text(), ready) {
			if !lines.Scan() {
				t.Fatalf("member %d has ended: %v", i, lines.Err())
			}
		}
		go io.Copy(io.Discard, said[i]) // so that it never waits to be read
	}
	return all
}

// ServeApart is a member in a process that StartApart has started, until that wants it to end. In any other process it
// skips the test.
func ServeApart(t testing.TB) {
	told := os.Getenv(apartEnv)
	if told == "" {
		t.Skip("only a member if it is asked to be one")
	}
	var p place
	if err := json.Unmarshal([]byte(told), &p); err != nil {
		t.Fatal(err)
	}
	c := config(t, p.Name, Options{})
	c.Dir, c.InitialCluster = p.Dir, p.Cluster
	for _, a := range []struct {
		text string
		to   []*[]url.URL
	}{
		{p.Client, []*[]url.URL{&c.ListenClientUrls, &c.AdvertiseClientUrls}},
		{p.Peer, []*[]url.URL{&c.ListenPeerUrls, &c.AdvertisePeerUrls}},
	} {
		u, err := url.Parse(a.text)
		if err != nil {
			t.Fatal(err)
		}
		for _, to := range a.to {
			*to = []url.URL{*u}
		}
	}
	m := &Member{URL: p.Client, t: t, config: c}
	m.launch()
	m.await()
	fmt.Println(ready)
	bufio.NewReader(os.Stdin).ReadString('\n') // until whoever asked for it is gone
	m.Stop()
}

// Hang stops the process, and leaves its connections open.
func (m *Process) Hang() { m.signal(syscall.SIGSTOP) }

// GoOn has the process go on where it was stopped.
func (m *Process) GoOn() { m.signal(syscall.SIGCONT) }

func (m *Process) signal(s syscall.Signal) {
	m.t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		m.t.Fatal(err)
	}
}

// Leads says whether the member is the leader.
func (m *Process) Leads() bool {
	m.t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{m.URL}, Logger: zap.NewNop()})
	if err != nil {
		m.t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(m.t.Context(), 10*time.Second)
	defer cancel()
	is, err := c.Status(ctx, m.URL)
	if err != nil {
		m.t.Fatal(err)
	}
	return is.Leader == is.Header.MemberId
}

// quit ends the process.
func (m *Process) quit() {
	m.cmd.Process.Signal(syscall.SIGCONT)
	m.end.Close()
	late := time.AfterFunc(10*time.Second, func() { m.cmd.Process.Kill() })
	defer late.Stop()
	m.cmd.Wait() // that it was killed is no matter
}
