//lint:file-ignore SA1019 clients still send selfLink and orphanDependents

package registry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/kv"
)

const conflictAnswer = `409 Conflict: Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again`

func TestUpdateAnswers(t *testing.T) {
	lax := Policy{Namespaced: true, UnconditionalUpdate: true}
	creative := Policy{Namespaced: true, CreateOnUpdate: true}
	version := func(rv string) func(*corev1.ConfigMap) { return func(cm *corev1.ConfigMap) { cm.ResourceVersion = rv } }
	deleting := func(finalizers ...string) func(*stand) {
		return func(s *stand) {
			s.made(thing("a", "is=old"))
			s.changed("a", func(cm *corev1.ConfigMap) {
				now := metav1.NewTime(s.clock.Now().Truncate(time.Second))
				cm.DeletionTimestamp, cm.Finalizers = &now, finalizers
			})
		}
	}
	exists := func(s *stand) { s.made(thing("a", "is=old")) }
	for _, c := range []struct {
		name   string
		policy Policy
		before func(*stand)
		url    string
		sent   func(*corev1.ConfigMap) // from what is there, its version included; from nothing if nothing is
		o      UpdateOptions
		want   string
		steps  string // what was asked of hook and strategy
	}{
		{"nothing is there, and an update may not create (S44)", namespaced, nil, "a", nil, UpdateOptions{}, `404 NotFound: configmaps "a" not found`, ""},
		{"nothing is there, and that comes before a precondition (S44)", namespaced, nil, "a", nil, UpdateOptions{UID: "x"}, `404 NotFound: configmaps "a" not found`, ""},
		{"the URL has no name (S17)", namespaced, nil, "", nil, UpdateOptions{}, "400 BadRequest: Name parameter required.", ""},
		{"the URL has a name that leads elsewhere (S18)", namespaced, nil, "..", nil, UpdateOptions{}, `400 BadRequest: Name parameter invalid: "..": may not be '..'`, ""},
		{"another object is meant (S45)", namespaced, exists, "a", nil, UpdateOptions{UID: "x"},
			`409 Conflict: Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/configmaps/ns/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: x, UID in object meta: uid-1`, ""},
		{"that other object does not exist (S45a)", creative, nil, "a", nil, UpdateOptions{UID: "x"},
			`409 Conflict: Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/configmaps/ns/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: x, UID in object meta: `, ""},
		{"no version is named, and one must be (S49)", namespaced, exists, "a", version(""), UpdateOptions{},
			`422 Invalid: configmaps "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`, ""},
		{"version 0 is no version (S49)", namespaced, exists, "a", version("0"), UpdateOptions{},
			`422 Invalid: configmaps "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`, ""},
		{"another version is named (S50), and that comes before validation (S53)", namespaced, exists, "a", func(cm *corev1.ConfigMap) {
			cm.ResourceVersion, cm.Labels = "1", map[string]string{"-": ""}
		}, UpdateOptions{}, conflictAnswer, ""},
		{"another version is named, and leave to name none does not help (S50)", lax, exists, "a", version("1"), UpdateOptions{}, conflictAnswer, ""},
		{"versions are numbers (S50)", namespaced, exists, "a", func(cm *corev1.ConfigMap) { cm.ResourceVersion = "00" + cm.ResourceVersion }, UpdateOptions{}, "", "all"},
		{"a version that is no number (S51)", namespaced, exists, "a", version("x"), UpdateOptions{}, `raw: strconv.ParseUint: parsing "x": invalid syntax`, ""},
		{"another namespace (S59)", namespaced, exists, "a", func(cm *corev1.ConfigMap) { cm.Namespace = "other" }, UpdateOptions{},
			"400 BadRequest: the namespace of the provided object does not match the namespace sent on the request", "hook"},
		{"the name in the body is another (S58, S63)", namespaced, exists, "a", func(cm *corev1.ConfigMap) { cm.Name = "b" }, UpdateOptions{},
			`422 Invalid: ConfigMap "b" is invalid: metadata.name: Invalid value: "b": field is immutable`, "validated"},
		{"another uid in the body (S63)", namespaced, exists, "a", func(cm *corev1.ConfigMap) { cm.UID = "x" }, UpdateOptions{},
			`422 Invalid: ConfigMap "a" is invalid: metadata.uid: Invalid value: "x": field is immutable`, "validated"},
		{"a deletionTimestamp of the sender's (S63)", namespaced, exists, "a", func(cm *corev1.ConfigMap) {
			at := metav1.NewTime(time.Unix(0, 0).UTC())
			cm.DeletionTimestamp = &at
		}, UpdateOptions{}, `422 Invalid: ConfigMap "a" is invalid: metadata.deletionTimestamp: Invalid value: "1970-01-01T00:00:00Z": field is immutable`, "validated"},
		{"a grace period of the sender's (S63)", namespaced, exists, "a", func(cm *corev1.ConfigMap) { cm.DeletionGracePeriodSeconds = at(int64(5)) }, UpdateOptions{},
			`422 Invalid: ConfigMap "a" is invalid: metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable`, "validated"},
		{"another creationTimestamp and a lower generation are put right (S60, S61, S63)", namespaced, exists, "a", func(cm *corev1.ConfigMap) {
			cm.CreationTimestamp, cm.Generation = metav1.NewTime(time.Unix(5, 0)), -1
		}, UpdateOptions{}, "", "all"},
		{"a new finalizer on what is being deleted (S64)", namespaced, deleting("x.y/a"), "a", func(cm *corev1.ConfigMap) { cm.Finalizers = append(cm.Finalizers, "x.y/b") }, UpdateOptions{},
			`422 Invalid: ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"x.y/b"}`, "validated"},
		{"metadata come before the strategy's findings, shape before change (S62)", namespaced, func(s *stand) {
			exists(s)
			s.strategy.findings = field.ErrorList{field.Required(field.NewPath("data"), "say something")}
		}, "a", func(cm *corev1.ConfigMap) { cm.UID, cm.Finalizers = "x", []string{"orphan", "foregroundDeletion"} }, UpdateOptions{},
			`422 Invalid: ConfigMap "a" is invalid: [metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set, metadata.uid: Invalid value: "x": field is immutable, data: Required value: say something]`, "validated"},
		{"a name is not generated by an update (S46b)", creative, nil, "a", func(cm *corev1.ConfigMap) { cm.Name, cm.GenerateName = "", "g-" }, UpdateOptions{},
			"500 InternalError: Internal error occurred: metadata.name was not generated", ""},
		{"neither a name nor what to make one of (S46b)", creative, nil, "a", func(cm *corev1.ConfigMap) { cm.Name = "" }, UpdateOptions{},
			`422 Invalid: ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required`, "validated"},
		{"nothing is there, and the name in the body is another (S58)", creative, nil, "a", func(cm *corev1.ConfigMap) { cm.Name = "b" }, UpdateOptions{},
			`422 Invalid: ConfigMap "b" is invalid: metadata.name: Invalid value: "b": field is immutable`, ""},
		{"whoever may not create is told so (H208)", creative, nil, "a", nil, UpdateOptions{Authorize: func(context.Context) error { return errors.New("you may not create") }},
			"raw: you may not create", ""},
		{"the version is named", namespaced, exists, "a", nil, UpdateOptions{}, "", "all"},
		{"no version is named, and none need be (S48)", lax, exists, "a", version(""), UpdateOptions{}, "", "all"},
		{"nothing is there, and an update may create (S46)", creative, nil, "a", nil, UpdateOptions{}, "", "all"},
		{"nothing is there, and the caller lets it create (S44)", namespaced, nil, "a", nil, UpdateOptions{Create: true}, "", "all"},
		{"nothing is there, and the version named does not matter (S46a)", creative, nil, "a", version("41"), UpdateOptions{}, "", "all"},
		{"nothing is there, and the version named is no number (S51)", creative, nil, "a", version("x"), UpdateOptions{}, `raw: strconv.ParseUint: parsing "x": invalid syntax`, ""},
		{"an old finalizer may go while others stay (S64)", namespaced, deleting("x.y/a", "x.y/b"), "a", func(cm *corev1.ConfigMap) { cm.Finalizers = cm.Finalizers[1:] }, UpdateOptions{}, "", "all"},
	} {
		for _, dry := range []bool{false, true} {
			t.Run(c.name+map[bool]string{true: ", dry"}[dry], func(t *testing.T) {
				s := newStand(t, c.policy)
				if c.before != nil {
					c.before(s)
				}
				sent := thing("a", "is=new")
				if c.url == "a" {
					if now := s.stored("a"); now != nil {
						now.Data["is"] = "new"
						sent = now
					}
				}
				if c.sent != nil {
					c.sent(sent)
				}
				was := s.revision()
				o := c.o
				o.DryRun = dry
				got, err := s.Update(t.Context(), "ns", c.url, Exactly(sent), o)
				want := c.want
				if dry {
					want = strings.Replace(want, "Key: /registry/", "Key: /", 1) // rule K19
				}
				told(t, err, want)
				if err != nil && (got.Created || got.Removed != nil || got.Version.Exists()) {
					t.Errorf("beside the error there is %+v (S54)", got)
				}
				if (err != nil || dry) && s.revision() != was {
					t.Error("something was stored")
				}
				if err == nil && !dry && (s.stored("a").Data["is"] != "new" || s.stored("a").ResourceVersion != got.Version.Revision().String()) {
					t.Errorf("stored is %v, told was %v", s.stored("a"), got.Version.Revision())
				}
				steps := map[string]string{"": "", "hook": "begin 1", "validated": "begin 1, prepare, validate", "all": "begin 1, prepare, validate, warn, canonicalize"}[c.steps]
				if said := strings.Join(steps1(s.said), ", "); said != steps {
					t.Errorf("asked %q, want %q", said, steps)
				}
			})
		}
	}
}

