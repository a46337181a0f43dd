package compat

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	apistorage "k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// A Classifier is a transformer that can tell values that are damaged from failures of its own,
// as of a key service that does not answer. Every error of any other transformer is taken to mean that
// the value is damaged, and so that its object may be deleted by whoever insists on it.
type Classifier interface {
	value.Transformer
	// Corrupt reports whether err, which TransformFromStorage returned, is the value's fault.
	Corrupt(err error) bool
}

// encode returns what the codec makes of obj, which loses its resourceVersion and selfLink (rule
// K7).
func (s *Store) encode(obj runtime.Object) ([]byte, error) {
	if err := s.versioner.PrepareObjectForStorage(obj); err != nil {
		return nil, fmt.Errorf("PrepareObjectForStorage failed: %v", err)
	}
	return runtime.Encode(s.codec, obj)
}

// seal returns what is stored in place of what the codec made. The path is bound to it, so that
// an encrypted value read at another path is noticed.
func (s *Store) seal(ctx context.Context, path string, data []byte) ([]byte, error) {
	if s.transformer == nil {
		return data, nil
	}
	sealed, err := s.transformer.TransformToStorage(ctx, data, value.DefaultContext(path))
	if err != nil {
		return nil, apistorage.NewInternalError(err)
	}
	return sealed, nil
}

// open is the inverse of seal. A stale value should be sealed anew even if nothing else changes.
func (s *Store) open(ctx context.Context, v storage.Version) (data []byte, stale bool, err error) {
	if s.transformer == nil {
		return v.Value(), false, nil
	}
	path := s.pathOf(v.Key())
	data, stale, err = s.transformer.TransformFromStorage(ctx, v.Value(), value.DefaultContext(path))
	if err != nil {
		c, can := s.transformer.(Classifier)
		return nil, false, &unreadable{path: path, revision: v.Revision(), sealed: true, corrupt: !can || c.Corrupt(err), err: err}
	}
	return data, stale, nil
}

// decode returns the object that v holds, in the form of into.
func (s *Store) decode(ctx context.Context, v storage.Version, into runtime.Object) (runtime.Object, error) {
	data, _, err := s.open(ctx, v)
	if err != nil {
		return nil, err
	}
	return s.decodeData(data, v, into)
}

// decodeData does what decode does for a value that has been opened.
func (s *Store) decodeData(data []byte, v storage.Version, into runtime.Object) (runtime.Object, error) {
	obj, err := s.decodeAt(data, v.Revision(), into)
	if err != nil {
		return nil, &unreadable{path: s.pathOf(v.Key()), revision: v.Revision(), corrupt: true, err: err}
	}
	return obj, nil
}

// decodeAt decodes data, and gives the object its resourceVersion.
func (s *Store) decodeAt(data []byte, rev kv.Revision, into runtime.Object) (runtime.Object, error) {
	obj, _, err := s.codec.Decode(data, nil, into)
	if err != nil {
		return nil, err
	}
	return obj, s.versioner.UpdateObject(obj, uint64(rev))
}
