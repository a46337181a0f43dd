package compat

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
)

func newConfigMap() runtime.Object { return &corev1.ConfigMap{} }

// memory opens an engine that is closed when the test ends.
func memory(t testing.TB) *local.Engine {
	t.Helper()
	engine, err := local.Open(context.Background(), local.Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	return engine
}

// options are those of config maps over an engine.
func options(engine kv.Engine) Options {
	return Options{
		Engine: engine, ResourcePrefix: "/configmaps", Resource: schema.GroupResource{Resource: "configmaps"},
		Codec: scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion), NewFunc: newConfigMap,
	}
}

func newStore(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func configMap(namespace, name, color string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"is": color}}
}

// create stores a config map under its usual key, and returns it as it is stored.
func create(t testing.TB, s *Store, name, color string) *corev1.ConfigMap {
	t.Helper()
	out := &corev1.ConfigMap{}
	if err := s.Create(context.Background(), "/configmaps/a/"+name, configMap("a", name, color), out, 0); err != nil {
		t.Fatal(err)
	}
	return out
}

// paint is an update of one config map.
func paint(color string) apistorage.UpdateFunc {
	return func(obj runtime.Object, _ apistorage.ResponseMeta) (runtime.Object, *uint64, error) {
		obj.(*corev1.ConfigMap).Data = map[string]string{"is": color}
		return obj, nil, nil
	}
}

// everything begins a watch of all config maps.
func everything(t testing.TB, ctx context.Context, s *Store, opts apistorage.ListOptions) watch.Interface {
	t.Helper()
	opts.Recursive = true
	w, err := s.Watch(ctx, "/configmaps", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// next waits for an event.
func next(t testing.TB, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch has ended")
		}
		return e
	case <-time.After(time.Minute):
		t.Fatal("nothing in a minute")
	}
	return watch.Event{}
}

// drained returns the events that are left of a watch that ends.
func drained(t testing.TB, w watch.Interface) []watch.Event {
	t.Helper()
	var all []watch.Event
	for {
		select {
		case e, ok := <-w.ResultChan():
			if !ok {
				return all
			}
			all = append(all, e)
		case <-time.After(time.Minute):
			t.Fatalf("the watch goes on after %d events", len(all))
		}
	}
}

var (
	errDamaged = errors.New("damaged")
	errNoKey   = errors.New("the key service does not answer")
)

// sealer puts the path before a value and, when told to, fails.
type sealer struct {
	fail error
}

func (s *sealer) TransformToStorage(_ context.Context, data []byte, c value.Context) ([]byte, error) {
	return append([]byte("sealed for "+string(c.AuthenticatedData())+"\n"), data...), nil
}

func (s *sealer) TransformFromStorage(_ context.Context, data []byte, c value.Context) ([]byte, bool, error) {
	if s.fail != nil {
		return nil, false, s.fail
	}
	seal := "sealed for " + string(c.AuthenticatedData()) + "\n"
	if len(data) < len(seal) || string(data[:len(seal)]) != seal {
		return nil, false, errDamaged
	}
	return data[len(seal):], false, nil
}

// A knowing sealer tells its own failures from those of values.
type knowing struct{ sealer }

func (k *knowing) Corrupt(err error) bool { return errors.Is(err, errDamaged) }
