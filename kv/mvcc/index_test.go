package mvcc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/pawl-dev/pawl/kv"
)

var start = time.Date(2026, time.March, 14, 0, 0, 0, 0, time.UTC)

// A stage is an index with a publisher that makes versions for it.
type stage struct {
	*testing.T
	*Index
	now    time.Time
	newest kv.Revision
}

func newStage(t *testing.T, opts Options) *stage {
	return &stage{T: t, Index: New(opts, Base{Revision: 1, Floor: 1}), now: start, newest: 1}
}

// put publishes values under keys as one revision.
func (s *stage) put(size int, keys ...string) kv.Revision {
	s.newest++
	var versions []*kv.Version
	for _, key := range keys {
		versions = append(versions, &kv.Version{Key: key, Value: make([]byte, size), Revision: s.newest, Created: s.newest, Time: kv.InstantOf(s.now)})
	}
	s.Publish(s.now, s.newest, versions)
	return s.newest
}

func (s *stage) watch(prefix string, after kv.Revision) *watch {
	s.Helper()
	w, err := s.Watch(prefix, after)
	if err != nil {
		s.Fatal(err)
	}
	return w.(*watch)
}

func key(table string, i int) string { return fmt.Sprintf("default/core/%s/ns/k%d", table, i) }

func woken(w kv.Watch) bool {
	select {
	case <-w.Wait():
		return true
	default:
		return false
	}
}

// history returns how many events of a table are kept.
func (s *stage) history(table string) int { return len(s.tables["default/core/"+table+"/"].events) }

func TestAWaitingWatchIsWokenByItsTopicAlone(t *testing.T) {
	s := newStage(t, Options{})
	for _, prefix := range []string{"default/core/a/", "default/core/a/ns/", key("a", 1), "default/"} {
		w := s.watch(prefix, s.newest)
		ready := w.Wait()
		s.put(1, "other/core/a/ns/k1")
		if prefix != "default/" {
			s.put(1, key("b", 1))
		}
		if prefix == key("a", 1) {
			s.put(1, key("a", 2))
		}
		select {
		case <-ready:
			t.Errorf("%s was woken by what is not under it", prefix)
		default:
		}
		if _, ok := w.Progress(); !ok {
			t.Errorf("%s makes no progress", prefix)
		}
		s.put(1, key("a", 1))
		if !woken(w) {
			t.Errorf("%s was not woken", prefix)
		}
	}
}

func TestTopicsExistOnlyWhileTheyAreWatched(t *testing.T) {
	s := newStage(t, Options{})
	s.put(1, key("a", 1))
	var all []kv.Watch
	for _, prefix := range []string{"default/core/a/ns/", key("a", 1), key("a", 1), "default/", "default/core/none/", "default/core/none/ns/k"} {
		all = append(all, s.watch(prefix, 1))
	}
	if got := len(s.tables["default/core/a/"].topics); got != 2 {
		t.Errorf("%d topics, want 2", got)
	}
	for _, w := range all {
		w.Stop()
		w.Stop()
	}
	if got := len(s.tables["default/core/a/"].topics) + len(s.spaces); got != 0 {
		t.Errorf("%d topics are left", got)
	}
	if got := len(s.tables); got != 1 {
		t.Errorf("%d tables are left, one was written", got)
	}
}

func TestHistoryIsForgottenByAge(t *testing.T) {
	s := newStage(t, Options{Duration: 10 * time.Minute})
	quiet := s.watch(key("quiet", 1), 1)
	slow := s.watch("default/core/a/", 1)
	s.put(1, key("quiet", 1))
	quiet.Next()
	for range 30 {
		s.put(1, key("a", 1))
		s.now = s.now.Add(time.Minute)
	}
	s.Trim(s.now)
	if got := s.history("a"); got != 10 {
		t.Errorf("%d events are kept, want 10", got)
	}
	if !woken(slow) {
		t.Error("a watch that fell behind waits on")
	}
	if _, _, err := slow.Next(); !errors.Is(err, kv.ErrCompacted) {
		t.Errorf("a watch that fell behind: %v", err)
	}
	if _, ok, err := quiet.Next(); ok || err != nil {
		t.Errorf("a watch of something quiet: %v", err)
	}
	// Everything is forgotten of the quiet table, but nothing was missed by who asks late.
	if got := s.history("quiet"); got != 0 {
		t.Errorf("%d events of the quiet table are kept", got)
	}
	w := s.watch("default/core/quiet/", 2)
	rev := s.put(1, key("quiet", 1))
	for _, w := range []*watch{quiet, w} {
		if e, ok, err := w.Next(); !ok || err != nil || e.Version.Revision != rev {
			t.Errorf("got %+v, %v", e, err)
		}
	}
}

