package etcd_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The script of docs/moving.md moves a server to etcd under the eyes of an informer and while somebody writes: nothing that
// was answered is lost, and both go on by themselves.
func TestTheScriptThatMovesAServerToEtcd(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "docs/moving.md"))
	if err != nil {
		t.Fatal(err)
	}
	script := regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindStringSubmatch(string(text))
	if script == nil {
		t.Fatal("docs/moving.md holds no script")
	}
	g := guard(t)
	there := g.flags(movedTo)
	bin := t.TempDir()
	data := filepath.Join(t.TempDir(), "data")
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "pawl"), "./cmd/pawl")
	build.Dir = repository
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building pawl: %v\n%s", err, out)
	}

	old, url := ready(t, exec.Command(filepath.Join(bin, "pawl"), "serve", "--data", data, "--listen", "127.0.0.1:0"))
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(data, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	w := write(t, clientOf(t, config))
	seen := inform(t, config)
	eventually(t, "much is written to the old server", func() bool { return w.answered() > 100 })
	before := must[*corev1.ConfigMapList](t)(clientOf(t, config).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}))

	shell := exec.Command("sh", append([]string{"-c", script[1], "move.sh"}, there...)...)
	shell.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "DATA="+data, "LISTEN="+strings.TrimPrefix(url, "https://"))
	moving, _ := ready(t, shell)
	if state := old.wait(t); state != 0 {
		t.Errorf("the old server ended with %d", state)
	}
	moved := w.answered()
	eventually(t, "the writer goes on at the new server", func() bool { return w.answered() > moved+100 })
	w.end()
	w.judge(t, config)
	eventually(t, "the informer shows what the server lists", func() bool {
		list := must[*corev1.ConfigMapList](t)(clientOf(t, config).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}))
		return maps.Equal(seen(t), versionsOf(list))
	})
	tellsTheTable(t, config, before)
	say := func(args ...string) (string, error) {
		cmd := exec.Command(filepath.Join(bin, "pawl"), args...)
		cmd.Dir = bin
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := say("backup", "--kubeconfig", filepath.Join(data, "kubeconfig"), "running.bak"); err != nil {
		t.Errorf("back up the new server: %v\n%s", err, out)
	}
	if out, err := say(append([]string{"restore", "running.bak", "--engine", "etcd"}, there...)...); err == nil || !strings.Contains(out, "hint: name another prefix") {
		t.Errorf("restore over the new server: %v\n%s", err, out)
	}
	_ = moving.cmd.Process.Signal(syscall.SIGTERM)
	moving.wait(t)
	back(t, say, g)
	if info, err := os.Stat(data + ".bak"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup can be read by others, or is gone: %v, %v", info, err)
	}
}

// movedTo is the prefix that the script is given, which is not the default.
const movedTo = "/clusters/first"

// back goes the way back that the document tells of.
func back(t *testing.T, say func(...string) (string, error), g *guarded) {
	t.Helper()
	at := func(prefix string, args ...string) []string {
		return append(append(args, "--engine", "etcd"), g.flags(prefix)...)
	}
	for _, step := range []struct {
		args []string
		want string
	}{
		{at(movedTo, "backup", "back.bak"), "backed up "},
		{[]string{"restore", "back.bak", "back"}, "start it with: pawl serve --data back"},
		{[]string{"check", "back"}, ""},
		{at("/again", "restore", "back.bak"), "start it with: pawl serve --engine etcd --etcd-endpoints " + g.URL + " --etcd-prefix /again --etcd-cafile "},
	} {
		if out, err := say(step.args...); err != nil || !strings.Contains(out, step.want) {
			t.Errorf("pawl %v: %v\n%s", step.args, err, out)
		}
	}
	if out, err := say(at("/nobody", "backup", "none.bak")...); err == nil || !strings.Contains(out, "no server has ever had this store") {
		t.Errorf("back up what is not there: %v\n%s", err, out)
	}
	refused := append([]string{"serve", "--engine", "etcd", "--etcd-endpoints", g.URL}, g.secretsOf("pawl")...)
	if out, err := say(append(refused, "--etcd-prefix", "/elsewhere")...); err == nil ||
		!strings.Contains(out, "pawl: hint: give the user a role that may: etcdctl role grant-permission ROLE --prefix=true readwrite /elsewhere/") {
		t.Errorf("serve where that is not let: %v\n%s", err, out)
	}
}

// tellsTheTable sees that a client that goes on from before the move is told what the document says.
func tellsTheTable(t *testing.T, config *rest.Config, before *corev1.ConfigMapList) {
	c := clientOf(t, config)
	maps := c.CoreV1().ConfigMaps("default")
	if code := watchFrom(t, c, before.ResourceVersion); code != 410 {
		t.Errorf("a watch from before the move gets %d", code)
	}
	now := must[*corev1.ConfigMapList](t)(maps.List(t.Context(), metav1.ListOptions{ResourceVersion: before.ResourceVersion}))
	if number(t, now.ResourceVersion) <= number(t, before.ResourceVersion) {
		t.Errorf("lists are at %s, and were at %s", now.ResourceVersion, before.ResourceVersion)
	}
	stale := before.Items[len(before.Items)-1].DeepCopy()
	stale.Data = map[string]string{"stale": "yes"}
	if _, err := maps.Update(t.Context(), stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update that names a version from before gets %v", err)
	}
}

