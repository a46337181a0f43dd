package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

// lockName is the file whose lock makes a folder one engine's.
const lockName = "lock"

const missingAdvice = "put back the files of log and snap that were taken away, or restore the folder from a backup"

const restoreAdvice = "restore the folder from a backup, or, to give up everything written from there on, move this file, all later ones of the log and " + tipName + " away"

// openDir opens the store in a folder.
func openDir(ctx context.Context, opts Options) (*Engine, error) {
	j := newJournal(opts)
	if err := j.opts.FS.MkdirAll(opts.Dir); err != nil {
		return nil, err
	}
	lock, err := j.opts.FS.Lock(filepath.Join(opts.Dir, lockName))
	if err != nil {
		return nil, err
	}
	began := opts.Clock.Now()
	l, err := j.open(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("kv/local: open: %w", err), lock.Close())
	}
	_, newest := l.index.Revisions()
	opts.Logger.Debug("opened the store", "dir", opts.Dir, "revision", newest, "took", opts.Clock.Now().Sub(began))
	e := start(j.opts, l.index, j)
	e.lock = lock
	e.resume(l)
	return e, nil
}

// resume goes on where the log ends: no commit is older than its last, and what expires does.
func (e *Engine) resume(l *loader) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = l.last
	now, elapsed := e.time.now()
	since := stamp(now, e.last)
	for key := range l.expiring {
		if v := e.index.Newest().Get(key); v != nil && !v.Expires.IsZero() {
			e.lapses.set(key, elapsed+v.Expires.Time().Sub(since))
		}
	}
	e.arm(elapsed)
}

// open makes what is missing of the folder, and loads what it holds.
func (j *journal) open(ctx context.Context) (*loader, error) {
	if err := j.whole(); err != nil {
		return nil, err
	}
	var err error
	if j.tip, err = j.readTip(); err != nil {
		return nil, err
	}
	snapshots, err := j.list(j.snapDir(), ".snap")
	if err != nil {
		return nil, err
	}
	segments, err := j.list(j.logDir(), ".seg")
	if err != nil {
		return nil, err
	}
	if err := j.reachesTip(segments); err != nil {
		return nil, err
	}
	o, err := j.opening(ctx, snapshots, segments)
	if err != nil {
		return nil, err
	}
	l, err := j.loadBase(o, snapshots, isWhole(segments))
	if err != nil {
		return nil, err
	}
	if err := j.replay(o, l, segments); err != nil {
		return nil, err
	}
	if j.tip == (tip{}) && slices.ContainsFunc(j.segments, func(s segmentFile) bool { return s.size > headerBytes }) {
		j.opts.Logger.Warn("nothing says where the log ends, so it cannot be told whether its newest file is there", "missing", j.tipFile())
	}
	if n := len(j.snapshots); n > 0 && j.snapshots[n-1].rev >= l.next {
		return nil, &DamageError{j.snapshotName(j.snapshots[n-1].rev), 0,
			fmt.Sprintf("the log ends at revision %d, before what this snapshot shows", l.next-1),
			missingAdvice}
	}
	if err := j.prepare(); err != nil {
		return nil, err
	}
	if err := errors.Join(j.clear(j.snapDir(), ".snap"), j.clear(j.logDir(), ".seg"), l.mend()); err != nil {
		return nil, err
	}
	l.finish()
	l.index.Trim(j.opts.Clock.Now())
	j.next, j.last = l.next, l.last
	j.freshFiles = len(j.segments)
	for _, s := range j.segments {
		if len(j.snapshots) == 0 || s.first > j.snapshots[len(j.snapshots)-1].rev {
			j.fresh += s.size
		}
	}
	return l, nil
}

