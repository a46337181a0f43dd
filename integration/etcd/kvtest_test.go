package etcd_test

import (
	"context"
	"testing"

	"github.com/pawl-dev/pawl/integration/etcd"
	"github.com/pawl-dev/pawl/kv"
	kvetcd "github.com/pawl-dev/pawl/kv/etcd"
	"github.com/pawl-dev/pawl/kv/kvtest"
)

// open returns an engine on an etcd.
func open(t testing.TB, opts kvetcd.Options) *kvetcd.Engine {
	t.Helper()
	e, err := kvetcd.Open(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// on names an etcd of these members.
func on(members ...*etcd.Member) kvetcd.Options {
	var o kvetcd.Options
	for _, m := range members {
		o.Endpoints = append(o.Endpoints, m.URL)
	}
	return o
}

func TestPromises(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.Engine {
		opts := on(etcd.Start(t, etcd.Options{}))
		return kvtest.Rig{
			Engine: open(t, opts),
			Reopen: func() (kv.Engine, error) { return kvetcd.Open(context.Background(), opts) },
			// Blind puts that keep an expiry rest on a condition each.
			Limits: kvtest.Limits{Ops: kvetcd.MaxOps, ValueBytes: kvetcd.MaxBytes - 16<<10, Bytes: kvetcd.MaxBytes - 16<<10},
		}
	})
}
