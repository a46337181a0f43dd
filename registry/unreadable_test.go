//lint:file-ignore SA1019 clients still send selfLink

package registry

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// rot puts what cannot be read in the place of an object.
func (s *stand) rot(name string) {
	s.Helper()
	if _, err := s.engine.Commit(s.Context(), rotten(s.Table().Key("ns", name))); err != nil {
		s.Fatal(err)
	}
}

// spoil replaces a part of what is stored of an object.
func (s *stand) spoil(name, part, by string) {
	s.Helper()
	snap, err := s.engine.Read(s.Context(), kv.Latest)
	if err != nil {
		s.Fatal(err)
	}
	v := snap.Get(s.Table().Key("ns", name))
	if n := bytes.Count(v.Value, []byte(part)); n != 1 {
		s.Fatalf("%q is there %d times", part, n)
	}
	spoiled := bytes.Replace(v.Value, []byte(part), []byte(by), 1)
	if _, err := s.engine.Commit(s.Context(), kv.Txn{Ops: []kv.Op{kv.Put(v.Key, spoiled)}}); err != nil {
		s.Fatal(err)
	}
}

func ignoring(change ...func(*metav1.DeleteOptions)) *metav1.DeleteOptions {
	o := &metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: at(true)}
	for _, f := range change {
		f(o)
	}
	return o
}