// prepare makes the folders, keeps them out of version control, and sees that they are
// on disk before anything in them is relied upon.
func (j *journal) prepare() error {
	fsys, dir := j.opts.FS, j.opts.Dir
	_, err := fsys.List(j.logDir())
	if err == nil {
		_, err = fsys.List(j.snapDir())
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = j.makeFolders()
	}
	if err != nil || j.tip != (tip{}) {
		return err
	}
	// Whoever made the folders may have been stopped before this.
	return errors.Join(fsys.SyncDir(dir), fsys.SyncDir(filepath.Dir(filepath.Clean(dir))))
}

func (j *journal) makeFolders() error {
	fsys := j.opts.FS
	if err := fsys.MkdirAll(j.logDir()); err != nil {
		return err
	}
	if err := writeWhole(fsys, filepath.Join(j.opts.Dir, ".gitignore"), func(w io.Writer) error {
		_, err := io.WriteString(w, "*\n")
		return err
	}); err != nil {
		return err
	}
	// Made last: where it is, everything is.
	return fsys.MkdirAll(j.snapDir())
}

// loadBase loads what the history that is kept begins with: the empty store if the log
// is whole, otherwise the oldest snapshot. It looks at the heads of the others.
func (j *journal) loadBase(o *opening, revs []kv.Revision, whole bool) (*loader, error) {
	l := newLoader(j.next, j.last)
	if whole || len(revs) == 0 {
		l.to = mvcc.NewLoader(j.opts.history(), mvcc.Base{Revision: emptyRevision, Floor: emptyRevision})
	}
	for i, rev := range revs {
		err := j.eachSnapshot(rev, func(r *snapshotReader, size int64) error {
			if err := r.fits(rev); err != nil {
				return err
			}
			j.snapshots = append(j.snapshots, snapshotFile{rev: rev, time: r.head.time, size: size})
			if i > 0 || whole {
				return nil
			}
			l.to = mvcc.NewLoader(j.opts.history(), mvcc.Base{Revision: rev, Tables: r.tables, Floor: r.head.floor})
			r.begun = l.begun
			l.to.Base(l.note(o.telling(r)))
			l.next, l.last = rev+1, r.head.time
			return r.err
		})
		var damage *DamageError
		if errors.As(err, &damage) {
			damage.Advice = snapshotAdvice(i == 0 && !whole, i+1 < len(revs))
		}
		if err != nil {
			return nil, err
		}
	}
	return l, nil
}

// eachSnapshot calls f with a reader of the snapshot at rev.
func (j *journal) eachSnapshot(rev kv.Revision, f func(r *snapshotReader, size int64) error) error {
	name := j.snapshotName(rev)
	return j.withFile(name, func(file File, size int64) error {
		r, err := newSnapshotReader(name, file, size)
		if err != nil {
			return err
		}
		return f(r, size)
	})
}

// withFile calls f with a file that is open for reading, and its size.
func (j *journal) withFile(name string, f func(file File, size int64) error) error {
	file, err := j.opts.FS.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return err
	}
	return f(file, size)
}

