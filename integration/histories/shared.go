package histories

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/integration/etcd"
	"github.com/pawl-dev/pawl/kv"
	kvetcd "github.com/pawl-dev/pawl/kv/etcd"
)

// replicas is how many engines share a store.
const replicas = 2

// late is by how much what etcd tells one of the replicas comes late, so that this one never has
// seen by itself what the other one's clients know.
const late = 2 * time.Millisecond

// haste makes keys expire after one to three seconds: etcd's leases are real, and a run is not much longer.
const haste = 20

// pulled is how long a cable is pulled.
const pulled = 30 * time.Millisecond

// hangs is how long a member of several hangs: until others are asked in its place, and are watched, and a while longer.
const hangs = 1500 * time.Millisecond

// Etcd starts an etcd of one member, and returns stores in it. Each is shared by two replicas, which
// reach etcd through a proxy: trouble is a connection that breaks, or a cable that is pulled for a moment.
func Etcd(t testing.TB) Opener {
	member := etcd.Start(t, etcd.Options{})
	var proxies [replicas]*etcd.Proxy
	var options [replicas]kvetcd.Options
	for i := range proxies {
		proxies[i] = etcd.NewProxy(t, member)
		options[i].Endpoints = []string{proxies[i].URL}
	}
	proxies[replicas-1].Delay(late)
	return shared(options, func(replica, kind int) {
		p := proxies[replica]
		if kind%3 != 0 {
			p.Cut()
		}
		if kind%3 != 1 {
			p.Break()
		}
		<-time.After(pulled)
		p.Heal()
	})
}

// EtcdCluster starts an etcd of three members, and returns stores in it, each shared by two replicas. Trouble is
// a leader who gives his office to another, a member that stops and starts again, or one that hangs for a while: for the
// replicas, though not for the other members.
func EtcdCluster(t testing.TB) Opener {
	members := etcd.StartCluster(t, 3, etcd.Options{})
	var options [replicas]kvetcd.Options
	proxies := make([]*etcd.Proxy, len(members))
	for i, m := range members {
		proxies[i] = etcd.NewProxy(t, m)
	}
	for i := range options {
		for j := range proxies {
			options[i].Endpoints = append(options[i].Endpoints, proxies[(i+j)%len(proxies)].URL)
		}
	}
	return shared(options, func(_, kind int) {
		which := kind % len(members)
		for i, leader := range members {
			if leader.Leads() && kind%2 == 0 {
				which = i
			}
		}
		m, p := members[which], proxies[which]
		switch {
		case kind%4 == 0 && m.Leads():
			m.GiveUp()
		case kind/4%2 == 0:
			m.Stop()
			m.Restart()
		default:
			p.Cut()
			<-time.After(hangs)
			if kind%3 == 0 {
				p.Break()
			}
			p.Heal()
		}
	})
}

// restoredAfter is the revision after which every other store begins, as if it had been restored.
const restoredAfter kv.Revision = 1_790_000_000_000_000

// shared returns stores under prefixes of their own. By the seed every other one's revisions are far ahead of etcd's.
func shared(options [replicas]kvetcd.Options, disturb func(replica, kind int)) Opener {
	stores := 0
	return func(t testing.TB, seed uint64) Subject {
		stores++
		prefix := fmt.Sprintf("/store%d", stores)
		if seed%2 == 1 {
			opts := options[0]
			opts.Prefix = prefix
			if _, err := kvetcd.Restore(t.Context(), opts, restoredAfter, func(func(*kv.Version, error) bool) {}, nil); err != nil {
				t.Fatal(err)
			}
		}
		return Subject{
			Lasts: true, Replicas: replicas, Disturb: disturb, Haste: haste,
			Open: func(replica int) (kv.Engine, error) {
				opts := options[replica]
				opts.Prefix, opts.CompactEvery = prefix, -1
				return kvetcd.Open(context.Background(), opts)
			},
		}
	}
}
