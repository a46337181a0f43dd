package local

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

const (
	defaultSegmentSize  = 64 << 20
	defaultSnapshotSize = 64 << 20
)

// A journal is the store's folder: the log that is being written and the snapshots. One
// goroutine appends.
type journal struct {
	opts  Options
	stats *counters

	file     File // the segment being written; nil until the first append
	segment  segment
	size     int64 // of segment; 0 if there is none
	room     int64 // that segment can grow to whatever happens to the disk
	tip      tip   // as it is on disk
	buf      []byte
	next     kv.Revision   // that the next commit will have
	last     time.Time     // of the last commit
	syncTime time.Duration // that the disk took for the last one
	turn     atomic.Bool   // the next append is to begin a segment; anybody may set it

	mu           sync.Mutex    // guards what follows
	segments     []segmentFile // in order of first
	snapshots    []snapshotFile
	fresh        int64 // bytes of log since the newest snapshot was begun
	freshFiles   int   // segments begun since
	snapshotting bool
	calm         sync.Cond // snapshotting has become false
	stop         bool      // there will be no more snapshots
	idle         sync.WaitGroup
}

// A segmentFile is a file of the log.
type segmentFile struct {
	first kv.Revision
	size  int64
}

// A snapshotFile is a snapshot on disk.
type snapshotFile struct {
	rev  kv.Revision
	time time.Time // of the last commit that it holds
	size int64
	bad  bool // it was read back, and is damaged
}

func newJournal(opts Options) *journal {
	if opts.FS == nil {
		opts.FS = OS
	}
	opts.SegmentSize = cmp.Or(opts.SegmentSize, defaultSegmentSize)
	opts.SnapshotSize = cmp.Or(opts.SnapshotSize, defaultSnapshotSize)
	if opts.entropy == nil {
		opts.entropy = rand.Reader
	}
	j := &journal{opts: opts, stats: newCounters(), next: emptyRevision + 1, last: time.Unix(0, 0).UTC()}
	j.calm.L = &j.mu
	return j
}

func (j *journal) logDir() string  { return filepath.Join(j.opts.Dir, "log") }
func (j *journal) snapDir() string { return filepath.Join(j.opts.Dir, "snap") }

func (j *journal) segmentName(first kv.Revision) string {
	return filepath.Join(j.logDir(), fmt.Sprintf("%016x.seg", uint64(first)))
}

func (j *journal) snapshotName(rev kv.Revision) string {
	return filepath.Join(j.snapDir(), fmt.Sprintf("%016x.snap", uint64(rev)))
}

// parseName returns the revision in the name of a file of the store.
func parseName(name, ext string) (kv.Revision, bool) {
	hex, ok := strings.CutSuffix(name, ext)
	if !ok || len(hex) != 16 {
		return 0, false
	}
	rev, err := strconv.ParseUint(hex, 16, 64)
	return kv.Revision(rev), err == nil
}

// A fate is what became of a group of commits.
type fate uint8

const (
	stored  fate = 1 + iota // it is on disk
	refused                 // it is certainly not on disk, and will not be
	unknown                 // nobody knows before the log is read again
)

// append writes the commits of tickets as one frame, and returns once it is on disk or will not be. After
// an error other than [ErrFull] the journal must not be appended to again.
func (j *journal) append(tickets []*ticket) (fate, error) {
	if err := j.ready(); err != nil {
		return refused, err
	}
	b := beginFrame(j.buf[:0], j.segment, j.next)
	next, last := j.next, j.last
	for _, t := range tickets {
		b = appendCommit(b, &t.commit)
		if t.forget == 0 {
			next, last = t.revision+1, t.time
		}
	}
	endFrame(b)
	j.keepBuffer(b)
	if err := j.fit(int64(len(b))); err != nil {
		return refused, err
	}
	became, err := j.put(b)
	if became == stored {
		j.next, j.last = next, last
	}
	return became, err
}

// ready sees that there is a segment to write to. One left by an earlier run goes on only
// if it holds no commit: its name is the one that a new segment would have.
func (j *journal) ready() error {
	if j.size == 0 || j.segment.first < j.next && (j.file == nil || j.size >= j.opts.SegmentSize || j.turn.Load()) {
		return j.rotate()
	}
	if j.file == nil {
		f, err := j.opts.FS.Append(j.segmentName(j.segment.first))
		if err != nil {
			return err
		}
		j.file, j.room = f, j.size
	}
	return j.point(tip{segment: j.segment})
}

// keepBuffer keeps b for the next frame, unless it is unusually large.
func (j *journal) keepBuffer(b []byte) {
	const keepBytes = 4 << 20
	j.buf = nil
	if cap(b) <= keepBytes {
		j.buf = b
	}
}

