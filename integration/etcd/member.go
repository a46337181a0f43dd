package etcd

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// Options say what is special about an etcd. The zero value is nothing.
type Options struct {
	Quota int64      // bytes that its database may have; 0 means etcd's default
	Only  *Authority // whose certificates clients have to show, over TLS; nil means that anybody may ask, in the clear
}

// A Member is one etcd server, with a folder of its own.
type Member struct {
	URL string // that clients speak to

	t      testing.TB
	config *embed.Config
	server *embed.Etcd
}

// Start starts an etcd of one member, which ends with the test.
func Start(t testing.TB, opts Options) *Member { return StartCluster(t, 1, opts)[0] }

// StartCluster starts an etcd of n members, which ends with the test.
func StartCluster(t testing.TB, n int, opts Options) []*Member {
	t.Helper()
	members := make([]*Member, n)
	cluster := ""
	for i := range members {
		members[i] = &Member{t: t, config: config(t, fmt.Sprintf("m%d", i), opts)}
		members[i].URL = members[i].config.AdvertiseClientUrls[0].String()
		if i > 0 {
			cluster += ","
		}
		cluster += members[i].config.Name + "=" + members[i].config.AdvertisePeerUrls[0].String()
	}
	for _, m := range members {
		m.config.InitialCluster = cluster
		m.launch()
	}
	for _, m := range members {
		m.await()
	}
	t.Cleanup(func() {
		for _, m := range members {
			m.Stop()
		}
	})
	return members
}

// bcryptCost makes passwords quick to check, and to guess.
const bcryptCost = 4

// config is of a member that elects leaders quickly, since it is never far from the others.
func config(t testing.TB, name string, opts Options) *embed.Config {
	c := embed.NewConfig()
	c.Name = name
	c.Dir = filepath.Join(t.TempDir(), name)
	c.TickMs, c.ElectionMs = 20, 200
	c.QuotaBackendBytes = opts.Quota
	c.LogLevel = "panic"
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	c.ListenClientUrls, c.ListenPeerUrls = at(t), at(t)
	if opts.Only != nil {
		self := opts.Only.Issue(t, "etcd")
		c.ListenClientUrls[0].Scheme = "https"
		c.ClientTLSInfo = transport.TLSInfo{CertFile: self.Cert, KeyFile: self.Key, TrustedCAFile: opts.Only.File, ClientCertAuth: true}
		c.BcryptCost = bcryptCost
	}
	c.AdvertiseClientUrls, c.AdvertisePeerUrls = c.ListenClientUrls, c.ListenPeerUrls
	return c
}

// given are the ports that members of this process have been given.
var given sync.Map

// at returns an address that nobody listens at, nor will soon: its port is below those that the system
// gives to connections, and given to nobody else.
func at(t testing.TB) []url.URL {
	for range 1000 {
		port := 20_000 + rand.IntN(12_000)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			continue // somebody else's
		}
		l.Close()
		return []url.URL{{Scheme: "http", Host: l.Addr().String()}}
	}
	t.Fatal("no port from 20000 to 32000 is free")
	return nil
}

func (m *Member) launch() {
	m.t.Helper()
	server, err := embed.StartEtcd(m.config)
	if err != nil {
		m.t.Fatalf("start etcd: %v", err)
	}
	m.server = server
}

func (m *Member) await() {
	m.t.Helper()
	select {
	case <-m.server.Server.ReadyNotify():
	case err := <-m.server.Err():
		m.t.Fatalf("etcd: %v", err)
	case <-time.After(30 * time.Second):
		m.t.Fatal("etcd is not ready after 30 s")
	}
}

// Stop ends the member. What it holds stays.
func (m *Member) Stop() {
	if m.server != nil {
		m.server.Close()
		m.server = nil
	}
}

// Restart starts the member again.
func (m *Member) Restart() {
	m.t.Helper()
	m.config.ClusterState = embed.ClusterStateFlagExisting
	m.launch()
	m.await()
}

// Save copies what a stopped member holds, and returns what puts it back.
func (m *Member) Save() (restore func()) {
	m.t.Helper()
	copied := filepath.Join(m.t.TempDir(), "saved")
	if err := os.CopyFS(copied, os.DirFS(m.config.Dir)); err != nil {
		m.t.Fatal(err)
	}
	return func() {
		m.t.Helper()
		if err := os.RemoveAll(m.config.Dir); err != nil {
			m.t.Fatal(err)
		}
		if err := os.CopyFS(m.config.Dir, os.DirFS(copied)); err != nil {
			m.t.Fatal(err)
		}
	}
}

// Leads says whether the member is the leader.
func (m *Member) Leads() bool {
	return m.server != nil && m.server.Server.Leader() == m.server.Server.MemberID()
}

// GiveUp has the leader give its office to another.
func (m *Member) GiveUp() {
	if err := m.server.Server.TryTransferLeadershipOnShutdown(); err != nil {
		m.t.Logf("the leader stays: %v", err)
	}
}
