package etcd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pawl-dev/pawl/integration/etcd"
)

// repository is where the README is, seen from this package.
const repository = "../.."

// The commands that the README shows for several servers start them, and they are one.
func TestSeveralServersAsTheREADMEShows(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```sh\n(.*?)^```").FindStringSubmatch(string(text))
	if block == nil || strings.Count(block[1], "\n") >= 10 {
		t.Fatalf("the README shows no few lines that start several servers: %q", block)
	}
	m := etcd.Start(t, etcd.Options{})
	loop, _, _ := strings.Cut(block[1], "kubectl")
	loop = strings.ReplaceAll(loop, "http://127.0.0.1:2379", m.URL)
	loop = strings.ReplaceAll(loop, "127.0.0.1:$port", "127.0.0.1:0")
	dir := t.TempDir()
	shell := exec.Command("sh", "-c", strings.ReplaceAll(loop, " &\n", " & started=\"$started $!\"\n")+"\nread end; kill $started; wait")
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "pawl"), "./cmd/pawl")
	build.Dir = repository
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building pawl: %v\n%s", err, out)
	}
	shell.Dir = dir
	shell.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	shell.Stderr = t.Output()
	end, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = end.Close()
		if err := shell.Wait(); err != nil {
			t.Errorf("the servers: %v", err)
		}
	}()
	clients := map[string]*kubernetes.Clientset{}
	for _, port := range []string{"7443", "7445"} {
		eventually(t, "there is a kubeconfig that a server answers to", func() bool {
			c, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, port+".kubeconfig"))
			if err != nil {
				return false
			}
			clients[port] = clientOf(t, c)
			_, err = clients[port].CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
			return err == nil
		})
	}
	if _, err := clients["7443"].CoreV1().ConfigMaps("default").Create(t.Context(), configMap("color", "red"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := clients["7445"].CoreV1().ConfigMaps("default").Get(t.Context(), "color", metav1.GetOptions{})
	if err != nil || got.Data["is"] != "red" {
		t.Errorf("got %v, %v", got, err)
	}
}
