package etcd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/integration/etcd"
	"github.com/pawl-dev/pawl/kv"
	kvetcd "github.com/pawl-dev/pawl/kv/etcd"
	"github.com/pawl-dev/pawl/kv/local"
)

// A home is where a server keeps its objects: a data folder, an etcd, or memory.
type home struct {
	name  string
	start func(t testing.TB) *pawl.Server
	// fill makes it from a backup. Memory cannot be made so: nil.
	fill func(t testing.TB, backup []byte) local.Restored
	// backup backs it up while no server has it.
	backup func(t testing.TB) []byte
	// renews says whether objects get new resourceVersions when it is filled.
	renews bool
}

func inFolder(dir string) home {
	return home{
		name:  "a folder",
		start: func(t testing.TB) *pawl.Server { return started(t, pawl.Config{DataDir: dir}) },
		fill: func(t testing.TB, backup []byte) local.Restored {
			return must[local.Restored](t)(pawl.Restore(t.Context(), dir, "the backup", bytes.NewReader(backup), nil))
		},
		backup: func(t testing.TB) []byte {
			var b bytes.Buffer
			must[local.About](t)(pawl.BackupFolder(t.Context(), dir, &b, nil, nil))
			return b.Bytes()
		},
	}
}

func inMemory() home {
	return home{name: "memory", start: func(t testing.TB) *pawl.Server { return started(t, pawl.Config{Engine: pawl.EngineMemory}) }}
}

func inEtcd(opts kvetcd.Options) home {
	return home{
		name:   "etcd",
		renews: true,
		start:  func(t testing.TB) *pawl.Server { return serve(t, opts) },
		fill: func(t testing.TB, backup []byte) local.Restored {
			into := func(ctx context.Context, after kv.Revision, versions iter.Seq2[*kv.Version, error], beside map[string][]byte) (kv.Revision, error) {
				return kvetcd.Restore(ctx, opts, after, versions, beside)
			}
			return must[local.Restored](t)(pawl.RestoreShared(t.Context(), into, "the backup", bytes.NewReader(backup), nil))
		},
		backup: func(t testing.TB) []byte {
			e, err := kvetcd.Open(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			var b bytes.Buffer
			must[local.About](t)(pawl.BackupShared(t.Context(), e, &b, nil))
			return b.Bytes()
		},
	}
}

func started(t testing.TB, c pawl.Config) *pawl.Server {
	t.Helper()
	c.Listen = "127.0.0.1:0"
	s, err := pawl.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopServer(t, s) })
	return s
}

// content is what a backup holds, in a form that can be compared.
func content(t testing.TB, backup []byte) (objects []string, files map[string]string) {
	t.Helper()
	r, err := local.OpenBackup("the backup", bytes.NewReader(backup))
	if err != nil {
		t.Fatal(err)
	}
	for v, err := range r.Versions(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, fmt.Sprintf("%s = %q by %v at %v until %v", v.Key, v.Value, v.By(), v.Time, v.Expires))
	}
	files = map[string]string{}
	for _, f := range r.About().Files {
		files[f.Name] = string(f.Content)
	}
	return objects, files
}

// A backup of any engine restores into any other. Every object is what it was, expires when it was to, and looks the same; the
// server is who it was; and a client that saw what was written after the backup is told that this is lost.
func TestABackupOfAnyEngineRestoresIntoAnyOther(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	n := 0
	folder := func() home { return inFolder(filepath.Join(t.TempDir(), "data")) }
	cluster := func() home {
		n++
		return inEtcd(kvetcd.Options{Endpoints: []string{m.URL}, Prefix: fmt.Sprint("/p", n)})
	}
	for _, from := range []func() home{folder, cluster, inMemory} {
		for _, to := range []func() home{folder, cluster} {
			from, to := from(), to()
			t.Run("from "+from.name+" into "+to.name, func(t *testing.T) { move(t, from, to) })
		}
	}
}

// A backup that is not whole is refused, and leaves nothing in etcd.
func TestABackupThatIsNotWholeLeavesNothingInEtcd(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	s := inMemory().start(t)
	live(t, s)
	var whole bytes.Buffer
	if err := s.Backup(t.Context(), &whole); err != nil {
		t.Fatal(err)
	}
	into := func(ctx context.Context, after kv.Revision, versions iter.Seq2[*kv.Version, error], beside map[string][]byte) (kv.Revision, error) {
		return kvetcd.Restore(ctx, on(m), after, versions, beside)
	}
	flipped := bytes.Clone(whole.Bytes())
	flipped[len(flipped)-100] ^= 1
	for name, torn := range map[string][]byte{
		"one that ends too early": whole.Bytes()[:whole.Len()-1],
		"one with a wrong bit":    flipped,
		"one with more behind it": append(bytes.Clone(whole.Bytes()), 0),
		"nothing":                 nil,
	} {
		var damage *local.DamageError
		if _, err := pawl.RestoreShared(t.Context(), into, "the backup", bytes.NewReader(torn), nil); !errors.As(err, &damage) {
			t.Errorf("%s: %v", name, err)
		}
		if left := keys(t, raw(t, m.URL), "/"); len(left) > 0 {
			t.Errorf("%s left %v", name, left)
		}
	}
}

