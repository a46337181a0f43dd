package storage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/local"
)

// configMaps is the codec of these tests: what a codec must do, and nothing more.
type configMaps struct{ print Fingerprint }

func (c configMaps) Encode(obj runtime.Object) ([]byte, Fingerprint, error) {
	cm := obj.DeepCopyObject().(*corev1.ConfigMap)
	if cm.Data["is"] == "unencodable" {
		return nil, Unfit, errors.New("cannot be encoded")
	}
	cm.APIVersion, cm.Kind = "v1", "ConfigMap"
	data, err := json.Marshal(cm)
	return data, c.print, err
}

func (configMaps) Decode(data []byte) (runtime.Object, error) {
	cm := &corev1.ConfigMap{}
	if err := json.Unmarshal(data, cm); err != nil {
		return nil, err
	}
	return cm, nil
}

func (c configMaps) Fingerprint() Fingerprint { return c.print }

var errOdd = errors.New("the fields of odd objects are not known")

func dataFields(obj runtime.Object) (fields.Set, error) {
	cm := obj.(*corev1.ConfigMap)
	if cm.Data["is"] == "odd" {
		return nil, errOdd
	}
	return fields.Set{"data.is": cm.Data["is"]}, nil
}

// A fixture is a table over an engine that can be made to lag and to fail.
type fixture struct {
	*Table
	testing.TB
	engine *awkward
	clock  *kvtest.Clock
}

func newFixture(t testing.TB) *fixture {
	clock := kvtest.NewClock()
	engine, err := local.Open(context.Background(), local.Options{Memory: true, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	awkward := &awkward{Engine: engine}
	return &fixture{
		Table: NewTable(Options{
			Engine: awkward, Resource: "configmaps", Namespaced: true, Codec: configMaps{7}, Fields: dataFields,
		}),
		TB: t, engine: awkward, clock: clock,
	}
}

// An awkward engine does everything that the promises of an engine allow and the one in
// memory never does.
type awkward struct {
	kv.Engine

	mu      sync.Mutex
	atHand  kv.Snapshot // what Any reads, if set
	latest  int         // how often the newest state was asked for
	commits int
	fail    error // of commits, in place of making them
}

func (a *awkward) Read(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
	a.mu.Lock()
	atHand := a.atHand
	if at.IsLatest() {
		a.latest++
	}
	a.mu.Unlock()
	if at == kv.Any && atHand != nil {
		return atHand, nil
	}
	return a.Engine.Read(ctx, at)
}

func (a *awkward) Commit(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
	a.mu.Lock()
	a.commits++
	fail := a.fail
	a.mu.Unlock()
	if fail != nil {
		return kv.Committed{}, fail
	}
	return a.Engine.Commit(ctx, txn)
}

// lag makes the state at hand stay what it is now.
func (f *fixture) lag() {
	f.Helper()
	snap, err := f.engine.Engine.Read(context.Background(), kv.Latest)
	if err != nil {
		f.Fatal(err)
	}
	f.engine.atHand = snap
}

// catchUp ends the lag.
func (f *fixture) catchUp() { f.engine.atHand = nil }

// put stores an object whatever there is, behind the back of a lagging engine.
func (f *fixture) put(cm *corev1.ConfigMap) kv.Revision {
	f.Helper()
	value, _, err := f.encode(cm)
	if err != nil {
		f.Fatal(err)
	}
	return f.raw(kv.Put(f.Key(cm.Namespace, cm.Name), value))
}

func (f *fixture) remove(namespace, name string) kv.Revision {
	f.Helper()
	return f.raw(kv.Delete(f.Key(namespace, name)))
}

// raw commits as it is told.
func (f *fixture) raw(ops ...kv.Op) kv.Revision {
	f.Helper()
	did, err := f.engine.Engine.Commit(context.Background(), kv.Txn{Ops: ops})
	if err != nil {
		f.Fatal(err)
	}
	return did.Revision
}

func (f *fixture) compact(rev kv.Revision) {
	f.Helper()
	if err := f.engine.Engine.(kv.Compactor).Compact(context.Background(), rev); err != nil {
		f.Fatal(err)
	}
}

// thing makes an object whose data say what it is.
func thing(namespace, name, is string, label ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"is": is}}
	for _, l := range label {
		set, err := labels.ConvertSelectorToLabelsMap(l)
		if err != nil {
			panic(err)
		}
		cm.Labels = set
	}
	return cm
}

// is returns what an object's data say it is, "nothing" for one that does not exist.
func is(t testing.TB, v Version) string {
	t.Helper()
	if !v.Exists() {
		return "nothing"
	}
	obj, err := v.Object()
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*corev1.ConfigMap).Data["is"]
}

// picking makes a selector of a label selector and a field selector.
func picking(t testing.TB, l, f string) Selector {
	t.Helper()
	var s Selector
	var err error
	if l != "" {
		if s.Labels, err = labels.Parse(l); err != nil {
			t.Fatal(err)
		}
	}
	if f != "" {
		if s.Fields, err = fields.ParseSelector(f); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func names(p *Page) []string {
	out := []string{}
	for _, v := range p.Items {
		out = append(out, fmt.Sprintf("%s/%s", v.Namespace(), v.Name()))
	}
	return out
}

func kindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return 0
}
