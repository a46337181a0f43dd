package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/local"
	"github.com/pawl-dev/pawl/storage"
)

// The resource of these tests is a config map whose data are its spec and whose binaryData
// are its status.

type configMap = corev1.ConfigMap

type codec struct{}

func (codec) Encode(obj runtime.Object) ([]byte, storage.Fingerprint, error) {
	cm := obj.DeepCopyObject().(*corev1.ConfigMap)
	cm.APIVersion, cm.Kind = "v1", "ConfigMap"
	data, err := json.Marshal(cm)
	return data, 1, err
}

func (codec) Decode(data []byte) (runtime.Object, error) {
	cm := &corev1.ConfigMap{}
	return cm, json.Unmarshal(data, cm)
}

func (codec) Fingerprint() storage.Fingerprint { return 1 }

// A strategy writes down what it is asked, and answers as it is told.
type strategy struct {
	Default
	status bool
	said   *[]string

	during   func(step string) // runs within each step
	findings field.ErrorList
	held     bool
}

func (s *strategy) step(name string) {
	*s.said = append(*s.said, name)
	if s.during != nil {
		s.during(name)
	}
}

func (s *strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	s.step("prepare")
	obj.(*corev1.ConfigMap).BinaryData = nil
}

func (s *strategy) Validate(context.Context, runtime.Object) field.ErrorList {
	s.step("validate")
	return s.findings
}

func (s *strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	s.step("prepare")
	now, was := obj.(*corev1.ConfigMap), old.(*corev1.ConfigMap)
	if s.status {
		now.Data = was.Data
		return
	}
	now.BinaryData = was.BinaryData
	if fmt.Sprint(now.Data) != fmt.Sprint(was.Data) {
		now.Generation++
	}
}

func (s *strategy) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	s.step("validate")
	return s.findings
}

func (s *strategy) Warnings(context.Context, runtime.Object, runtime.Object) []string {
	s.step("warn")
	return nil
}

func (s *strategy) Canonicalize(runtime.Object) { s.step("canonicalize") }

func (s *strategy) Holds(runtime.Object) bool { return s.held }

// A stand is a store with everything around it in the test's hands.
type stand struct {
	*Store
	*testing.T
	config   Config
	statusOf *Store
	strategy *strategy
	engine   *laggard
	clock    *kvtest.Clock
	said     []string // by the strategy and the hook, in order
	suffixes []string // to be given out
	uids     int
	hookErr  error
	attempts int // that the hook has been told of

	hooking sync.Mutex // a collection is deleted by several at once, who tell the hook
}

// A laggard is an engine of which what is at hand can be made to stay as it is.
type laggard struct {
	kv.Engine
	mu     sync.Mutex
	atHand kv.Snapshot
	fail   error
}

func (l *laggard) Read(ctx context.Context, at kv.Freshness) (kv.Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at == kv.Any && l.atHand != nil {
		return l.atHand, nil
	}
	return l.Engine.Read(ctx, at)
}

func (l *laggard) Commit(ctx context.Context, txn kv.Txn) (kv.Committed, error) {
	if l.fail != nil {
		return kv.Committed{}, l.fail
	}
	return l.Engine.Commit(ctx, txn)
}

func (s *stand) lag() {
	s.Helper()
	snap, err := s.engine.Engine.Read(context.Background(), kv.Latest)
	if err != nil {
		s.Fatal(err)
	}
	s.engine.atHand = snap
}

