package kvtest

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest/broken"
	"github.com/pawl-dev/pawl/kv/local"
)

// A recorder is a test that fails without failing the one that it is part of.
type recorder struct {
	testing.TB

	mu       sync.Mutex // guards what follows
	problems []string
	skipped  bool
	cleanups []func()
}

func (r *recorder) problem(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems = append(r.problems, strings.TrimSpace(text))
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.problems) > 0
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) SkipNow() {
	r.mu.Lock()
	r.skipped = true
	r.mu.Unlock()
	runtime.Goexit()
}

func (r *recorder) Helper()                           {}
func (r *recorder) Log(...any)                        {}
func (r *recorder) Logf(string, ...any)               {}
func (r *recorder) Fail()                             { r.problem("failed") }
func (r *recorder) FailNow()                          { r.Fail(); runtime.Goexit() }
func (r *recorder) Error(args ...any)                 { r.problem(fmt.Sprintln(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.problem(fmt.Sprintf(format, args...)) }
func (r *recorder) Fatal(args ...any)                 { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); runtime.Goexit() }
func (r *recorder) Skip(...any)                       { r.SkipNow() }
func (r *recorder) Skipf(string, ...any)              { r.SkipNow() }

// endless is when a test of a broken engine is given up: it has noticed by then that something is wrong.
const endless = 2 * time.Second

// impatience is how long what must come is waited for, of engines that may be broken.
const impatience = 300 * time.Millisecond

// try returns what is wrong with e according to the test of a promise.
func (p promise) try(t *testing.T, e kv.Engine, patience time.Duration) *recorder {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if why := recover(); why != nil {
				r.problem(fmt.Sprint("panic: ", why))
			}
		}()
		defer func() {
			for _, f := range slices.Backward(r.cleanups) {
				f()
			}
		}()
		p.keep(r, e, patience)
	}()
	select {
	case <-done:
	case <-time.After(patience + endless):
		r.problem("it goes on forever")
	}
	return r
}

// open returns an engine in a folder, or in memory, and breaks it whenever it is opened.
func open(t *testing.T, dir string, f broken.Fault) kv.Engine {
	t.Helper()
	opts, breaks := local.Options{Dir: dir, Memory: dir == ""}, f.Break()
	clock := NewClock()
	opts.Clock = clock
	again := func() (kv.Engine, error) {
		e, err := local.Open(t.Context(), opts)
		if err != nil {
			return nil, err
		}
		return breaks(e), nil
	}
	e, err := again()
	if err != nil {
		t.Fatal(err)
	}
	if opts.Memory {
		again = nil
	}
	return Rig{Engine: e, Clock: clock, Reopen: again}
}

