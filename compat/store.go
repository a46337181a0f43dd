package compat

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/features"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// DefaultSpace is the space of an engine's keys that a [Store] uses if none is named. It is not
// that of a pawl server, so the two can share an engine.
const DefaultSpace = "apiserver"

// Options say how one resource of an API server is stored. Engine, ResourcePrefix, Codec and
// NewFunc are needed.
type Options struct {
	Engine         kv.Engine
	Space          string               // the part of the engine that is this server's; DefaultSpace if empty
	ResourcePrefix string               // what every key of the resource begins with, as "/pods" or "/example.com/lamps"
	Resource       schema.GroupResource // as errors name it
	Codec          runtime.Codec
	Transformer    value.Transformer     // nil: values are stored as the codec makes them; see [Classifier]
	NewFunc        func() runtime.Object // makes an empty object of the kind that watches tell of
	Turns          *storage.Turns        // shared by all stores of an engine; nil: the store's own

	// WatchStarted, if given, is called with the context of each watch that has begun. The
	// flow control of k8s.io/apiserver counts a watch as expensive until its WatchInitialized is.
	WatchStarted func(context.Context)
}

// A Store is one resource of an API server in an engine. It is safe for concurrent use.
type Store struct {
	table        *storage.Table
	engine       kv.Engine
	prefix       string // of paths, with its last '/'
	keys         string // what the engine's keys begin with in place of prefix
	resource     schema.GroupResource
	codec        runtime.Codec
	transformer  value.Transformer
	newFunc      func() runtime.Object
	watchStarted func(context.Context)
	versioner    apistorage.APIObjectVersioner

	deletesCorrupt bool // unreadable objects are told apart, and may be deleted
	sizes          atomic.Bool
	progress       bell
}

var _ apistorage.Interface = (*Store)(nil)

// New returns the store that o describes. Whether unreadable objects are reported all together
// and may be deleted is the library's feature AllowUnsafeMalformedObjectDeletion, as it is set now.
func New(o Options) (*Store, error) {
	switch {
	case o.Engine == nil:
		return nil, errors.New("compat: a store needs an engine: open one with kv/local")
	case o.Codec == nil:
		return nil, errors.New("compat: a store needs a codec")
	case o.NewFunc == nil:
		return nil, errors.New("compat: a store needs a function that makes an empty object")
	}
	if o.Space == "" {
		o.Space = DefaultSpace
	}
	group, plural, err := tableOf(o.ResourcePrefix)
	if err != nil {
		return nil, err
	}
	keys := storage.TablePrefix(o.Space, group, plural)
	if problem := kv.CheckKey(keys + "namespace/name"); problem != "" {
		return nil, fmt.Errorf("compat: no engine has keys that begin with %q: %s", keys, problem)
	}
	return &Store{
		table: storage.NewTable(storage.Options{
			Engine: o.Engine, Space: o.Space, Group: group, Resource: plural, Namespaced: true, Turns: o.Turns,
		}),
		engine: o.Engine, prefix: strings.TrimSuffix(o.ResourcePrefix, "/") + "/", keys: keys, resource: o.Resource,
		codec: o.Codec, transformer: o.Transformer, newFunc: o.NewFunc, watchStarted: o.WatchStarted,
		deletesCorrupt: utilfeature.DefaultFeatureGate.Enabled(features.AllowUnsafeMalformedObjectDeletion),
	}, nil
}

// coreGroup is what package storage calls the group that has no name.
const coreGroup = "core"

// tableOf returns the table that holds the paths with a prefix (rule K6). No two prefixes share one.
func tableOf(prefix string) (group, plural string, err error) {
	switch {
	case prefix == "":
		return "", "", errors.New("resourcePrefix cannot be empty")
	case prefix == "/":
		return "", "", errors.New("resourcePrefix cannot be /")
	case prefix[0] != '/':
		return "", "", errors.New("resourcePrefix needs to start from /")
	}
	trimmed := strings.TrimSuffix(prefix, "/")
	group, plural, two := strings.Cut(trimmed[1:], "/")
	switch {
	case path.Clean(trimmed) != trimmed:
		return "", "", fmt.Errorf("compat: resourcePrefix %q has empty parts or dots: leave them out", prefix)
	case !two:
		return "", group, nil
	case strings.Contains(plural, "/"):
		return "", "", fmt.Errorf("compat: resourcePrefix %q has more than two parts: name a group and a resource, or a resource", prefix)
	case group == coreGroup:
		return "", "", fmt.Errorf("compat: resourcePrefix %q would share its keys with %q: call it something else", prefix, "/"+plural)
	}
	return group, plural, nil
}

// Versioner implements storage.Interface.
func (s *Store) Versioner() apistorage.Versioner { return s.versioner }

// ReadinessCheck implements storage.Interface: a store is ready as long as its engine takes writes.
func (s *Store) ReadinessCheck() error {
	if err := s.engine.Err(); err != nil {
		return fmt.Errorf("storage of %s takes no writes: %w", s.resource, err)
	}
	return nil
}

// GetCurrentResourceVersion implements storage.Interface (rule K122).
func (s *Store) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	snap, err := s.engine.Read(ctx, kv.Latest)
	if err != nil {
		return 0, s.fault("get", "", err)
	}
	return uint64(snap.Revision()), nil
}

// beginning is the revision of an engine that has never been written: nothing was before it.
const beginning kv.Revision = 1

// CompactRevision implements storage.Interface: what was before the revision is forgotten (rule
// K120). It rises when the engine forgets history by itself, too.
func (s *Store) CompactRevision() int64 {
	if oldest, _ := s.engine.Revisions(); oldest > beginning {
		return int64(oldest)
	}
	return 0
}

// EnableResourceSizeEstimation implements storage.Interface (rule K121). The sizes of values are
// known without asking for keys.
func (s *Store) EnableResourceSizeEstimation(getKeys apistorage.KeysFunc) error {
	if getKeys == nil {
		return errors.New("KeysFunc cannot be nil")
	}
	if !s.sizes.CompareAndSwap(false, true) {
		return errors.New("resourceSizeEstimator already enabled")
	}
	return nil
}

// Stats implements storage.Interface.
func (s *Store) Stats(ctx context.Context) (apistorage.Stats, error) {
	page, err := s.table.List(ctx, storage.ListOptions{From: storage.AtHand{}})
	if err != nil {
		return apistorage.Stats{}, s.fault("list", "", err)
	}
	stats := apistorage.Stats{ObjectCount: int64(len(page.Items))}
	if !s.sizes.Load() || stats.ObjectCount == 0 {
		return stats, nil
	}
	var bytes int64
	for _, v := range page.Items {
		bytes += int64(len(v.Value()))
	}
	stats.EstimatedAverageObjectSizeBytes = bytes / stats.ObjectCount
	return stats, nil
}