// steps1 leaves out verbs and endings.
func steps1(said []string) []string {
	var out []string
	for _, w := range said {
		if w, _, _ = strings.Cut(w, ":"); !strings.HasPrefix(w, "end") {
			out = append(out, w)
		}
	}
	return out
}

func TestUpdateKeepsWhatASenderMayLeaveOut(t *testing.T) {
	s := newStand(t, namespaced)
	old := s.made(thing("a", "is=old"))
	old = s.changed("a", func(cm *corev1.ConfigMap) {
		now, grace := metav1.NewTime(s.clock.Now().Truncate(time.Second)), int64(0)
		cm.Generation, cm.DeletionTimestamp, cm.DeletionGracePeriodSeconds, cm.Finalizers = 3, &now, &grace, []string{"x.y/a"}
		cm.BinaryData = map[string][]byte{"status": []byte("good")}
	})
	sent := with(thing("a", "is=new"), func(cm *corev1.ConfigMap) {
		cm.ResourceVersion, cm.Generation, cm.Finalizers = old.ResourceVersion, 99, []string{"x.y/a"}
		cm.CreationTimestamp = metav1.NewTime(time.Unix(5, 0))
	})
	res, err := s.Update(t.Context(), "ns", "a", Exactly(sent), UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, res.Version)
	switch {
	case got.UID != old.UID:
		t.Errorf("uid %q, want the old one (S61)", got.UID)
	case !got.CreationTimestamp.Equal(&old.CreationTimestamp):
		t.Errorf("created %v, want what it was (S61)", got.CreationTimestamp)
	case got.DeletionTimestamp == nil || got.DeletionGracePeriodSeconds == nil:
		t.Error("it is no longer being deleted (S61)")
	case got.Generation != 4:
		t.Errorf("generation %d, want one more than it was: only the strategy raises it (S60)", got.Generation)
	case string(got.BinaryData["status"]) != "good":
		t.Error("the strategy did not put back the status")
	case res.Created || res.Removed != nil:
		t.Errorf("told %+v", res)
	}
}