func move(t *testing.T, from, to home) {
	source := from.start(t)
	seen := live(t, source)
	var b bytes.Buffer
	if err := source.Backup(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	backup := b.Bytes()
	shown := seen.tables(t, source)
	seen.goOn(t, source)
	stopServer(t, source)

	made := to.fill(t, backup)
	objects, files := content(t, backup)
	sameObjects, sameFiles := content(t, to.backup(t))
	if !slices.Equal(objects, sameObjects) {
		t.Errorf("there was %q, and is %q", objects, sameObjects)
	}
	if !maps.Equal(files, sameFiles) || len(files) == 0 {
		t.Error("the keys are not those that were backed up")
	}
	if about := made.About; about.Objects != len(objects) {
		t.Errorf("it is said to be %d objects, and is %d", about.Objects, len(objects))
	}
	target := to.start(t)
	if got := seen.tables(t, target); got != shown {
		t.Errorf("it was shown as %s\nand is as %s", shown, got)
	}
	seen.isTold(t, target, to.renews)
}

// A witness is a client that knew a server before.
type witness struct {
	config *rest.Config
	robot  string // a token

	backedUp *corev1.ConfigMap // as it was when the server was backed up
	lost     *corev1.ConfigMap // as it was later
	last     *corev1.ConfigMap // the last that was written
	lamps    schema.GroupVersionResource
}

// as is the witness at a server.
func (w *witness) as(s *pawl.Server) *rest.Config {
	c := rest.CopyConfig(w.config)
	c.Host, c.QPS = s.URL(), -1
	return c
}

// live has a server hold something of every kind that matters.
func live(t testing.TB, s *pawl.Server) *witness {
	t.Helper()
	w := &witness{config: s.RESTConfig()}
	c, d := clientOf(t, w.as(s)), dynamicOf(t, w.as(s))
	ctx := t.Context()
	for i := range 150 { // more than one commit of etcd's holds
		must[*corev1.ConfigMap](t)(c.CoreV1().ConfigMaps("default").Create(ctx, configMap(fmt.Sprint("many-", i), "x"), metav1.CreateOptions{}))
	}
	w.backedUp = must[*corev1.ConfigMap](t)(c.CoreV1().ConfigMaps("default").Create(ctx, configMap("changed", "1"), metav1.CreateOptions{}))
	must[*corev1.ConfigMap](t)(c.CoreV1().ConfigMaps("default").Create(ctx, configMap("deleted", "1"), metav1.CreateOptions{}))
	must[*corev1.Secret](t)(c.CoreV1().Secrets("default").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"k": {0, 1, 255}}}, metav1.CreateOptions{}))
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "it.happened"}, InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Namespace: "default", Name: "changed"}, Reason: "Test"}
	must[*corev1.Event](t)(c.CoreV1().Events("default").Create(ctx, event, metav1.CreateOptions{}))
	must[*corev1.ServiceAccount](t)(c.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{}))
	w.robot = must[*authenticationv1.TokenRequest](t)(c.CoreV1().ServiceAccounts("default").CreateToken(ctx, "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})).Status.Token
	w.lamps = define(t, d, 1)
	going := lamp(1)
	going.SetFinalizers([]string{"example.com/wait"})
	must[*unstructured.Unstructured](t)(d.Resource(w.lamps).Namespace("default").Create(ctx, going, metav1.CreateOptions{}))
	if err := d.Resource(w.lamps).Namespace("default").Delete(ctx, "desk", metav1.DeleteOptions{}); err != nil { // it waits for its finalizer
		t.Fatal(err)
	}
	return w
}

// goOn writes what will be lost.
func (w *witness) goOn(t testing.TB, s *pawl.Server) {
	t.Helper()
	maps := clientOf(t, w.as(s)).CoreV1().ConfigMaps("default")
	changed := w.backedUp.DeepCopy()
	changed.Data["is"] = "2"
	w.lost = must[*corev1.ConfigMap](t)(maps.Update(t.Context(), changed, metav1.UpdateOptions{}))
	if err := maps.Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.last = must[*corev1.ConfigMap](t)(maps.Create(t.Context(), configMap("made", "1"), metav1.CreateOptions{}))
}

var versions = regexp.MustCompile(`"resourceVersion":"\d+"`)

// tables are what people are shown of what there is.
func (w *witness) tables(t testing.TB, s *pawl.Server) string {
	t.Helper()
	var all []byte
	for _, path := range []string{
		"/api/v1/namespaces", "/api/v1/configmaps", "/api/v1/secrets", "/api/v1/serviceaccounts", "/api/v1/events",
		"/apis/example.com/v1/lamp1s", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
	} {
		got, err := clientOf(t, w.as(s)).RESTClient().Get().AbsPath(path).Param("includeObject", "Object").
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
		if err != nil || !bytes.Contains(got, []byte(`"kind":"Table"`)) {
			t.Fatalf("%s: %v: %s", path, err, got)
		}
		all = append(all, got...)
	}
	ages := regexp.MustCompile(`"\d+(ms|s|m)"`) // how old they are said to be
	return string(ages.ReplaceAll(versions.ReplaceAll(all, nil), nil))
}

// isTold sees that a server that was restored is for the witness who it was, and tells it what it must know.
func (w *witness) isTold(t *testing.T, s *pawl.Server, renews bool) {
	ctx := t.Context()
	c := clientOf(t, w.as(s))
	maps := c.CoreV1().ConfigMaps("default")
	for what, rev := range map[string]string{"what both saw": w.backedUp.ResourceVersion, "what was lost": w.last.ResourceVersion} {
		if code := watchFrom(t, c, rev); code != 410 {
			t.Errorf("a watch that goes on from %s gets %d, want 410", what, code)
		}
	}
	if _, err := maps.List(ctx, metav1.ListOptions{ResourceVersion: w.last.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}); !apierrors.IsResourceExpired(err) {
		t.Errorf("an exact list of what was lost gets %v", err)
	}
	stale := w.lost.DeepCopy()
	stale.Data["is"] = "3"
	if _, err := maps.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a write that rests on what was lost gets %v", err)
	}
	list := must[*corev1.ConfigMapList](t)(maps.List(ctx, metav1.ListOptions{ResourceVersion: w.last.ResourceVersion}))
	if now := number(t, list.ResourceVersion); now <= number(t, w.last.ResourceVersion) || now >= 1<<53 {
		t.Errorf("the list has version %d, want one far behind %s", now, w.last.ResourceVersion)
	}
	restored := must[*corev1.ConfigMap](t)(maps.Get(ctx, "changed", metav1.GetOptions{}))
	if same := restored.ResourceVersion == w.backedUp.ResourceVersion; restored.UID != w.backedUp.UID || restored.Data["is"] != "1" || same == renews {
		t.Errorf("it is %v, and was %v", restored, w.backedUp)
	}
	known := w.backedUp.DeepCopy()
	known.Data["is"] = "4"
	switch _, err := maps.Update(ctx, known, metav1.UpdateOptions{}); {
	case renews && !apierrors.IsConflict(err):
		t.Errorf("a write that names the version before gets %v, want a conflict", err)
	case !renews && err != nil:
		t.Errorf("a write that rests on what was backed up gets %v", err)
	}
	fresh := must[*corev1.ConfigMap](t)(maps.Get(ctx, "changed", metav1.GetOptions{}))
	fresh.Data["is"] = "5"
	written := must[*corev1.ConfigMap](t)(maps.Update(ctx, fresh, metav1.UpdateOptions{}))
	if number(t, written.ResourceVersion) <= number(t, list.ResourceVersion) {
		t.Errorf("written at %s, after a list at %s", written.ResourceVersion, list.ResourceVersion)
	}
	robot := rest.AnonymousClientConfig(w.as(s))
	robot.BearerToken = w.robot
	who := must[*authenticationv1.SelfSubjectReview](t)(clientOf(t, robot).AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}))
	if who.Status.UserInfo.Username != "system:serviceaccount:default:robot" {
		t.Errorf("the token of before is taken for %s", who.Status.UserInfo.Username)
	}
	w.letGo(t, s)
}

