package etcd

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pawl-dev/pawl/kv"
)

func TestRevisionsOfAStoreAndOfEtcd(t *testing.T) {
	for _, c := range []struct {
		name   string
		ahead  kv.Revision
		ours   kv.Revision
		theirs int64
	}{
		{"a store that was begun empty calls them what etcd does", 0, 41, 41},
		{"a restored one calls them by larger numbers", 1000, 1041, 41},
		{"its first is etcd's first", 1000, 1001, 1},
		{"what does not exist is at no revision, for both", 1000, kv.Absent, never},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := keyspace{ahead: c.ahead}
			if ours, theirs := k.ours(c.theirs), k.theirs(c.ours); ours != c.ours || theirs != c.theirs {
				t.Errorf("%d is %d, and %d is %d", c.theirs, ours, c.ours, theirs)
			}
		})
	}
	for _, old := range []kv.Revision{1, 999, 1000} {
		if theirs := (keyspace{ahead: 1000}).theirs(old); theirs != -1 {
			t.Errorf("%d, from before the store, is %d to etcd, where a key can be", old, theirs)
		}
	}
}

// The formats of an origin that were ever written, which all that come must read: the first, and the one that is written now.
func TestAnOriginIsReadAsItWasWritten(t *testing.T) {
	for text, want := range map[string]origin{
		"01000000000000000007" + "000000000000000064" + "00" + "047061776c" + "07726573746f7265" + "00" + "01e807": {id: id{replica: 7}, ahead: 1000},
		"01000000000000000007" + "000000000000000064" + "00" + "047061776c" + "07726573746f7265" + "00" + "02e807": {id: id{replica: 7}, ahead: 1000, whole: true},
	} {
		t.Run(fmt.Sprint(want), func(t *testing.T) {
			wrote := want.encode(100)
			now := "010200" + strings.TrimPrefix(text, "0100")
			if got := hex.EncodeToString(wrote); got != now {
				t.Errorf("written as %s, want %s", got, now)
			}
			first, err := hex.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			want.at = 5
			for _, b := range [][]byte{first, wrote} {
				got, err := originOf([]*mvccpb.KeyValue{{Key: []byte("/p/kv//origin"), Value: b, ModRevision: 5}})
				if err != nil || got != want {
					t.Errorf("read as %+v, %v, want %+v", got, err, want)
				}
			}
		})
	}
	if o, err := originOf(nil); err != nil || o.at != never {
		t.Errorf("none is read as %+v, %v", o, err)
	}
	for name, value := range map[string][]byte{
		"a later pawl's state": envelope{value: []byte{9, 1}}.encode(),
		"one that is cut off":  envelope{value: []byte{1}}.encode(),
		"no envelope":          []byte("mine"),
	} {
		var unreadable *UnreadableError
		if _, err := originOf([]*mvccpb.KeyValue{{Key: []byte("k"), Value: value}}); !errors.As(err, &unreadable) {
			t.Errorf("%s is read: %v", name, err)
		}
	}
}

func TestASweepLeavesTheMarkAndWhoLeads(t *testing.T) {
	r := &restore{in: newKeyspace("/p")}
	for _, c := range []struct {
		name string
		keys []string
		want string
	}{
		{"nothing is nothing to remove", nil, ""},
		{"all keys in a row are one range", []string{"/p/kv/a", "/p/kv/b"}, "[/p/kv/a /p/kv/b]"},
		{"the mark parts them", []string{"/p/a", "/p/kv//origin", "/p/kv/b", "/p/kv/c"}, "[/p/a /p/a][/p/kv/b /p/kv/c]"},
		{"who leads does too", []string{"/p/kv//origin", "/p/kv/b", "/p/leader/loops", "/p/leader/restore", "/p/once/identity"}, "[/p/kv/b /p/leader/loops][/p/once/identity /p/once/identity]"},
		{"these alone stay", []string{"/p/kv//origin", "/p/leader/restore"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			found := &pb.RangeResponse{}
			for _, k := range c.keys {
				found.Kvs = append(found.Kvs, &mvccpb.KeyValue{Key: []byte(k)})
			}
			got := ""
			for _, run := range r.runs(found) {
				last := run.RangeEnd[:len(run.RangeEnd)-1]
				if run.RangeEnd[len(last)] != 0 {
					t.Errorf("the range ends before %q, which is not next to a key", run.RangeEnd)
				}
				got += fmt.Sprintf("[%s %s]", run.Key, last)
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
