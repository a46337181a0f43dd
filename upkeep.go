package pawl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-dev/pawl/internal/pki"
	"github.com/pawl-dev/pawl/internal/server/upkeep"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/storage"
)

// storeDir is where in a data folder the store is.
func storeDir(dataDir string) string { return filepath.Join(dataDir, "store") }

// storeIn is where the store is in a folder that is a data folder, or itself holds a store.
func storeIn(dir string) string {
	if _, err := os.Stat(filepath.Join(dir, "snap")); err == nil {
		return dir
	}
	return storeDir(dir)
}

// Backup writes a backup of the server to w, while it goes on serving: all its objects as they
// are at one revision, and the keys by which clients know it and it knows them. Whoever
// has it has every secret of the server. [Restore] makes a data folder of it.
func (s *Server) Backup(ctx context.Context, w io.Writer) error { return s.parts.Backup(ctx, w) }

// Backup implements [upkeep.Store].
func (p *parts) Backup(ctx context.Context, w io.Writer) error {
	kept, err := p.pki.Keep()
	if err != nil {
		return err
	}
	_, err = p.engine.Backup(ctx, w, enclosed(kept), nil)
	return err
}

// A kept store is what the keeper of a server may do with it.
type keptStore struct {
	store
	parts *parts
}

func (k keptStore) Backup(ctx context.Context, w io.Writer) error { return k.parts.Backup(ctx, w) }

var _ upkeep.Store = keptStore{}

func enclosed(kept []pki.Kept) []local.EnclosedFile {
	files := make([]local.EnclosedFile, len(kept))
	for i, k := range kept {
		files[i] = local.EnclosedFile{Name: k.Name, Content: k.Content}
	}
	return files
}

// BackupFolder does what [Server.Backup] does with a data folder that no server has; if one
// has it the error is a [local.InUseError]. It changes nothing. Reading is told how many bytes of
// the folder are read, writing how many objects are written; both may be nil.
func BackupFolder(ctx context.Context, dataDir string, w io.Writer, reading, writing local.Progress) (local.About, error) {
	kept, err := pki.KeepDir(dataDir)
	if err != nil {
		return local.About{}, err
	}
	return local.BackupDir(ctx, local.Options{Dir: storeIn(dataDir), Progress: reading}, w, enclosed(kept), writing)
}

// Restore makes a data folder from a backup. The folder must be empty or not there; if the
// restore fails it is as it was. Name is what errors call the backup. Progress, which may be nil, counts objects.
//
// A server on it is the one that was backed up: its clients go on with the kubeconfigs,
// certificates and tokens that they have. Objects have the resourceVersions that they had. The
// store's own goes on far ahead of all that was ever handed out, and everything before that
// is compacted: a client that saw what the backup does not hold gets a 410 when it goes on from
// there, and lists anew, as after a long absence. See [local.Restore].
func Restore(ctx context.Context, dataDir, name string, in io.Reader, progress local.Progress) (local.Restored, error) {
	entries, err := os.ReadDir(dataDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return local.Restored{}, err
	}
	if len(entries) > 0 {
		return local.Restored{}, &local.OccupiedError{Dir: dataDir, Name: entries[0].Name()}
	}
	absent := err != nil
	place := func(about local.About) error {
		return pki.Place(dataDir, keptOf(about))
	}
	made, err := restoreInto(ctx, dataDir, name, in, place, progress)
	if err != nil {
		return local.Restored{}, errors.Join(err, clear(dataDir, absent))
	}
	return made, nil
}

func restoreInto(ctx context.Context, dataDir, name string, in io.Reader, place func(local.About) error, progress local.Progress) (local.Restored, error) {
	if err := pki.PrepareFolder(dataDir); err != nil {
		return local.Restored{}, err
	}
	return local.Restore(ctx, local.Options{Dir: storeDir(dataDir)}, name, in, place, progress)
}

// clear empties a folder that was empty, or removes it if it was absent.
func clear(dir string, absent bool) error {
	if absent {
		return os.RemoveAll(dir)
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// CheckFolder reads everything in a data folder that no server has, and says what it holds and
// all that is wrong with it. It changes nothing. That objects can be read is checked, and keys and certificates are too. Progress, which may be
// nil, counts bytes.
func CheckFolder(ctx context.Context, dataDir string, progress local.Progress) (*local.Report, error) {
	report, err := local.Check(ctx, local.Options{Dir: storeIn(dataDir)}, inspect, progress)
	if err != nil {
		return nil, err
	}
	for _, err := range split(pki.Check(dataDir)) {
		finding := local.Finding{File: dataDir, What: err.Error()}
		var about *pki.Error
		if errors.As(err, &about) {
			finding = local.Finding{File: about.File, What: about.Problem, Advice: about.Remedy}
			if about.Err != nil {
				finding.What += ": " + about.Err.Error()
			}
		}
		report.Problems = append(report.Problems, finding)
	}
	return report, nil
}

// inspect says what is wrong with a stored object, which a server would find out when it is read.
func inspect(v *kv.Version) (what, advice string) {
	if _, _, _, _, ok := storage.ParseKey(v.Key); !ok {
		return "", "" // it is beside the objects
	}
	if err := storage.CheckValue(v); err != nil {
		return err.Error(), "delete it with the option ignoreStoreReadErrorWithClusterBreakingPotential, or restore a backup"
	}
	return "", ""
}

// split returns the errors that one was joined from.
func split(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// Compacted is what came of a compaction.
type Compacted = upkeep.Compacted

// CompactFolder forgets history in a data folder that no server has, and gives back the room it
// took: what only revisions before one need, or, if that is 0, what is older than a time span,
// by the times of the commits. A running server is asked for it at /pawl/compact. Progress, which
// may be nil, counts bytes of the folder that are read.
func CompactFolder(ctx context.Context, dataDir string, before kv.Revision, olderThan time.Duration, progress local.Progress) (done Compacted, err error) {
	dir := storeIn(dataDir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return done, &local.NoStoreError{Dir: dir}
	}
	const all = 1 << 62 // how much history is kept is for the server to say, and it is not asked
	e, err := local.Open(ctx, local.Options{Dir: dir, HistoryDuration: all, HistorySize: all, Progress: progress})
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	bound := upkeep.Bound{Before: before, OlderThan: olderThan}
	done, err = bound.Apply(ctx, keptStore{store: e}, time.Now())
	if err != nil {
		return done, fmt.Errorf("compact %s: %w", dir, err)
	}
	return done, nil
}
