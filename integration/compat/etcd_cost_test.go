package compat

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/apis/example"
	examplev1 "k8s.io/apiserver/pkg/apis/example/v1"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/utils/clock"

	etcds "github.com/pawl-dev/pawl/integration/etcd"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/etcd"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// TestIsEtcd is an etcd, in a process of its own.
func TestIsEtcd(t *testing.T) { etcds.ServeApart(t) }

// startEtcd starts an etcd in a process of its own and returns its URL.
func startEtcd(t testing.TB) string {
	t.Helper()
	return etcds.StartApart(t, 1, "TestIsEtcd")[0].URL
}

// storeEnv has a process of this test be a store by itself, so that its CPU is its own: "own URL", "offered URL"
// or "reference URL", on the etcd there.
const storeEnv = "PAWL_TEST_IS_STORE"

// toldMark begins the lines by which such a process tells what was asked of it.
const toldMark = "told: "

// A storeApart is such a process.
type storeApart struct {
	ask   io.Writer
	lines *bufio.Scanner
}

// startStore starts one.
func startStore(t testing.TB, store string) *storeApart {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestIsStore$")
	cmd.Env = append(os.Environ(), storeEnv+"="+store)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close() // and so it ends
		io.Copy(io.Discard, out)
		cmd.Wait()
	})
	return &storeApart{in, bufio.NewScanner(out)}
}

// told returns what it tells next.
func (p *storeApart) told(t testing.TB) string {
	t.Helper()
	var other []string
	for p.lines.Scan() {
		if told, ok := strings.CutPrefix(p.lines.Text(), toldMark); ok {
			return told
		}
		other = append(other, p.lines.Text())
	}
	t.Fatalf("it is gone, and said %s", strings.Join(other, "\n"))
	return ""
}

// TestIsStore is what startStore starts: a store that is weighed once for each line, until there are no more.
func TestIsStore(t *testing.T) {
	store, url, _ := strings.Cut(os.Getenv(storeEnv), " ")
	var s weighed
	switch store {
	case "":
		t.Skip("only a store if it is asked to be one")
	case "reference":
		s = newReference(t, url)
	default:
		engine, err := etcd.Open(t.Context(), etcd.Options{Endpoints: []string{url}, Prefix: "/" + store})
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		if s = newOwn(t, engine); store == "offered" {
			s = offered{newSubject(t, engine)}
		}
	}
	each(16, weighedObjects, func(i int) {
		if err := s.put(fmt.Sprintf("p%05d", i), map[string]string{"of": strings.Repeat("x", 200)}); err != nil {
			t.Error(err)
		}
	})
	for asked := bufio.NewScanner(os.Stdin); asked.Scan(); {
		b, err := json.Marshal(weigh(t, s))
		if err != nil || t.Failed() {
			t.Fatal("it has no weight", err)
		}
		fmt.Printf("%s%s\n", toldMark, b)
	}
}

// A weighed store is one whose cost is measured. Its objects are pods in one namespace.
type weighed interface {
	put(name string, labels map[string]string) error
	update(name, label string) error
	get(name string) error
	list() (n int, err error)
}

// An offered store is one that is offered as the reference offers its own: what is read is decoded, and yet to be made
// into what is sent.
type offered struct{ apistorage.Interface }

func (s offered) put(name string, labels map[string]string) error {
	pod := &example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels}}
	return s.Create(context.Background(), "/pods/ns/"+name, pod, nil, 0)
}

func (s offered) update(name, label string) error {
	return s.GuaranteedUpdate(context.Background(), "/pods/ns/"+name, &example.Pod{}, false, nil, apistorage.SimpleUpdate(func(o runtime.Object) (runtime.Object, error) {
		o.(*example.Pod).Labels["is"] = label
		return o, nil
	}), nil)
}

func (s offered) get(name string) error {
	return s.Get(context.Background(), "/pods/ns/"+name, apistorage.GetOptions{}, &example.Pod{})
}

func (s offered) list() (int, error) {
	var all example.PodList
	err := s.GetList(context.Background(), "/pods/", apistorage.ListOptions{Recursive: true, Predicate: apistorage.Everything}, &all)
	return len(all.Items), err
}

// newReference is the reference's own store on an etcd.
func newReference(t testing.TB, url string) weighed {
	t.Helper()
	client, err := kubernetes.New(clientv3.Config{Endpoints: []string{url}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	compactor := etcd3.NewCompactor(client.Client, 0, clock.RealClock{}, nil)
	codec, versioner := exampleCodec(t), apistorage.APIObjectVersioner{}
	store, err := etcd3.New(client, compactor, codec, newPod, func() runtime.Object { return &example.PodList{} }, "/registry", "/pods",
		schema.GroupResource{Resource: "pods"}, storagetesting.NewPrefixTransformer([]byte(sealPrefix), false),
		etcd3.NewDefaultLeaseManagerConfig(), etcd3.NewDefaultDecoder(codec, versioner), versioner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close(); compactor.Stop(); client.Close() })
	return offered{store}
}

// An own store is pawl's, as its servers use it: what is read is made into what is sent.
type own struct{ table *storage.Table }

func newOwn(t testing.TB, engine kv.Engine) weighed {
	t.Helper()
	codec, err := registry.CodecOf[examplev1.Pod](examplev1.SchemeGroupVersion.WithKind("Pod"))
	if err != nil {
		t.Fatal(err)
	}
	return own{storage.NewTable(storage.Options{Engine: engine, Space: "own", Resource: "pods", Namespaced: true, Codec: codec})}
}

func (s own) put(name string, labels map[string]string) error {
	return s.modify(name, func(storage.Version) (*examplev1.Pod, error) {
		return &examplev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels}}, nil
	})
}

