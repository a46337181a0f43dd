package controller

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// finalize takes everything that holds an empty namespace away.
func finalize(w *world, name string) {
	w.Helper()
	_, err := w.version("", "namespaces").Subresources["finalize"].Store.Update(w.ctx, "", name, func(_ context.Context, obj runtime.Object) (runtime.Object, error) {
		obj.(*corev1.Namespace).Spec.Finalizers = nil
		return obj, nil
	}, registry.UpdateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

func TestASuccessorWaitsUntilTheJobOfItsPredecessorHasEnded(t *testing.T) {
	within(t, func(w *world) {
		w.stopLoops()
		terminating := func() types.UID {
			w.create("", "namespaces", "", named("a"))
			w.delete("", "namespaces", "", "a")
			return w.namespace("a").UID
		}
		started, end := make(chan target, 2), make(chan bool)
		l := &loop{
			table: w.version("", "namespaces").Store.Table(), waits: waitsForEmptying,
			work: func(_ context.Context, t target) error {
				started <- t
				<-end // whatever ctx says: it takes its time
				return nil
			},
			clock: clock.RealClock{}, log: slog.New(slog.DiscardHandler),
		}
		first := terminating()
		ctx, cancel := context.WithCancel(w.ctx)
		w.running.Go(func() { _ = l.run(ctx) })
		w.settle()
		finalize(w, "a")
		second := terminating()
		w.settle()
		if len(started) != 1 {
			t.Errorf("%d jobs are running for one name", len(started))
		}
		end <- true
		w.settle()
		close(started)
		var got []types.UID
		for s := range started {
			got = append(got, s.uid)
		}
		if want := []types.UID{first, second}; !slices.Equal(got, want) {
			t.Errorf("jobs ran for %q, want %q", got, want)
		}
		cancel()
		end <- true
	})
}

func TestAJobForAnotherObjectOfThatNameIsEnded(t *testing.T) {
	within(t, func(w *world) {
		w.stopLoops()
		w.create("", "namespaces", "", named("a"))
		w.delete("", "namespaces", "", "a")
		v, err := w.version("", "namespaces").Store.Get(w.ctx, "", "a", "")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name    string
			version storage.Version
			created kv.Revision
			ends    bool
		}{
			{"the job for the object goes on", v, v.Created(), false},
			{"one that began for a predecessor ends", v, v.Created() - 1, true},
			{"one for an object that no longer waits ends", v.Prev(), v.Created(), true},
		} {
			ended := false
			l := &loop{
				waits: waitsForEmptying,
				jobs:  map[string]*job{"a": {target: target{name: "a"}, created: c.created, cancel: func() { ended = true }}},
			}
			if l.consider(w.ctx, c.version); ended != c.ends {
				t.Errorf("%s: ended is %v", c.name, ended)
			}
		}
	})
}
