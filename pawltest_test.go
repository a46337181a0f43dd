package pawl_test

import (
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl/pawltest"
)

// TestServersOfTestsKnowNothingOfEachOther starts many at once, and writes other objects of the
// same name to each.
func TestServersOfTestsKnowNothingOfEachOther(t *testing.T) {
	const servers = 8
	var all sync.WaitGroup
	for i := range servers {
		config := pawltest.New(t)
		all.Go(func() {
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				t.Error(err)
				return
			}
			maps := client.CoreV1().ConfigMaps("default")
			want := fmt.Sprint(i)
			if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"is": want}}, metav1.CreateOptions{}); err != nil {
				t.Error(err)
				return
			}
			list, err := maps.List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != 1 || list.Items[0].Data["is"] != want {
				t.Errorf("server %d: %v, %v", i, list, err)
			}
		})
	}
	all.Wait()
}

func TestNothingIsLeftOfAServer(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("with a watch left open, and objects to clean up", func(t *testing.T) {
		config := pawltest.New(t)
		a := apiOf(t, config, 2)
		a.must("POST", definitions, crd("widgets", "Widget", "Namespaced"))
		a.must("POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`)
		a.must("POST", "/apis/pawl.test/v1/namespaces/n/widgets", `{"kind":"Widget","apiVersion":"pawl.test/v1","metadata":{"name":"a"}}`)
		client := kubernetes.NewForConfigOrDie(config)
		w, err := client.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		go func() { // until the server ends
			for range w.ResultChan() {
			}
		}()
		a.must("DELETE", "/api/v1/namespaces/n", "")
		a.must("GET", "/openapi/v3/apis/pawl.test/v1", "")
	})
	if err := goleak.Find(before); err != nil {
		t.Errorf("%.3000v", err)
	}
}

// A scope is a test of its own as far as cleaning up goes.
type scope struct {
	testing.TB
	cleanups []func()
}

func (s *scope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *scope) end() {
	for len(s.cleanups) > 0 {
		last := len(s.cleanups) - 1
		s.cleanups[last]()
		s.cleanups = s.cleanups[:last]
	}
}

// BenchmarkNew is how long a test waits for its server: less than 25 ms.
//
//	go test -run '^$' -bench New -count 5 .
func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		s := &scope{TB: b}
		pawltest.New(s)
		b.StopTimer()
		s.end()
		b.StartTimer()
	}
}
