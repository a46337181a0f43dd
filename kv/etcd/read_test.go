package etcd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/pawl-dev/pawl/kv"
)

// A tape is what etcd's watch tells, as a test writes it down.
type tape struct {
	in  keyspace
	all []*mvccpb.Event
}

func (p *tape) put(rev int64, key, value string, at, expires kv.Instant) {
	e := envelope{id: id{1, uint64(rev)}, time: at, expires: expires, author: encodeAuthor(ada), value: []byte(value)}
	p.all = append(p.all, &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: p.in.in(key), Value: e.encode(), ModRevision: rev, CreateRevision: 2}})
}

func (p *tape) del(rev int64, key string) {
	p.all = append(p.all, &mvccpb.Event{Type: mvccpb.Event_DELETE, Kv: &mvccpb.KeyValue{Key: p.in.in(key), ModRevision: rev}})
}

func (p *tape) reader(current ...*kv.Version) *reader {
	return &reader{in: p.in, current: func(key string) *kv.Version {
		for _, v := range current {
			if v.Key == key {
				return v
			}
		}
		return nil
	}}
}

func read(t *testing.T, r *reader, p *tape) []deed {
	t.Helper()
	all, _, err := r.deeds(p.all)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEventsOfOneRevisionAreOneCommit(t *testing.T) {
	p := &tape{in: narrow("/p")}
	p.put(4, a, "1", 10, 0)
	p.put(4, b, "1", 10, 0)
	p.put(6, a, "2", 11, 0)
	all := read(t, p.reader(), p)
	if len(all) != 2 || len(all[0].versions) != 2 || len(all[1].versions) != 1 || all[0].revision != 4 || all[1].revision != 6 {
		t.Fatalf("got %+v", all)
	}
	first, second := all[0].versions[0], all[1].versions[0]
	if first.Key != a || first.Revision != 4 || first.Created != 2 || first.By() != ada || first.Time != 10 || string(first.Value) != "1" || all[0].id != (id{1, 4}) {
		t.Errorf("got %+v", first)
	}
	if string(second.Value) != "2" || second.Time != 11 || second.Author != first.Author {
		t.Errorf("got %+v", second)
	}
}

// Commits that are one transaction of etcd's are told apart by who signed, and each has a revision of its own.
func TestCommitsOfOneRevisionAreToldApart(t *testing.T) {
	p := &tape{in: newKeyspace("/p")}
	commit := func(number uint64, behind uint8, key, value string) {
		e := envelope{grouped: true, behind: behind, id: id{1, number}, time: 10, author: encodeAuthor(ada), value: []byte(value)}
		p.all = append(p.all, &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: p.in.in(key), Value: e.encode(), ModRevision: 4, CreateRevision: 4}})
	}
	// Of five commits the second did not hold; the third deletes one key and puts another, the last deletes alone.
	commit(1, 4, a, "1")
	commit(1, 4, b, "1")
	p.del(4, c)
	commit(3, 2, space+"d", "3")
	commit(3, 2, deletedKey, "")
	commit(4, 1, space+"e", "4")
	p.del(4, space+"f")
	p.del(4, space+"g")
	commit(5, 0, deletedKey, "")
	p.del(5, space+"h") // a lease's
	was := []*kv.Version{{Key: c, Revision: 300, Created: 290}, {Key: space + "f", Revision: 301, Created: 301}, {Key: space + "h", Revision: 302, Created: 302}}
	var got []string
	for _, d := range read(t, p.reader(was...), p) {
		line := fmt.Sprint(d.id.number, "@", d.revision)
		for _, v := range d.versions {
			if v.Revision != d.revision || !v.Deleted && v.Created != d.revision {
				t.Errorf("%s is at %d, made at %d", v.Key, v.Revision, v.Created)
			}
			line += " " + strings.TrimPrefix(v.Key, space) + string(v.Value)
			if v.Deleted {
				line += "-"
			}
		}
		got = append(got, line)
	}
	want := []string{"1@635 a1 b1", "3@637 c- d3", "4@638 e4", "5@639 f- g-", "0@767 h-"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestADeletionIsWhatIsSignedBesideIt(t *testing.T) {
	p := &tape{in: narrow("/p")}
	p.put(4, a, "1", 10, 0)
	p.del(5, a)
	p.put(5, deletedKey, "", 20, 0)
	all := read(t, p.reader(), p)
	v := all[1].versions[0]
	if len(all[1].versions) != 1 || !v.Deleted || v.Value != nil || v.By() != ada || v.Time != 20 || v.Created != 2 || all[1].id != (id{1, 5}) {
		t.Errorf("got %+v", v)
	}
}

func TestADeletionThatNobodySignedIsALease(t *testing.T) {
	p := &tape{in: narrow("/p")}
	p.del(5, a)
	p.del(5, b)
	r := p.reader(&kv.Version{Key: a, Created: 3, Expires: 40}, &kv.Version{Key: b, Created: 4, Expires: 30})
	r.last = 20
	d := read(t, r, p)[0]
	for i, created := range []kv.Revision{3, 4} {
		if v := d.versions[i]; !v.Deleted || v.By() != Expirer || v.Time != 40 || v.Created != created {
			t.Errorf("got %+v", v)
		}
	}
	if d.id != (id{}) {
		t.Errorf("it is commit %+v of somebody", d.id)
	}
}

func TestTimeNeverGoesBackHoweverClocksDiffer(t *testing.T) {
	p := &tape{in: narrow("/p")}
	for i, at := range []kv.Instant{10, 30, 20, 31} {
		p.put(int64(4+i), a, "1", at, 0)
	}
	for i, want := range []kv.Instant{10, 30, 30, 31} {
		if got := read(t, p.reader(), p)[i].versions[0].Time; got != want {
			t.Errorf("commit %d is of %d, want %d", i, got, want)
		}
	}
}

func TestTheFloorIsReadAndIsNoVersion(t *testing.T) {
	p := &tape{in: narrow("/p")}
	p.put(4, floorKey, string(binary.AppendUvarint(nil, 300)), 10, 0)
	r := p.reader()
	if all := read(t, r, p); len(all) != 1 || len(all[0].versions) != 0 || r.floor != 300 || !r.moved {
		t.Errorf("got %+v, floor %d", all, r.floor)
	}
}

func TestALaterPawlsOwnKeysAreLetBe(t *testing.T) {
	p := &tape{in: narrow("/p")}
	p.all = append(p.all, &mvccpb.Event{Kv: &mvccpb.KeyValue{Key: p.in.in("/later"), Value: []byte{99}, ModRevision: 4}})
	if all := read(t, p.reader(), p); len(all) != 1 || len(all[0].versions) != 0 {
		t.Errorf("got %+v", all)
	}
}

func TestWhatIsNotPawlsIsNamed(t *testing.T) {
	for name, have := range map[string]*mvccpb.KeyValue{
		"a key that is none":        {Key: []byte("/p/kv/pods/default/a"), Value: envelopes()["a value"].encode()},
		"a value that is none":      {Key: []byte("/p/kv/" + a), Value: []byte("k8s\x00")},
		"a floor that is no number": {Key: []byte("/p/kv/" + floorKey), Value: envelope{author: encodeAuthor(ada)}.encode()},
	} {
		p := &tape{in: narrow("/p"), all: []*mvccpb.Event{{Kv: have}}}
		_, _, err := p.reader().deeds(p.all)
		if e, ok := errors.AsType[*UnreadableError](err); !ok || e.Key != string(have.Key) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// narrow is a keyspace whose revisions are etcd's own, which is easier to read.
func narrow(prefix string) keyspace {
	k := newKeyspace(prefix)
	k.wide = 0
	return k
}
