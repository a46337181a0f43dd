package compat

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/apis/example"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	etcdfeature "k8s.io/apiserver/pkg/storage/feature"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/utils/clock"

	"github.com/pawl-dev/pawl/kv/local"
)

// withCache puts the reference's watch cache in front of a store.
func withCache(t *testing.T, s *subject) apistorage.Interface {
	t.Helper()
	c, err := cacher.NewCacherFromConfig(cacher.Config{
		Storage:             s.Store,
		Versioner:           apistorage.APIObjectVersioner{},
		GroupResource:       schema.GroupResource{Resource: "pods"},
		EventsHistoryWindow: 75 * time.Second,
		ResourcePrefix:      "/pods/",
		KeyFunc: func(obj runtime.Object) (string, error) {
			p := obj.(*example.Pod)
			return "/pods/" + p.Namespace + "/" + p.Name, nil
		},
		NewFunc:     newPod,
		NewListFunc: func() runtime.Object { return &example.PodList{} },
		GetAttrsFunc: apistorage.AttrFunc(apistorage.DefaultNamespaceScopedAttr).WithFieldMutation(func(obj runtime.Object, f fields.Set) error {
			f["spec.nodeName"] = obj.(*example.Pod).Spec.NodeName
			return nil
		}),
		Codec: s.codec,
		Clock: clock.RealClock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	front := cacher.NewCacheDelegator(c, s.Store)
	t.Cleanup(func() {
		front.Stop()
		c.Stop()
	})
	if err := c.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return front
}

// capable says of the storage behind every watch cache that it can be asked for progress. The
// reference finds that out by asking etcd.
type capable struct {
	etcdfeature.FeatureSupportChecker
}

func (capable) Supports(feature apistorage.Feature) bool {
	return feature == apistorage.RequestWatchProgress
}

// TestAWatchCacheInFrontOfAStore runs those of the reference's tests that depend on how well a watch
// cache can follow its storage: it asks for progress and waits to hear of it. (RunWatchSemantics is not
// among them: a watch cache ends watchers that do not keep up with a burst, and an engine in memory
// writes faster than they read.)
func TestAWatchCacheInFrontOfAStore(t *testing.T) {
	was := etcdfeature.DefaultFeatureSupportChecker
	etcdfeature.DefaultFeatureSupportChecker = capable{was}
	t.Cleanup(func() { etcdfeature.DefaultFeatureSupportChecker = was })
	for _, c := range []struct {
		name string
		run  func(ctx context.Context, t *testing.T, s *subject, front apistorage.Interface)
	}{
		{"a consistent list", func(ctx context.Context, t *testing.T, s *subject, front apistorage.Interface) {
			storagetesting.RunTestConsistentList(ctx, t, s.singly(front), s.advance, true, true, true)
		}},
		{"what watches tell", func(ctx context.Context, t *testing.T, _ *subject, front apistorage.Interface) {
			storagetesting.RunTestWatch(ctx, t, front)
		}},
		{"the end of the state of a watch", func(ctx context.Context, t *testing.T, _ *subject, front apistorage.Interface) {
			storagetesting.RunWatchSemanticInitialEventsExtended(ctx, t, front)
		}},
		{"pages", func(ctx context.Context, t *testing.T, _ *subject, front apistorage.Interface) {
			storagetesting.RunTestListContinuation(ctx, t, front, nil)
		}},
		{"updates that lose races", func(ctx context.Context, t *testing.T, _ *subject, front apistorage.Interface) {
			storagetesting.RunTestGuaranteedUpdateWithConflict(ctx, t, front)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, open := range engines {
				t.Run(name, func(t *testing.T) {
					s := newSubject(t, open(t, local.Options{}))
					c.run(t.Context(), t, s, withCache(t, s))
				})
			}
		})
	}
}
