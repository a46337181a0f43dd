package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// A Report says what the folder of a store holds, and what is wrong with it.
type Report struct {
	Dir      string    `json:"dir"`
	Problems []Finding `json:"problems"` // damage: none if all is well
	Notes    []Finding `json:"notes"`    // what is unusual and does no harm

	Oldest     kv.Revision `json:"oldest"`     // that can be read
	Newest     kv.Revision `json:"newest"`     // the last commit, or where a restore began
	Since      time.Time   `json:"since"`      // when Oldest came to be, to a second, or what the log holds after it
	LastCommit time.Time   `json:"lastCommit"` // when
	Closed     bool        `json:"closed"`     // in good order, after the last write

	Objects     int            `json:"objects"`     // 0 if damage leaves that open
	ObjectBytes int64          `json:"objectBytes"` // their keys and values
	Tables      map[string]int `json:"tables"`      // how many objects each holds

	Segments      []SegmentReport  `json:"segments"`
	Snapshots     []SnapshotReport `json:"snapshots"`
	Commits       int              `json:"commits"` // in the log
	LogBytes      int64            `json:"logBytes"`
	SnapshotBytes int64            `json:"snapshotBytes"`
}

// A Finding is something in a file that is not as it should be.
type Finding struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	What   string `json:"what"`
	Advice string `json:"advice,omitempty"` // what can be done
}

// A SegmentReport says what a file of the log holds.
type SegmentReport struct {
	File    string      `json:"file"`
	Bytes   int64       `json:"bytes"`
	First   kv.Revision `json:"first"`
	Commits int         `json:"commits"`
}

// A SnapshotReport says what a snapshot holds.
type SnapshotReport struct {
	File     string      `json:"file"`
	Bytes    int64       `json:"bytes"`
	Revision kv.Revision `json:"revision"`
	Time     time.Time   `json:"time"`
	Objects  int         `json:"objects"`
}

// Inspect says what is wrong with the value of a version, "" if nothing is, and what can be done about it.
type Inspect func(*kv.Version) (what, advice string)

// Check reads every byte of a store that no engine has open, and says what it holds and all that is wrong
// with it. It changes nothing. It looks at more than opening does: every snapshot is compared
// with what the log says there was at its revision, and every change with what it replaced.
// Inspect, which may be nil, is asked about each value that was put; those that are the newest of their keys are told of.
// Progress, which may be nil, counts bytes. The error is not about damage; it is an
// [InUseError], a [NoStoreError], or says that something could not be read.
func Check(ctx context.Context, opts Options, inspect Inspect, progress Progress) (*Report, error) {
	j := newJournal(opts.complete())
	lock, err := j.hold()
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := j.whole(); err != nil {
		return nil, err
	}
	c := &checker{
		ctx: ctx, journal: j, inspect: inspect, progress: progress, authors: &authors{}, unsound: map[string]Finding{}, report: &Report{
			Dir: opts.Dir, Problems: []Finding{}, Notes: []Finding{}, Tables: map[string]int{},
			Segments: []SegmentReport{}, Snapshots: []SnapshotReport{},
		},
	}
	if err := c.run(); err != nil {
		return nil, fmt.Errorf("kv/local: check: %w", err)
	}
	return c.report, nil
}

// A checker replays the log as opening does, and looks closer.
type checker struct {
	ctx      context.Context
	journal  *journal
	report   *Report
	inspect  Inspect // may be nil
	progress Progress
	done     int64 // bytes read
	total    int64
	buf      []byte
	authors  *authors

	segments  []kv.Revision
	tip       tip           // nothing if it cannot be told
	snapshots []kv.Revision // that have not been read yet

	base  kv.Revision // that history begins with, and the log must go on from
	next  kv.Revision // that the log must go on with; 0 if damage leaves that open
	time  time.Time   // of the last commit
	floor kv.Revision // that nothing older than may be read
	now   held        // nil if damage leaves that open
	marks []mark      // in order

	unsound map[string]Finding // what is wrong with the newest values of keys

	failed error // the context's
}

// A mark says when a revision came to be.
type mark struct {
	rev  kv.Revision
	time time.Time
}

// markEvery is how far apart marks are at least.
const markEvery = time.Second

func (c *checker) mark(rev kv.Revision, at time.Time) {
	if n := len(c.marks); n == 0 || at.Sub(c.marks[n-1].time) >= markEvery {
		c.marks = append(c.marks, mark{rev, at})
	}
}

// held is what a store holds at some revision.
type held map[string]digest

// A digest stands for a version.
type digest struct {
	revision, created kv.Revision
	sum               uint32 // of all else
	size              int32
}

