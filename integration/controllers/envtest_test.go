package controllers

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/pawl-dev/pawl/pawltest"
)

// The environment that tests of controllers are written for takes pawl for the cluster that
// exists: it installs its definitions, a second time too, hands out a kubeconfig that works,
// and takes its definitions away at the end.
func TestEnvtest(t *testing.T) {
	t.Parallel()
	ctx := soon(t)
	env := func() *envtest.Environment {
		return &envtest.Environment{UseExistingCluster: ptr.To(true), CRDDirectoryPaths: []string{definitions}, ErrorIfCRDPathMissing: true}
	}
	first, second := env(), env()
	first.Config = pawltest.New(t)
	config, err := first.Start()
	must(t, err)
	c := direct(t, config)
	must(t, c.Create(ctx, mill("thing", "rye")))

	second.Config = config
	second.CRDInstallOptions.CleanUpAfterUse = true
	_, err = second.Start()
	must(t, err)
	byFile, err := clientcmd.RESTConfigFromKubeConfig(second.KubeConfig)
	must(t, err)
	m := mill("thing", "")
	must(t, direct(t, byFile).Get(ctx, client.ObjectKeyFromObject(m), m))
	if m.Spec.Grain != "rye" {
		t.Errorf("the mill is %+v", m)
	}

	must(t, second.Stop())
	gone(ctx, t, c, first.CRDs[0])
	// Discovery follows in its own time, and offers nothing to wait on.
	err = wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		err := direct(t, config).Get(ctx, client.ObjectKeyFromObject(m), m)
		return meta.IsNoMatchError(err), nil
	})
	if err != nil {
		t.Errorf("a kind that is defined no more is still discovered: %v", err)
	}
	must(t, first.Stop())
}
