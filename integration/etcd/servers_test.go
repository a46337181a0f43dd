package etcd_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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
		empties(t, last, fmt.Sprintf("ns%d", i))
		if i < 2 {
			stopServer(t, servers[i])
		}
	}
}

// empties has a namespace emptied and removed, which loops do that one server leads.
func empties(t testing.TB, c *kubernetes.Clientset, name string) {
	t.Helper()
	must[*corev1.Namespace](t)(c.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))
	must[*corev1.ConfigMap](t)(c.CoreV1().ConfigMaps(name).Create(t.Context(), configMap("color", "red"), metav1.CreateOptions{}))
	if err := c.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace "+name+" is gone", func() bool {
		_, err := c.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
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
	// The reference's answer to what has to be read from an etcd that is not there (rule H213).
	late := func(what string, err error) {
		var status *apierrors.StatusError
		if !errors.As(err, &status) || status.ErrStatus.Code != http.StatusGatewayTimeout || status.ErrStatus.Reason != metav1.StatusReasonTimeout ||
			status.ErrStatus.Message != "Timeout: request did not complete within the allotted timeout" {
			t.Errorf("%s is read: %v", what, err)
		}
	}
	_, err := c.CoreV1().ConfigMaps("default").Get(t.Context(), "color", metav1.GetOptions{})
	late("the latest of one", err)
	_, err = c.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	late("the latest of all", err)
	err = c.CoreV1().RESTClient().Post().MaxRetries(0).Namespace("default").Resource("configmaps").Body(configMap("shape", "round")).Do(t.Context()).Error()
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

// listening is an address that nobody listens at yet.
func listening(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// A server that starts before etcd is there says what it waits for, is not ready, and is well as soon as etcd is.
func TestAServerThatIsStartedBeforeItsEtcd(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	m.Stop()
	said := make(chan string, 100)
	opts := on(m)
	opts.Logger = slog.New(slog.NewTextHandler(lines(said), nil))
	at := listening(t)
	started := make(chan *pawl.Server, 1)
	go func() {
		s, err := pawl.Start(t.Context(), pawl.Config{Listen: at, Shared: func(ctx context.Context, _ pawl.SharedOptions) (pawl.SharedStore, error) {
			return kvetcd.Open(ctx, opts)
		}})
		if err != nil {
			t.Error(err)
		}
		started <- s
	}()
	select {
	case line := <-said:
		if !strings.Contains(line, "waiting for etcd") || !strings.Contains(line, m.URL) {
			t.Errorf("it says %q", line)
		}
	case <-time.After(patience):
		t.Fatal("it does not say what it waits for")
	}
	probe := &http.Client{Timeout: brief, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	if r, err := probe.Get("https://" + at + "/readyz"); err == nil {
		r.Body.Close()
		t.Errorf("without its etcd, /readyz answers %s", r.Status)
	}
	m.Restart()
	s := <-started
	if s == nil {
		return
	}
	defer stopServer(t, s)
	if got := string(must[[]byte](t)(clientOf(t, as(s, s)).RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context()))); got != "ok" {
		t.Errorf("it is %q", got)
	}
}

// lines are written to, one at a time, as a log is.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default: // nobody listens any more
	}
	return len(line), nil
}

// History that is compacted while a server cannot see it is 410 for who needs it: in the watches that were open, and in
// what is asked for later.
func TestHistoryThatAServerHasMissed(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	p := etcd.NewProxy(t, m)
	cut, well := serve(t, through(p)), serve(t, on(m))
	there := clientOf(t, as(cut, cut)).CoreV1().ConfigMaps("default")
	here := clientOf(t, as(well, well)).CoreV1().ConfigMaps("default")
	made := must[*corev1.ConfigMap](t)(there.Create(t.Context(), configMap("color", "red"), metav1.CreateOptions{}))
	w := must[watch.Interface](t)(there.Watch(t.Context(), metav1.ListOptions{ResourceVersion: made.ResourceVersion}))
	defer w.Stop()
	p.Cut()
	p.Break()
	must[*corev1.ConfigMap](t)(here.Create(t.Context(), configMap("shape", "round"), metav1.CreateOptions{}))
	last := must[*corev1.ConfigMap](t)(here.Create(t.Context(), configMap("size", "large"), metav1.CreateOptions{}))
	if err := well.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Heal()
	e, open := <-w.ResultChan()
	if status, _ := e.Object.(*metav1.Status); !open || e.Type != watch.Error || status == nil || status.Code != http.StatusGone || status.Reason != metav1.StatusReasonExpired {
		t.Errorf("the watch tells %v, %v", e, open)
	}
	if _, err := there.List(t.Context(), metav1.ListOptions{ResourceVersion: made.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}); !apierrors.IsResourceExpired(err) {
		t.Errorf("the past is listed: %v", err)
	}
	// The client does what clients do then: it lists, and watches from there.
	all := must[*corev1.ConfigMapList](t)(there.List(t.Context(), metav1.ListOptions{}))
	if n := len(all.Items); n != 3 {
		t.Errorf("%d are there, want 3", n)
	}
	again := must[watch.Interface](t)(there.Watch(t.Context(), metav1.ListOptions{ResourceVersion: all.ResourceVersion}))
	defer again.Stop()
	if err := here.Delete(t.Context(), last.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if e := <-again.ResultChan(); e.Type != watch.Deleted {
		t.Errorf("the new watch tells %v", e)
	}
}

// A server whose etcd has no room is read-only, and tells who writes, and who asks whether it is ready.
func TestAServerOnAFullEtcd(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{Quota: 4 << 20})
	s := serve(t, on(m))
	c := clientOf(t, as(s, s)).CoreV1()
	create := func(name, value string) error { // once: clients try again by themselves
		return c.RESTClient().Post().MaxRetries(0).Namespace("default").Resource("configmaps").Body(configMap(name, value)).Do(t.Context()).Error()
	}
	if err := create("large", "x"); err != nil {
		t.Fatal(err)
	}
	var err error
	for i := 0; err == nil; i++ { // the same one, so that forgetting makes room
		if i > 100 {
			t.Fatal("it is never full")
		}
		large := configMap("large", fmt.Sprint(i, strings.Repeat("x", 200<<10)))
		err = c.RESTClient().Put().MaxRetries(0).Namespace("default").Resource("configmaps").Name("large").Body(large).Do(t.Context()).Error()
	}
	for range 2 {
		if !apierrors.IsServerTimeout(err) || !strings.Contains(err.Error(), "etcd has no room") {
			t.Errorf("a write is answered with %v", err)
		}
		err = create("small", "x")
	}
	why, err := clientOf(t, as(s, s)).RESTClient().Get().AbsPath("/readyz/store").DoRaw(t.Context())
	if err == nil || !strings.Contains(string(why), "etcd has no room") {
		t.Errorf("it is ready: %s", why)
	}
	if all := must[*corev1.ConfigMapList](t)(c.ConfigMaps("default").List(t.Context(), metav1.ListOptions{})); len(all.Items) != 1 {
		t.Errorf("%d are there, want the large one", len(all.Items))
	}
	makeRoom(t, raw(t, m.URL), m.URL)
	eventually(t, "it takes writes again", func() bool { return create("after", "x") == nil })
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
