package etcd

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

const (
	space = "default/core/configmaps/ns/"
	a     = space + "a"
	b     = space + "b"
	c     = space + "c"
)

// seen is a state at revision 9: a since 5, b since 7 and until some time, c absent.
func seen() kv.Snapshot {
	return mvcc.New(mvcc.Options{}, mvcc.Base{Revision: 9, Floor: 9, Versions: slices.Values([]*kv.Version{
		{Key: a, Revision: 5, Created: 5, Value: []byte("x")},
		{Key: b, Revision: 7, Created: 6, Value: []byte("x"), Expires: 1000},
	})}).Newest()
}

func at(key string, rev kv.Revision) kv.Condition { return kv.Condition{Key: key, At: rev} }

func TestHowATransactionGoesOn(t *testing.T) {
	for _, k := range []struct {
		name       string
		conditions []kv.Condition
		want       course
		lostOn     string
		have       kv.Revision
		behind     kv.Revision
	}{
		{"without conditions etcd is asked", nil, send, "", 0, 0},
		{"what holds as far as is known, etcd has to say", []kv.Condition{at(a, 5), at(c, kv.Absent)}, send, "", 0, 0},
		{"a key that has moved on is never where it was", []kv.Condition{at(a, 4)}, lost, a, 5, 0},
		{"nor is one at a revision that it passed over", []kv.Condition{at(a, 6)}, lost, a, 5, 0},
		{"nor is one that is gone", []kv.Condition{at(c, 3)}, lost, c, kv.Absent, 0},
		{"one that exists may be deleted by now", []kv.Condition{at(a, kv.Absent)}, send, "", 0, 0},
		{"the first that does not hold is named, if any is lost for ever", []kv.Condition{at(a, kv.Absent), at(b, 6)}, lost, a, 5, 0},
		{"what is not known yet has to be waited for", []kv.Condition{at(a, 10)}, behind, "", 0, 10},
		{"however much is lost besides", []kv.Condition{at(a, 4), at(b, 12)}, behind, "", 0, 12},
	} {
		how, conflict, rev := chart(kv.Txn{Conditions: k.conditions}, seen())
		if how != k.want || rev != k.behind || (conflict != nil) != (k.lostOn != "") {
			t.Errorf("%s: got %d, %v, %d", k.name, how, conflict, rev)
		}
		if conflict != nil && (conflict.Key != k.lostOn || conflict.Have != k.have || conflict.Kind != kv.ErrConflict) {
			t.Errorf("%s: got %v", k.name, conflict)
		}
	}
}

// told tells a request in words.
func told(r *pb.TxnRequest) string {
	var lines []string
	name := func(key []byte) string { return strings.TrimPrefix(string(key), "/p/kv/") }
	for _, c := range r.Compare {
		if c.Target == pb.Compare_CREATE {
			lines = append(lines, fmt.Sprintf("if %s since %d", name(c.Key), c.GetCreateRevision()))
			continue
		}
		lines = append(lines, fmt.Sprintf("if %s at %d", name(c.Key), c.GetModRevision()))
	}
	for _, op := range r.Success {
		if del := op.GetRequestDeleteRange(); del != nil {
			lines = append(lines, "delete "+name(del.Key))
			continue
		}
		put := op.GetRequestPut()
		e, err := decode(put.Value)
		line := fmt.Sprintf("put %s %q", name(put.Key), e.value)
		if err != nil {
			line += " " + err.Error()
		}
		if !e.expires.IsZero() {
			line += fmt.Sprintf(" until %d", e.expires)
		}
		if put.Lease != 0 {
			line += fmt.Sprintf(" lease %d", put.Lease)
		}
		if put.IgnoreLease {
			line += " lease kept"
		}
		lines = append(lines, line)
	}
	for i, op := range r.Failure {
		if string(op.GetRequestRange().GetKey()) != string(r.Compare[i].Key) || !op.GetRequestRange().GetKeysOnly() {
			lines = append(lines, "else something else")
		}
	}
	return strings.Join(lines, "; ")
}

