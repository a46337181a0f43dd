package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"path/filepath"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// A Progress is told how much of a long piece of work is done. It should be quick.
type Progress func(done, total int64)

// About says what a backup holds.
type About struct {
	Taken    time.Time   // when the backup was begun
	Revision kv.Revision // that it shows
	Time     time.Time   // no commit that it shows is younger
	Objects  int
	Files    []EnclosedFile // what its maker put in beside the store
}

// An EnclosedFile is a small file that belongs to a store and goes where it goes. What is
// in it is for the maker of the backup to know.
type EnclosedFile struct {
	Name    string
	Content []byte
}

// append appends the payload of the block that says what a backup is about; the head of the
// file says the rest.
func (a *About) append(b []byte) []byte {
	b = binary.AppendVarint(b, a.Taken.UnixNano())
	b = binary.AppendUvarint(b, uint64(a.Objects))
	b = binary.AppendUvarint(b, uint64(len(a.Files)))
	for _, f := range a.Files {
		b = appendString(b, f.Name)
		b = appendString(b, f.Content)
	}
	return b
}

func (r *snapshotReader) readAbout() error {
	fields, err := r.block(aboutBlock)
	if err != nil {
		return err
	}
	fields.byte()
	r.about = &About{Revision: r.head.rev, Time: r.head.time, Taken: fields.time(), Objects: int(fields.uvarint())}
	for range fields.count() {
		r.about.Files = append(r.about.Files, EnclosedFile{string(fields.bytes()), fields.value()})
	}
	return r.check(fields, len(fields.rest) > 0)
}

// Backup writes the store as it is now to w, with files beside it, while it goes on being
// read and written. What it holds is one revision, and every revision that was answered
// before Backup was called. Progress, which may be nil, counts objects.
func (e *Engine) Backup(ctx context.Context, w io.Writer, files []EnclosedFile, progress Progress) (About, error) {
	e.mu.Lock()
	last := e.last // of the newest sequenced, so no older than what the state below shows
	state, tables, _ := e.index.Checkpoint()
	e.mu.Unlock()
	return writeBackup(ctx, w, backup{state, tables, last, e.opts.Clock.Now(), files}, progress)
}

// WriteBackup does what [Engine.Backup] does with the state of another engine. When each table
// was changed is not known of it, so it is taken to be at that state.
func WriteBackup(ctx context.Context, w io.Writer, state kv.Snapshot, taken time.Time, files []EnclosedFile, progress Progress) (About, error) {
	tables := map[string]kv.Revision{}
	var last kv.Instant
	for v := range state.Ascend("", "") {
		tables[kv.TableOf(v.Key)] = state.Revision()
		last = max(last, v.Time)
	}
	return writeBackup(ctx, w, backup{state, tables, last.Time(), taken, files}, progress)
}

// BackupDir does what [Engine.Backup] does with a store that no engine has open. It changes
// nothing, so that it can be done where nothing can be written; [InUseError] if an engine
// has the store.
func BackupDir(ctx context.Context, opts Options, w io.Writer, files []EnclosedFile, progress Progress) (About, error) {
	opts = opts.complete()
	j := newJournal(opts)
	lock, err := j.hold()
	if err != nil {
		return About{}, err
	}
	defer lock.Close()
	j.opts.FS = frozen{j.opts.FS}
	l, err := j.open(ctx)
	if err != nil {
		return About{}, fmt.Errorf("kv/local: back up: %w", err)
	}
	state, tables, _ := l.index.Checkpoint()
	return writeBackup(ctx, w, backup{state, tables, l.last, opts.Clock.Now(), files}, progress)
}

// A backup is what is to be written of a store.
type backup struct {
	state  kv.Snapshot
	tables map[string]kv.Revision
	last   time.Time
	taken  time.Time
	files  []EnclosedFile
}

func writeBackup(ctx context.Context, w io.Writer, b backup, progress Progress) (About, error) {
	rev := b.state.Revision()
	about := About{Taken: b.taken.Round(0).UTC(), Revision: rev, Time: b.last, Files: b.files, Objects: count(b.state)}
	size := 0
	for _, f := range b.files {
		size += len(f.Name) + len(f.Content)
	}
	if size > enclosedMax {
		return About{}, fmt.Errorf("kv/local: back up: %d bytes of files to go with the store, at most %d are allowed", size, enclosedMax)
	}
	// Nothing before what a backup shows can be had from it.
	m := image{head: snapshotHead{rev, b.last, rev}, about: &about, tables: b.tables, versions: b.state.Ascend("", "")}
	err := m.write(w, func(count int) error {
		if progress != nil {
			progress(int64(count), int64(about.Objects))
		}
		return ctx.Err()
	})
	if err != nil {
		return About{}, fmt.Errorf("kv/local: back up: %w", err)
	}
	if progress != nil {
		progress(int64(about.Objects), int64(about.Objects))
	}
	return about, nil
}

// enclosedMax is how many bytes of files may go with a store.
const enclosedMax = 16 << 20

func count(s kv.Snapshot) int {
	if s, ok := s.(interface{ Len() int }); ok {
		return s.Len()
	}
	n := 0
	for range s.Ascend("", "") {
		n++
	}
	return n
}

