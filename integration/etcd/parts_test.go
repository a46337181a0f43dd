package etcd_test

import (
	"fmt"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/pawl-dev/pawl/integration/etcd"
	"github.com/pawl-dev/pawl/kv"
)

// A replica that is opened on a history too long for one watch tells the same of it as one that has seen it all: where
// the store is alone, where others write as well, and where only others did. What was compacted meanwhile it does without.
func TestALongHistoryIsReadInParts(t *testing.T) {
	t.Parallel()
	m := etcd.Start(t, etcd.Options{})
	c, s := raw(t, m.URL), subjectOn(t, on(m))
	others := func(n int) {
		inParallel(64, n, func(i int) { must[*clientv3.PutResponse](t)(c.Put(t.Context(), fmt.Sprint("/registry/", i%10), "x")) })
	}
	others(1200)
	inParallel(8, 1500, func(i int) { // one after another, since they change the same
		op := kv.Put(a, fmt.Append(nil, i))
		if i%5 == 4 {
			op = kv.Delete(a)
		}
		s.commit(kv.Txn{Ops: []kv.Op{op, kv.Put(b, fmt.Append(nil, i))}})
	})
	middle := s.read(kv.Latest).Revision()
	var both sync.WaitGroup
	both.Go(func() { others(1500) })
	both.Go(func() {
		inParallel(8, 600, func(i int) { s.put(fmt.Sprint(ns, i%8), fmt.Sprint(i)) })
	})
	both.Wait()
	others(1200)
	r := must[*clientv3.GetResponse](t)(c.Get(t.Context(), "/registry/1"))
	if r.Header.Revision < 4_500 {
		t.Fatalf("the history has %d revisions: one watch reads that", r.Header.Revision)
	}
	same(t, s, subjectOn(t, on(m)))

	at := int64(middle>>7) - 1
	must[*clientv3.CompactResponse](t)(c.Compact(t.Context(), at))
	others(3000) // so that what is left is long, too
	late := subjectOn(t, on(m))
	was, is := s.read(kv.Latest), late.read(kv.Latest)
	for i := range 8 {
		key := fmt.Sprint(ns, i)
		if x, y := was.Get(key), is.Get(key); x == nil || y == nil || string(x.Value) != string(y.Value) || x.Revision != y.Revision {
			t.Errorf("%s is %v, and for who was opened late %v", key, x, y)
		}
	}
}

// inParallel calls f for each of n numbers, several at a time.
func inParallel(several, n int, f func(i int)) {
	var wg sync.WaitGroup
	for w := range several {
		wg.Go(func() {
			for i := w; i < n; i += several {
				f(i)
			}
		})
	}
	wg.Wait()
}
