package etcd_test

import (
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-dev/pawl/integration/etcd"
	"github.com/pawl-dev/pawl/kv"
	kvetcd "github.com/pawl-dev/pawl/kv/etcd"
)

func expiring(key string, kind kv.ExpiryKind, d time.Duration) kv.Txn {
	return kv.Txn{Ops: []kv.Op{{Key: key, Value: []byte("x"), Expiry: kv.Expiry{Kind: kind, For: d}}}}
}

// A key goes no earlier than asked and no later than the slack. A put keeps that, drops it, or gives another.
func TestKeysGoWithTheirLeases(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	s, other := subjectOn(t, on(m)), subjectOn(t, on(m))
	const d = 2 * time.Second
	key := func(name string) string { return ns + name }
	began := time.Now()
	w := other.watch(ns, other.read(kv.Latest).Revision())
	for _, name := range []string{"goes", "kept", "kept blindly", "dropped", "longer"} {
		v := s.commit(expiring(key(name), kv.After, d)).Versions[0]
		if v.Expires != v.Time.Add(d) {
			t.Errorf("%s: made at %v it expires at %v", name, v.Time, v.Expires)
		}
	}
	at := s.read(kv.Latest).Get(key("kept"))
	kept := s.commit(kv.Txn{Conditions: []kv.Condition{{Key: at.Key, At: at.Revision}}, Ops: []kv.Op{kv.Put(at.Key, []byte("y"))}})
	if kept.Versions[0].Expires != at.Expires {
		t.Errorf("expired at %v, and now at %v", at.Expires, kept.Versions[0].Expires)
	}
	other.commit(expiring(key("kept blindly"), kv.Keep, 0))
	s.commit(expiring(key("dropped"), kv.Forever, 0))
	s.commit(expiring(key("longer"), kv.After, time.Hour))
	s.commit(expiring(key("never"), kv.Keep, 0))
	gone := map[string]bool{}
	for len(gone) < 3 {
		e, err := other.next(w)
		if err != nil {
			t.Fatal(err)
		}
		if !e.Version.Deleted {
			continue
		}
		gone[e.Version.Key] = true
		if e.Version.By() != kvetcd.Expirer || e.Version.Time < e.Prev.Expires || e.Version.Created != e.Prev.Created {
			t.Errorf("got %+v in place of %+v", e.Version, e.Prev)
		}
		if late := time.Since(e.Prev.Expires.Time()); late < 0 || late > kvetcd.Slack(d)+time.Second {
			t.Errorf("%s went %v after its time, %v after it was made", e.Version.Key, late, time.Since(began))
		}
	}
	for _, name := range []string{"goes", "kept", "kept blindly"} {
		if !gone[key(name)] {
			t.Errorf("%s is not gone", name)
		}
	}
	for _, name := range []string{"dropped", "longer", "never"} {
		if s.read(kv.Latest).Get(key(name)) == nil {
			t.Errorf("%s is gone", name)
		}
	}
	same(t, s, other)
	late := subjectOn(t, on(m))
	same(t, s, late)
}

// Keys that are to go at about the same time share a lease of etcd's, which lasts no longer than the slack allows. A put
// that keeps its key's expiry leaves the key with its lease.
func TestKeysShareALease(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	s := subjectOn(t, on(m))
	c := raw(t, m.URL)
	const n = 100
	for i := range n {
		s.commit(expiring(fmt.Sprint(ns, i), kv.After, time.Hour))
	}
	for i := range n / 2 {
		s.put(fmt.Sprint(ns, i), "kept")
	}
	all := must[*clientv3.LeaseLeasesResponse](t)(c.Leases(t.Context()))
	if len(all.Leases) != 1 {
		t.Fatalf("%d keys have %d leases, want one", n, len(all.Leases))
	}
	lease := must[*clientv3.LeaseTimeToLiveResponse](t)(c.TimeToLive(t.Context(), all.Leases[0].ID, clientv3.WithAttachedKeys()))
	if len(lease.Keys) != n {
		t.Errorf("%d keys have it, want %d", len(lease.Keys), n)
	}
	if lasts := time.Duration(lease.GrantedTTL) * time.Second; lasts < time.Hour || lasts > time.Hour+kvetcd.Slack(time.Hour) {
		t.Errorf("it lasts %v", lasts)
	}
	s.commit(expiring(fmt.Sprint(ns, 0), kv.Forever, 0))
	lease = must[*clientv3.LeaseTimeToLiveResponse](t)(c.TimeToLive(t.Context(), all.Leases[0].ID, clientv3.WithAttachedKeys()))
	if len(lease.Keys) != n-1 {
		t.Errorf("%d keys have it after one was put forever, want %d", len(lease.Keys), n-1)
	}
}

// A key that is deleted and made anew does not go with the old one.
func TestALeaseGoesWithItsKey(t *testing.T) {
	t.Parallel()
	s := subjectOn(t, on(etcd.Start(t, etcd.Options{})))
	s.commit(expiring(a, kv.After, time.Second))
	s.commit(expiring(b, kv.After, time.Second))
	s.commit(kv.Txn{Ops: []kv.Op{kv.Delete(a)}})
	s.put(a, "anew")
	w := s.watch(b, s.read(kv.Latest).Revision())
	if e, err := s.next(w); err != nil || !e.Version.Deleted {
		t.Errorf("got %+v, %v", e.Version, err)
	}
	s.holds(s.read(kv.Latest), a, "anew")
}
