package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Of what is missing, and may not be created, nobody is asked anything (rule S44).
func TestAMissingObjectAsksNobody(t *testing.T) {
	s := newStand(t, namespaced)
	desire := func(context.Context, runtime.Object) (runtime.Object, error) {
		t.Error("asked for what should be there")
		return thing("a"), nil
	}
	_, err := s.Update(t.Context(), "ns", "a", desire, UpdateOptions{UID: "x"})
	if told(t, err, `404 NotFound: configmaps "a" not found`); len(s.said) > 0 {
		t.Errorf("asked %q", s.said)
	}
	_, err = s.Update(t.Context(), "", "a", desire, UpdateOptions{})
	told(t, err, "400 BadRequest: Namespace parameter required.") // the key comes before all
}

// A precondition is judged by each attempt, on the object that is there then (rules S45, S83).
func TestAPreconditionIsJudgedByEachAttempt(t *testing.T) {
	lax := Policy{Namespaced: true, UnconditionalUpdate: true}
	again := func(s *stand) { // another takes its place
		s.changed("a", func(cm *corev1.ConfigMap) { cm.UID, cm.Data["is"] = "another", "another" })
	}
	s := newStand(t, lax)
	s.made(thing("a", "is=old"))
	s.strategy.during = func(step string) {
		if step == "validate" {
			s.strategy.during = nil
			again(s)
		}
	}
	_, err := s.Update(t.Context(), "ns", "a", Exactly(thing("a", "is=mine")), UpdateOptions{UID: "uid-1"})
	told(t, err, `409 Conflict: Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/configmaps/ns/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: uid-1, UID in object meta: another`)
	if got := s.stored("a"); got.Data["is"] != "another" {
		t.Errorf("stored is %v", got)
	}

	for what, p := range map[string]func(*corev1.ConfigMap) metav1.Preconditions{
		"(uid-1) does not match the UID in record (another). The object might have been deleted and then recreated": func(cm *corev1.ConfigMap) metav1.Preconditions {
			return metav1.Preconditions{UID: &cm.UID}
		},
		"does not match the ResourceVersion in record": func(cm *corev1.ConfigMap) metav1.Preconditions {
			return metav1.Preconditions{ResourceVersion: &cm.ResourceVersion}
		},
	} {
		s = newStand(t, lax)
		there := s.made(thing("a"))
		s.Store.strategy = &preparing{strategy: s.strategy, do: func() { again(s) }}
		conditions := p(there)
		_, err = s.Delete(t.Context(), "ns", "a", &metav1.DeleteOptions{Preconditions: &conditions})
		if err == nil || !strings.Contains(err.Error(), what) || s.stored("a") == nil {
			t.Errorf("told %v, stored %v; want that it %s", err, s.stored("a"), what)
		}
	}
}

// What has no metadata is no object, whichever way it comes (rule S51).
func TestWhatHasNoMetadataIsNoObject(t *testing.T) {
	const want = "raw: object does not implement the Object interfaces"
	s := newStand(t, Policy{Namespaced: true, CreateOnUpdate: true, UnconditionalUpdate: true})
	s.made(thing("a"))
	was := s.revision()
	_, err := s.Create(t.Context(), "ns", &metav1.Status{}, CreateOptions{})
	told(t, err, want)
	for _, name := range []string{"a", "b"} {
		_, err = s.Update(t.Context(), "ns", name, Exactly(&metav1.Status{}), UpdateOptions{})
		told(t, err, want)
	}
	if s.hooked() != "" || s.revision() != was {
		t.Errorf("the hook was told %s, or something was stored", s.hooked())
	}
}

// An update that creates fails as a create, and one that does not as an update (rule S46e).
func TestAnErrorTellsWhatWasTried(t *testing.T) {
	for _, verb := range []Verb{Create, Update} {
		s := newStand(t, Policy{Namespaced: true, CreateOnUpdate: true, UnconditionalUpdate: true})
		if verb == Update {
			s.made(thing("a", "is=old"))
		}
		s.engine.fail = readOnly
		_, err := s.Update(t.Context(), "ns", "a", Exactly(thing("a", "is=new")), UpdateOptions{})
		told(t, err, fmt.Sprintf("500 ServerTimeout: The %s operation against configmaps could not be completed at this time, please try again. …", verb))
	}
}

// What is desired is computed from a copy each time: what the attempt before did to it is not there
// any more, nor what a desire did that then failed (rule S47).
func TestEachAttemptHasACurrentOfItsOwn(t *testing.T) {
	s := newStand(t, namespaced)
	s.made(thing("a", "is=old"))
	s.strategy.during = func(step string) {
		if step == "validate" {
			s.strategy.during = nil
			s.changed("a", func(cm *corev1.ConfigMap) { cm.Data["is"] = "theirs" })
		}
	}
	attempts := 0
	did, err := s.Update(t.Context(), "ns", "a", func(_ context.Context, current runtime.Object) (runtime.Object, error) {
		attempts++
		cm := current.(*corev1.ConfigMap)
		if cm.Data["tries"] != "" {
			t.Errorf("an attempt sees what another did: %v", cm.Data)
		}
		cm.Data["tries"] = fmt.Sprint(attempts)
		return cm, nil
	}, UpdateOptions{})
	if err != nil || attempts != 2 || read(t, did.Version).Data["is"] != "theirs" || read(t, did.Version).Data["tries"] != "2" {
		t.Errorf("%v after %d attempts: %v", err, attempts, did.Version)
	}
	was, no := s.revision(), errors.New("no")
	_, err = s.Update(t.Context(), "ns", "a", func(_ context.Context, current runtime.Object) (runtime.Object, error) {
		current.(*corev1.ConfigMap).Data["is"] = "lost"
		return nil, no
	}, UpdateOptions{})
	if !errors.Is(err, no) || s.revision() != was || s.stored("a").Data["is"] != "theirs" {
		t.Errorf("%v, stored %v", err, s.stored("a"))
	}
}

// A store without a namespace takes no notice of one, whoever names it (rule S19).
func TestWhatHasNoNamespaceIsFoundUnderAny(t *testing.T) {
	s := newStand(t, Policy{})
	if _, err := s.Create(t.Context(), "ns", thing("a", "is=old"), CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, ns := range []string{"", "ns", "other"} {
		v, err := s.Get(t.Context(), ns, "a", "")
		if err != nil || v.Namespace() != "" || v.Key() != "default/core/configmaps/a" {
			t.Errorf("from %q: %v, %v", ns, v, err)
		}
	}
	if did, err := s.Delete(t.Context(), "other", "a", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: at(types.UID("uid-1"))}}); err != nil || !did.Removed {
		t.Errorf("%+v, %v", did, err)
	}
}

// A context that has ended is a request that timed out, whatever it was to do (rules S22, S118).
func TestAnEndedContextIsATimeout(t *testing.T) {
	s := newStand(t, namespaced)
	old := s.made(thing("a", "is=old"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, create := s.Create(ctx, "ns", thing("b"), CreateOptions{})
	_, update := s.Update(ctx, "ns", "a", Exactly(with(old, func(cm *corev1.ConfigMap) { cm.Data["is"] = "new" })), UpdateOptions{})
	_, remove := s.Delete(ctx, "ns", "a", nil)
	for _, err := range []error{create, update, remove} {
		told(t, err, "504 Timeout: Timeout: request did not complete within the allotted timeout")
	}
	if s.stored("a").Data["is"] != "old" || s.stored("b") != nil {
		t.Error("something was stored")
	}
}