// replay loads the segments, in order of their first revisions.
func (j *journal) replay(o *opening, l *loader, firsts []kv.Revision) error {
	for i, first := range firsts {
		last := i == len(firsts)-1
		if !last && firsts[i+1] <= l.next && first < l.next {
			// All of it is in the snapshot; the next tidying removes it.
			j.segments = append(j.segments, segmentFile{first: first})
			continue
		}
		err := j.withFile(j.segmentName(first), func(file File, size int64) error {
			r := &frameReader{file: file, left: int(size), begun: l.begun, read: o.read}
			size, err := j.replaySegment(l, first, r, last)
			if err == nil && size > 0 {
				j.size = size
				j.segments = append(j.segments, segmentFile{first, size})
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// reachesTip returns an error if the newest segment is not there. It may be the one before the
// last that is, if the last was only begun.
func (j *journal) reachesTip(firsts []kv.Revision) error {
	if j.tip == (tip{}) || slices.Contains(firsts, j.tip.first) {
		return nil
	}
	return &DamageError{j.segmentName(j.tip.first), 0, "it is missing, and was the newest file of the log",
		"put it back, or restore the folder from a backup; or, to give up everything that was in it, remove " + j.tipFile()}
}

// replaySegment loads one segment and returns how long it is now. The last one may end
// in a group that a crash tore; that is cut off, and 0 returned if nothing was left.
func (j *journal) replaySegment(l *loader, first kv.Revision, r *frameReader, last bool) (int64, error) {
	name, size := j.segmentName(first), r.left
	damage := func(off int, what string) (int64, error) {
		return 0, &DamageError{name, int64(off), what, restoreAdvice}
	}
	s, problem, err := r.head()
	switch {
	case err != nil:
		return 0, fmt.Errorf("read %s: %w", name, err)
	case problem != "" && last && size <= headerBytes && j.tip.first != first:
		l.mend = func() error { return j.removeBegun(name) }
		return 0, nil
	case problem != "":
		return damage(0, problem)
	case s.first != first:
		return damage(0, "its name does not fit its head")
	case first > l.next:
		return 0, &DamageError{name, 0, fmt.Sprintf("revisions %d to %d are missing before it", l.next, first-1),
			missingAdvice}
	}
	end, problem, err := j.frames(l, s, name, r)
	if err != nil {
		return 0, err
	}
	whole := r.off
	closed := j.tip.segment == s && j.tip.size != 0
	if torn := whole < size; torn {
		rest, err := r.rest()
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", name, err)
		}
		if !last || closed || findFrame(rest[1:], s) >= 0 {
			return damage(whole, problem)
		}
	}
	if problem, at := j.tip.fits(s, int64(whole)); problem != "" {
		return damage(int(at), problem)
	}
	if whole == headerBytes && j.tip.first < first {
		// Whether its name is on disk nobody knows: the next append makes it anew.
		l.mend = func() error { return j.removeBegun(name) }
		return 0, nil
	}
	if last && !closed {
		l.mend = func() error { return j.settle(name, end, whole, size, problem) }
	}
	j.segment = s
	return int64(whole), nil
}

// frames loads the frames of a segment. It returns the last that is whole, and what is wrong with
// what follows it.
func (j *journal) frames(l *loader, s segment, name string, r *frameReader) (last []byte, problem string, err error) {
	for {
		off := r.off
		f, whole, problem, err := r.next(s)
		switch {
		case err != nil:
			return last, "", fmt.Errorf("read %s: %w", name, err)
		case whole == nil:
			return last, problem, nil
		}
		if err := l.frame(f); err != nil {
			return last, "", &DamageError{name, int64(off), err.Error(), restoreAdvice}
		}
		last = whole
	}
}

// settle makes the last segment of a store that was not closed safe to go on from, before
// anybody reads what is in it. What follows after its whole frames was being written when the
// process or the machine stopped, and so was never acknowledged: it is cut off. Or the last
// frame was read from memory that may not be on disk, and never
// will be if an fsync failed before: it is written again. Room that was reserved is given back.
func (j *journal) settle(name string, last []byte, whole, size int, problem string) error {
	if whole < size {
		j.opts.Logger.Warn("a group of commits was being written when the store stopped, and was not acknowledged; it is cut off",
			"file", name, "offset", whole, "bytes", size-whole, "problem", problem)
	} else {
		j.opts.Logger.Info("the store was not closed after it was last written to; nothing is missing", "file", name)
	}
	f, err := j.opts.FS.Append(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(last, int64(whole-len(last)))
	if err == nil {
		err = f.Truncate(int64(whole))
	}
	if err == nil {
		err = f.Sync()
	}
	// The tip may have been read from memory, too.
	return errors.Join(err, f.Close(), j.opts.FS.SyncDir(j.opts.Dir))
}

// removeBegun removes a segment that was being begun when the store stopped.
func (j *journal) removeBegun(name string) error {
	j.opts.Logger.Info("a file of the log had been begun when the store stopped, and holds nothing; it is removed", "file", name)
	return errors.Join(j.opts.FS.Remove(name), j.opts.FS.SyncDir(j.logDir()))
}