// put writes the frame in b and waits for the disk. A frame that did not fit is taken back.
func (j *journal) put(b []byte) (fate, error) {
	if _, err := j.file.Write(b); err != nil {
		err = fmt.Errorf("write %s: %w", j.segmentName(j.segment.first), err)
		if !errors.Is(err, ErrFull) {
			return unknown, err
		}
		if back := errors.Join(j.release(), j.file.Sync()); back != nil {
			return unknown, fmt.Errorf("%v, and it could not be taken back: %w", err, back)
		}
		return refused, err
	}
	began := j.opts.Clock.Now()
	if err := j.file.Sync(); err != nil {
		return unknown, fmt.Errorf("sync %s: %w", j.segmentName(j.segment.first), err)
	}
	j.syncTime = j.opts.Clock.Now().Sub(began)
	j.stats.syncs.observe(int64(j.syncTime))
	j.stats.bytes.Add(uint64(len(b)))
	j.size += int64(len(b))
	j.mu.Lock()
	defer j.mu.Unlock()
	j.segments[len(j.segments)-1].size = j.size
	j.fresh += int64(len(b))
	return stored, nil
}

// release cuts the segment to what is in it, and gives back the room beyond.
func (j *journal) release() error {
	if j.room != math.MaxInt64 {
		j.room = j.size
	}
	return j.file.Truncate(j.size)
}

// rotate begins a segment. Everything in the one before it has been synced. If it fails for
// want of room it can be called again.
func (j *journal) rotate() error {
	if j.file != nil {
		if err := j.release(); err != nil {
			return fmt.Errorf("end %s: %w", j.segmentName(j.segment.first), err)
		}
	}
	var id [8]byte
	if _, err := io.ReadFull(j.opts.entropy, id[:]); err != nil {
		return fmt.Errorf("make a segment id: %w", err)
	}
	s := segment{le.Uint64(id[:]), j.next}
	f, err := j.createSegment(s)
	if err != nil {
		return err
	}
	if j.file != nil {
		if err := j.file.Close(); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	j.turn.Store(false)
	j.file, j.segment, j.size, j.room = f, s, headerBytes, headerBytes
	j.mu.Lock()
	j.segments = append(j.segments, segmentFile{s.first, headerBytes})
	j.freshFiles++
	j.mu.Unlock()
	return j.reserve(j.step())
}

// createSegment makes the file of s. Its head is on disk, and the tip names it, before any
// frame is written, so only a file without frames can have a torn head or be newer than the tip.
func (j *journal) createSegment(s segment) (File, error) {
	name := j.segmentName(s.first)
	f, err := j.opts.FS.Create(name)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(s.append(nil))
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = j.opts.FS.SyncDir(j.logDir())
	}
	if err == nil {
		err = j.point(tip{segment: s})
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("begin %s: %w", name, err)
	}
	return f, nil
}

// halt ends the work in the background, because the disk is not to be trusted any more.
func (j *journal) halt() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stop = true
}

// close ends the journal; clean says that everything written to it has been synced.
func (j *journal) close(clean bool) error {
	j.halt()
	j.idle.Wait()
	var errs []error
	if j.file != nil {
		if clean {
			errs = append(errs, j.release())
		}
		errs = append(errs, j.file.Close())
	}
	if err := errors.Join(errs...); err != nil || !clean || j.size == 0 {
		return err
	}
	err := j.point(tip{j.segment, j.size})
	if errors.Is(err, ErrFull) {
		j.opts.Logger.Warn("there was no room to note that the store was closed; nothing is missing", "dir", j.opts.Dir, "cause", err)
		return nil
	}
	return err
}

// writeWhole makes a file that is there wholly or not at all.
func writeWhole(fsys FS, name string, write func(io.Writer) error) error {
	tmp := name + ".tmp"
	f, err := fsys.Create(tmp)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		fsys.Remove(tmp)
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := fsys.Rename(tmp, name); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(name))
}

// readWhole returns what the file of that name holds.
func readWhole(fsys FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b, nil
}

// list returns the revisions of the files in dir with that extension, in order; none where there is
// no such folder.
func (j *journal) list(dir, ext string) ([]kv.Revision, error) {
	names, err := j.opts.FS.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var revs []kv.Revision
	for _, name := range names {
		if rev, ok := parseName(name, ext); ok {
			revs = append(revs, rev)
		}
	}
	slices.Sort(revs)
	return revs, nil
}

// clear removes the files of dir that a crash left half made.
func (j *journal) clear(dir, ext string) error {
	names, err := j.opts.FS.List(dir)
	for _, name := range names {
		if strings.HasSuffix(name, ext+".tmp") {
			err = errors.Join(err, j.opts.FS.Remove(filepath.Join(dir, name)))
		}
	}
	return err
}
