package compat

import (
	"context"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/api/apitesting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	"k8s.io/klog/v2"

	etcds "github.com/pawl-dev/pawl/integration/etcd"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/etcd"
	"github.com/pawl-dev/pawl/kv/local"
)

// TestMain lets many tests run side by side, since most of them wait most of the time, and sees that
// no watch leaves a goroutine behind. One is the watch cache's own: who has waited for it to be fresh
// leaves a timer behind that runs for three seconds.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		io.WriteString(os.Stderr, err.Error()+"\n")
		os.Exit(2)
	}
	klog.SetLogger(logr.Discard())
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/apiserver/pkg/storage/cacher.(*watchCache).waitUntilFreshLocked.func2"))
}

// engines open each engine there is. One that is opened is closed when its test ends.
var engines = map[string]func(testing.TB, local.Options) kv.Engine{
	"local": func(t testing.TB, o local.Options) kv.Engine {
		o.Dir = t.TempDir()
		return open(t, o)
	},
	"memory": func(t testing.TB, o local.Options) kv.Engine {
		o.Memory = true
		return open(t, o)
	},
	"etcd": func(t testing.TB, _ local.Options) kv.Engine {
		engine, err := etcd.Open(context.Background(), etcd.Options{Endpoints: []string{etcds.Start(t, etcds.Options{}).URL}})
		return untilEnd(t, engine, err)
	},
}

func open(t testing.TB, o local.Options) kv.Engine {
	t.Helper()
	engine, err := local.Open(context.Background(), o)
	return untilEnd(t, engine, err)
}

// untilEnd returns the engine that was opened, and closes it when the test ends.
func untilEnd(t testing.TB, engine kv.Engine, err error) kv.Engine {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine
}

// newScheme is the scheme of the reference's own example, whose pods its tests store.
func newScheme(t testing.TB) (*runtime.Scheme, serializer.CodecFactory) {
	t.Helper()
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{example.AddToScheme, examplev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme, serializer.NewCodecFactory(scheme)
}

func exampleCodec(t testing.TB) runtime.Codec {
	t.Helper()
	_, codecs := newScheme(t)
	return apitesting.TestCodec(codecs, examplev1.SchemeGroupVersion)
}

func newPod() runtime.Object { return &example.Pod{} }

// heavy reports whether long runs were asked for.
func heavy() bool { return strings.TrimSpace(os.Getenv("PAWL_HEAVY")) != "" }
