package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/local"
)

func mustBackup(t *testing.T, e *local.Engine, files ...local.EnclosedFile) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := e.Backup(t.Context(), &b, files, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func mustRestore(t *testing.T, opts local.Options, backup []byte) local.Restored {
	t.Helper()
	r, err := local.Restore(t.Context(), opts, "backup", bytes.NewReader(backup), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// objects tells what exists in e, and of each version all there is to tell.
func objects(t *testing.T, e kv.Engine) string {
	t.Helper()
	snap, err := e.Read(t.Context(), kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for v := range snap.Ascend("", "") {
		fmt.Fprintf(&b, "%s: %s\n", v.Key, version(v))
	}
	return b.String()
}

// A store is backed up, goes on, is lost, and is restored. Its readers saw what was lost.
func TestNobodyIsShownOtherNewsUnderARevisionThatTheySaw(t *testing.T) {
	clock := kvtest.NewClock()
	lost := mustOpen(t, local.Options{Memory: true, Clock: clock})
	tell(t, lost, clock)
	want := objects(t, lost)
	backup := mustBackup(t, lost)
	_, shown := lost.Revisions()
	tell(t, lost, clock)
	_, seen := lost.Revisions()

	opts := local.Options{Dir: "store", FS: newDisk(), Clock: clock}
	made := mustRestore(t, opts, backup)
	if made.About.Revision != shown || made.About.Objects != 5 || made.Revision <= seen {
		t.Errorf("restored %+v; the backup was of revision %d, and readers saw %d", made, shown, seen)
	}
	for range 2 { // as restored, and opened again after a write
		e := mustOpen(t, opts)
		if got := objects(t, e); got != want {
			t.Fatalf("it holds\n%s\nwant\n%s", got, want)
		}
		oldest, newest := e.Revisions()
		if oldest != made.Revision || newest < oldest {
			t.Errorf("it has revisions %d to %d, want from %d", oldest, newest, made.Revision)
		}
		for rev := range seen + 1 {
			if _, err := e.Read(t.Context(), kv.Exactly(rev)); !errors.Is(err, kv.ErrCompacted) {
				t.Errorf("reading exactly revision %d says %v", rev, err)
			}
			for _, prefix := range []string{"default/", "default/core/configmaps/", "default/core/configmaps/ns/", "default/core/configmaps/ns/a", "default/core/secrets/"} {
				if _, err := e.Watch(prefix, rev); !errors.Is(err, kv.ErrCompacted) {
					t.Errorf("watching %s after revision %d says %v", prefix, rev, err)
				}
			}
		}
		done, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put("default/core/configmaps/ns/z", []byte("new"))}})
		if err != nil || done.Revision != newest+1 {
			t.Errorf("the next commit is revision %d, %v, after %d", done.Revision, err, newest)
		}
		want = objects(t, e)
		e.Close()
	}
	if r := mustCheck(t, opts); len(r.Problems)+len(r.Notes) > 0 {
		t.Errorf("check finds %s%s", findings(r.Problems), findings(r.Notes))
	}
}

// A writer who read before the backup goes on; one who read what was lost is refused.
func TestAConditionOnWhatWasLostDoesNotHold(t *testing.T) {
	const key = "default/core/configmaps/ns/a"
	put := func(e kv.Engine, at kv.Revision) (kv.Revision, error) {
		done, err := e.Commit(t.Context(), kv.Txn{Conditions: []kv.Condition{{Key: key, At: at}}, Ops: []kv.Op{kv.Put(key, []byte("x"))}})
		return done.Revision, err
	}
	lost := mustOpen(t, local.Options{Memory: true})
	first, err := put(lost, kv.Absent)
	if err != nil {
		t.Fatal(err)
	}
	backup := mustBackup(t, lost)
	second, err := put(lost, first)
	if err != nil {
		t.Fatal(err)
	}
	opts := local.Options{Dir: "store", FS: newDisk()}
	mustRestore(t, opts, backup)
	e := mustOpen(t, opts)
	if _, err := put(e, second); !errors.Is(err, kv.ErrConflict) {
		t.Errorf("on what was lost: %v", err)
	}
	if _, err := put(e, first); err != nil {
		t.Errorf("on what was not: %v", err)
	}
}

func TestNoRevisionIsGivenTwiceHoweverOftenABackupIsRestored(t *testing.T) {
	clock := kvtest.NewClock()
	e := mustOpen(t, local.Options{Memory: true, Clock: clock})
	tell(t, e, clock)
	backups := [][]byte{mustBackup(t, e)}
	_, seen := e.Revisions()
	for i := range 6 {
		clock.Advance(10 * time.Second) // nobody restores twice in the same microsecond
		opts := local.Options{Dir: "store", FS: newDisk(), Clock: clock}
		made := mustRestore(t, opts, backups[i/2])
		if made.Revision <= seen {
			t.Errorf("restore %d goes on from revision %d, and %d has been given", i, made.Revision, seen)
		}
		if made.Revision >= 1<<53 {
			t.Errorf("revision %d is more than every client can count to", made.Revision)
		}
		e := mustOpen(t, opts)
		for range 100 {
			tell(t, e, clock)
			clock.Advance(-5 * time.Second) // more commits than time
		}
		backups = append(backups, mustBackup(t, e))
		_, seen = e.Revisions()
		e.Close()
	}
}

func TestABackupIsOneRevision(t *testing.T) {
	clock := kvtest.NewClock()
	e := mustOpen(t, local.Options{Dir: "store", FS: newDisk(), Clock: clock})
	const pairs = 8
	pair := func(i int, n int) kv.Txn {
		value := fmt.Append(nil, n)
		return kv.Txn{Ops: []kv.Op{
			kv.Put(fmt.Sprintf("default/core/configmaps/ns/%d", i), value), kv.Put(fmt.Sprintf("other/core/secrets/ns/%d", i), value),
		}}
	}
	stop := make(chan struct{})
	var writing sync.WaitGroup
	for i := range pairs {
		writing.Go(func() {
			for n := 0; ; n++ {
				if _, err := e.Commit(context.Background(), pair(i, n)); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range 20 {
		_, before := e.Revisions()
		backup := mustBackup(t, e)
		opts := local.Options{Dir: "store", FS: newDisk(), Clock: clock}
		made := mustRestore(t, opts, backup)
		if made.About.Revision < before {
			t.Errorf("the backup shows revision %d, and %d was answered before", made.About.Revision, before)
		}
		r := mustOpen(t, opts)
		snap, err := r.Read(t.Context(), kv.Latest)
		if err != nil {
			t.Fatal(err)
		}
		for i := range pairs {
			one, other := snap.Get(fmt.Sprintf("default/core/configmaps/ns/%d", i)), snap.Get(fmt.Sprintf("other/core/secrets/ns/%d", i))
			if (one == nil) != (other == nil) || one != nil && (one.Revision != other.Revision || !bytes.Equal(one.Value, other.Value)) {
				t.Errorf("half of a commit: %v and %v", one, other)
			}
		}
		r.Close()
	}
	close(stop)
	writing.Wait()
}

func TestABackupThatIsNotWholeIsRefused(t *testing.T) {
	const seed = 7
	r := rand.New(rand.NewPCG(seed, seed))
	clock := kvtest.NewClock()
	e := mustOpen(t, local.Options{Memory: true, Clock: clock})
	tell(t, e, clock)
	whole := mustBackup(t, e, local.EnclosedFile{Name: "key", Content: []byte("secret")})
	refused := func(what string, b []byte) {
		t.Helper()
		opts := local.Options{Dir: "store", FS: newDisk(), Clock: clock}
		var damage *local.DamageError
		if _, err := local.ReadBackup(t.Context(), "backup", bytes.NewReader(b), nil); !errors.As(err, &damage) || damage.File != "backup" {
			t.Errorf("%s: reading says %v", what, err)
		}
		if _, err := local.Restore(t.Context(), opts, "backup", bytes.NewReader(b), nil, nil); !errors.As(err, &damage) {
			t.Errorf("%s: restoring says %v", what, err)
		}
		if e, err := local.Open(t.Context(), opts); err == nil {
			if n := objects(t, e); n != "" {
				t.Errorf("%s: there is a store afterwards, with\n%s", what, n)
			}
			e.Close()
		} else if unfinished := (*local.UnfinishedError)(nil); !errors.As(err, &unfinished) {
			t.Errorf("%s: opening says %v", what, err)
		}
	}
	for at := range whole {
		refused(fmt.Sprintf("cut at byte %d", at), whole[:at])
		b := bytes.Clone(whole)
		b[at] ^= 1 << r.IntN(8)
		refused(fmt.Sprintf("byte %d changed (seed %d)", at, seed), b)
	}
	refused("something after it", append(bytes.Clone(whole), 0))
	about, err := local.ReadBackup(t.Context(), "backup", bytes.NewReader(whole), nil)
	if err != nil || len(about.Files) != 1 || about.Files[0].Name != "key" || string(about.Files[0].Content) != "secret" {
		t.Errorf("the whole one is %+v, %v", about, err)
	}
}

func TestAFolderIsBackedUpWithoutChangingIt(t *testing.T) {
	golden := goldenDisk(t)
	before := golden.contents()
	clock := kvtest.NewClock()
	var b bytes.Buffer
	about, err := local.BackupDir(t.Context(), local.Options{Dir: "store", FS: golden, Clock: clock}, &b, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(before, golden.contents()) {
		t.Error("it changed something")
	}
	opts := local.Options{Dir: "restored", FS: newDisk(), Clock: clock}
	mustRestore(t, opts, b.Bytes())
	restored := mustOpen(t, opts)
	original := mustOpen(t, local.Options{Dir: "store", FS: golden, Clock: clock})
	if got, want := objects(t, restored), objects(t, original); got != want || about.Objects != strings.Count(want, "\n") {
		t.Errorf("it holds\n%s\nwant\n%s", got, want)
	}
	var inUse *local.InUseError
	if _, err := local.BackupDir(t.Context(), local.Options{Dir: "store", FS: golden}, &b, nil, nil); !errors.As(err, &inUse) {
		t.Errorf("of a store in use it says %v", err)
	}
	var none *local.NoStoreError
	if _, err := local.BackupDir(t.Context(), local.Options{Dir: "nowhere", FS: golden}, &b, nil, nil); !errors.As(err, &none) {
		t.Errorf("where there is nothing it says %v", err)
	}
}

func TestARestoreNeedsAnEmptyPlace(t *testing.T) {
	e := mustOpen(t, local.Options{Memory: true})
	backup := mustBackup(t, e)
	d := goldenDisk(t)
	before := d.contents()
	var occupied *local.OccupiedError
	_, err := local.Restore(t.Context(), local.Options{Dir: filepath.Join("store", "log"), FS: d}, "backup", bytes.NewReader(backup), nil, nil)
	if !errors.As(err, &occupied) || !maps.Equal(before, d.contents()) {
		t.Errorf("over a store it says %v", err)
	}
}

func TestARestoreThatIsBrokenOffIsNoStore(t *testing.T) {
	e := mustOpen(t, local.Options{Memory: true})
	backup := mustBackup(t, e, local.EnclosedFile{Name: "key", Content: []byte("secret")})
	opts := local.Options{Dir: "store", FS: newDisk()}
	broken := errors.New("no room for the key")
	_, err := local.Restore(t.Context(), opts, "backup", bytes.NewReader(backup), func(a local.About) error {
		if len(a.Files) != 1 {
			t.Errorf("it is to place %v", a.Files)
		}
		return broken
	}, nil)
	if !errors.Is(err, broken) {
		t.Errorf("restoring says %v", err)
	}
	var unfinished *local.UnfinishedError
	if _, err := local.Open(t.Context(), opts); !errors.As(err, &unfinished) {
		t.Errorf("opening says %v", err)
	}
}

// The disk dies at every change in turn. Afterwards there is the store, or none that opens as
// though nothing had been restored.
func TestARestoreThatCrashesIsWholeOrRefused(t *testing.T) {
	clock := kvtest.NewClock()
	lost := mustOpen(t, local.Options{Memory: true, Clock: clock})
	tell(t, lost, clock)
	want := objects(t, lost)
	backup := mustBackup(t, lost)
	r := rand.New(rand.NewPCG(3, 3))
	points := 0
	for at := 1; ; at++ {
		d := newDisk()
		d.failAt, d.dies = at, true
		_, err := local.Restore(t.Context(), local.Options{Dir: "store", FS: d, Clock: clock}, "backup", bytes.NewReader(backup), nil, nil)
		if err == nil {
			break
		}
		points++
		after := d.powerCut(r)
		names := len(after.contents())
		e, err := local.Open(t.Context(), local.Options{Dir: "store", FS: after, Clock: clock})
		if unfinished := (*local.UnfinishedError)(nil); errors.As(err, &unfinished) {
			continue
		}
		if err != nil {
			t.Errorf("crash at change %d: %v", at, err)
			continue
		}
		if got := objects(t, e); got != want && names > 0 {
			t.Errorf("crash at change %d: %d files, and a store that holds\n%s", at, names, got)
		}
		e.Close()
	}
	t.Logf("%d crash points", points)
	if points < 10 {
		t.Errorf("only %d crash points", points)
	}
}

// Nothing of a store that was restored can be lost without being missed, though nothing was written to it yet.
func TestARestoredStoreWithoutItsSnapshotIsDamaged(t *testing.T) {
	clock := kvtest.NewClock()
	e := mustOpen(t, local.Options{Memory: true, Clock: clock})
	tell(t, e, clock)
	backup := mustBackup(t, e)
	for _, lost := range []string{".snap", ".seg"} {
		d := newDisk()
		opts := local.Options{Dir: "store", FS: d, Clock: clock}
		mustRestore(t, opts, backup)
		if r := mustCheck(t, opts); len(r.Problems)+len(r.Notes) > 0 || !r.Closed {
			t.Errorf("before, check finds %s%s, closed %v", findings(r.Problems), findings(r.Notes), r.Closed)
		}
		maps.DeleteFunc(d.names, func(name string, _ *inode) bool { return filepath.Ext(name) == lost })
		if r := mustCheck(t, opts); len(r.Problems) == 0 {
			t.Errorf("without its %s check finds nothing", lost)
		}
		var damage *local.DamageError
		if _, err := local.Open(t.Context(), opts); !errors.As(err, &damage) {
			t.Errorf("without its %s opening says %v", lost, err)
		}
	}
}
