package local

import (
	"fmt"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/kv"
)

func TestSmoke(t *testing.T) {
	ctx := t.Context()
	e, err := Open(ctx, Options{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	w, _ := e.Watch("default/", 1)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 100 {
				k := fmt.Sprintf("default/core/configmaps/ns/k%d", (g+i)%7)
				s, _ := e.Read(ctx, kv.Latest)
				at := kv.Absent
				if v := s.Get(k); v != nil {
					at = v.Revision
				}
				e.Commit(ctx, kv.Txn{Conditions: []kv.Condition{{Key: k, At: at}}, Ops: []kv.Op{kv.Put(k, []byte("x"))}})
			}
		})
	}
	wg.Wait()
	n := 0
	for {
		_, ok, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		n++
	}
	_, newest := e.Revisions()
	if int(newest) != n+1 {
		t.Fatal(newest, n)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	t.Log(n)
}