func TestABusyTableDoesNotPushOutTheOthers(t *testing.T) {
	const limit = 1 << 20
	s := newStage(t, Options{Bytes: limit})
	for i := range 100 {
		s.put(1000, key("quiet", 1))
		for range 50 {
			s.put(1000, key("busy", i%10))
		}
		s.now = s.now.Add(10 * time.Second)
	}
	if got := s.history("quiet"); got != 100 {
		t.Errorf("%d events of the quiet table are kept, want all 100", got)
	}
	if got := s.history("busy"); got < 8*50 || got > 1000 {
		t.Errorf("%d events of the busy table are kept", got)
	}
	if s.bytes > limit {
		t.Errorf("%d bytes of history, at most %d are allowed", s.bytes, limit)
	}
	var sum int64
	for _, tb := range s.tables {
		sum += tb.bytes
	}
	if sum != s.bytes {
		t.Errorf("the tables hold %d bytes, counted are %d", sum, s.bytes)
	}
}

func TestNothingYoungIsForgottenHoweverLarge(t *testing.T) {
	s := newStage(t, Options{Bytes: 1, Duration: time.Second})
	for range 75 {
		s.put(1000, key("a", 1))
		s.now = s.now.Add(time.Second)
	}
	s.Trim(s.now)
	if got := s.history("a"); got != 75 {
		t.Errorf("%d events are kept, want 75", got)
	}
	s.now = s.now.Add(time.Hour)
	s.Trim(s.now)
	if got := s.history("a"); got != 0 {
		t.Errorf("%d events are kept an hour later", got)
	}
}

// Looking at all tables costs what there are, so a commit does it only where something may come of it.
func TestHistoryOverItsLimitIsNotLookedAtForEachCommit(t *testing.T) {
	const each = eventOverhead + 1000
	s := newStage(t, Options{Bytes: 128 * each})
	for range 200 {
		s.put(1000, key("a", 1))
		s.now = s.now.Add(time.Millisecond)
	}
	if s.due(s.now) {
		t.Error("all is too young to be forgotten, and is looked at again")
	}
	if !s.due(s.now.Add(sweepEvery)) {
		t.Error("it is not looked at later either")
	}
	s.now = s.now.Add(MinHistory + sweepEvery)
	s.put(1000, key("a", 1))
	if s.bytes > 127*each || s.bytes < 125*each {
		t.Errorf("%d bytes are kept, of %d that may be", s.bytes, 128*each)
	}
	if s.due(s.now) {
		t.Error("there is room, and a commit looks at all tables")
	}
	for range 4 {
		s.put(1000, key("a", 1))
	}
	if s.bytes > 128*each {
		t.Errorf("%d bytes are kept, of %d that may be", s.bytes, 128*each)
	}
}

func TestACommitIsForgottenWhole(t *testing.T) {
	s := newStage(t, Options{Bytes: 4*eventOverhead + 250}) // four events, if one is forgotten
	first := s.put(1, key("a", 1), key("a", 2), key("a", 3))
	s.now = s.now.Add(2 * MinHistory)
	last := s.put(1, key("a", 1), key("a", 2))
	if got := s.history("a"); got != 2 {
		t.Errorf("%d events are kept, want 2", got)
	}
	if oldest, _ := s.Revisions(); oldest != first {
		t.Errorf("oldest is %d, want %d", oldest, first)
	}
	for i := range 3 {
		if v := s.Newest().Get(key("a", i+1)); (v.Prev() != nil) != (v.Revision == last) {
			t.Errorf("%s at %d: before it is %+v", v.Key, v.Revision, v.Prev())
		}
	}
}

