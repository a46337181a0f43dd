package compat

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/etcd"
)

const replicated = "default/core/pods/"

// BenchmarkTwoReplicas compares two replicas on one etcd, which is a process of its own, with one. Reads: how many
// consistent ones two serve with the CPU of two, for each that one serves, 64 readers at each. Latency: from the call
// that writes at one to the event at a watcher of the other, in that of etcd's client and a watcher of another client. The
// times are medians.
func BenchmarkTwoReplicas(b *testing.B) {
	url := startEtcd(b)
	var replicas []*etcd.Engine
	for range 2 {
		e, err := etcd.Open(b.Context(), etcd.Options{Endpoints: []string{url}})
		if err != nil {
			b.Fatal(err)
		}
		defer e.Close()
		replicas = append(replicas, e)
	}
	for i := range 1000 {
		if _, err := replicas[0].Commit(b.Context(), kv.Txn{Ops: []kv.Op{kv.Put(fmt.Sprintf("%sns/p%03d", replicated, i), make([]byte, 1<<10))}}); err != nil {
			b.Fatal(err)
		}
	}
	read := func(at *etcd.Engine, i int) {
		snap, err := at.Read(b.Context(), kv.Latest)
		if err != nil || snap.Get(fmt.Sprintf("%sns/p%03d", replicated, i%1000)) == nil {
			b.Error("it cannot be read", err)
		}
	}
	var alone, both time.Duration
	var own, theirs []time.Duration
	for b.Loop() {
		alone += each(64, 6400, func(i int) { read(replicas[0], i) })
		both += each(128, 12800, func(i int) { read(replicas[i%2], i) })
		own = append(own, latencies(b, replicas[0], replicas[1])...)
		theirs = append(theirs, latenciesOfEtcd(b, url)...)
	}
	b.ReportMetric(2*float64(alone)/float64(both), "reads/one")
	mine, its := median(own), median(theirs)
	b.ReportMetric(float64(mine.Microseconds()), "us-to-watcher")
	b.ReportMetric(float64(its.Microseconds()), "etcd-us-to-watcher")
	b.ReportMetric(float64(mine)/float64(its), "latency/etcd")
	b.ReportMetric(0, "ns/op")
}

const writesTimed = 200

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// latencies are those from a write at one replica to a watcher of another.
func latencies(b *testing.B, from, to *etcd.Engine) (all []time.Duration) {
	snap, err := to.Read(b.Context(), kv.Latest)
	if err != nil {
		b.Fatal(err)
	}
	w, err := to.Watch(replicated, snap.Revision())
	if err != nil {
		b.Fatal(err)
	}
	defer w.Stop()
	for range writesTimed {
		var write sync.WaitGroup
		ready, began := w.Wait(), time.Now()
		write.Go(func() {
			if _, err := from.Commit(b.Context(), kv.Txn{Ops: []kv.Op{kv.Put(replicated+"ns/p000", make([]byte, 1<<10))}}); err != nil {
				b.Error(err)
			}
		})
		<-ready
		if _, ok, err := w.Next(); !ok || err != nil {
			b.Fatal(ok, err)
		}
		all = append(all, time.Since(began))
		write.Wait()
	}
	return all
}

// latenciesOfEtcd are those of a plain put and a plain watch, of two clients.
func latenciesOfEtcd(b *testing.B, url string) (all []time.Duration) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	client := func() *clientv3.Client {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, Logger: zap.NewNop()})
		if err != nil {
			b.Fatal(err)
		}
		return c
	}
	from, to := client(), client()
	defer from.Close()
	defer to.Close()
	events := to.Watch(ctx, "/plain", clientv3.WithCreatedNotify())
	<-events
	for range writesTimed {
		var write sync.WaitGroup
		began := time.Now()
		write.Go(func() {
			if _, err := from.Put(ctx, "/plain", string(make([]byte, 1<<10))); err != nil {
				b.Error(err)
			}
		})
		<-events
		all = append(all, time.Since(began))
		write.Wait()
	}
	return all
}