// letGo removes the finalizer that an object waits for, which then is gone.
func (w *witness) letGo(t *testing.T, s *pawl.Server) {
	d := dynamicOf(t, w.as(s)).Resource(w.lamps).Namespace("default")
	going := must[*unstructured.Unstructured](t)(d.Get(t.Context(), "desk", metav1.GetOptions{}))
	going.SetFinalizers(nil)
	must[*unstructured.Unstructured](t)(d.Update(t.Context(), going, metav1.UpdateOptions{}))
	if _, err := d.Get(t.Context(), "desk", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after its last finalizer it is %v", err)
	}
}

// watchFrom returns the code of what a watch of configmaps is told that goes on from a version.
func watchFrom(t testing.TB, c *kubernetes.Clientset, rev string) int32 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	w, err := c.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{ResourceVersion: rev})
	if err != nil {
		return statusOf(err).Code
	}
	defer w.Stop()
	e := <-w.ResultChan()
	if status, ok := e.Object.(*metav1.Status); ok {
		return status.Code
	}
	t.Logf("the watch from %s tells %v", rev, e)
	return 0
}

func statusOf(err error) metav1.Status {
	var told apierrors.APIStatus
	if errors.As(err, &told) {
		return told.Status()
	}
	return metav1.Status{Message: err.Error()}
}

func number(t testing.TB, version string) uint64 {
	t.Helper()
	return must[uint64](t)(strconv.ParseUint(version, 10, 64))
}