func (c *checker) run() (err error) {
	if c.snapshots, err = c.list(c.journal.snapDir(), ".snap"); err != nil {
		return err
	}
	if c.segments, err = c.list(c.journal.logDir(), ".seg"); err != nil {
		return err
	}
	if err := c.readTip(); err != nil {
		return err
	}
	c.base = emptyRevision
	whole := len(c.segments) > 0 && c.segments[0] == emptyRevision+1
	if len(c.snapshots) > 0 && !whole {
		c.base = c.snapshots[0]
	} else {
		c.now = held{}
	}
	c.floor = emptyRevision
	c.report.Newest = c.base
	c.next = c.base + 1
	if len(c.segments) > 0 {
		c.next = min(c.next, c.segments[0])
	}
	for i := range c.segments {
		if err := errors.Join(c.segment(i), c.failed); err != nil {
			return err
		}
	}
	if err := c.finish(); err != nil {
		return err
	}
	c.sum()
	return nil
}

// readTip reads where the log ends, and sees that its newest file is there.
func (c *checker) readTip() (err error) {
	c.tip, err = c.journal.readTip()
	c.journal.tip = c.tip
	if err == nil {
		err = c.journal.reachesTip(c.segments)
	}
	var damage *DamageError
	if errors.As(err, &damage) {
		c.damage(damage.File, damage.Offset, damage.What, damage.Advice)
		return nil
	}
	return err
}

// list returns the revisions of the files in dir with that extension, in order, and takes note of others.
func (c *checker) list(dir, ext string) ([]kv.Revision, error) {
	names, err := c.journal.opts.FS.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	slices.Sort(names)
	var revs []kv.Revision
	for _, name := range names {
		file := filepath.Join(dir, name)
		rev, ours := parseName(name, ext)
		switch {
		case ours:
			size, err := fileSize(c.journal.opts.FS, file)
			if err != nil {
				return nil, err
			}
			c.total += size
			revs = append(revs, rev)
		case strings.HasSuffix(name, ext+".tmp"):
			c.note(file, 0, "this was being written when the store stopped; the next start removes it", "")
		default:
			c.note(file, 0, "this is no file of the store's", "move it elsewhere")
		}
	}
	return revs, nil
}

func fileSize(fs FS, name string) (int64, error) {
	f, err := fs.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.Size()
}

func (c *checker) note(file string, offset int64, what, advice string) {
	c.report.Notes = append(c.report.Notes, Finding{file, offset, what, advice})
}

// damage takes note of damage, of which there may be more to come.
func (c *checker) damage(file string, offset int64, what, advice string) {
	c.report.Problems = append(c.report.Problems, Finding{file, offset, what, advice})
}

// look has the value of v, which is the newest of its key so far, inspected.
func (c *checker) look(v *kv.Version, file string, offset int64) {
	if c.inspect == nil {
		return
	}
	delete(c.unsound, v.Key)
	if v.Deleted {
		return
	}
	if what, advice := c.inspect(v); what != "" {
		c.unsound[v.Key] = Finding{file, offset, fmt.Sprintf("%s, at revision %d: %s", v.Key, v.Revision, what), advice}
	}
}

// read counts n bytes as read.
func (c *checker) read(n int64) error {
	c.done += n
	if c.progress != nil {
		c.progress(c.done, c.total)
	}
	return c.ctx.Err()
}

// A counted reader counts what is read from it.
type counted struct {
	io.Reader
	c *checker
}

func (r counted) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if called := r.c.read(int64(n)); called != nil {
		return n, called
	}
	return n, err
}

// finish reads the snapshots that the log did not lead to.
func (c *checker) finish() error {
	last := c.report.Newest
	for len(c.snapshots) > 0 {
		rev := c.snapshots[0]
		if rev > last && rev != c.base && c.next != 0 {
			c.damage(c.journal.snapshotName(rev), 0, fmt.Sprintf("the log ends at revision %d, before what this snapshot shows", last), missingAdvice)
			c.now = nil
		}
		if err := c.snapshot(rev >= last); err != nil {
			return err
		}
	}
	return nil
}

// sum adds up what was found.
func (c *checker) sum() {
	r := c.report
	for _, key := range slices.Sorted(maps.Keys(c.unsound)) {
		r.Problems = append(r.Problems, c.unsound[key])
	}
	r.Oldest = min(max(c.base, c.floor), r.Newest)
	for key, d := range c.now {
		r.Objects++
		r.ObjectBytes += int64(len(key)) + int64(d.size)
		r.Tables[strings.TrimSuffix(kv.TableOf(key), "/")]++
	}
	for _, s := range r.Segments {
		r.Commits += s.Commits
		r.LogBytes += s.Bytes
	}
	for _, s := range r.Snapshots {
		r.SnapshotBytes += s.Bytes
	}
	r.LastCommit = c.time
	r.Since = c.time
	for i, m := range c.marks {
		if i == 0 || m.rev <= r.Oldest {
			r.Since = m.time
		}
	}
}