const backupAdvice = "it is not a whole backup: take another, or use an older one"

// ReadBackup reads a backup to its end and returns what it holds; the error is a
// [DamageError] unless every byte of it is as it was written. Name is what errors call it.
// Progress, which may be nil, counts objects.
func ReadBackup(ctx context.Context, name string, in io.Reader, progress Progress) (About, error) {
	r, err := openBackup(name, in)
	if err != nil {
		return About{}, err
	}
	for range r.progressing(ctx, progress) {
	}
	return *r.about, r.err
}

// A BackupReader reads a backup from its beginning to its end, once.
type BackupReader struct{ r *snapshotReader }

// OpenBackup reads what a backup says of itself. Name is what errors call it.
func OpenBackup(name string, in io.Reader) (*BackupReader, error) {
	r, err := openBackup(name, in)
	if err != nil {
		return nil, err
	}
	return &BackupReader{r}, nil
}

// About returns what the backup holds.
func (b *BackupReader) About() About { return *b.r.about }

// RevisionAfterLoss returns a revision that no store which once held the backup's has reached by now. A store
// that is made of the backup goes on from one that is no smaller; see [Restore].
func (b *BackupReader) RevisionAfterLoss(now time.Time) kv.Revision {
	return revisionAfterLoss(b.r.head.rev, now)
}

// Versions yields what the backup holds, in the order of keys, and last an error unless every byte of it is as it was
// written: until the end what was yielded may be part of something damaged. Progress, which may be nil, counts objects.
func (b *BackupReader) Versions(ctx context.Context, progress Progress) iter.Seq2[*kv.Version, error] {
	return func(yield func(*kv.Version, error) bool) {
		for v := range b.r.progressing(ctx, progress) {
			if !yield(v, nil) {
				return
			}
		}
		if b.r.err != nil {
			yield(nil, b.r.err)
		}
	}
}

func openBackup(name string, in io.Reader) (*snapshotReader, error) {
	return newReader(name, in, math.MaxInt64, backupMagic, backupAdvice)
}

// progressing yields the versions of a backup, tells progress, and ends when ctx does.
func (r *snapshotReader) progressing(ctx context.Context, progress Progress) func(func(*kv.Version) bool) {
	return func(yield func(*kv.Version) bool) {
		const every = 256
		n, total := 0, r.about.Objects
		for v := range r.versions() {
			if n++; n%every == 0 {
				if progress != nil {
					progress(int64(n), int64(total))
				}
				if r.err = ctx.Err(); r.err != nil {
					return
				}
			}
			if !yield(v) {
				return
			}
		}
		if r.err == nil && n != total {
			r.err = r.damage(fmt.Sprintf("it holds %d objects where %d should be", n, total))
		}
		if r.err == nil && progress != nil {
			progress(int64(n), int64(total))
		}
	}
}

// hold takes the lock of a folder that holds a store, without writing to it.
func (j *journal) hold() (io.Closer, error) {
	_, err := j.opts.FS.List(j.snapDir())
	if errors.Is(err, fs.ErrNotExist) {
		_, err = j.opts.FS.List(j.logDir())
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NoStoreError{j.opts.Dir}
	} else if err != nil {
		return nil, err
	}
	name := filepath.Join(j.opts.Dir, lockName)
	if f, ok := j.opts.FS.(interface {
		Hold(name string) (io.Closer, error)
	}); ok {
		return f.Hold(name)
	}
	return j.opts.FS.Lock(name)
}

// A NoStoreError says that a folder holds no store.
type NoStoreError struct{ Dir string }

// Error names the folder.
func (e *NoStoreError) Error() string { return e.Dir + " holds no store; " + e.Hint() }

// Hint says what to do; the error's text ends with it.
func (e *NoStoreError) Hint() string { return "name the folder that holds one" }

// A frozen file system takes changes and makes none of them.
type frozen struct{ FS }

func (frozen) MkdirAll(string) error       { return nil }
func (frozen) Create(string) (File, error) { return sink{}, nil }
func (frozen) Append(string) (File, error) { return sink{}, nil }
func (frozen) Rename(string, string) error { return nil }
func (frozen) Remove(string) error         { return nil }
func (frozen) SyncDir(string) error        { return nil }

// A sink is a file of a frozen file system.
type sink struct{}

func (sink) Read([]byte) (int, error)               { return 0, io.EOF }
func (sink) Write(b []byte) (int, error)            { return len(b), nil }
func (sink) WriteAt(b []byte, _ int64) (int, error) { return len(b), nil }
func (sink) Close() error                           { return nil }
func (sink) Sync() error                            { return nil }
func (sink) Size() (int64, error)                   { return 0, nil }
func (sink) Reserve(int64) error                    { return nil }
func (sink) Truncate(int64) error                   { return nil }

// IsBackup reports whether a file that begins like this is a backup, of whatever format.
func IsBackup(head []byte) bool { return bytes.HasPrefix(head, []byte(backupMagic)) }

// Hint says what can be done; the error's text ends with it.
func (e *DamageError) Hint() string { return e.Advice }
