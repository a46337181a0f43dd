package mvcc

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/pawl-dev/pawl/kv"
)

// What revision rev does follows from rev alone: it sets key rev%raceKeys to rev, or
// deletes it. So what any revision shows is known without remembering anything.
const raceKeys = 11

func raceVersion(rev kv.Revision) *kv.Version {
	v := &kv.Version{Key: key("a", int(rev%raceKeys)), Revision: rev, Created: rev, Deleted: rev%3 == 0}
	if !v.Deleted {
		v.Value = []byte(strconv.Itoa(int(rev)))
	}
	return v
}

// shows returns what key i holds at revision rev.
func shows(rev kv.Revision, i int) string {
	for ; rev > 1; rev-- {
		if int(rev%raceKeys) == i {
			return string(raceVersion(rev).Value)
		}
	}
	return ""
}

// Snapshots of the past are read while the history they rest on is being forgotten.
func TestThePastIsReadWhileItIsForgotten(t *testing.T) {
	s := newStage(t, Options{Bytes: 30_000})
	end := make(chan struct{})
	var wg sync.WaitGroup
	for g := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(g, 0))
			for {
				select {
				case <-end:
					return
				default:
				}
				oldest, newest := s.Revisions()
				rev := oldest + kv.Revision(r.Uint64N(uint64(newest-oldest+1)))
				snap, err := s.exactly(rev)
				switch {
				case errors.Is(err, kv.ErrCompacted):
				case err != nil:
					t.Error(err)
				default:
					compareRace(t, snap)
				}
			}
		})
	}
	for range 20_000 {
		s.newest++
		if v := raceVersion(s.newest); v.Deleted && s.Newest().Get(v.Key) == nil {
			s.Publish(s.now, s.newest, nil)
		} else {
			v.Time = kv.InstantOf(s.now)
			s.Publish(s.now, s.newest, []*kv.Version{v})
		}
		s.now = s.now.Add(MinHistory / 20)
	}
	close(end)
	wg.Wait()
}

func compareRace(t *testing.T, snap kv.Snapshot) {
	listed := map[string]string{}
	for v := range snap.Ascend("default/core/a/", "") {
		listed[v.Key] = string(v.Value)
	}
	for i := range raceKeys {
		want := shows(snap.Revision(), i)
		got := ""
		if v := snap.Get(key("a", i)); v != nil {
			got = string(v.Value)
		}
		if got != want || listed[key("a", i)] != want {
			t.Errorf("at revision %d key %d is %q, listed as %q, want %q", snap.Revision(), i, got, listed[key("a", i)], want)
		}
	}
}
