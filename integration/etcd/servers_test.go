package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/integration/etcd"
	kvetcd "github.com/pawl-dev/pawl/kv/etcd"
)

// serve starts a server whose store is in an etcd.
func serve(t testing.TB, opts kvetcd.Options) *pawl.Server {
	t.Helper()
	s, err := pawl.Start(t.Context(), pawl.Config{
		Listen: "127.0.0.1:0",
		Shared: func(ctx context.Context, o pawl.SharedOptions) (pawl.SharedStore, error) {
			opts.HistoryDuration, opts.HistorySize, opts.Logger = o.HistoryDuration, o.HistorySize, o.Logger
			return kvetcd.Open(ctx, opts)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopServer(t, s) })
	return s
}

func stopServer(t testing.TB, s *pawl.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// as is how one server's administrator speaks to another server.
func as(admin, to *pawl.Server) *rest.Config {
	c := admin.RESTConfig()
	c.Host, c.QPS = to.URL(), -1
	return c
}

func clientOf(t testing.TB, c *rest.Config) *kubernetes.Clientset {
	t.Helper()
	k, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"is": value}}
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Three servers that start at once on an empty etcd are one: whoever one of them knows they all know, and what one
// has written the others read and watch.
func TestThreeServersAreOne(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	var servers [3]*pawl.Server
	var wg sync.WaitGroup
	for i := range servers {
		wg.Go(func() { servers[i] = serve(t, on(m)) })
	}
	if wg.Wait(); t.Failed() {
		t.FailNow()
	}
	ctx := t.Context()
	one := clientOf(t, as(servers[0], servers[0]))
	other := clientOf(t, as(servers[0], servers[1]))
	third := clientOf(t, as(servers[2], servers[0]))

	created := must[*corev1.ConfigMap](t)(one.CoreV1().ConfigMaps("default").Create(ctx, configMap("color", "red"), metav1.CreateOptions{}))
	w := must[watch.Interface](t)(other.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{ResourceVersion: created.ResourceVersion}))
	defer w.Stop()
	read := must[*corev1.ConfigMap](t)(other.CoreV1().ConfigMaps("default").Get(ctx, "color", metav1.GetOptions{}))
	if read.ResourceVersion != created.ResourceVersion {
		t.Errorf("read at %s what was created at %s", read.ResourceVersion, created.ResourceVersion)
	}
	read.Data["is"] = "blue"
	updated := must[*corev1.ConfigMap](t)(other.CoreV1().ConfigMaps("default").Update(ctx, read, metav1.UpdateOptions{}))
	if e := <-w.ResultChan(); e.Type != watch.Modified || e.Object.(*corev1.ConfigMap).ResourceVersion != updated.ResourceVersion {
		t.Errorf("the watch tells %v", e)
	}
	if _, err := one.CoreV1().ConfigMaps("default").Update(ctx, created, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a stale write: %v", err)
	}
	if got := must[*corev1.ConfigMap](t)(third.CoreV1().ConfigMaps("default").Get(ctx, "color", metav1.GetOptions{})); got.Data["is"] != "blue" {
		t.Errorf("it is %s", got.Data["is"])
	}
	sharesAccounts(t, servers)
	sharesDefinitions(t, servers)
	outlivesItsLeader(t, servers)
}

// sharesAccounts has one server issue a token, and another believe it.
func sharesAccounts(t *testing.T, servers [3]*pawl.Server) {
	ctx := t.Context()
	one := clientOf(t, as(servers[0], servers[0]))
	must[*corev1.ServiceAccount](t)(one.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{}))
	token := must[*authenticationv1.TokenRequest](t)(one.CoreV1().ServiceAccounts("default").CreateToken(ctx, "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
	robot := rest.AnonymousClientConfig(as(servers[0], servers[1]))
	robot.BearerToken = token.Status.Token
	who := must[*authenticationv1.SelfSubjectReview](t)(clientOf(t, robot).AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))
	if who.Status.UserInfo.Username != "system:serviceaccount:default:robot" {
		t.Errorf("another server takes it for %s", who.Status.UserInfo.Username)
	}
}

// sharesDefinitions makes definitions at one server and uses them at another at once.
func sharesDefinitions(t *testing.T, servers [3]*pawl.Server) {
	one, other := dynamicOf(t, as(servers[0], servers[0])), dynamicOf(t, as(servers[0], servers[1]))
	for i := range 5 {
		made := define(t, one, i)
		must[*unstructured.Unstructured](t)(other.Resource(made).Namespace("default").Create(t.Context(), lamp(i), metav1.CreateOptions{}))
	}
}

func dynamicOf(t testing.TB, c *rest.Config) *dynamic.DynamicClient {
	t.Helper()
	d, err := dynamic.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// define makes a kind of lamps, of anything.
func define(t testing.TB, c *dynamic.DynamicClient, i int) schema.GroupVersionResource {
	t.Helper()
	plural := fmt.Sprintf("lamp%ds", i)
	definitions := c.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	must[*unstructured.Unstructured](t)(definitions.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": plural, "singular": strings.TrimSuffix(plural, "s"), "kind": fmt.Sprintf("Lamp%d", i), "listKind": fmt.Sprintf("Lamp%dList", i)},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
		},
	}}, metav1.CreateOptions{}))
	return schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: plural}
}