// What cannot be read is neither changed nor deleted, except by who says that they know (rules
// K38, K43).
func TestWhatCannotBeReadIsHandledWithCare(t *testing.T) {
	const corrupt = "500 InternalError: Internal error occurred: storage: corrupt object: ns/a: not an object in an envelope of format 1"
	const readable = `409 Conflict: Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/configmaps/ns/a, ResourceVersion: 0, AdditionalErrorMsg: unsafe deletion is not allowed because the object is decodable from storage`
	rot := func(s *stand) { s.rot("a") }
	sound := func(s *stand) { s.made(thing("a")) }
	del := func(o *metav1.DeleteOptions) func(*stand) error {
		return func(s *stand) error {
			did, err := s.Delete(s.Context(), "ns", "a", o)
			if err == nil && (!did.Removed || did.Object != nil) {
				s.Errorf("told %+v, want that it went and nothing of it", did)
			}
			return err
		}
	}
	for _, c := range []struct {
		name   string
		before func(*stand)
		do     func(*stand) error
		want   string
		stays  bool
	}{
		{"an update is refused", rot, func(s *stand) error {
			_, err := s.Update(s.Context(), "ns", "a", Exactly(thing("a")), UpdateOptions{})
			return err
		}, corrupt, true},
		{"an update that needs no version is refused too", rot, func(s *stand) error {
			lax := Must(func() Config {
				c := s.config
				c.Strategy = Default{Policies: Policy{Namespaced: true, UnconditionalUpdate: true}}
				return c
			}())
			_, err := lax.Update(s.Context(), "ns", "a", Exactly(thing("a")), UpdateOptions{})
			return err
		}, corrupt, true},
		{"a create finds the name taken", rot, func(s *stand) error {
			_, err := s.Create(s.Context(), "ns", thing("a"), CreateOptions{})
			return err
		}, `409 AlreadyExists: configmaps "a" already exists`, true},
		{"a delete is refused", rot, func(s *stand) error { _, err := s.Delete(s.Context(), "ns", "a", nil); return err }, corrupt, true},
		{"a delete that ignores what cannot be read takes it away", rot, del(ignoring()), "", false},
		{"a dry run of that leaves it", rot, del(ignoring(func(o *metav1.DeleteOptions) { o.DryRun = []string{"All"} })), "", true},
		{"the same of what can be read is refused", sound, del(ignoring()), readable, true},
		{"a dry run of that is refused, too", sound, del(ignoring(func(o *metav1.DeleteOptions) { o.DryRun = []string{"All"} })), readable, true},
		{"the same of what is not there", func(*stand) {}, del(ignoring()), `404 NotFound: configmaps "a" not found`, false},
		{"a dry run of that is no other", func(*stand) {}, del(ignoring(func(o *metav1.DeleteOptions) { o.DryRun = []string{"All"} })), `404 NotFound: configmaps "a" not found`, false},
		{"with options that mean nothing there", rot, del(ignoring(func(o *metav1.DeleteOptions) { o.GracePeriodSeconds = at(int64(1)) })),
			`422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .gracePeriodSeconds`, true},
		{"with a policy, which means nothing there (S111)", rot, del(ignoring(func(o *metav1.DeleteOptions) { o.PropagationPolicy = at(metav1.DeletePropagationBackground) })),
			`422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .propagationPolicy`, true},
		{"with the old option, which means nothing there (S111)", rot, del(ignoring(func(o *metav1.DeleteOptions) { o.OrphanDependents = at(false) })),
			`422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .orphanDependents`, true},
		{"with preconditions, which means nothing there (S111)", rot, del(ignoring(func(o *metav1.DeleteOptions) { o.Preconditions = &metav1.Preconditions{} })),
			`422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: cannot be set together with .preconditions`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, namespaced)
			c.before(s)
			was := s.revision()
			told(t, c.do(s), c.want)
			if s.hooked() != "" && c.want != `409 AlreadyExists: configmaps "a" already exists` {
				t.Errorf("the hook was told %s", s.hooked())
			}
			snap, err := s.engine.Read(t.Context(), kv.Latest)
			if err != nil {
				t.Fatal(err)
			}
			if there := snap.Get(s.Table().Key("ns", "a")) != nil; there != c.stays {
				t.Errorf("it is there: %v", there)
			}
			if c.stays && s.revision() != was {
				t.Error("something was stored")
			}
		})
	}
	t.Run("one that becomes readable in between stays (K43)", func(t *testing.T) {
		s := newStand(t, namespaced)
		s.rot("a")
		s.lag()
		made, err := s.Table().Modify(t.Context(), "ns", "a", false, func(context.Context, storage.Version, *storage.View) (storage.Verdict, error) {
			return storage.Verdict{Action: storage.Put, Object: thing("a", "is=sound")}, nil
		})
		if err != nil || !made.Wrote {
			t.Fatal(made, err)
		}
		_, err = s.Delete(t.Context(), "ns", "a", ignoring())
		told(t, err, readable)
	})
	t.Run("one of which all but the metadata is spoiled goes (K43)", func(t *testing.T) {
		s := newStand(t, namespaced)
		s.made(with(thing("a", "is=sound"), func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"x.y/a"} })) // which holds nothing (S108)
		s.spoil("a", `"sound"`, `["sound"]`)
		if _, err := s.Delete(t.Context(), "ns", "a", nil); err == nil {
			t.Error("it can be read")
		}
		did, err := s.Delete(t.Context(), "ns", "a", ignoring())
		if err != nil || !did.Removed || did.Object != nil {
			t.Errorf("told %+v, %v; want that it went and nothing of it", did, err)
		}
		if now := s.stored("a"); now != nil {
			t.Errorf("stored is %v", now)
		}
	})
}

