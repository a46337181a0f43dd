package compat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// modify asks judge about the object of a key, as [storage.Table.Modify] does. The write is by the
// user of the request that ctx belongs to, if it belongs to one.
func (s *Store) modify(ctx context.Context, verb, key string, p place, judge storage.Judge) (storage.Result, error) {
	if storage.AuthorFrom(ctx) == (kv.Author{}) {
		ctx = storage.WithAuthor(ctx, authorOf(ctx, verb))
	}
	res, err := s.table.Modify(ctx, p.namespace, p.name, false, judge)
	if err != nil {
		return res, s.fault(verb, key, err)
	}
	return res, nil
}

// authorOf says who writes, from what the server knows of the request.
func authorOf(ctx context.Context, verb string) kv.Author {
	author := kv.Author{Verb: verb}
	if user, ok := request.UserFrom(ctx); ok {
		author.User = user.GetName()
	}
	if info, ok := request.RequestInfoFrom(ctx); ok {
		author.Verb, author.Subresource = info.Verb, info.Subresource
	}
	return author
}

// Create implements storage.Interface (rules K24, K25).
func (s *Store) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	p, err := s.placeOf(key)
	if err != nil {
		return err
	}
	if rev, err := s.versioner.ObjectResourceVersion(obj); err == nil && rev != 0 {
		return apistorage.ErrResourceVersionSetOnCreate
	}
	data, err := s.encode(obj)
	if err != nil {
		return err
	}
	sealed, err := s.seal(ctx, key, data)
	if err != nil {
		return err
	}
	judge := func(_ context.Context, current storage.Version, _ *storage.View) (storage.Verdict, error) {
		if current.Exists() {
			return storage.Verdict{}, apistorage.NewKeyExistsError(key, 0)
		}
		return storage.Verdict{Action: storage.Put, Value: sealed, Expiry: expiryOf(&ttl)}, nil
	}
	res, err := s.modify(ctx, "create", key, p, judge)
	if err != nil || out == nil {
		return err
	}
	_, err = s.decodeAt(data, res.Version.Revision(), out)
	return err
}

// expiryOf says what a time to live in seconds means: nil keeps what there is, 0 is forever.
func expiryOf(ttl *uint64) kv.Expiry {
	switch {
	case ttl == nil:
		return kv.Expiry{Kind: kv.Keep}
	case *ttl == 0:
		return kv.Expiry{Kind: kv.Forever}
	}
	return kv.Expiry{Kind: kv.After, For: time.Duration(min(*ttl, math.MaxInt64/uint64(time.Second))) * time.Second}
}

// ttlOf is how many seconds a version has left, 0 if it stays forever.
func ttlOf(v storage.Version) int64 {
	if !v.Exists() || v.Expires().IsZero() {
		return 0
	}
	return int64(math.Ceil(time.Until(v.Expires()).Seconds()))
}

// An update is one call of GuaranteedUpdate.
type update struct {
	*Store
	key            string
	destination    runtime.Object
	ignoreNotFound bool
	preconditions  *apistorage.Preconditions
	try            apistorage.UpdateFunc

	data []byte // what the last judgement would have stored, before it is sealed
}

// GuaranteedUpdate implements storage.Interface (rules K26 to K36). It does not use the
// suggestion.
func (s *Store) GuaranteedUpdate(ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *apistorage.Preconditions, tryUpdate apistorage.UpdateFunc, _ runtime.Object) error {
	p, err := s.placeOf(key)
	if err != nil {
		return err
	}
	if err := settable(destination); err != nil {
		return err
	}
	u := &update{Store: s, key: key, destination: destination, ignoreNotFound: ignoreNotFound, preconditions: preconditions, try: tryUpdate}
	res, err := s.modify(ctx, "update", key, p, u.judge)
	if err != nil {
		return err
	}
	_, err = s.decodeAt(u.data, res.Version.Revision(), destination)
	return err
}

// settable reports what is wrong with an object that a result is to be put into (rule K16).
func settable(out runtime.Object) error {
	if _, err := conversion.EnforcePtr(out); err != nil {
		return fmt.Errorf("unable to convert output object to pointer: %v", err)
	}
	return nil
}