func lamp(i int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": fmt.Sprintf("Lamp%d", i), "metadata": map[string]any{"name": "desk"},
	}}
}

// outlivesItsLeader stops the servers one after the other, until one is left, and sees that namespaces are emptied still.
func outlivesItsLeader(t *testing.T, servers [3]*pawl.Server) {
	last := clientOf(t, as(servers[2], servers[2]))
	for i := range servers {
		name := fmt.Sprintf("ns%d", i)
		must[*corev1.Namespace](t)(last.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))
		must[*corev1.ConfigMap](t)(last.CoreV1().ConfigMaps(name).Create(t.Context(), configMap("color", "red"), metav1.CreateOptions{}))
		if err := last.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the namespace is gone with "+fmt.Sprint(3-i)+" servers", func() bool {
			_, err := last.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
		if i < 2 {
			stopServer(t, servers[i])
		}
	}
}

// A server that cannot reach etcd is not ready, says so to who writes, and is well again when etcd is.
func TestAServerWithoutItsEtcd(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	p := etcd.NewProxy(t, m)
	s := serve(t, through(p))
	c := clientOf(t, as(s, s))
	ready := func() (int, string) {
		r, err := c.RESTClient().Get().AbsPath("/readyz/store").DoRaw(t.Context())
		var status *apierrors.StatusError
		if errors.As(err, &status) {
			return int(status.ErrStatus.Code), string(r)
		}
		return http.StatusOK, string(r)
	}
	must[*corev1.ConfigMap](t)(c.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("color", "red"), metav1.CreateOptions{}))
	w := must[watch.Interface](t)(c.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{}))
	defer w.Stop()
	if e := <-w.ResultChan(); e.Type != watch.Added {
		t.Fatalf("the watch tells %v", e)
	}
	p.Cut()
	eventually(t, "the server is not ready", func() bool {
		code, why := ready()
		return code != http.StatusOK && strings.Contains(why, "etcd has not answered")
	})
	if _, err := c.CoreV1().ConfigMaps("default").Get(t.Context(), "color", metav1.GetOptions{ResourceVersion: "0"}); err != nil {
		t.Errorf("what is at hand cannot be read: %v", err)
	}
	if _, err := c.CoreV1().ConfigMaps("default").Get(t.Context(), "color", metav1.GetOptions{}); !apierrors.IsTimeout(err) {
		t.Errorf("the latest can be read: %v", err)
	}
	err := c.CoreV1().RESTClient().Post().MaxRetries(0).Namespace("default").Resource("configmaps").Body(configMap("shape", "round")).Do(t.Context()).Error()
	if err == nil || !strings.Contains(err.Error(), "etcd") {
		t.Errorf("a write is answered with %v", err)
	}
	p.Heal()
	eventually(t, "the server is ready", func() bool {
		code, _ := ready()
		return code == http.StatusOK
	})
	must[*corev1.ConfigMap](t)(c.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("size", "large"), metav1.CreateOptions{}))
	if e := <-w.ResultChan(); e.Type != watch.Added || e.Object.(*corev1.ConfigMap).Name != "size" {
		t.Errorf("the watch goes on with %v", e)
	}
}

// What is too large for etcd is 413.
func TestWhatIsTooLargeForEtcd(t *testing.T) {
	t.Parallel()
	s := serve(t, on(etcd.Start(t, etcd.Options{})))
	c := dynamicOf(t, as(s, s))
	large := lamp(1)
	large.Object["light"] = strings.Repeat("x", 1600<<10)
	_, err := c.Resource(define(t, c, 1)).Namespace("default").Create(t.Context(), large, metav1.CreateOptions{})
	if !apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), "etcd takes at most") {
		t.Errorf("got %v", err)
	}
}

// A backup of a server on etcd is a backup like any other: a local server goes on from it, with the same clients.
func TestABackupOfAServerOnEtcd(t *testing.T) {
	t.Parallel()
	s := serve(t, on(etcd.Start(t, etcd.Options{})))
	c := clientOf(t, as(s, s))
	made := must[*corev1.ConfigMap](t)(c.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("color", "red"), metav1.CreateOptions{}))
	var backup bytes.Buffer
	if err := s.Backup(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := pawl.Restore(t.Context(), dir, "the backup", io.Reader(&backup), nil); err != nil {
		t.Fatal(err)
	}
	local, err := pawl.Start(t.Context(), pawl.Config{DataDir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer stopServer(t, local)
	got := must[*corev1.ConfigMap](t)(clientOf(t, as(s, local)).CoreV1().ConfigMaps("default").Get(t.Context(), "color", metav1.GetOptions{}))
	if got.UID != made.UID || got.ResourceVersion != made.ResourceVersion || got.Data["is"] != "red" {
		t.Errorf("got %+v, want %+v", got, made)
	}
}
