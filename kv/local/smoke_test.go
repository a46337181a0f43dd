package local

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

func TestSmoke(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	var last kv.Revision
	for round := range 5 {
		t0 := time.Now()
		e, err := Open(ctx, Options{Dir: dir, SegmentSize: 20000, SnapshotSize: 50000})
		if err != nil {
			t.Fatal(err)
		}
		t.Log("open", time.Since(t0))
		if _, newest := e.Revisions(); round > 0 && newest != last {
			t.Fatal(newest, last)
		}
		w, err := e.Watch("default/", 1)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for g := range 64 {
			wg.Go(func() {
				for i := range 50 {
					k := fmt.Sprintf("default/core/configmaps/ns/k%d-%d", g, i%7)
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
		_, last = e.Revisions()
		if int(last) != n+1 {
			t.Fatal(last, n)
		}
		t.Logf("%+v", e.Stats())
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		t.Log(n)
	}
}
