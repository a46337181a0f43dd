package clients

import (
	"context"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/pawl-dev/pawl/pawltest"
)

// Of two candidates one leads; when it dies without a word, the other leads once the lease
// has run out (spec/builtin.md B45).
func TestLeaderElection(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	c := typed(t, pawltest.New(t))
	leads := make(chan string, 2)
	var running sync.WaitGroup
	defer running.Wait()
	kill := map[string]context.CancelFunc{}
	for _, name := range []string{"ann", "bob"} {
		alive, cancel := context.WithCancel(ctx)
		defer cancel()
		kill[name] = cancel
		running.Go(func() { run(alive, t, candidate(c, name, leads)) })
	}
	first := next(ctx, t, "a leader", leads)
	kill[first]()
	second := next(ctx, t, "a leader after the first one died", leads)
	if second == first {
		t.Errorf("%s leads again after its death", first)
	}
	lease, err := c.CoordinationV1().Leases("default").Get(ctx, "throne", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if *lease.Spec.HolderIdentity != second || *lease.Spec.LeaseTransitions != 1 {
		t.Errorf("the lease is held by %s after %d changes, want %s after 1", *lease.Spec.HolderIdentity, *lease.Spec.LeaseTransitions, second)
	}
}

// candidate is somebody who wants to lead, and says so on leads when they do.
func candidate(c kubernetes.Interface, name string, leads chan<- string) leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: "throne"},
			Client:     c.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		},
		LeaseDuration: 2 * time.Second, RenewDeadline: 1500 * time.Millisecond, RetryPeriod: 200 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { leads <- name },
			OnStoppedLeading: func() {},
		},
	}
}

func run(ctx context.Context, t *testing.T, c leaderelection.LeaderElectionConfig) {
	elector, err := leaderelection.NewLeaderElector(c)
	if err != nil {
		t.Error(err)
		return
	}
	elector.Run(ctx)
}