// found are the promises whose tests must find a broken engine, by what it does.
var found = map[string][]string{
	"commits whatever the conditions are": {
		"a transaction without changes checks its conditions",
		"a conflict names the first key that had moved on, and nothing is written",
	},
	"judges only the first condition": {
		"a conflict names the first key that had moved on, and nothing is written",
		"a refusal rests on nothing that cannot be read",
	},
	"takes what exists for absent if it must be":   {"what exists is not absent, and what was deleted is"},
	"takes what was deleted for what it was":       {"what exists is not absent, and what was deleted is"},
	"refuses what holds":                           {"a condition that holds lets a commit through"},
	"names the last key in a conflict":             {"a conflict names the first key that had moved on, and nothing is written"},
	"makes what it refuses":                        {"a conflict names the first key that had moved on, and nothing is written"},
	"refuses in words of its own":                  {"a context that was cancelled makes the outcome unknown"},
	"judges nothing if nothing is to change":       {"a transaction without changes checks its conditions"},
	"answers with no revision if nothing is asked": {"a transaction without anything answers with the newest revision"},
	"makes half of a transaction":                  {"a ring whose links are swapped by transactions stays a ring", "nobody sees half of a transaction"},
	"makes a transaction in two steps":             {"a commit is the next revision, however many keys it touches", "nobody sees half of a transaction"},
	"makes half of what it says is unknown":        {"what is answered as unknown is there wholly or not at all"},
	"takes a cancelled context for a refusal":      {"a context that was cancelled makes the outcome unknown"},
	"acknowledges what it does not make": {
		"of many writers who saw the same version one wins",
		"the latest state holds every commit that was answered before",
	},
	"refuses what it makes":                                {"of many writers who saw the same version one wins"},
	"makes a commit twice":                                 {"a writer reads its own write, however fresh it asks"},
	"answers with an earlier revision":                     {"what is committed later has the larger revision"},
	"answers before what it did can be read":               {"a writer reads its own write, however fresh it asks"},
	"answers a refusal before what it lost to can be read": {"a conflict names the first key that had moved on, and nothing is written"},
	"says that it deletes what is absent":                  {"deleting what is absent changes nothing"},
	"takes what breaks the rules":                          {"what breaks a rule is refused and changes nothing"},
	"refuses what is large":                                {"what is just within the limits is taken"},
	"keeps the caller's slice":                             {"a caller may change its slices afterwards"},
	"takes an empty value for none":                        {"an empty value is not nothing"},
	"forgets who wrote":                                    {"a version says what it is", "a deletion says who made it"},
	"takes every version for the first":                    {"a version says what it is"},
	"forgets that a key was deleted":                       {"a key that is made anew remembers that it was deleted"},
	"forgets what was before":                              {"a version says what it is", "a version is walked backwards through all that can be read"},
	"goes by a clock that runs backwards":                  {"time never goes back"},
	"loses the slot of what was just written":              {"a version says what it is"},
	"counts the operations and not the commits":            {"a commit is the next revision, however many keys it touches"},
	"sometimes reads a state that is not the latest":       {"a writer reads its own write, however fresh it asks"},
	"sometimes shows its writers a state from before":      {"a writer reads its own write, however fresh it asks"},
	"does not wait for a revision":                         {"a read at least at a revision waits for it"},
	"says what it likes of a revision that does not come": {
		"a read at least at a revision that does not come says so",
		"a read exactly at a revision that does not exist says so at once",
	},
	"never tires of waiting":                           {"a read at least at a revision that does not come says so"},
	"takes the newest state for any of the past":       {"the past is what it was"},
	"shows the future":                                 {"a read exactly at a revision that does not exist says so at once"},
	"has the state before in place of an older one":    {"the past is what it was"},
	"forgets in the past what has been deleted since":  {"the past is what it was"},
	"shows snapshots that change":                      {"a snapshot never changes"},
	"loses snapshots of what it has forgotten":         {"a snapshot of the past stays when that past is forgotten"},
	"lists in another order":                           {"keys are yielded in order, under a prefix, from a key on"},
	"lists the neighbours too":                         {"keys are yielded in order, under a prefix, from a key on"},
	"leaves out the last of a list":                    {"keys are yielded in order, under a prefix, from a key on"},
	"begins a list after the key that is named":        {"keys are yielded in order, under a prefix, from a key on"},
	"sometimes loses an event":                         {"a watch joined at any revision misses nothing and repeats nothing"},
	"sometimes repeats an event":                       {"a watch joined at any revision misses nothing and repeats nothing"},
	"sometimes tells of two events in the wrong order": {"a watch joined at any revision misses nothing and repeats nothing"},
	"does not tell what was before":                    {"a watch joined at any revision misses nothing and repeats nothing"},
	"tells of a deletion as if something were left":    {"a watch tells what changed, from what, to what"},
	"tells of versions that are not those that are read": {
		"a watch tells what changed, from what, to what",
		"a watch joined at any revision misses nothing and repeats nothing",
	},
	"joins a watch where history ends": {
		"watches joined while others write all tell the same",
		"a watch joined at any revision misses nothing and repeats nothing",
	},
	"joins a watch one revision late": {
		"a watch joined at any revision misses nothing and repeats nothing",
		"there is no progress while there is something to tell",
	},
	"joins a watch one revision early":     {"a watch joined at any revision misses nothing and repeats nothing"},
	"tells a watch of the neighbours too":  {"a watch of a space, table, namespace or key tells of that alone"},
	"watches what cannot be named":         {"a watch of something that cannot be named is refused"},
	"does not watch from the future on":    {"a watch from the future tells nothing older"},
	"claims progress that it has not made": {"there is no progress while there is something to tell", "progress never overtakes an event"},
	"claims progress before it has been told of everything": {
		"there is no progress while there is something to tell",
		"progress never overtakes an event",
	},
	"makes no progress without events":                     {"progress is made on a quiet topic"},
	"wakes nobody":                                         {"a waiting watch is woken", "a stopped watch is over, and whoever waits for it is woken"},
	"wakes everybody all the time":                         {"a waiting watch is woken"},
	"goes on after it was stopped":                         {"a stopped watch is over, and whoever waits for it is woken"},
	"is stopped as if it had been compacted":               {"a stopped watch is over, and whoever waits for it is woken"},
	"tells watches of some tables nothing":                 {"a watch joined at any revision misses nothing and repeats nothing"},
	"forgets nothing":                                      {"what is compacted is gone, and says so"},
	"forgets one revision too many":                        {"what is compacted is gone, and says so"},
	"forgets what is to come":                              {"the future cannot be compacted"},
	"does not forget twice":                                {"compacting twice or backwards does nothing"},
	"forgets what is young":                                {"what is younger than 75 seconds is never forgotten by itself"},
	"ends every watch when it forgets":                     {"a quiet watch survives what is forgotten elsewhere", "a watch from the future misses nothing when what comes before that is forgotten"},
	"skips what was forgotten before it was told":          {"what is compacted is gone, and says so"},
	"joins a watch after what is forgotten":                {"what is compacted is gone, and says so"},
	"reads the oldest state in place of what is forgotten": {"what is compacted is gone, and says so"},
	"remembers a deletion as something that was":           {"a deletion that is forgotten leaves no trace"},
	"begins at revision 0":                                 {"an empty store has a revision that is not zero"},
	"forgets an expiry": {
		"a key goes when its time has come, not before, as a deletion like any other",
		"a clock that is set back lengthens nothing",
		"a clock that is set forward is followed",
	},
	"keeps an expiry that is dropped":                      {"a put keeps the expiry, drops it, or gives another"},
	"drops an expiry that is to be kept":                   {"a put keeps the expiry, drops it, or gives another"},
	"lets keys go too early":                               {"a key goes when its time has come, not before, as a deletion like any other"},
	"lets keys go too late":                                {"a key goes when its time has come, not before, as a deletion like any other"},
	"lets only some keys go":                               {"many keys that expire together all go"},
	"takes the expiry of a deleted key for the next one's": {"a key that is deleted and made anew does not go with the old one"},
	"does not say that it was time that deleted a key":     {"a key goes when its time has come, not before, as a deletion like any other"},
	"commits after it was closed, it says":                 {"a closed engine says so, and what was read stays"},
	"takes writes, it says, after it was closed":           {"a closed engine says so, and what was read stays"},
	"takes no writes, it says, from the beginning":         {"an empty store has a revision that is not zero"},
	"cannot be closed twice":                               {"a closed engine says so, and what was read stays"},
	"forgets history after it was closed":                  {"a closed engine says so, and what was read stays"},
	"reads after it was closed":                            {"a closed engine says so, and what was read stays"},
	"watches after it was closed":                          {"a closed engine says so, and what was read stays"},
	"lets reads wait on when it is closed":                 {"closing ends a read that waits"},
	"cuts off the commits under way when it is closed":     {"closing waits for the commits under way"},
	"forgets in a restart who wrote":                       {"what was committed is there after a restart as it was, and what was refused is not"},
	"forgets in a restart when something was written":      {"what was committed is there after a restart as it was, and what was refused is not"},
	"forgets in a restart since when a key exists":         {"what was committed is there after a restart as it was, and what was refused is not"},
	"forgets in a restart what was before":                 {"what was committed is there after a restart as it was, and what was refused is not"},
	"begins anew with the revisions after a restart":       {"revisions and time go on after a restart"},
	"remembers after a restart what it had forgotten":      {"what is forgotten does not come back"},
	"tells watches nothing from before a restart": {
		"a watch joined at any revision misses nothing and repeats nothing, across compaction and restart",
	},
	"reads the past as it is now after a restart": {"the past is what it was, across compaction and restart"},
	"forgets in a restart what is to expire":      {"a key expires though the store was closed and opened"},
	"loses in a restart what was put last":        {"what was committed is there after a restart as it was, and what was refused is not"},
}

