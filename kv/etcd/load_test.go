package etcd

import (
	"errors"
	"slices"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pawl-dev/pawl/kv"
)

// A state that is larger than a page is read key by key, each once.
func TestAStateIsReadInPages(t *testing.T) {
	const keys = 3*pageFirst - 1
	l := &teller{shelf: &shelf{}}
	for i, value := range slices.Repeat([][]byte{make([]byte, pageBytes/pageFirst/2)}, keys) {
		l.put(newKeyspace(DefaultPrefix).in(space+string(rune('a'+i))), value, int64(2+i))
	}
	pages := 0
	l.denies = func(*pb.RangeRequest) error { pages++; return nil }
	var got []string
	if err := engineOn(t, l).pages(t.Context(), 2, func(have *mvccpb.KeyValue) error {
		got = append(got, string(have.Key))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(got) != keys || !slices.IsSorted(got) || len(slices.Compact(got)) != keys || pages != 2 {
		t.Errorf("%d keys in %d pages, want %d", len(got), pages, keys)
	}
}

// Whose commit is found in a state that is read anew is told so, once, however often it is read before he goes away.
func TestACommitIsFoundInAState(t *testing.T) {
	for _, c := range []struct {
		name  string
		ops   []kv.Op
		found bool
	}{
		{"all that it put is there", []kv.Op{kv.Put(a, []byte{}), kv.Put(b, []byte{})}, true},
		{"something is not", []kv.Op{kv.Put(a, []byte{}), kv.Put(b, []byte{}), kv.Put(space+"z", []byte{})}, false},
		{"it deleted, too", []kv.Op{kv.Put(a, []byte{}), kv.Delete(b)}, false},
	} {
		l := &teller{shelf: held("a b")}
		e := engineOn(t, l)
		if err := e.settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.replica = 1 // who put what is held
		mine := &ticket{id: id{1, 2}, ops: c.ops, done: make(chan struct{})}
		e.tickets[2] = mine
		for range 2 {
			if err := e.load(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
		}
		if mine.seen() != c.found || c.found && (mine.committed.Revision != e.in.ours(2) || mine.committed.Versions[1].Key != b) {
			t.Errorf("%s: seen %v, %v", c.name, mine.seen(), mine.committed)
		}
	}
}

// A store that was restored, and has lost the mark of that, is another.
func TestAStateWithoutItsOrigin(t *testing.T) {
	e := engineOn(t, &teller{shelf: held("a")})
	if err := e.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.follows.reader.origin = 2
	var replaced *ReplacedError
	if err := e.load(t.Context(), 2); !errors.As(err, &replaced) {
		t.Errorf("got %v", err)
	}
}
