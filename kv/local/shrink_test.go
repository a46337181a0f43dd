package local_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/local"
)

func TestShrinkGivesBackTheRoomThatHistoryTook(t *testing.T) {
	clock := kvtest.NewClock()
	d := newDisk()
	opts := local.Options{Dir: "store", FS: d, Clock: clock}
	e := mustOpen(t, opts)
	for i := range 500 {
		if _, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put("default/core/configmaps/ns/a", make([]byte, 1000+i))}}); err != nil {
			t.Fatal(err)
		}
		clock.Advance(time.Second)
	}
	for _, rev := range []kv.Revision{250, 400, 501} {
		before := d.size()
		if err := e.Shrink(t.Context(), rev); err != nil {
			t.Fatal(err)
		}
		// What is left is the log from the last segment on and a snapshot.
		if after, kept := d.size(), int64(501-rev)*1500; rev == 501 && after > kept+4000 || after > before+4000 {
			t.Errorf("after shrinking to %d it takes %d bytes, before %d", rev, after, before)
		}
		want := describe(t, e, rev)
		if oldest, _ := e.Revisions(); oldest != rev {
			t.Errorf("the oldest revision is %d, want %d", oldest, rev)
		}
		e.Close()
		if r := mustCheck(t, opts); len(r.Problems)+len(r.Notes) > 0 || r.Oldest != rev {
			t.Errorf("check tells of revision %d, and finds %s", r.Oldest, findings(r.Problems))
		}
		e = mustOpen(t, opts)
		if got := describe(t, e, rev); got != want {
			t.Errorf("after revision %d it was\n%s\nnow it is\n%s", rev, want, got)
		}
	}
	if err := e.Shrink(t.Context(), 9999); !errors.Is(err, kv.ErrFuture) {
		t.Errorf("shrinking to a revision that does not exist says %v", err)
	}
	e.Close()
	if err := e.Shrink(t.Context(), 501); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("shrinking what is closed says %v", err)
	}
}

// A store that has been open all the time has written everything into one file.
func TestShrinkGivesBackTheFileThatIsBeingWritten(t *testing.T) {
	d := newDisk()
	e := mustOpen(t, local.Options{Dir: "store", FS: d})
	for range 100 {
		done, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put("default/core/configmaps/ns/a", make([]byte, 1000))}})
		if err != nil {
			t.Fatal(err)
		}
		if done.Revision%50 != 0 {
			continue
		}
		if err := e.Shrink(t.Context(), done.Revision); err != nil {
			t.Fatal(err)
		}
		if size := d.size(); size > 3000 || e.Size() > size {
			t.Errorf("at revision %d it takes %d bytes, and says %d", done.Revision, size, e.Size())
		}
	}
}

// Shrinking, snapshots in the background and commits do not get into each other's way.
func TestShrinkWhileSnapshotsAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := local.Options{Dir: "store", FS: newDisk(), SegmentSize: 300, SnapshotSize: 600}
		e := mustOpen(t, opts)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 400 {
				if _, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(fmt.Sprintf("default/core/configmaps/ns/%d", i%10), []byte("some value"))}}); err != nil {
					t.Error(err)
				}
			}
		}()
		for range 20 {
			_, newest := e.Revisions()
			if err := e.Shrink(t.Context(), newest-newest/10); err != nil && !errors.Is(err, kv.ErrFuture) {
				t.Error(err)
			}
		}
		<-done
		want := objects(t, e)
		e.Close()
		if r := mustCheck(t, opts); len(r.Problems) > 0 {
			t.Errorf("check finds %s", findings(r.Problems))
		}
		e = mustOpen(t, opts)
		if got := objects(t, e); got != want {
			t.Errorf("it was\n%s\nnow it is\n%s", want, got)
		}
		e.Close()
	})
}

// A removing disk calls removed whenever a file was removed.
type removing struct {
	*disk
	removed func(name string)
}

func (r removing) Remove(name string) error {
	err := r.disk.Remove(name)
	r.removed(name)
	return err
}

// Where the first segment of a store is, opening takes the log for whole. The power may go while segments are
// removed, and then it may be there again, and the others not.
func TestTheFirstSegmentGoesFirstAndForGood(t *testing.T) {
	const first = "store/log/0000000000000002.seg"
	d := newDisk()
	removals := 0
	opts := local.Options{Dir: "store", SegmentSize: 1, FS: removing{d, func(name string) {
		removals++
		d.mu.Lock()
		after := newDisk()
		after.dirs, after.names = maps.Clone(d.dirs), maps.Clone(d.names)
		if n := d.durable[first]; n != nil {
			after.names[first] = n
		}
		d.mu.Unlock()
		e, err := local.Open(t.Context(), local.Options{Dir: "store", FS: after})
		if err != nil {
			t.Errorf("after %s was removed, and the power went: %v", name, err)
			return
		}
		if _, newest := e.Revisions(); newest != 9 {
			t.Errorf("after %s was removed, and the power went, the newest revision is %d", name, newest)
		}
	}}}
	e := mustOpen(t, opts)
	for i := range 8 {
		if _, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put("a/b/c/d", fmt.Append(nil, i))}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Shrink(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	if removals < 4 {
		t.Errorf("%d files were removed", removals)
	}
}
