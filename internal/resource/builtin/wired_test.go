package builtin

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/internal/patch"
	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// wire makes the resource of a kind over a store in memory.
func wire(t *testing.T, kind string) *resource.Resource {
	t.Helper()
	engine, err := local.Open(t.Context(), local.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	return wireOver(t, engine, kind)
}

func wireOver(t *testing.T, engine kv.Engine, kind string) *resource.Resource {
	t.Helper()
	k := kindOf(t, kind)
	at := k.TableResource()
	table := storage.NewTable(storage.Options{
		Engine: engine, Group: at.Group, Resource: at.Resource, Namespaced: k.Strategy.Policy().Namespaced, Codec: k.Codec(), Fields: k.Fields,
	})
	return k.Resource(func(k Kind, _ string, s registry.Strategy) *registry.Store {
		return registry.Must(registry.Config{Kind: k.GroupVersionKind(), Resource: k.GroupResource(), Table: table, Strategy: s})
	})
}

func TestANamespaceGoesWhenFinalizeTakesItsLastFinalizer(t *testing.T) { // rules B27, B29, B30
	v := wire(t, "Namespace").Versions[0]
	ctx, finalize := t.Context(), v.Subresources["finalize"].Store
	obj, _, err := v.Form.Decode([]byte(`{"metadata":{"name":"a"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Store.Create(ctx, "", obj, registry.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Store.Delete(ctx, "", "a", nil); err != nil {
		t.Fatal(err)
	}
	got, err := v.Store.Get(ctx, "", "a", "")
	if err != nil {
		t.Fatal(err)
	}
	ns, err := got.Object()
	if err != nil || ns.(*corev1.Namespace).Status.Phase != corev1.NamespaceTerminating {
		t.Fatalf("a deleted namespace is %v, %v", ns, err)
	}
	ns = ns.DeepCopyObject()
	ns.(*corev1.Namespace).Spec.Finalizers = nil
	done, err := finalize.Update(ctx, "", "a", registry.Exactly(ns), registry.UpdateOptions{})
	if err != nil || done.Removed == nil {
		t.Errorf("finalized: %+v, %v", done, err)
	}
}

func TestAPatchThatChangesNothingKeepsTheVersion(t *testing.T) { // rule H137
	v := wire(t, "Secret").Versions[0]
	obj, _, err := v.Form.Decode([]byte(`{"metadata":{"name":"a"},"immutable":true,"stringData":{"k":"v"}}`))
	if err != nil {
		t.Fatal(err)
	}
	first, err := v.Store.Create(t.Context(), "b", obj, registry.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := v.Store.Update(t.Context(), "b", "a", func(_ context.Context, current runtime.Object) (runtime.Object, error) {
		data, err := v.Form.Encode(current)
		if err != nil {
			return nil, err
		}
		data, findings, err := patch.Apply(patch.Merge, data, []byte(`{"stringData":{"k":"v"}}`), v.Form.Typed())
		obj, more, derr := v.Form.Decode(data)
		if len(findings)+len(more) > 0 {
			t.Errorf("found %v, %v", findings, more)
		}
		return obj, errors.Join(err, derr)
	}, registry.UpdateOptions{})
	if err != nil || again.Version.Revision() != first.Revision() {
		t.Errorf("created at %v, patched to %v, %v", first.Revision(), again.Version.Revision(), err)
	}
}