// judge computes the object that should exist, and leaves the one that does if that would be
// stored as the same bytes (rules K33, K35).
func (u *update) judge(ctx context.Context, current storage.Version, _ *storage.View) (storage.Verdict, error) {
	input, stored, stale, err := u.input(ctx, current)
	if err != nil {
		return storage.Verdict{}, err
	}
	if err := u.preconditions.Check(u.key, input); err != nil {
		return storage.Verdict{}, err
	}
	meta := apistorage.ResponseMeta{TTL: ttlOf(current), ResourceVersion: uint64(current.Revision())}
	output, ttl, err := u.try(input, meta)
	if err != nil {
		return storage.Verdict{}, err
	}
	if u.data, err = u.encode(output); err != nil {
		return storage.Verdict{}, err
	}
	if current.Exists() && !stale && bytes.Equal(u.data, stored) {
		return storage.Verdict{Action: storage.Leave}, nil
	}
	sealed, err := u.seal(ctx, u.key, u.data)
	return storage.Verdict{Action: storage.Put, Value: sealed, Expiry: expiryOf(ttl)}, err
}

// input is what the update function gets: the current object or, if that is allowed to be
// missing, an empty one (rule K31).
func (u *update) input(ctx context.Context, current storage.Version) (obj runtime.Object, stored []byte, stale bool, err error) {
	if !current.Exists() && !u.ignoreNotFound {
		return nil, nil, false, apistorage.NewKeyNotFoundError(u.key, 0)
	}
	empty := emptyLike(u.destination)
	if !current.Exists() {
		return empty, nil, false, nil
	}
	if stored, stale, err = u.open(ctx, current); err != nil {
		return nil, nil, false, err
	}
	obj, err = u.decodeData(stored, current, empty)
	return obj, stored, stale, err
}

// A removal is one call of Delete.
type removal struct {
	*Store
	key           string
	out           runtime.Object
	preconditions *apistorage.Preconditions
	validate      apistorage.ValidateObjectFunc
	unsafe        bool // only an object that cannot be read may be deleted

	data []byte // what the last judgement read
}

// Delete implements storage.Interface (rules K39 to K43). It does not use the suggestion.
func (s *Store) Delete(ctx context.Context, key string, out runtime.Object, preconditions *apistorage.Preconditions,
	validateDeletion apistorage.ValidateObjectFunc, _ runtime.Object, opts apistorage.DeleteOptions) error {
	p, err := s.placeOf(key)
	if err != nil {
		return err
	}
	if err := settable(out); err != nil {
		return err
	}
	r := &removal{Store: s, key: key, out: out, preconditions: preconditions, validate: validateDeletion,
		unsafe: s.deletesCorrupt && opts.ExpectTransformOrDecodeError}
	res, err := s.modify(ctx, "delete", key, p, r.judge)
	if err != nil || r.unsafe {
		return err
	}
	_, err = s.decodeAt(r.data, res.Version.Revision(), out)
	return err
}

// judge lets the object go if preconditions and the caller do.
func (r *removal) judge(ctx context.Context, current storage.Version, _ *storage.View) (storage.Verdict, error) {
	if !current.Exists() {
		return storage.Verdict{}, apistorage.NewKeyNotFoundError(r.key, 0)
	}
	obj, err := r.readable(ctx, current)
	if err != nil {
		return storage.Verdict{}, err
	}
	if err := r.preconditions.Check(r.key, obj); err != nil {
		return storage.Verdict{}, err
	}
	if err := r.validate(ctx, obj); err != nil {
		return storage.Verdict{}, err
	}
	return storage.Verdict{Action: storage.Remove}, nil
}

// readable reads the object. If only an unreadable one may be deleted, that it can be read is
// an error, and that it cannot is none: then there is no object.
func (r *removal) readable(ctx context.Context, current storage.Version) (obj runtime.Object, err error) {
	if r.data, _, err = r.open(ctx, current); err == nil {
		obj, err = r.decodeData(r.data, current, emptyLike(r.out))
	}
	var bad *unreadable
	switch {
	case !r.unsafe:
		return obj, err
	case err == nil:
		return nil, apistorage.NewInvalidObjError(r.key, "unsafe deletion is not allowed because the object is decodable from storage")
	case errors.As(err, &bad) && bad.corrupt:
		return nil, nil
	}
	return nil, err
}
