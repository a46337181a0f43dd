package compat

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/apis/example"
	apistorage "k8s.io/apiserver/pkg/storage"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/util/flowcontrol"

	"github.com/pawl-dev/pawl/compat"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/etcd"
)

// sealPrefix is what the transformer of these tests puts before every value.
const sealPrefix = "test!"

// A subject is what the reference's tests test: a store whose transformer can be exchanged, and
// whose codec can be made to fail.
type subject struct {
	*compat.Store
	engine kv.Engine
	codec  *fallible
	seal   *exchange
}

func newSubject(t testing.TB, engine kv.Engine) *subject {
	t.Helper()
	s := &subject{engine: engine, codec: &fallible{Codec: exampleCodec(t)}, seal: &exchange{}}
	s.seal.set(storagetesting.NewPrefixTransformer([]byte(sealPrefix), false))
	store, err := compat.New(compat.Options{
		Engine: engine, ResourcePrefix: "/pods", Resource: schema.GroupResource{Resource: "pods"},
		Codec: s.codec, Transformer: s.seal, NewFunc: newPod, WatchStarted: flowcontrol.WatchInitialized,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Store = store
	return s
}

// The errors of values that are damaged. Every other error of a transformer is its own.
var (
	errFlipped   = errors.New("bits flipped")
	errSynthetic = errors.New("synthetic error")
)

// An exchange is a transformer that can be exchanged for another at any time, and can be made to
// fail.
type exchange struct {
	current atomic.Pointer[value.Transformer]
	failing atomic.Bool
}

var _ compat.Classifier = (*exchange)(nil)

func (x *exchange) get() value.Transformer  { return *x.current.Load() }
func (x *exchange) set(t value.Transformer) { x.current.Store(&t) }

func (x *exchange) TransformFromStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, bool, error) {
	if x.failing.Load() {
		return nil, false, errSynthetic
	}
	return x.get().TransformFromStorage(ctx, data, dataCtx)
}

func (x *exchange) TransformToStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, error) {
	return x.get().TransformToStorage(ctx, data, dataCtx)
}

func (x *exchange) Corrupt(err error) bool {
	return errors.Is(err, errFlipped) || errors.Is(err, errSynthetic)
}

// UpdateTransformer lets a test put its transformer in place of ours.
func (s *subject) UpdateTransformer(modify storagetesting.TransformerModifier) func() {
	was := s.seal.get()
	s.seal.set(modify(was))
	return func() { s.seal.set(was) }
}

// UpdatePrefixTransformer lets a test change a copy of our transformer.
func (s *subject) UpdatePrefixTransformer(modify storagetesting.PrefixTransformerModifier) func() {
	was := s.seal.get().(*storagetesting.PrefixTransformer)
	changed := *was
	s.seal.set(modify(&changed))
	return func() { s.seal.set(was) }
}

// A fallible codec can be made to fail.
type fallible struct {
	runtime.Codec
	failing atomic.Bool
}

func (c *fallible) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if c.failing.Load() {
		return nil, nil, errSynthetic
	}
	return c.Codec.Decode(data, defaults, into)
}

// singly returns store, which is s or something in front of it, with versions that count the writes to etcd one by one, as the
// reference's tests of lists do: on etcd a store's own leave room for several commits in one.
func (s *subject) singly(store apistorage.Interface) apistorage.Interface {
	if _, onEtcd := s.engine.(*etcd.Engine); !onEtcd {
		return store
	}
	return single{store}
}

// compactSingly is compact of such a version.
func (s *subject) compactSingly(ctx context.Context, t *testing.T, version string) {
	if _, onEtcd := s.engine.(*etcd.Engine); onEtcd {
		version = wide(version)
	}
	s.compact(ctx, t, version)
}

type single struct{ apistorage.Interface }

// wide is the version of a store on etcd that belongs to a number, and narrow the number of a version. What is no number,
// none, or far too large, is left alone.
func wide(number string) string {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 || n > 1<<50 {
		return number
	}
	return strconv.FormatInt((n+1)<<7-1, 10)
}

func narrow(version string) string {
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil || n <= 0 {
		return version
	}
	return strconv.FormatInt(n>>7, 10)
}