// A watch of each kind, behind by some random amount, either tells everything or ends.
func TestAWatchThatFallsBehindEndsAndNeverSkips(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := newStage(t, Options{Bytes: 20_000})
		type follower struct {
			*watch
			want []kv.Revision
		}
		var all []*follower
		for range 2000 {
			k := fmt.Sprintf("default/core/%c/n%d/k%d", 'a'+rune(r.IntN(3)), r.IntN(2), r.IntN(3))
			rev := s.put(r.IntN(100), k)
			s.now = s.now.Add(time.Duration(r.IntN(10)) * time.Second)
			for _, f := range all {
				if k == f.prefix || strings.HasSuffix(f.prefix, "/") && strings.HasPrefix(k, f.prefix) {
					f.want = append(f.want, rev)
				}
			}
			switch r.IntN(12) {
			case 0:
				parts := []string{k, kv.NamespaceOf(k), kv.TableOf(k), "default/"}
				all = append(all, &follower{watch: s.watch(parts[r.IntN(4)], rev)})
			case 1, 2, 3, 4:
				if len(all) == 0 {
					break
				}
				i := r.IntN(len(all))
				if f := all[i]; !read(t, f.watch, &f.want, r.IntN(30)) {
					all = append(all[:i], all[i+1:]...)
				}
			}
		}
		for _, f := range all {
			if read(t, f.watch, &f.want, 1<<30) && len(f.want) > 0 {
				t.Errorf("seed %d: %s did not tell of %v", seed, f.prefix, f.want)
			}
		}
	}
}

// read reads up to n events of w, which must be the next ones wanted, and says whether w goes on.
func read(t *testing.T, w *watch, want *[]kv.Revision, n int) bool {
	t.Helper()
	for range n {
		e, ok, err := w.Next()
		switch {
		case errors.Is(err, kv.ErrCompacted) && len(*want) > 0:
			return false
		case err != nil:
			t.Fatalf("%s ended, and missed %v: %v", w.prefix, *want, err)
		case !ok:
			return true
		case len(*want) == 0 || e.Version.Revision != (*want)[0]:
			t.Fatalf("%s told of %d, want %v", w.prefix, e.Version.Revision, *want)
		}
		*want = (*want)[1:]
	}
	return true
}

func TestABaseKnowsWhenEachTableChangedLast(t *testing.T) {
	base := Base{Revision: 100, Floor: 10, Tables: map[string]kv.Revision{"default/core/a/": 50, "default/core/b/": 90}}
	x := New(Options{}, base)
	for prefix, oldest := range map[string]kv.Revision{
		"default/core/a/": 50, "default/core/a/ns/": 50, "default/core/b/": 90, "default/core/c/": 10, "default/": 90, "other/": 10,
	} {
		if _, err := x.Watch(prefix, oldest); err != nil {
			t.Errorf("%s: %v", prefix, err)
		}
		var e *kv.Error
		if _, err := x.Watch(prefix, oldest-1); !errors.As(err, &e) || e.Kind != kv.ErrCompacted || e.Have != oldest {
			t.Errorf("%s: %v, want oldest %d", prefix, err, oldest)
		}
	}
	if oldest, newest := x.Revisions(); oldest != 90 || newest != 100 {
		t.Errorf("revisions %d to %d", oldest, newest)
	}
}

// What is forgotten can be collected, though an old watch stands at its beginning, and
// nothing comes after it.
func TestForgettingGivesMemoryBack(t *testing.T) {
	s := newStage(t, Options{})
	w := s.watch("default/", 1)
	for i := range 1000 {
		s.put(1, key("a", i%7))
	}
	s.newest++
	s.Publish(s.now, s.newest, []*kv.Version{{Key: key("a", 1), Revision: s.newest, Created: 2, Deleted: true, Time: kv.InstantOf(s.now)}})
	tb := s.tables["default/core/a/"]
	old := weak.Make(tb.events[500])
	s.now = s.now.Add(2 * time.Hour)
	s.Trim(s.now)
	runtime.GC()
	if old.Value() != nil {
		t.Error("an event that was forgotten is still held")
	}
	if len(tb.events)+len(tb.dead) != 0 || s.bytes != 0 {
		t.Errorf("%d events, %d deletions and %d bytes are left", len(tb.events), len(tb.dead), s.bytes)
	}
	if _, _, err := w.Next(); !errors.Is(err, kv.ErrCompacted) {
		t.Errorf("the watch: %v", err)
	}
}