// Each broken engine fails the tests of the promises that it breaks.
func TestBrokenEnginesAreFound(t *testing.T) {
	all := map[string]promise{}
	for _, p := range promises() {
		all[p.name] = p
	}
	for _, f := range broken.Faults() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			if len(found[f.Name]) == 0 {
				t.Error("name the promises that it breaks")
			}
			for _, name := range found[f.Name] {
				p, ok := all[name]
				if !ok {
					t.Fatalf("no such promise: %q", name)
				}
				r := p.try(t, open(t, "", f), impatience)
				if r.skipped {
					r = p.try(t, open(t, t.TempDir(), f), impatience)
				}
				if !r.Failed() {
					t.Errorf("the test of %q did not find it", name)
				}
			}
		})
	}
}

// tooMuch is what an engine promises that takes less than package kv allows.
const tooMuch = "what is more than the engine takes is refused and changes nothing"

// An engine that is said to take little, and takes more, is found.
func TestAnEngineThatTakesTooMuchIsFound(t *testing.T) {
	for _, p := range promises() {
		if p.name != tooMuch {
			continue
		}
		rig := open(t, "", broken.Nothing()).(Rig)
		rig.Limits = Limits{Ops: 64, ValueBytes: 64 << 10, Bytes: 256 << 10}
		if !p.try(t, rig, impatience).Failed() {
			t.Error("it was not found")
		}
		return
	}
	t.Errorf("no such promise: %q", tooMuch)
}

// What finds broken engines finds nothing wrong with one that is whole.
func TestAWholeEngineIsNotFound(t *testing.T) {
	for _, p := range promises() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for _, problem := range p.try(t, open(t, "", broken.Nothing()), patience).problems {
				t.Error(problem)
			}
		})
	}
}

// There is no promise that no broken engine breaks: each test can fail.
func TestEveryPromiseCanBeBroken(t *testing.T) {
	broken := map[string]bool{tooMuch: true} // by the test above
	for promise := range maps.Values(found) {
		for _, name := range promise {
			broken[name] = true
		}
	}
	for _, p := range promises() {
		if !broken[p.name] {
			t.Errorf("nothing breaks %q", p.name)
		}
	}
}
