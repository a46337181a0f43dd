package pawl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/pawl-dev/pawl/internal/pki"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/kv/mvcc"
)

// A SharedStore is an engine that keeps one store for several servers: they are one server then, with one authority, one
// administrator and one set of objects. Package kv/etcd's engine is one.
type SharedStore interface {
	kv.Engine
	kv.Compactor

	// Once returns what is kept under a name beside the store: what the first of all who call it makes.
	Once(ctx context.Context, name string, produce func() ([]byte, error)) ([]byte, error)
	// Replace keeps another thing under a name, if what was is what is kept, and returns what is kept then.
	Replace(ctx context.Context, name string, was, by []byte) ([]byte, error)
	// Lead calls run while this server leads, which one of them does at a time, until ctx ends.
	Lead(ctx context.Context, name string, run func(context.Context))
	// Measure returns how much is held in memory.
	Measure() mvcc.Measures
	// NewestAt returns the revision that was the newest at a time, or the oldest that is known.
	NewestAt(time.Time) kv.Revision
}

// SharedOptions are what a server wants of a shared store.
type SharedOptions struct {
	HistoryDuration time.Duration // as in [Config]
	HistorySize     int64         // as in [Config]
	Logger          *slog.Logger
}

// A store is an engine with what the keeper of a server does to it.
type store interface {
	kv.Engine
	kv.Compactor
	Sizes() local.Sizes
	Size() int64
	NewestAt(time.Time) kv.Revision
	Shrink(ctx context.Context, rev kv.Revision) error
	Backup(ctx context.Context, w io.Writer, files []local.EnclosedFile, progress local.Progress) (local.About, error)
}

var _ store = (*local.Engine)(nil)

// A sharedStore is a shared store with what the keeper of one server does to it.
type sharedStore struct{ SharedStore }

// Sizes says nothing of files: there are none here.
func (s sharedStore) Sizes() local.Sizes {
	oldest, newest := s.Revisions()
	return local.Sizes{Oldest: oldest, Newest: newest, Index: s.Measure()}
}

// Size is 0: nothing is on this disk.
func (s sharedStore) Size() int64 { return 0 }

func (s sharedStore) Shrink(ctx context.Context, rev kv.Revision) error { return s.Compact(ctx, rev) }

func (s sharedStore) Backup(ctx context.Context, w io.Writer, files []local.EnclosedFile, progress local.Progress) (local.About, error) {
	now, err := s.Read(ctx, kv.Latest)
	if err != nil {
		return local.About{}, err
	}
	return local.WriteBackup(ctx, w, now, time.Now(), files, progress)
}

// identityName is under which the keys of servers on one store are kept beside it.
const identityName = "identity"

// An identity is the keys of servers, as they are kept: names are those of files in a data folder.
type identity struct {
	Format int               `json:"format"` // 1
	Files  map[string]string `json:"files"`
}

// identityFormat is the format of the identities that are written, the only one there is.
const identityFormat = 1

// sharedKeys returns the keys of the servers on one store, opened as o says; the first of them makes them. An authority that
// had to be renewed is kept in place of the one before, so that all have the same.
func sharedKeys(ctx context.Context, s SharedStore, o pki.Options) (*pki.PKI, error) {
	text, err := s.Once(ctx, identityName, func() ([]byte, error) {
		made, err := pki.Open(pki.Options{Now: o.Now})
		if err != nil {
			return nil, err
		}
		return identityOf(made)
	})
	if err != nil {
		return nil, err
	}
	for {
		if o.Kept, err = readIdentity(text); err != nil {
			return nil, err
		}
		keys, err := pki.Open(o)
		if err != nil {
			return nil, err
		}
		renewed, err := identityOf(keys)
		if err != nil || bytes.Equal(renewed, text) {
			return keys, err
		}
		text, err = s.Replace(ctx, identityName, text, renewed)
		if err != nil && o.Logger != nil {
			o.Logger.Warn("a renewed authority is in use, and could not be kept for others: the next start tries again", "err", err)
		}
		if err != nil || bytes.Equal(renewed, text) {
			return keys, nil
		}
	}
}

func identityOf(keys *pki.PKI) ([]byte, error) {
	files, err := keys.Keep()
	if err != nil {
		return nil, err
	}
	return writeIdentity(files)
}

func writeIdentity(files []pki.Kept) ([]byte, error) {
	id := identity{Format: identityFormat, Files: map[string]string{}}
	for _, f := range files {
		id.Files[f.Name] = string(f.Content)
	}
	return json.Marshal(id)
}

func readIdentity(text []byte) ([]pki.Kept, error) {
	var id identity
	if err := json.Unmarshal(text, &id); err != nil {
		return nil, fmt.Errorf("the keys that are kept in the store cannot be read: %w", err)
	}
	if id.Format != identityFormat {
		return nil, fmt.Errorf("the keys that are kept in the store are of format %d, and this pawl knows only format %d: run the pawl that wrote them, or a newer one", id.Format, identityFormat)
	}
	var files []pki.Kept
	for name, content := range id.Files {
		files = append(files, pki.Kept{Name: name, Content: []byte(content)})
	}
	return files, nil
}

// checkShared says what does not go together with a shared store.
func (c Config) checkShared() error {
	switch {
	case c.Engine != "" && c.Engine != EngineShared:
		return fmt.Errorf("the %s engine keeps no shared store: leave out Shared, or the engine", c.Engine)
	case c.DataDir != "":
		return errors.New("a shared store keeps everything: leave out the data folder, and name a file for the kubeconfig if one is wanted")
	}
	return nil
}
