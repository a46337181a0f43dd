package etcd_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pawl-dev/pawl/integration/etcd"
	kvetcd "github.com/pawl-dev/pawl/kv/etcd"
	"github.com/pawl-dev/pawl/registry"
)

// serviceOf is a service with that many ports of the nodes, from one on: each is a change in the commit that makes it.
func serviceOf(name string, from, n int) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}}
	for i := range n {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprint("p", i), Port: int32(i + 1), NodePort: int32(from + i)})
	}
	return s
}

// tooMany fails the test unless err is the 413 of more changes or conditions than etcd takes, and says what to do.
func tooMany(t testing.TB, what string, err error) {
	t.Helper()
	if !apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), "etcd takes at most 128: make several of it") {
		t.Errorf("%s: got %v", what, err)
	}
}

// A service that takes more ports than etcd takes changes in a commit is 413, and takes none of them. One that could be
// made can be changed, and removed.
func TestAServiceOfMorePortsThanEtcdTakesChanges(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	s := serve(t, on(m))
	ctx, services := t.Context(), clientOf(t, as(s, s)).CoreV1().Services("default")
	const first = 30_000
	stored := func() (all []string) { // not what others make of their own accord, such as service accounts
		for _, key := range keys(t, raw(t, m.URL), "/pawl/kv/default/") {
			if regexp.MustCompile("/(services|serviceaddresses|servicenodeports)/").MatchString(key) {
				all = append(all, key)
			}
		}
		return all
	}
	before := stored()
	if len(before) == 0 {
		t.Error("nothing is there, not even what the server itself has")
	}
	_, err := services.Create(ctx, serviceOf("wide", first, 2*kvetcd.MaxOps), metav1.CreateOptions{})
	tooMany(t, "a service", err)
	if after := stored(); !slices.Equal(before, after) {
		t.Errorf("it left %v", slices.DeleteFunc(after, func(k string) bool { return slices.Contains(before, k) }))
	}

	var widest *corev1.Service
	n := kvetcd.MaxOps
	for ; widest == nil; n-- {
		if widest, err = services.Create(ctx, serviceOf("wide", first, n), metav1.CreateOptions{}); err != nil {
			widest = nil
			tooMany(t, fmt.Sprint("a service of ", n, " ports"), err)
		}
	}
	if len(widest.Spec.Ports) < kvetcd.MaxOps-8 {
		t.Errorf("the widest that can be made has %d ports", len(widest.Spec.Ports))
	}
	elsewhere := widest.DeepCopy()
	elsewhere.Spec.Ports = serviceOf("wide", first+1000, len(widest.Spec.Ports)).Spec.Ports
	_, err = services.Update(ctx, elsewhere, metav1.UpdateOptions{})
	tooMany(t, "other ports for it", err)
	if got := must[*corev1.Service](t)(services.Get(ctx, "wide", metav1.GetOptions{})); got.ResourceVersion != widest.ResourceVersion {
		t.Errorf("it was changed to %v", got.Spec.Ports)
	}
	half := len(widest.Spec.Ports) / 2
	copy(widest.Spec.Ports[half:], elsewhere.Spec.Ports[half:])
	moved := must[*corev1.Service](t)(services.Update(ctx, widest, metav1.UpdateOptions{}))
	moved.Labels = map[string]string{"is": "moved"}
	must[*corev1.Service](t)(services.Update(ctx, moved, metav1.UpdateOptions{}))
	if err := services.Delete(ctx, "wide", metav1.DeleteOptions{}); err != nil {
		t.Errorf("what could be made cannot be removed: %v", err)
	}
	// One that grew step by step goes step by step.
	grown := must[*corev1.Service](t)(services.Create(ctx, serviceOf("grown", first, 100), metav1.CreateOptions{}))
	grown.Spec.Ports = serviceOf("grown", first, 200).Spec.Ports
	grown = must[*corev1.Service](t)(services.Update(ctx, grown, metav1.UpdateOptions{}))
	tooMany(t, "to remove it at once", services.Delete(ctx, "grown", metav1.DeleteOptions{}))
	grown.Spec.Ports = grown.Spec.Ports[:100]
	must[*corev1.Service](t)(services.Update(ctx, grown, metav1.UpdateOptions{}))
	if err := services.Delete(ctx, "grown", metav1.DeleteOptions{}); err != nil {
		t.Errorf("step by step it cannot be removed: %v", err)
	}
	if after := stored(); !slices.Equal(before, after) {
		t.Errorf("it left %v", slices.DeleteFunc(after, func(k string) bool { return slices.Contains(before, k) }))
	}
}

// Transactions are a Go program's: no request over HTTP is one. More members than etcd takes changes are the same 413,
// and none of them happens.
func TestATransactionInGoOfMoreThanEtcdTakes(t *testing.T) {
	t.Parallel()
	engine := open(t, on(etcd.Start(t, etcd.Options{})))
	ctx := context.Background()
	boards := registry.Of[board](engine, registry.DefaultFor[board]{})
	many := func(n int, member func(name string) registry.Member) (all []registry.Member) {
		for i := range n {
			all = append(all, member(fmt.Sprint("b", i)))
		}
		return all
	}
	creates := func(name string) registry.Member {
		return boards.Creates(&board{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	deletes := func(name string) registry.Member { return boards.Deletes(name) }
	there := func() int {
		t.Helper()
		list, err := boards.List(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	_, err := registry.Transact(ctx, many(kvetcd.MaxOps+1, creates)...)
	tooMany(t, "one more than it takes", err)
	if n := there(); n != 0 {
		t.Errorf("%d of them were made", n)
	}
	if _, err := registry.Transact(ctx, many(kvetcd.MaxOps, creates)...); err != nil {
		t.Errorf("as many as it takes: %v", err)
	}
	_, err = registry.Transact(ctx, many(kvetcd.MaxOps, deletes)...)
	tooMany(t, "deletions, which cost one change more", err)
	if n := there(); n != kvetcd.MaxOps {
		t.Errorf("%d are there, want all", n)
	}
	if _, err := registry.Transact(ctx, many(kvetcd.MaxOps-1, deletes)...); err != nil {
		t.Errorf("as many deletions as it takes: %v", err)
	}
}

// A board is an object of a Go program.
type board struct {
	metav1.ObjectMeta `json:"metadata"`
}