func TestAListNamesWhatCannotBeRead(t *testing.T) {
	s := newStand(t, namespaced)
	s.rot("a")
	s.rot("b")
	page, err := s.List(t.Context(), ListOptions{Namespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	err = s.ListError(page.Unreadable())
	told(t, err, "500 StorageReadError: failed to read one or more configmaps from the storage: storage: corrupt object: ns/a: not an object in an envelope of format 1 (and 1 more)")
	details := func(err error) (text []string) {
		var status apierrors.APIStatus
		if !errors.As(err, &status) || status.Status().Details == nil {
			t.Fatalf("no details in %v", err)
		}
		d := status.Status().Details
		for _, c := range d.Causes {
			text = append(text, d.Name+" "+string(c.Type)+" "+c.Field)
		}
		return text
	}
	if got, want := strings.Join(details(err), ", "), "list UnexpectedServerResponse ns/a, list UnexpectedServerResponse ns/b"; got != want {
		t.Errorf("causes are %s, want %s (K63)", got, want)
	}

	many := &storage.Error{Kind: storage.Corrupt, Name: "a"}
	for range 100 {
		many.Unreadable = append(many.Unreadable, many)
	}
	causes := details(s.ListError(many))
	if len(causes) != 101 || causes[100] != "list FieldValueTooMany " {
		t.Errorf("%d causes, the last %s (K63)", len(causes), causes[len(causes)-1])
	}
	causes = details(s.ListError(&storage.Error{Kind: storage.Corrupt, Unreadable: many.Unreadable[:1], Aborted: errors.New("gone home")}))
	if len(causes) != 2 || causes[1] != "list UnexpectedServerResponse " {
		t.Errorf("causes are %q (K63)", causes)
	}
}

func TestAListThatTakesTooLong(t *testing.T) {
	s := newStand(t, namespaced)
	var txn kv.Txn
	for i := range kv.MaxTxnOps {
		txn.Ops = append(txn.Ops, kv.Put(s.Table().Key("ns", "a"+strings.Repeat("a", i%60)+string(rune('a'+i%26))+strings.Repeat("b", i/60)), []byte("x")))
	}
	if _, err := s.engine.Commit(t.Context(), txn); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.List(ctx, ListOptions{})
	told(t, err, "504 Timeout: Timeout: request did not complete within the allotted timeout") // rule K64
}

// A list that goes on is not narrowed to an object that its selector pins (rules K51, K73).
func TestAListThatGoesOnIsNotNarrowed(t *testing.T) {
	s := newStand(t, namespaced)
	for _, name := range []string{"a", "b", "c"} {
		s.made(thing(name))
	}
	sel := picking(t, "metadata.name=b")
	for token, want := range map[string]string{"a": "b", "b": "b", "c": ""} {
		page, err := s.List(t.Context(), ListOptions{Namespace: "ns", From: storage.ContinueLatest{Start: token}, Selector: sel})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, v := range page.Items {
			got += v.Name()
		}
		if got != want {
			t.Errorf("from %s on: %q, want %q", token, got, want)
		}
	}
}

// Of two preconditions the identity comes first, and versions are compared as they are written
// (rule K17).
func TestPreconditionsOfADelete(t *testing.T) {
	s := newStand(t, namespaced)
	now := s.made(thing("a"))
	uid := func(u types.UID) *types.UID { return &u }
	for _, c := range []struct {
		name string
		p    metav1.Preconditions
		want string
	}{
		{"both are wrong", metav1.Preconditions{UID: uid("x"), ResourceVersion: at("1")}, `409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (x)…`},
		{"the version is wrong", metav1.Preconditions{UID: uid(now.UID), ResourceVersion: at("1")}, `409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1)…`},
		{"the version is the same number in other digits", metav1.Preconditions{ResourceVersion: at("0" + now.ResourceVersion)}, `409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (0…`},
		{"nothing is asked", metav1.Preconditions{}, ""},
	} {
		_, err := s.Delete(t.Context(), "ns", "a", &metav1.DeleteOptions{Preconditions: &c.p, DryRun: []string{"All"}})
		if told(t, err, c.want); t.Failed() {
			t.Errorf("when %s", c.name)
		}
	}
}

// Neither the version nor a selfLink is stored, whatever is sent (rule K7).
func TestWhatIsNeverStored(t *testing.T) {
	s := newStand(t, namespaced)
	created, err := s.Create(t.Context(), "ns", with(thing("a"), func(cm *corev1.ConfigMap) { cm.SelfLink = "/a" }), CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	updated, err := s.Update(t.Context(), "ns", "a", Exactly(with(read(t, created), func(cm *corev1.ConfigMap) {
		cm.SelfLink, cm.Data["is"] = "/b", "new"
	})), UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []storage.Version{created, updated.Version} {
		for _, word := range []string{"resourceVersion", "selfLink"} {
			if strings.Contains(string(v.Value()), word) {
				t.Errorf("stored is a %s: %s", word, v.Value())
			}
		}
	}
}
