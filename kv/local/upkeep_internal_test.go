package local

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unique"

	"github.com/pawl-dev/pawl/kv"
)

func TestTheRevisionAfterALoss(t *testing.T) {
	now := time.Date(2026, time.March, 14, 0, 0, 0, 0, time.UTC)
	micros := kv.Revision(now.UnixMicro())
	for _, c := range []struct {
		name string
		rev  kv.Revision
		now  time.Time
		want kv.Revision
	}{
		{"is the time", 41, now, micros},
		{"is the time for a store that has been restored before", micros - 1, now, micros},
		{"is a great step if the clock was set back since", micros, now, micros + lossMax},
		{"is a great step if the clock shows nothing", 41, time.Unix(0, 0), 41 + lossMax},
		{"is a great step if the clock shows a time before there was time", 41, time.Time{}, 41 + lossMax},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := revisionAfterLoss(c.rev, c.now); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// A backup that holds another number of objects than it says is told from a whole one.
func TestABackupHoldsAsManyObjectsAsItSays(t *testing.T) {
	for objects, whole := range map[int]bool{0: false, 1: false, 2: true, 3: false} {
		var b bytes.Buffer
		m := image{head: snapshotHead{9, time.Unix(1, 0), 9}, about: &About{Objects: objects}, versions: func(yield func(*kv.Version) bool) {
			for _, key := range []string{"default/core/configmaps/ns/a", "default/core/configmaps/ns/b"} {
				if !yield(&kv.Version{Key: key, Revision: 2, Created: 2, Value: []byte("x")}) {
					return
				}
			}
		}}
		if err := m.write(&b, func(int) error { return nil }); err != nil {
			t.Fatal(err)
		}
		var damage *DamageError
		_, err := ReadBackup(t.Context(), "backup", &b, nil)
		if (err == nil) != whole || err != nil && !errors.As(err, &damage) {
			t.Errorf("of 2 objects, said to be %d, it says %v", objects, err)
		}
	}
}

// What passes every checksum may still not be what an engine writes.
func TestCheckSaysWhatNoEngineWrites(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0).UTC() }
	put := func(rev, replaces, created kv.Revision, second int64) *commit {
		v := &kv.Version{Key: "default/core/configmaps/ns/a", Revision: rev, Created: created, Time: kv.InstantOf(at(second)), Value: []byte("x")}
		return &commit{revision: rev, time: at(second), author: unique.Make(kv.Author{}), changes: []change{{v, replaces}}}
	}
	first := put(2, 0, 2, 10)
	for _, c := range []struct {
		name    string
		next    kv.Revision // that the second frame says comes next
		second  *commit
		problem string
	}{
		{"all is well", 3, put(3, 2, 2, 10), ""},
		{"a change that replaces what was not there", 3, put(3, 1, 2, 10), "revision 3 replaces revision 1 of default/core/configmaps/ns/a, which was at revision 2"},
		{"a change that makes anew what exists", 3, put(3, 2, 3, 10), "revision 3 says that default/core/configmaps/ns/a was made at revision 3, which is not so"},
		{"a revision is missing", 3, put(4, 2, 2, 10), "a frame holds revision 4 where 3 should come"},
		{"a frame from another time", 5, put(5, 2, 2, 10), "a frame was written when revision 5 came next, where 3 does"},
		{"time goes back", 3, put(3, 2, 2, 9), "revision 3 is older than the one before it"},
		{"forgetting what is to come", 3, &commit{forget: 3}, "history before revision 3 is to be forgotten, where 2 is the newest"},
		{"forgetting what was", 3, &commit{forget: 2}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			e, err := Open(t.Context(), Options{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			e.Close()
			s := segment{7, 2}
			data := s.append(nil)
			for i, frame := range []*commit{first, c.second} {
				b := appendCommit(beginFrame(nil, s, []kv.Revision{2, c.next}[i]), frame)
				endFrame(b)
				data = append(data, b...)
			}
			if err := os.WriteFile(filepath.Join(dir, "log", "0000000000000002.seg"), data, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := Check(t.Context(), Options{Dir: dir}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.problem == "" && len(r.Problems) > 0 || c.problem != "" && (len(r.Problems) != 1 || r.Problems[0].What != c.problem) {
				t.Errorf("it finds %+v, want %q", r.Problems, c.problem)
			}
		})
	}
}