func newStand(t *testing.T, policy Policy, change ...func(*Config)) *stand {
	t.Helper()
	s := &stand{T: t, clock: kvtest.NewClock()}
	engine, err := local.Open(context.Background(), local.Options{Memory: true, Clock: s.clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	s.engine = &laggard{Engine: engine}
	s.strategy = &strategy{Default: Default{Policies: policy}, said: &s.said}
	s.config = Config{
		Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: schema.GroupResource{Resource: "configmaps"},
		Table: storage.NewTable(storage.Options{
			Engine: s.engine, Resource: "configmaps", Namespaced: policy.Namespaced, Codec: codec{},
		}),
		Strategy: s.strategy, Hooks: []Hook{s}, Clock: passive{s.clock}, NewUID: s.uid, Suffix: s.suffix,
	}
	for _, f := range change {
		f(&s.config)
	}
	s.Store = Must(s.config)
	keep := policy
	keep.KeepMetadata = true
	status := s.config
	status.Strategy = &strategy{Default: Default{Policies: keep}, status: true, said: &s.said}
	s.statusOf = Must(status)
	return s
}

type passive struct{ *kvtest.Clock }

func (p passive) Since(t time.Time) time.Duration { return p.Now().Sub(t) }

func (s *stand) uid() types.UID {
	s.uids++
	return types.UID(fmt.Sprintf("uid-%d", s.uids))
}

func (s *stand) suffix() string {
	if len(s.suffixes) == 0 {
		s.Fatal("no more suffixes")
	}
	next := s.suffixes[0]
	s.suffixes = s.suffixes[1:]
	return next
}

// Begin makes the stand a hook.
func (s *stand) Begin(_ context.Context, verb Verb, obj, old runtime.Object, _ bool) (func(context.Context, Ending), error) {
	if s.hookErr != nil {
		return nil, s.hookErr
	}
	s.hooking.Lock()
	defer s.hooking.Unlock()
	s.attempts++
	n := s.attempts
	s.said = append(s.said, fmt.Sprintf("begin %d: %s", n, verb))
	return func(_ context.Context, how Ending) {
		word := [...]string{"refused", "written", "unchanged", "removed", "uncertain"}[how.Outcome]
		if how.Object != nil {
			word += " " + how.Object.GetName()
		}
		s.hooking.Lock()
		defer s.hooking.Unlock()
		s.said = append(s.said, fmt.Sprintf("end %d: %s", n, word))
	}, nil
}

// hooked returns what the hook was told.
func (s *stand) hooked() string {
	var out []string
	for _, w := range s.said {
		if strings.Contains(w, ": ") {
			out = append(out, w)
		}
	}
	return strings.Join(out, ", ")
}

var namespaced = Policy{Namespaced: true}

func thing(name string, pairs ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{}}
	for _, p := range pairs {
		k, v, _ := strings.Cut(p, "=")
		cm.Data[k] = v
	}
	return cm
}

// with changes an object in place.
func with(cm *corev1.ConfigMap, f func(*corev1.ConfigMap)) *corev1.ConfigMap {
	f(cm)
	return cm
}

func read(t testing.TB, v storage.Version) *corev1.ConfigMap {
	t.Helper()
	obj, err := v.Object()
	if err != nil {
		t.Fatal(err)
	}
	cm := obj.(*corev1.ConfigMap)
	if cm.Data == nil {
		cm.Data = map[string]string{}
	}
	return cm
}

// made creates an object and forgets what was said about it.
func (s *stand) made(cm *corev1.ConfigMap) *corev1.ConfigMap {
	s.Helper()
	v, err := s.Create(s.Context(), "ns", cm, CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	s.said, s.attempts = nil, 0
	return read(s, v)
}

// changed changes an object behind everybody's back: no hook, no strategy.
func (s *stand) changed(name string, f func(*corev1.ConfigMap)) *corev1.ConfigMap {
	s.Helper()
	res, err := s.Table().Modify(s.Context(), "ns", name, false, func(_ context.Context, v storage.Version, _ *storage.View) (storage.Verdict, error) {
		cm := with(read(s, v), f)
		cm.ResourceVersion = ""
		return storage.Verdict{Action: storage.Put, Object: cm}, nil
	})
	if err != nil {
		s.Fatal(err)
	}
	return read(s, res.Version)
}

// gone removes an object behind everybody's back.
func (s *stand) gone(name string) {
	s.Helper()
	_, err := s.Table().Modify(s.Context(), "ns", name, false, func(context.Context, storage.Version, *storage.View) (storage.Verdict, error) {
		return storage.Verdict{Action: storage.Remove}, nil
	})
	if err != nil {
		s.Fatal(err)
	}
}

// stored returns what is there now, nil if nothing is.
func (s *stand) stored(name string) *corev1.ConfigMap {
	s.Helper()
	v, err := s.Get(s.Context(), "ns", name, "")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.Fatal(err)
	}
	return read(s, v)
}

// revision returns the newest revision of the store: while it stays the same nothing was
// stored and no event sent.
func (s *stand) revision() kv.Revision {
	_, newest := s.engine.Revisions()
	return newest
}

// answer is what a client is told: "409 Conflict: message", "raw: message" for what is no
// status, "" for no error.
func answer(err error) string {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return ""
	case errors.As(err, &status):
		st := status.Status()
		return strings.TrimSpace(fmt.Sprintf("%d %s", st.Code, st.Reason)) + ": " + st.Message
	}
	return "raw: " + err.Error()
}

// told fails unless err is the answer wanted; one that ends in … is a beginning.
func told(t testing.TB, err error, want string) {
	t.Helper()
	got := answer(err)
	if begin, ok := strings.CutSuffix(want, "…"); ok && strings.HasPrefix(got, begin) {
		return
	}
	if got != want {
		t.Errorf("told  %s\nwant  %s", got, want)
	}
}
