package pawl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/pawl-dev/pawl/internal/pki"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
)

// A SharedMaker makes a shared store, where nothing may be, of the versions that some store had, and keeps things beside it by
// name. The store's revisions begin after the one given; it returns at which. If it fails there is nothing. Package kv/etcd has one.
type SharedMaker func(ctx context.Context, after kv.Revision, versions iter.Seq2[*kv.Version, error], beside map[string][]byte) (kv.Revision, error)

// RestoreShared makes a shared store from a backup of a server, whatever engine that had. Name is what errors call
// the backup. Progress, which may be nil, counts objects.
//
// Servers on it are the one that was backed up: clients go on with the kubeconfigs, certificates and tokens that they
// have; whoever can read the store can read the keys. It differs from [Restore] in that every object gets a new
// resourceVersion, since the shared store counts them: a write that names one from before is refused with a 409, though
// the object is as it was, and the writer reads it again.
func RestoreShared(ctx context.Context, into SharedMaker, name string, in io.Reader, progress local.Progress) (local.Restored, error) {
	backup, err := local.OpenBackup(name, in)
	if err != nil {
		return local.Restored{}, err
	}
	about := backup.About()
	beside := map[string][]byte{}
	if len(about.Files) > 0 {
		kept := keptOf(about)
		if err := pki.CheckKept(kept); err != nil {
			return local.Restored{}, fmt.Errorf("the keys in %s are not all that servers share; start the server that it is of once, which makes what is missing, and back up again: %w", name, err)
		}
		if beside[identityName], err = writeIdentity(kept); err != nil {
			return local.Restored{}, err
		}
	}
	rev, err := into(ctx, backup.RevisionAfterLoss(time.Now()), backup.Versions(ctx, progress), beside)
	if err != nil {
		return local.Restored{}, err
	}
	return local.Restored{About: about, Revision: rev}, nil
}

func keptOf(about local.About) []pki.Kept {
	kept := make([]pki.Kept, len(about.Files))
	for i, f := range about.Files {
		kept[i] = pki.Kept{Name: f.Name, Content: f.Content}
	}
	return kept
}

// errNoServer is why nothing is backed up of a shared store that no server ever had.
var errNoServer = errors.New("no server has ever had this store: see that its address and its prefix are right")

// BackupShared does what [Server.Backup] does with a shared store, whether or not servers have it: what
// it holds is one revision. It changes nothing. Progress, which may be nil, counts objects.
func BackupShared(ctx context.Context, s SharedStore, w io.Writer, progress local.Progress) (local.About, error) {
	text, err := s.Once(ctx, identityName, func() ([]byte, error) { return nil, errNoServer })
	if err != nil {
		return local.About{}, fmt.Errorf("back up: %w", err)
	}
	kept, err := readIdentity(text)
	if err != nil {
		return local.About{}, err
	}
	return sharedStore{s}.Backup(ctx, w, enclosed(kept), progress)
}