func TestWhatEtcdIsAskedToDo(t *testing.T) {
	short := strings.NewReplacer(space, "")
	after := kv.Op{Key: c, Value: []byte("1"), Expiry: kv.Expiry{Kind: kv.After, For: time.Nanosecond * 50}}
	forever := kv.Op{Key: b, Value: []byte("1"), Expiry: kv.Expiry{Kind: kv.Forever}}
	for _, k := range []struct {
		name string
		txn  kv.Txn
		want string
	}{
		{"a put on a condition is just that", kv.Txn{Conditions: []kv.Condition{at(a, 5)}, Ops: []kv.Op{kv.Put(a, []byte("1"))}},
			`if a at 5; put a "1"`},
		{"a put that keeps an expiry keeps the lease", kv.Txn{Conditions: []kv.Condition{at(b, 7)}, Ops: []kv.Op{kv.Put(b, []byte("1"))}},
			`if b at 7; put b "1" until 1000 lease kept`},
		{"a blind one rests on what it keeps", kv.Txn{Ops: []kv.Op{kv.Put(b, []byte("1")), kv.Put(c, []byte("2"))}},
			`if b at 7; if c at 0; put b "1" until 1000 lease kept; put c "2"`},
		{"one that drops an expiry rests on when its key was made", kv.Txn{Ops: []kv.Op{forever}}, `if b since 6; put b "1"`},
		{"one that gives an expiry has a lease", kv.Txn{Ops: []kv.Op{after}}, `if c since 0; put c "1" until 150 lease 77`},
		{"a key that must be absent has no expiry to keep", kv.Txn{Conditions: []kv.Condition{at(b, kv.Absent)}, Ops: []kv.Op{kv.Put(b, []byte("1"))}},
			`if b at 0; put b "1"`},
		{"a deletion says who made it", kv.Txn{Conditions: []kv.Condition{at(a, 5)}, Ops: []kv.Op{kv.Delete(a)}},
			`if a at 5; delete a; put /deleted ""`},
		{"several deletions say so once", kv.Txn{Ops: []kv.Op{kv.Delete(a), kv.Delete(b)}},
			`if a at 5; if b at 7; delete a; delete b; put /deleted ""`},
		{"deleting what is absent is only a condition", kv.Txn{Ops: []kv.Op{kv.Delete(c)}}, `if c at 0`},
		{"a condition is on whatever it is on", kv.Txn{Conditions: []kv.Condition{at(a, 5), at(c, 0)}, Ops: []kv.Op{forever}},
			`if a at 5; if c at 0; if b since 6; put b "1"`},
	} {
		p := makePlan(k.txn, seen())
		r := p.request(narrow("/p/"), signature{id: id{1, 2}, time: 100, author: encodeAuthor(ada), leases: map[time.Duration]int64{50: 77}})
		if got := short.Replace(told(r)); got != k.want {
			t.Errorf("%s:\ngot  %s\nwant %s", k.name, got, k.want)
		}
		if p.writes() != (len(r.Success) > 0) {
			t.Errorf("%s: it writes: %v", k.name, p.writes())
		}
	}
}

func TestWhatIsTooMuchForOneCommit(t *testing.T) {
	put := func(n, size int) (ops []kv.Op) {
		for i := range n {
			ops = append(ops, kv.Op{Key: fmt.Sprint(space, i), Value: make([]byte, size), Expiry: kv.Expiry{Kind: kv.Forever}})
		}
		return ops
	}
	var conditions []kv.Condition
	for i := range MaxOps + 1 {
		conditions = append(conditions, at(fmt.Sprint(space, i), 0))
	}
	for _, k := range []struct {
		name string
		txn  kv.Txn
		want string
	}{
		{"as many changes as etcd takes", kv.Txn{Ops: put(MaxOps, 1)}, ""},
		{"one more", kv.Txn{Ops: put(MaxOps+1, 1)}, "129 changes"},
		{"the one that says who deleted", kv.Txn{Ops: append(put(MaxOps-2, 1), kv.Delete(a))}, ""},
		{"and one more", kv.Txn{Ops: append(put(MaxOps-1, 1), kv.Delete(a))}, "129 changes"},
		{"as many conditions as etcd takes", kv.Txn{Conditions: conditions[1:]}, ""},
		{"one more of them", kv.Txn{Conditions: conditions}, "129 conditions"},
		{"as many bytes as etcd takes", kv.Txn{Ops: put(1, MaxBytes-1<<10)}, ""},
		{"more of them", kv.Txn{Ops: put(2, MaxBytes/2)}, "bytes"},
	} {
		_, got := fits(makePlan(k.txn, seen()).request(narrow("/p"), signature{author: encodeAuthor(ada)}))
		if (got == "") != (k.want == "") || !strings.Contains(got, k.want) {
			t.Errorf("%s: %q, want %q", k.name, got, k.want)
		}
	}
}
