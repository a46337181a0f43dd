package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// Restored says what a restore made.
type Restored struct {
	About    About
	Revision kv.Revision // that the store goes on from, and begins at
}

// Restore makes a store in the folder that opts name, which must be empty or not there, from
// a backup. Name is what errors call the backup. Place, which may be nil, is told what the
// backup holds, and is to put the files in it where they belong, before there is a store.
//
// The store holds what the backup showed, every version with its own revision; but it shows
// that as a revision far ahead, and all before that one as compacted. For between the
// backup and its loss the store went on: readers saw revisions that are not in the backup,
// and the restored store will not have. Whoever goes on from one of these is told
// [kv.ErrCompacted] and begins anew, rather than being shown other news under a revision
// that they know; and no revision is ever given twice.
//
// A folder in which a restore did not end well is no store: [Open] refuses it.
func Restore(ctx context.Context, opts Options, name string, in io.Reader, place func(About) error, progress Progress) (Restored, error) {
	opts = opts.complete()
	j := newJournal(opts)
	r, err := openBackup(name, in)
	if err != nil {
		return Restored{}, err
	}
	if err := j.vacant(); err != nil {
		return Restored{}, err
	}
	if place == nil {
		place = func(About) error { return nil }
	}
	rev := revisionAfterLoss(r.head.rev, opts.Clock.Now())
	if err := j.restore(ctx, r, rev, place, progress); err != nil {
		return Restored{}, fmt.Errorf("kv/local: restore: %w", err)
	}
	return Restored{*r.about, rev}, nil
}

// lossMax is how many commits can have been lost with a store when the clock does not say.
const lossMax = 1_000_000_000_000

// revisionAfterLoss returns a revision that no store which once held rev has reached by now.
//
// It is the number of microseconds since 1970. A store begins at revision 1 or at such a
// number, and no store makes a million commits in a second on average; so the revisions of
// all of them are smaller than this number at any time, those of earlier restores of
// the same backup included. It fits into the 53 bits that every client can count with
// until the year 2255. Where the clock contradicts this it has been set back, and the
// revision goes a great step from rev.
func revisionAfterLoss(rev kv.Revision, now time.Time) kv.Revision {
	if at := now.UnixMicro(); at > 0 && kv.Revision(at) > rev {
		return kv.Revision(at)
	}
	return rev + lossMax
}

// vacant returns an error if there is something in the folder.
func (j *journal) vacant() error {
	names, err := j.opts.FS.List(j.opts.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(names) == 0:
		return nil
	case err != nil:
		return err
	}
	return &OccupiedError{j.opts.Dir, names[0]}
}

// An OccupiedError says that a folder that has to be empty is not.
type OccupiedError struct{ Dir, Name string }

// Error names the folder and something in it.
func (e *OccupiedError) Error() string {
	return fmt.Sprintf("%s is not empty (it holds %s); %s", e.Dir, e.Name, e.Hint())
}

// Hint says what to do; the error's text ends with it.
func (e *OccupiedError) Hint() string { return "name a folder that is empty or not there yet" }

// restoringName is a file that is there while a folder is being restored.
const restoringName = "restoring"

// An UnfinishedError says that a restore into a folder was broken off.
type UnfinishedError struct{ Dir string }

// Error names the folder, and says what to do.
func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("a restore into %s was broken off; %s", e.Dir, e.Hint())
}

// Hint says what to do; the error's text ends with it.
func (e *UnfinishedError) Hint() string { return "remove what it left there, and restore again" }

// whole returns an error if a restore into the folder was broken off.
func (j *journal) whole() error {
	f, err := j.opts.FS.Open(filepath.Join(j.opts.Dir, restoringName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(&UnfinishedError{j.opts.Dir}, f.Close())
}

// restore makes the folder, with one snapshot and the beginning of a log in it.
func (j *journal) restore(ctx context.Context, r *snapshotReader, rev kv.Revision, place func(About) error, progress Progress) error {
	if err := j.opts.FS.MkdirAll(j.opts.Dir); err != nil {
		return err
	}
	lock, err := j.opts.FS.Lock(filepath.Join(j.opts.Dir, lockName))
	if err != nil {
		return err
	}
	defer lock.Close()
	mark := filepath.Join(j.opts.Dir, restoringName)
	if err := j.mark(mark); err != nil {
		return err
	}
	if err := place(*r.about); err != nil {
		return err
	}
	if err := j.prepare(); err != nil {
		return err
	}
	if err := writeWhole(j.opts.FS, j.snapshotName(rev), func(w io.Writer) error {
		m := image{head: snapshotHead{rev, r.head.time, rev}, tables: r.tables, versions: r.progressing(ctx, progress)}
		err := m.write(w, func(int) error { return nil })
		return errors.Join(err, r.err)
	}); err != nil {
		return err
	}
	if err := j.verify(rev); err != nil {
		return err
	}
	// A log that goes on from the snapshot: without it a folder whose snapshot is lost would pass for an empty store.
	j.next = rev + 1
	if err := j.rotate(); err != nil {
		return errors.Join(err, j.close(false))
	}
	if err := j.close(true); err != nil {
		return err
	}
	return errors.Join(j.opts.FS.Remove(mark), j.opts.FS.SyncDir(j.opts.Dir))
}

// mark makes the file that says that the folder is being restored. It is there before
// anything else is, and need not be whole.
func (j *journal) mark(name string) error {
	f, err := j.opts.FS.Create(name)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, "This folder is being restored from a backup. If nobody is at it any more, remove it and restore again.\n")
	return errors.Join(err, f.Sync(), f.Close(), j.opts.FS.SyncDir(j.opts.Dir))
}
