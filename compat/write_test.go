package compat

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// scrambled is a codec that cannot read what it wrote.
type scrambled struct{ runtime.Codec }

func (scrambled) Decode([]byte, *schema.GroupVersionKind, runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	return nil, nil, errDamaged
}

func TestATimeToLiveIsKeptUnlessAnUpdateSpeaksOfIt(t *testing.T) { // rule S79
	hundred, none := uint64(100), uint64(0)
	for _, c := range []struct {
		name string
		ttl  *uint64
		left int64 // 0 if it stays for ever
	}{
		{"an update that says nothing", nil, 1000},
		{"one that names another", &hundred, 100},
		{"one that wants none", &none, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, options(memory(t)))
				key := "/configmaps/a/color"
				if err := s.Create(t.Context(), key, configMap("a", "color", "red"), nil, 1000); err != nil {
					t.Fatal(err)
				}
				time.Sleep(500 * time.Millisecond) // a second that has begun counts whole
				err := s.GuaranteedUpdate(t.Context(), key, newConfigMap(), false, nil, func(obj runtime.Object, meta apistorage.ResponseMeta) (runtime.Object, *uint64, error) {
					if meta.TTL != 1000 || meta.ResourceVersion != 2 {
						t.Errorf("the update is told %+v", meta)
					}
					obj.(*corev1.ConfigMap).Data = map[string]string{"is": "green"}
					return obj, c.ttl, nil
				}, nil)
				if err != nil {
					t.Fatal(err)
				}
				v, err := s.table.Get(t.Context(), "a", "color", kv.Latest)
				if err != nil {
					t.Fatal(err)
				}
				if got := ttlOf(v); got != c.left {
					t.Errorf("%d seconds are left, want %d", got, c.left)
				}
			})
		})
	}
	if got := ttlOf(storage.Version{}); got != 0 {
		t.Errorf("what is not there has %d seconds left", got)
	}
	forever := uint64(math.MaxUint64)
	if got := expiryOf(&forever); got.Kind != kv.After || got.For < 100*365*24*time.Hour {
		t.Errorf("the longest time is %v", got.For)
	}
}

func TestWhoWroteIsKept(t *testing.T) {
	ann := &user.DefaultInfo{Name: "ann"}
	for _, c := range []struct {
		name string
		ctx  context.Context
		want kv.Author
	}{
		{"nobody knows", context.Background(), kv.Author{Verb: "create"}},
		{"a user", request.WithUser(context.Background(), ann), kv.Author{User: "ann", Verb: "create"}},
		{"a user's request", request.WithRequestInfo(request.WithUser(context.Background(), ann), &request.RequestInfo{Verb: "patch", Subresource: "status"}),
			kv.Author{User: "ann", Verb: "patch", Subresource: "status"}},
		{"somebody who says so", storage.WithAuthor(context.Background(), kv.Author{User: "bob", Manager: "loop"}), kv.Author{User: "bob", Manager: "loop"}},
	} {
		s := newStore(t, options(memory(t)))
		if err := s.Create(c.ctx, "/configmaps/a/color", configMap("a", "color", "red"), nil, 0); err != nil {
			t.Fatal(err)
		}
		if v, err := s.table.Get(t.Context(), "a", "color", kv.Latest); err != nil || v.Author() != c.want {
			t.Errorf("%s: %+v, %v, want %+v", c.name, v.Author(), err, c.want)
		}
	}
}

func TestAResultNeedsAPlace(t *testing.T) { // rule K16
	s := newStore(t, options(memory(t)))
	create(t, s, "color", "red")
	var nowhere *corev1.ConfigMap
	if err := s.GuaranteedUpdate(t.Context(), "/configmaps/a/color", nowhere, false, nil, paint("green"), nil); err == nil {
		t.Error("an update will do without")
	}
	if err := s.Delete(t.Context(), "/configmaps/a/color", nowhere, nil, apistorage.ValidateAllObjectFunc, nil, apistorage.DeleteOptions{}); err == nil {
		t.Error("a delete will do without")
	}
	got := &corev1.ConfigMap{}
	if err := s.Get(t.Context(), "/configmaps/a/color", apistorage.GetOptions{}, got); err != nil || got.Data["is"] != "red" {
		t.Errorf("it was refused, and done: %v, %v", got.Data, err)
	}
}