func TestCreateOnUpdate(t *testing.T) {
	s := newStand(t, Policy{Namespaced: true, CreateOnUpdate: true})
	past := metav1.NewTime(time.Unix(0, 0))
	sent := with(thing("a", "is=new"), func(cm *corev1.ConfigMap) {
		cm.CreationTimestamp, cm.DeletionTimestamp, cm.ResourceVersion, cm.SelfLink = past, &past, "41", "/x"
	})
	res, err := s.Update(t.Context(), "ns", "a", Exactly(sent), UpdateOptions{})
	if err != nil || !res.Created {
		t.Fatal(res, err)
	}
	if got := read(t, res.Version); got.UID != "uid-1" || got.CreationTimestamp.Equal(&past) || got.DeletionTimestamp != nil || got.SelfLink != "" {
		t.Errorf("kept what only the server gives: %+v (S46)", got.ObjectMeta)
	}
	if s.hooked() != "begin 1: create, end 1: written a" {
		t.Errorf("the hook was told %s", s.hooked())
	}

	// The key appears while the create is on its way: it goes on as an update (S46d).
	s = newStand(t, Policy{Namespaced: true, CreateOnUpdate: true})
	other := Must(func() Config {
		c := s.config
		c.Hooks, c.Strategy = nil, Default{Policies: namespaced}
		return c
	}())
	once := true
	s.strategy.during = func(step string) {
		if step == "prepare" && once {
			once = false
			if _, err := other.Create(t.Context(), "ns", thing("a", "is=theirs"), CreateOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
	_, err = s.Update(t.Context(), "ns", "a", Exactly(thing("a", "is=new")), UpdateOptions{})
	told(t, err, `422 Invalid: configmaps "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`)
	if s.hooked() != "begin 1: create, end 1: refused" || s.stored("a").Data["is"] != "theirs" {
		t.Errorf("the hook was told %s, stored is %v", s.hooked(), s.stored("a"))
	}
}

func TestANoOpWritesNothing(t *testing.T) {
	s := newStand(t, namespaced)
	old := s.made(thing("a", "is=old"))
	was := s.revision()
	res, err := s.Update(t.Context(), "ns", "a", Exactly(old), UpdateOptions{})
	if err != nil || s.revision() != was || res.Version.Revision().String() != old.ResourceVersion {
		t.Errorf("%v, store at %d, was at %d (S56)", err, s.revision(), was)
	}
	if s.hooked() != "begin 1: update, end 1: unchanged" {
		t.Errorf("the hook was told %s (S33)", s.hooked())
	}
}

// A desire is computed anew from what is there now, each time the race is lost (S47); each
// attempt has its own hooks, and each hook one ending.
func TestALostRaceIsRunAgain(t *testing.T) {
	s := newStand(t, namespaced)
	s.made(thing("a", "n=0"))
	var saw []string
	s.strategy.during = func(step string) {
		if step == "validate" && len(saw) < 3 {
			s.changed("a", func(cm *corev1.ConfigMap) { cm.Data["n"] += "+" })
		}
	}
	res, err := s.Update(t.Context(), "ns", "a", func(_ context.Context, current runtime.Object) (runtime.Object, error) {
		cm := current.(*corev1.ConfigMap)
		saw = append(saw, cm.Data["n"])
		cm.Data["mine"] = "x"
		return cm, nil
	}, UpdateOptions{Patch: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(saw, " "); got != "0 0+ 0++" {
		t.Errorf("desired from %s", got)
	}
	if got := read(t, res.Version).Data; got["n"] != "0++" || got["mine"] != "x" {
		t.Errorf("stored %v", got)
	}
	if want := "begin 1: update, end 1: refused, begin 2: update, end 2: refused, begin 3: update, end 3: written a"; s.hooked() != want {
		t.Errorf("the hook was told %s, want %s (S27)", s.hooked(), want)
	}
}

func TestAnUnconditionalUpdateThatLosesTheRaceWinsTheNext(t *testing.T) {
	s := newStand(t, Policy{Namespaced: true, UnconditionalUpdate: true})
	s.made(thing("a", "is=old"))
	once := true
	s.strategy.during = func(step string) {
		if step == "validate" && once {
			once = false
			s.changed("a", func(cm *corev1.ConfigMap) { cm.Data["is"] = "theirs" })
		}
	}
	if _, err := s.Update(t.Context(), "ns", "a", Exactly(thing("a", "is=mine")), UpdateOptions{}); err != nil || s.stored("a").Data["is"] != "mine" {
		t.Errorf("%v, stored %v; the last write wins (S48)", err, s.stored("a"))
	}
	// One that names a version ends in a conflict (S55).
	now := s.stored("a")
	now.Data["is"], once = "mine again", true
	_, err := s.Update(t.Context(), "ns", "a", Exactly(now), UpdateOptions{})
	told(t, err, conflictAnswer)
}

var (
	unknownOutcome = &kv.Error{Op: "commit", Kind: kv.ErrUnknown}
	readOnly       = &kv.Error{Op: "commit", Kind: kv.ErrReadOnly, Err: errors.New("disk full")}
)

func TestHooksAreToldWhatReallyHappened(t *testing.T) {
	s := newStand(t, namespaced)
	old := s.made(thing("a", "is=old"))
	second := &stand{T: t}
	s.Store.hooks = []Hook{s, second}

	second.hookErr = errors.New("the second hook refuses")
	_, err := s.Update(t.Context(), "ns", "a", Exactly(with(old.DeepCopy(), func(cm *corev1.ConfigMap) { cm.Data["is"] = "new" })), UpdateOptions{})
	if told(t, err, "raw: the second hook refuses"); s.hooked() != "begin 1: update, end 1: refused" || second.hooked() != "" {
		t.Errorf("told %s; %s (S26, S27)", s.hooked(), second.hooked())
	}
	for _, c := range []struct {
		name, step string
		engine     error
		want       string
	}{
		{"the strategy panics while it prepares", "prepare", nil, "refused"},
		{"the strategy panics while it validates", "validate", nil, "refused"},
		{"nobody knows whether it was written", "", unknownOutcome, "uncertain"},
		{"the store takes no writes", "", readOnly, "refused"},
	} {
		for verb, act := range map[Verb]func() error{
			Create: func() error { _, err := s.Create(t.Context(), "ns", thing("b"), CreateOptions{}); return err },
			Update: func() error {
				_, err := s.Update(t.Context(), "ns", "a", Exactly(with(old.DeepCopy(), func(cm *corev1.ConfigMap) { cm.Data["is"] = "new" })), UpdateOptions{})
				return err
			},
			Delete: func() error { _, err := s.Delete(t.Context(), "ns", "a", nil); return err },
		} {
			if verb == Delete && c.step != "" {
				continue // a delete asks the strategy for neither
			}
			t.Run(string(verb)+": "+c.name, func(t *testing.T) {
				s.said, s.attempts, s.Store.hooks = nil, 0, []Hook{s}
				s.engine.fail = c.engine
				s.strategy.during = func(step string) {
					if step == c.step {
						panic("oops")
					}
				}
				defer func() { s.engine.fail, s.strategy.during = nil, nil }()
				func() {
					defer func() {
						if r := recover(); (r != nil) != (c.step != "") {
							t.Errorf("panic %v", r)
						}
					}()
					if act() == nil {
						t.Error("no error")
					}
				}()
				if want := "begin 1: " + string(verb) + ", end 1: " + c.want; s.hooked() != want {
					t.Errorf("told %s, want %s (S27)", s.hooked(), want)
				}
			})
		}
	}
}

// What removes the last finalizer of an object that is being deleted removes the object
// (rules S70 to S74).
func TestTheLastFinalizerTakesTheObjectWithIt(t *testing.T) {
	for _, c := range []struct {
		name    string
		grace   *int64
		held    bool
		keep    []string
		dry     bool
		removed bool
		hook    string
	}{
		{"the last finalizer goes", new(int64), false, nil, false, true, "removed a"},
		{"the last finalizer goes, and no grace was noted", nil, false, nil, false, true, "removed a"},
		{"a finalizer stays", new(int64), false, []string{"x.y/b"}, false, false, "written a"},
		{"there is grace left (S71)", func() *int64 { n := int64(30); return &n }(), false, nil, false, false, "written a"},
		{"the strategy holds it", new(int64), true, nil, false, false, "written a"},
		{"a dry run removes nothing", new(int64), false, nil, true, true, "removed a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, namespaced)
			s.made(thing("a"))
			old := s.changed("a", func(cm *corev1.ConfigMap) {
				now := metav1.NewTime(s.clock.Now().Truncate(time.Second))
				cm.DeletionTimestamp, cm.DeletionGracePeriodSeconds, cm.Finalizers = &now, c.grace, []string{"x.y/a", "x.y/b"}
			})
			s.strategy.held = c.held
			was := s.revision()
			sent := with(old.DeepCopy(), func(cm *corev1.ConfigMap) { cm.Finalizers, cm.Data = c.keep, map[string]string{"is": "last"} })
			res, err := s.Update(t.Context(), "ns", "a", Exactly(sent), UpdateOptions{DryRun: c.dry})
			if err != nil {
				t.Fatal(err)
			}
			if (res.Removed != nil) != c.removed || res.Created {
				t.Errorf("told %+v", res)
			}
			if c.removed && res.Removed.(*corev1.ConfigMap).Data["is"] != "last" {
				t.Errorf("told %v, want the object as it was sent (S73)", res.Removed)
			}
			if gone := s.stored("a") == nil; gone != (c.removed && !c.dry) {
				t.Errorf("gone is %v", gone)
			}
			if c.dry && s.revision() != was {
				t.Error("a dry run stored something")
			}
			if want := "begin 1: update, end 1: " + c.hook; s.hooked() != want {
				t.Errorf("the hook was told %s, want %s (S72)", s.hooked(), want)
			}
		})
	}
}

// An update that is refused removes nothing, though nothing would hold the object any more (rule S52).
func TestWhatIsRefusedRemovesNothing(t *testing.T) {
	s := newStand(t, namespaced)
	s.made(thing("a"))
	old := s.changed("a", func(cm *corev1.ConfigMap) {
		cm.DeletionTimestamp, cm.Finalizers = at(cm.CreationTimestamp), []string{"x.y/a"}
	})
	s.strategy.findings = field.ErrorList{field.Required(field.NewPath("data"), "say something")}
	res, err := s.Update(t.Context(), "ns", "a", Exactly(with(old, func(cm *corev1.ConfigMap) { cm.Finalizers = nil })), UpdateOptions{})
	told(t, err, `422 Invalid: ConfigMap "a" is invalid: data: Required value: say something`)
	if now := s.stored("a"); now == nil || len(now.Finalizers) != 1 || res.Removed != nil {
		t.Errorf("told %+v, stored is %v", res, now)
	}
	if s.hooked() != "begin 1: update, end 1: refused" {
		t.Errorf("the hook was told %s", s.hooked())
	}
}

// The removal is tied to the version that was judged: a write in between is not deleted with
// it unseen, unlike in the reference (rule S76).
func TestSettleIsTiedToWhatWasJudged(t *testing.T) {
	s := newStand(t, namespaced)
	s.made(thing("a"))
	s.changed("a", func(cm *corev1.ConfigMap) {
		now := metav1.NewTime(s.clock.Now().Truncate(time.Second))
		cm.DeletionTimestamp, cm.Finalizers = &now, []string{"x.y/a"}
	})
	old := s.stored("a")
	once := true
	s.strategy.during = func(step string) {
		if step == "validate" && once {
			once = false
			s.changed("a", func(cm *corev1.ConfigMap) { cm.Data["news"] = "!" })
		}
	}
	_, err := s.Update(t.Context(), "ns", "a", Exactly(with(old, func(cm *corev1.ConfigMap) { cm.Finalizers = nil })), UpdateOptions{})
	told(t, err, conflictAnswer)
	if now := s.stored("a"); now == nil || now.Data["news"] != "!" {
		t.Errorf("stored is %v", now)
	}
	if s.hooked() != "begin 1: update, end 1: refused" {
		t.Errorf("the hook was told %s", s.hooked())
	}
}

// Whoever removes an object that somebody else removes meanwhile has what they wanted; the
// name is not taken again, even where an update may create (rule S74).
func TestSettleOfWhatIsGoneAlready(t *testing.T) {
	s := newStand(t, Policy{Namespaced: true, CreateOnUpdate: true})
	s.made(thing("a"))
	old := s.changed("a", func(cm *corev1.ConfigMap) {
		now := metav1.NewTime(s.clock.Now().Truncate(time.Second))
		cm.DeletionTimestamp, cm.Finalizers = &now, []string{"x.y/a"}
	})
	s.strategy.during = func(step string) {
		if step == "validate" {
			s.gone("a")
		}
	}
	res, err := s.Update(t.Context(), "ns", "a", Exactly(with(old, func(cm *corev1.ConfigMap) { cm.Finalizers = nil })), UpdateOptions{})
	if err != nil || res.Removed == nil || res.Created || res.Version.Exists() || s.stored("a") != nil {
		t.Errorf("%+v, %v, stored %v", res, err, s.stored("a"))
	}
	if s.hooked() != "begin 1: update, end 1: removed a" {
		t.Errorf("the hook was told %s", s.hooked())
	}
}

// A replacement that loses a race is asked for anew: what an attempt made of it does not come into the next.
func TestReplaceAsksForTheObjectAnew(t *testing.T) {
	s := newStand(t, Policy{Namespaced: true, UnconditionalUpdate: true})
	s.made(thing("a"))
	wanted := thing("a")
	wanted.Data = map[string]string{"is": "mine"}
	once := true
	s.strategy.during = func(step string) {
		if step == "validate" && once {
			once = false
			s.changed("a", func(cm *corev1.ConfigMap) { cm.Data["is"] = "theirs" })
		}
	}
	var given []*corev1.ConfigMap
	_, err := s.Replace(t.Context(), "ns", "a", func() (runtime.Object, error) {
		given = append(given, wanted.DeepCopy())
		return given[len(given)-1], nil
	}, UpdateOptions{})
	if err != nil || len(given) != 2 {
		t.Fatalf("%v after %d attempts, want 2", err, len(given))
	}
	if now := s.stored("a"); now.Data["is"] != "mine" {
		t.Errorf("stored is %v", now.Data)
	}
	refused := errors.New("cannot be read again")
	if _, err := s.Replace(t.Context(), "ns", "a", func() (runtime.Object, error) { return nil, refused }, UpdateOptions{}); !errors.Is(err, refused) {
		t.Errorf("%v, want what the object could not be made for", err)
	}
}

// On a server that lags behind, what it would refuse stands only if the newest state says so
// too.
func TestRefusalsStandOnTheNewestState(t *testing.T) {
	named := func(cm *corev1.ConfigMap) *corev1.ConfigMap {
		return with(cm, func(cm *corev1.ConfigMap) { cm.Data["is"] = "mine" })
	}
	put := func(cm *corev1.ConfigMap) func(*stand) error {
		return func(s *stand) error {
			_, err := s.Update(s.Context(), "ns", cm.Name, Exactly(cm), UpdateOptions{})
			return err
		}
	}
	for _, c := range []struct {
		name string
		then func(s *stand) func(*stand) error // what happens unseen, and then is asked for
		want string
	}{
		{"an update of the newest version, of which nothing is known here", func(s *stand) func(*stand) error {
			return put(named(s.changed("a", func(cm *corev1.ConfigMap) { cm.Data["is"] = "theirs" })))
		}, ""},
		{"an update of the version that is at hand, but no longer the newest", func(s *stand) func(*stand) error {
			old := s.stored("a")
			s.changed("a", func(cm *corev1.ConfigMap) { cm.Data["is"] = "theirs" })
			return put(named(old))
		}, conflictAnswer},
		{"an update that fails a validation that no longer applies", func(s *stand) func(*stand) error {
			now := s.changed("a", func(cm *corev1.ConfigMap) { cm.UID = "another" })
			return put(named(now))
		}, ""},
		{"an update of what is gone", func(s *stand) func(*stand) error {
			old := s.stored("a")
			s.gone("a")
			return put(named(old))
		}, `404 NotFound: configmaps "a" not found`},
		{"a no-op on what is at hand, that would undo what came since", func(s *stand) func(*stand) error {
			old := s.stored("a")
			s.changed("a", func(cm *corev1.ConfigMap) { cm.Data["is"] = "theirs" })
			return put(old)
		}, conflictAnswer},
		{"a create under a name that has become free", func(s *stand) func(*stand) error {
			s.gone("a")
			return func(s *stand) error { _, err := s.Create(s.Context(), "ns", thing("a"), CreateOptions{}); return err }
		}, ""},
		{"a delete of another object than the one at hand", func(s *stand) func(*stand) error {
			s.changed("a", func(cm *corev1.ConfigMap) { cm.UID = "another" })
			uid := types.UID("another")
			return func(s *stand) error {
				_, err := s.Delete(s.Context(), "ns", "a", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
				return err
			}
		}, ""},
		{"a delete of what is gone", func(s *stand) func(*stand) error {
			s.gone("a")
			return func(s *stand) error { _, err := s.Delete(s.Context(), "ns", "a", nil); return err }
		}, `404 NotFound: configmaps "a" not found`},
		{"a dry run on what is at hand", func(s *stand) func(*stand) error {
			old := s.stored("a")
			s.changed("a", func(cm *corev1.ConfigMap) { cm.Data["is"] = "theirs" })
			return func(s *stand) error {
				_, err := s.Update(s.Context(), "ns", "a", Exactly(named(old)), UpdateOptions{DryRun: true})
				return err
			}
		}, conflictAnswer},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, namespaced)
			s.made(thing("a", "is=old"))
			s.lag()
			at := s.engine.atHand
			s.engine.atHand = nil
			act := c.then(s)
			s.said, s.attempts = nil, 0
			s.engine.atHand = at
			told(t, act(s), c.want)
			if begins, ends := strings.Count(s.hooked(), "begin"), strings.Count(s.hooked(), "end"); begins != ends {
				t.Errorf("the hook was told %s", s.hooked())
			}
		})
	}
}

// A subresource keeps all metadata, and raises no generation.
func TestStatusKeepsMetadata(t *testing.T) {
	s := newStand(t, namespaced)
	old := s.made(with(thing("a", "is=old"), func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"l": "old"} }))
	sent := with(old.DeepCopy(), func(cm *corev1.ConfigMap) {
		cm.Labels, cm.Annotations, cm.Finalizers = map[string]string{"l": "new"}, map[string]string{"a": "new"}, []string{"x.y/z"}
		cm.Data, cm.BinaryData = map[string]string{"is": "new"}, map[string][]byte{"status": []byte("good")}
		cm.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")}}
	})
	res, err := s.statusOf.Update(t.Context(), "ns", "a", Exactly(sent), UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, res.Version)
	if got.Labels["l"] != "old" || got.Annotations != nil || got.Finalizers != nil || got.Data["is"] != "old" || got.Generation != old.Generation {
		t.Errorf("changed %v (C91)", got)
	}
	if string(got.BinaryData["status"]) != "good" || len(got.ManagedFields) != 1 {
		t.Errorf("did not change %v", got)
	}
}