func (s own) update(name, label string) error {
	return s.modify(name, func(current storage.Version) (*examplev1.Pod, error) {
		obj, err := current.Object()
		if err != nil {
			return nil, err
		}
		pod := obj.(*examplev1.Pod)
		pod.ResourceVersion, pod.Labels["is"] = "", label
		return pod, nil
	})
}

func (s own) modify(name string, desire func(storage.Version) (*examplev1.Pod, error)) error {
	_, err := s.table.Modify(context.Background(), "ns", name, false, func(_ context.Context, current storage.Version, _ *storage.View) (storage.Verdict, error) {
		pod, err := desire(current)
		return storage.Verdict{Action: storage.Put, Object: pod}, err
	})
	return err
}

func (s own) get(name string) error {
	v, err := s.table.Get(context.Background(), "ns", name, kv.Latest)
	if err == nil && !send(&[]byte{}, v, false) {
		err = fmt.Errorf("%s cannot be sent as it is", name)
	}
	return err
}

func (s own) list() (int, error) {
	page, err := s.table.List(context.Background(), storage.ListOptions{})
	if err != nil {
		return 0, err
	}
	var b []byte // a part of what is sent
	for _, v := range page.Items {
		if len(b) > 32<<10 {
			b = b[:0]
		}
		if !send(&b, v, true) {
			return 0, fmt.Errorf("%s cannot be sent as it is", v.Name())
		}
	}
	return len(page.Items), nil
}

func send(b *[]byte, v storage.Version, item bool) (ok bool) {
	*b, ok = v.AppendJSON(*b, item)
	return ok
}

// cpu is what this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// each has n workers do something times times altogether, and returns the CPU of one. What was left behind by what was
// measured before is collected first.
func each(n, times int, do func(i int)) time.Duration {
	goruntime.GC()
	began := cpu()
	var wg sync.WaitGroup
	for w := range n {
		wg.Go(func() {
			for i := w; i < times; i += n {
				do(i)
			}
		})
	}
	wg.Wait()
	return (cpu() - began) / time.Duration(times)
}

// weighedObjects is how many objects each store has.
const weighedObjects = 10_000

// A bill is the CPU of an update by 16 writers, of a consistent GET by 64 readers, and of a list.
type bill struct{ Update, Get, List time.Duration }

func weigh(t testing.TB, s weighed) (total bill) {
	name := func(i int) string { return fmt.Sprintf("p%05d", i%weighedObjects) }
	fail := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	total.Update = each(16, 10_000, func(i int) {
		fail(s.update(name(i), fmt.Sprint(time.Now().UnixNano())))
	})
	total.Get = each(64, 6400, func(i int) { fail(s.get(name(i))) })
	total.List = each(1, 5, func(int) {
		n, err := s.list()
		if fail(err); n != weighedObjects {
			t.Errorf("%d objects are listed, of %d", n, weighedObjects)
		}
	})
	return total
}

// BenchmarkBesideTheReference compares the CPU of processes that share one etcd, which is a process of its own, too: of
// one with pawl's store, as its servers use it, of one where that is offered as the reference's, and of one with the
// reference's own.
func BenchmarkBesideTheReference(b *testing.B) {
	url := startEtcd(b)
	names := []string{"own", "offered", "reference"}
	stores, totals := make([]*storeApart, len(names)), make([]bill, len(names))
	ask := func(i int) {
		fmt.Fprintln(stores[i].ask)
		var one bill
		if err := json.Unmarshal([]byte(stores[i].told(b)), &one); err != nil {
			b.Fatal(err)
		}
		totals[i].Update += one.Update
		totals[i].Get += one.Get
		totals[i].List += one.List
	}
	for i, name := range names {
		stores[i] = startStore(b, name+" "+url)
		ask(i) // to have it begin, and warm
		totals[i] = bill{}
	}
	for b.Loop() {
		for i := range stores { // in turns, so that none has the quieter machine
			ask(i)
		}
	}
	for _, m := range []struct {
		what string
		of   func(bill) time.Duration
	}{
		{"update", func(t bill) time.Duration { return t.Update }},
		{"get", func(t bill) time.Duration { return t.Get }},
		{"list", func(t bill) time.Duration { return t.List }},
	} {
		their := float64(m.of(totals[2]))
		b.ReportMetric(float64(m.of(totals[0]))/their, m.what+"/reference")
		b.ReportMetric(float64(m.of(totals[1]))/their, m.what+"-decoded/reference")
		b.ReportMetric(their/float64(b.N)/1000, "reference-us/"+m.what)
	}
	b.ReportMetric(0, "ns/op")
}