// A child is a process that serves.
type child struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// ready starts a process, and returns the URL that it serves at once it does. It ends with the test.
func ready(t *testing.T, cmd *exec.Cmd) (*child, string) {
	t.Helper()
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd, make(chan struct{})}
	at := make(chan string, 1)
	go func() {
		defer close(c.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if rest, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
				url, _, _ := strings.Cut(rest, " ")
				at <- url
			}
		}
		_ = cmd.Wait() // so that it is not there any more for who looks
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		if state := c.wait(t); state != 0 {
			t.Errorf("%v ended with %d", cmd.Args[0], state)
		}
	})
	select {
	case url := <-at:
		return c, url
	case <-c.ended:
		t.Fatalf("%v ended before it served", cmd.Args[0])
	case <-time.After(patience):
		t.Fatalf("%v does not serve", cmd.Args[0])
	}
	return nil, ""
}

// wait waits until the process has ended, and returns its exit code.
func (c *child) wait(t testing.TB) int {
	t.Helper()
	select {
	case <-c.ended:
		return c.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		t.Fatalf("%v does not end", c.cmd.Args[0])
		return -1
	}
}

// A writer makes objects and counts in one, and remembers what it was answered.
type writer struct {
	stop context.CancelFunc
	runs sync.WaitGroup

	mu      sync.Mutex // guards what follows
	made    []string   // objects
	count   int        // that it was answered last
	unknown int        // counts whose answers were lost since it was started
}

// write starts a writer, which goes on through whatever happens to the server.
func write(t testing.TB, c *kubernetes.Clientset) *writer {
	t.Helper()
	objects := c.CoreV1().ConfigMaps("default")
	must[*corev1.ConfigMap](t)(objects.Create(t.Context(), configMap("count", "0"), metav1.CreateOptions{}))
	ctx, stop := context.WithCancel(t.Context())
	w := &writer{stop: stop}
	t.Cleanup(w.end)
	w.runs.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			name := fmt.Sprint("made-", i)
			_, err := objects.Create(t.Context(), configMap(name, "x"), metav1.CreateOptions{})
			if w.note(err, func() { w.made = append(w.made, name) }); err != nil {
				<-time.After(20 * time.Millisecond)
			}
		}
	})
	w.runs.Go(func() {
		var have *corev1.ConfigMap
		for ctx.Err() == nil {
			var err error
			if have == nil {
				if have, err = objects.Get(t.Context(), "count", metav1.GetOptions{}); err != nil {
					have = nil
					<-time.After(20 * time.Millisecond)
					continue
				}
			}
			n, err := strconv.Atoi(have.Data["is"])
			if err != nil {
				t.Errorf("it counts %q", have.Data["is"])
				return
			}
			next := have.DeepCopy()
			next.Data["is"] = strconv.Itoa(n + 1)
			have, err = objects.Update(t.Context(), next, metav1.UpdateOptions{})
			if err != nil {
				have = nil
			}
			w.note(err, func() { w.count = n + 1 })
			if err != nil && !apierrors.IsConflict(err) {
				w.note(nil, func() { w.unknown++ })
				<-time.After(20 * time.Millisecond)
			}
		}
	})
	return w
}

// note does what is to be noted of a write that was answered.
func (w *writer) note(err error, done func()) {
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	done()
}

func (w *writer) answered() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return min(len(w.made), w.count)
}

func (w *writer) end() {
	w.stop()
	w.runs.Wait()
}

// judge compares what is there with what the writer was answered.
func (w *writer) judge(t *testing.T, config *rest.Config) {
	objects := clientOf(t, config).CoreV1().ConfigMaps("default")
	list := must[*corev1.ConfigMapList](t)(objects.List(t.Context(), metav1.ListOptions{}))
	there := versionsOf(list)
	for _, name := range w.made {
		if there[name] == "" {
			t.Errorf("%s was answered, and is lost", name)
		}
	}
	count := must[*corev1.ConfigMap](t)(objects.Get(t.Context(), "count", metav1.GetOptions{}))
	n := must[int](t)(strconv.Atoi(count.Data["is"]))
	if n < w.count || n > w.count+w.unknown {
		t.Errorf("it counts %d, and %d was answered, with %d unknown", n, w.count, w.unknown)
	}
	t.Logf("%d objects made, counted to %d, %d writes not answered or refused", len(w.made), n, w.unknown)
}

// versionsOf are the resourceVersions of what is in a list, by name.
func versionsOf(list *corev1.ConfigMapList) map[string]string {
	all := map[string]string{}
	for _, m := range list.Items {
		all[m.Name] = m.ResourceVersion
	}
	return all
}

// inform starts an informer, and returns what shows what is in its cache.
func inform(t testing.TB, config *rest.Config) func(testing.TB) map[string]string {
	t.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(clientOf(t, config), 0, informers.WithNamespace("default"))
	var lister corelisters.ConfigMapLister = factory.Core().V1().ConfigMaps().Lister()
	ctx, cancel := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	factory.WaitForCacheSyncWithContext(ctx)
	return func(t testing.TB) map[string]string {
		t.Helper()
		all := map[string]string{}
		for _, m := range must[[]*corev1.ConfigMap](t)(lister.List(labels.Everything())) {
			all[m.Name] = m.ResourceVersion
		}
		return all
	}
}