// retold returns a continue token with another version in it.
func retold(is, prefix string, renumber func(string) string) string {
	key, rev, err := apistorage.DecodeContinue(is, prefix)
	if err != nil || rev <= 0 {
		return is
	}
	n, err := strconv.ParseInt(renumber(strconv.FormatInt(rev, 10)), 10, 64)
	if err != nil {
		return is
	}
	if is, err = apistorage.EncodeContinue(key, prefix, n); err != nil {
		panic(err)
	}
	return is
}

// recount renumbers an object, or a list and its items.
func recount(obj runtime.Object, err error) error {
	if err != nil {
		return err
	}
	version := meta.NewAccessor()
	one := func(obj runtime.Object) error {
		is, err := version.ResourceVersion(obj)
		if err != nil {
			return err
		}
		return version.SetResourceVersion(obj, narrow(is))
	}
	if meta.IsListType(obj) {
		if err := meta.EachListItem(obj, one); err != nil {
			return err
		}
	}
	return one(obj)
}

func (c single) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	return recount(out, c.Interface.Create(ctx, key, obj, out, ttl))
}

func (c single) GuaranteedUpdate(ctx context.Context, key string, out runtime.Object, ignoreNotFound bool, pre *apistorage.Preconditions, update apistorage.UpdateFunc, cached runtime.Object) error {
	return recount(out, c.Interface.GuaranteedUpdate(ctx, key, out, ignoreNotFound, pre, update, cached))
}

func (c single) GetList(ctx context.Context, key string, opts apistorage.ListOptions, list runtime.Object) error {
	opts.ResourceVersion = wide(opts.ResourceVersion)
	opts.Predicate.Continue = retold(opts.Predicate.Continue, key, wide)
	if err := recount(list, c.Interface.GetList(ctx, key, opts, list)); err != nil {
		return err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	m.SetContinue(retold(m.GetContinue(), key, narrow))
	return nil
}

// raw returns what the engine holds under one of the reference's keys, nil if nothing.
func (s *subject) raw(t testing.TB, key string) []byte {
	t.Helper()
	snap, err := s.engine.Read(context.Background(), kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	v := snap.Get(compat.DefaultSpace + "/core" + key)
	if v == nil {
		return nil
	}
	return v.Value
}

// validate sees that what is stored names no version of itself (rule K7).
func (s *subject) validate(_ context.Context, t *testing.T, key string) {
	t.Helper()
	data, sealed := strings.CutPrefix(string(s.raw(t, key)), sealPrefix)
	if !sealed {
		t.Fatalf("%s holds %q", key, data)
	}
	obj, err := runtime.Decode(s.codec, []byte(data))
	if err != nil {
		t.Fatalf("%s holds %q: %v", key, data, err)
	}
	if pod := obj.(*example.Pod); pod.ResourceVersion != "" || pod.SelfLink != "" {
		t.Errorf("%s is stored with resourceVersion %q and selfLink %q", key, pod.ResourceVersion, pod.SelfLink)
	}
}

// counted sees that a list reads each object once.
func (s *subject) counted(t *testing.T, _, objects uint64) {
	t.Helper()
	if reads := s.seal.get().(*storagetesting.PrefixTransformer).GetReadsAndReset(); reads != objects {
		t.Errorf("%d values were read, want %d", reads, objects)
	}
}

// compact forgets what was before a version. A compactor of etcd makes one write of its own, and
// the reference's tests count on that. On etcd so does pawl, but shows it only to who asks for it.
func (s *subject) compact(ctx context.Context, t *testing.T, version string) {
	t.Helper()
	_, onEtcd := s.engine.(*etcd.Engine)
	if !onEtcd {
		s.advance(ctx, t)
	}
	rev, err := strconv.ParseUint(version, 10, 64)
	if err == nil {
		err = s.engine.(kv.Compactor).Compact(ctx, kv.Revision(rev))
	}
	if _, newest := s.engine.Revisions(); err == nil && onEtcd {
		_, err = s.engine.Read(ctx, kv.Exactly(newest+1<<7))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// advance writes something else, so that the revision of the whole store is larger by one.
func (s *subject) advance(ctx context.Context, t *testing.T) int64 {
	t.Helper()
	did, err := s.engine.Commit(ctx, kv.Txn{Ops: []kv.Op{kv.Put(compat.DefaultSpace+"/else/where/counter", []byte("on"))}})
	if err != nil {
		t.Fatal(err)
	}
	return int64(did.Revision)
}
