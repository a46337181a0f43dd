package registry

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A slow strategy takes a second for each delete, and counts those under way.
type slow struct {
	*strategy
	mu        sync.Mutex
	now, most int
	done      []string
	fails     func(name string)
}

func (s *slow) PrepareForDelete(_ context.Context, obj runtime.Object) {
	s.mu.Lock()
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	time.Sleep(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	s.done = append(s.done, obj.(*corev1.ConfigMap).Name)
	if s.fails != nil {
		s.fails(obj.(*corev1.ConfigMap).Name)
	}
}

// many makes so many objects, in a store that is slow to delete them.
func many(t *testing.T, n int) (*stand, *slow) {
	t.Helper()
	s := newStand(t, namespaced)
	for i := range n {
		s.made(thing(fmt.Sprintf("n%05d", i)))
	}
	all := &slow{strategy: s.strategy}
	s.Store.strategy, s.Store.hooks = all, nil
	return s, all
}

// A collection is deleted by sixteen at a time, whatever its size (rules S11, S113).
func TestACollectionIsDeletedBySixteen(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 5: 5, 16: 16, 100: 16} {
		synctest.Test(t, func(t *testing.T) {
			s, slow := many(t, n)
			page, err := s.DeleteCollection(t.Context(), ListOptions{Namespace: "ns"}, nil)
			if err != nil || len(page.Items) != n || slow.most != want || len(slow.done) != n {
				t.Errorf("of %d objects %d went, and at most %d at a time, want %d: %v", n, len(slow.done), slow.most, want, err)
			}
		})
	}
}

// Who comes upon an object that cannot be deleted stops; the others go on, and what they deleted
// stays so (rule S114). When all have stopped, what is left is not tried (rule S115).
func TestOneThatCannotBeDeletedStopsOneWorker(t *testing.T) {
	for _, c := range []struct {
		name    string
		refuses func(name string) bool
		tried   int
	}{
		{"one", func(name string) bool { return name == "n00003" }, 100},
		{"all", func(string) bool { return true }, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, slow := many(t, 100)
				slow.fails = func(name string) {
					if c.refuses(name) {
						panic(name + " is stuck")
					}
				}
				page, err := s.DeleteCollection(t.Context(), ListOptions{Namespace: "ns"}, nil)
				if err == nil || !strings.HasSuffix(err.Error(), " is stuck") || page != nil {
					t.Errorf("%v, %v; want the error of one, and no list", page, err)
				}
				left, err := s.List(t.Context(), ListOptions{Namespace: "ns"})
				if err != nil {
					t.Fatal(err)
				}
				stuck := 0
				for _, v := range left.Items {
					if c.refuses(v.Name()) {
						stuck++
					}
				}
				if len(slow.done) != c.tried || stuck != len(left.Items) {
					t.Errorf("%d were tried, want %d; left are %d, of which %d are stuck", len(slow.done), c.tried, len(left.Items), stuck)
				}
			})
		})
	}
}

// What does not fit on a page is deleted page by page (rule S116).
func TestACollectionOfManyPages(t *testing.T) {
	const n = DeleteCollectionPage + 3
	s := newStand(t, namespaced)
	s.Store.hooks = nil
	for i := range n {
		if _, err := s.Create(t.Context(), "ns", thing(fmt.Sprintf("n%05d", i)), CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	first, err := s.List(t.Context(), ListOptions{Namespace: "ns"})
	if err != nil || len(first.Items) != n {
		t.Fatal(len(first.Items), err)
	}
	page, err := s.DeleteCollection(t.Context(), ListOptions{Namespace: "ns"}, nil)
	if err != nil || len(page.Items) != n || page.Revision != first.Revision || page.Continue != "" || page.Remaining != nil {
		t.Errorf("%d items at %d, %q, %v: %v", len(page.Items), page.Revision, page.Continue, page.Remaining, err)
	}
	if count, err := s.Table().Count(t.Context()); count != 0 || err != nil {
		t.Errorf("%d are left, %v", count, err)
	}
}
