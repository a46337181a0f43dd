//lint:file-ignore SA1019 clients still send selfLink and orphanDependents

package registry

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/storage"
)

func TestCreateFillsInWhatOnlyTheServerGives(t *testing.T) {
	s := newStand(t, namespaced)
	past, grace := metav1.NewTime(time.Unix(0, 0)), int64(7)
	sent := with(thing("a", "is=new"), func(cm *corev1.ConfigMap) {
		cm.UID, cm.CreationTimestamp, cm.SelfLink = "mine", past, "/mine"
		cm.DeletionTimestamp, cm.DeletionGracePeriodSeconds = &past, &grace
	})
	before := sent.DeepCopy()
	v, err := s.Create(t.Context(), "ns", sent, CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, v)
	want := s.clock.Now().Truncate(time.Second)
	switch {
	case got.UID != "uid-1":
		t.Errorf("uid %s (S36)", got.UID)
	case !got.CreationTimestamp.Time.Equal(want):
		t.Errorf("created %v, want %v: whole seconds (H87)", got.CreationTimestamp, want)
	case got.DeletionTimestamp != nil || got.DeletionGracePeriodSeconds != nil || got.SelfLink != "":
		t.Errorf("kept what a client may not set: %+v (H87)", got.ObjectMeta)
	case got.Namespace != "ns":
		t.Errorf("namespace %q, want that of the request (S43a)", got.Namespace)
	case got.ResourceVersion != s.revision().String():
		t.Errorf("version %s, want that of the write (K25)", got.ResourceVersion)
	case !reflect.DeepEqual(sent, before):
		t.Errorf("what was given became %v", sent)
	}
	if steps := strings.Join(s.said, ", "); steps != "begin 1: create, prepare, validate, warn, canonicalize, end 1: written a" {
		t.Errorf("went %s (S36, S43)", steps)
	}
}

func TestCreateRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy Policy
		before func(*stand)
		sent   *corev1.ConfigMap
		ns     string
		want   string
	}{
		{"the name is taken (S24)", namespaced, func(s *stand) { s.made(thing("a")) }, thing("a"), "ns",
			`409 AlreadyExists: configmaps "a" already exists`},
		{"the name is taken by an object that is being deleted (S40)", namespaced, func(s *stand) {
			s.made(thing("a"))
			s.changed("a", func(cm *corev1.ConfigMap) { now := metav1.Now(); cm.DeletionTimestamp = &now })
		}, thing("a"), "ns", `409 AlreadyExists: object is being deleted: configmaps "a" already exists`},
		{"the name is taken, was chosen, and there is a generateName (S39)", namespaced, func(s *stand) { s.made(thing("a")) },
			with(thing("a"), func(cm *corev1.ConfigMap) { cm.GenerateName = "g-" }), "ns",
			`409 AlreadyExists: configmaps "a" already exists, the server was not able to generate a unique name for the object`},
		{"a version is named (S41)", namespaced, nil, with(thing("a"), func(cm *corev1.ConfigMap) { cm.ResourceVersion = "7" }), "ns",
			"500: resourceVersion should not be set on objects to be created"},
		{"a version is named, and the name is taken (K24)", namespaced, func(s *stand) { s.made(thing("a")) },
			with(thing("a"), func(cm *corev1.ConfigMap) { cm.ResourceVersion = "7" }), "ns",
			"500: resourceVersion should not be set on objects to be created"},
		{"the namespace is another than that of the request (S43a)", namespaced, nil, with(thing("a"), func(cm *corev1.ConfigMap) { cm.Namespace = "other" }), "ns",
			"400 BadRequest: the namespace of the provided object does not match the namespace sent on the request"},
		{"the request has no namespace (S43)", namespaced, nil, thing("a"), "",
			"500 InternalError: Internal error occurred: no namespace information found in request context"},
		{"there is no name (S43d)", namespaced, nil, thing(""), "ns",
			`422 Invalid: ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required`},
		{"the name would lead elsewhere", namespaced, nil, thing("../a"), "ns",
			`422 Invalid: ConfigMap "../a" is invalid: metadata.name: Invalid value: …`},
		{"both of the collector's finalizers are there (S43d)", namespaced, nil, with(thing("a"), func(cm *corev1.ConfigMap) {
			cm.Finalizers = []string{"orphan", "foregroundDeletion"}
		}), "ns", `422 Invalid: ConfigMap "a" is invalid: metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set`},
		{"the strategy finds something, and then nothing else is looked for (S43b)", namespaced, func(s *stand) {
			s.strategy.findings = field.ErrorList{field.Required(field.NewPath("data"), "say something")}
		}, thing("-"), "ns", `422 Invalid: ConfigMap "-" is invalid: data: Required value: say something`},
		{"a hook refuses (S26)", namespaced, func(s *stand) { s.hookErr = apierrors.NewForbidden(s.Resource(), "a", errors.New("no")) }, thing("a"), "ns",
			`403 Forbidden: configmaps "a" is forbidden: no`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, c.policy)
			if c.before != nil {
				c.before(s)
			}
			was := s.revision()
			_, err := s.Create(t.Context(), c.ns, c.sent, CreateOptions{})
			told(t, err, c.want)
			if s.revision() != was {
				t.Error("something was stored")
			}
			if h := s.hooked(); h != "" && h != "begin 1: create, end 1: refused" {
				t.Errorf("the hook was told %s (S27)", h)
			}
		})
	}
}

// What is wrong with metadata does not depend on whether the object has a Go type.
func TestMetadataAreJudgedAlikeWithoutAType(t *testing.T) { // rules S43d, S58, S62, S63
	s := newStand(t, namespaced)
	old := with(thing("a"), func(cm *corev1.ConfigMap) {
		cm.Namespace, cm.UID, cm.ResourceVersion, cm.CreationTimestamp = "ns", "uid-1", "1", metav1.NewTime(time.Unix(5, 0).UTC())
	})
	for _, c := range []struct {
		name      string
		change    func(*corev1.ConfigMap)
		new, next string // what is wrong with it as a new object, and as the next one
	}{
		{"nothing is", func(*corev1.ConfigMap) {}, "[]", "[]"},
		{"there is no name", func(cm *corev1.ConfigMap) { cm.Name = "" }, "[metadata.name: Required value: name or generateName is required]",
			`[metadata.name: Required value: name or generateName is required metadata.name: Invalid value: "": field is immutable]`},
		{"both of the collector's finalizers are there", func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"orphan", "foregroundDeletion"} },
			`[metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set]`,
			`[metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set]`},
		{"there is another name", func(cm *corev1.ConfigMap) { cm.Name = "b" }, "[]", `[metadata.name: Invalid value: "b": field is immutable]`},
		{"there is another uid", func(cm *corev1.ConfigMap) { cm.UID = "x" }, "[]", `[metadata.uid: Invalid value: "x": field is immutable]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			typed := with(old.DeepCopy(), c.change)
			for _, objs := range [][2]metav1.Object{{typed, old}, {bareOf(t, typed), bareOf(t, old)}} {
				if got := fmt.Sprint(s.checkNew(objs[0])); got != c.new {
					t.Errorf("%T: new, it is wrong that %s, want %s", objs[0], got, c.new)
				}
				if got := fmt.Sprint(s.checkSuccessor(objs[0], objs[1])); got != c.next {
					t.Errorf("%T: next, it is wrong that %s, want %s", objs[0], got, c.next)
				}
			}
		})
	}
}

func TestCreateOfWhatHasNoNamespace(t *testing.T) {
	s := newStand(t, Policy{})
	v, err := s.Create(t.Context(), "", with(thing("a"), func(cm *corev1.ConfigMap) { cm.Namespace = "sent" }), CreateOptions{})
	if err != nil || read(t, v).Namespace != "" {
		t.Errorf("%v, %v; a cluster-scoped object has no namespace (S43a)", v, err)
	}
}

func TestGeneratedNames(t *testing.T) {
	generate := func() *corev1.ConfigMap {
		return with(thing(""), func(cm *corev1.ConfigMap) { cm.GenerateName = "g-" })
	}
	eight := []string{"1", "2", "3", "4", "5", "6", "7", "8"}
	for _, c := range []struct {
		name     string
		suffixes []string
		taken    []string
		findings field.ErrorList
		want     string // the name, or the answer
		tries    int
	}{
		{"the first is free", []string{"1"}, nil, nil, "g-1", 1},
		{"two are taken (S38)", []string{"1", "2", "3"}, []string{"g-1", "g-2"}, nil, "g-3", 3},
		{"the eighth is free (S38)", eight, []string{"g-1", "g-2", "g-3", "g-4", "g-5", "g-6", "g-7"}, nil, "g-8", 8},
		{"eight are taken (S38, S39)", eight, []string{"g-1", "g-2", "g-3", "g-4", "g-5", "g-6", "g-7", "g-8"}, nil,
			`409 AlreadyExists: configmaps "g-8" already exists, the server was not able to generate a unique name for the object`, 8},
		{"another error ends it at once (S38)", eight, nil, field.ErrorList{field.Required(field.NewPath("data"), "")},
			`422 Invalid: ConfigMap "g-1" is invalid: data: Required value`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, namespaced)
			for _, name := range c.taken {
				s.made(thing(name))
			}
			s.suffixes, s.strategy.findings = slices.Clone(c.suffixes), c.findings
			v, err := s.Create(t.Context(), "ns", generate(), CreateOptions{})
			got := answer(err)
			if err == nil {
				got = read(t, v).Name
			}
			if got != c.want || s.attempts != c.tries || len(c.suffixes)-len(s.suffixes) != c.tries {
				t.Errorf("got %s after %d tries, want %s after %d", got, s.attempts, c.want, c.tries)
			}
			if n := strings.Count(s.hooked(), "refused"); err == nil && n != c.tries-1 {
				t.Errorf("the hook was told %s (S27)", s.hooked())
			}
			var status *apierrors.StatusError
			if apierrors.IsAlreadyExists(err) && (!errors.As(err, &status) || status.ErrStatus.Details.RetryAfterSeconds != 1) {
				t.Errorf("%v does not say when to try again (S39)", err)
			}
		})
	}
	s := newStand(t, namespaced)
	s.suffixes = []string{"12345"}
	v, err := s.Create(t.Context(), "ns", with(thing(""), func(cm *corev1.ConfigMap) { cm.GenerateName = strings.Repeat("x", 90) }), CreateOptions{})
	if err != nil || read(t, v).Name != strings.Repeat("x", 58)+"12345" {
		t.Errorf("%v, %v; a long base is cut (S42)", v, err)
	}
	if got := randomSuffix(); len(got) != 5 || strings.Trim(got, nameAlphabet) != "" {
		t.Errorf("a random suffix is %q (S42)", got)
	}
}

func TestDryCreate(t *testing.T) {
	s := newStand(t, namespaced)
	was := s.revision()
	v, err := s.Create(t.Context(), "ns", thing("a", "is=new"), CreateOptions{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, v); got.ResourceVersion != "" || got.UID == "" || got.Data["is"] != "new" {
		t.Errorf("shown %v; want the whole object, without a version (S131)", got)
	}
	v, err = s.Create(t.Context(), "ns", with(thing("a"), func(cm *corev1.ConfigMap) { cm.ResourceVersion = "7" }), CreateOptions{DryRun: true})
	if err != nil || read(t, v).ResourceVersion != "7" {
		t.Errorf("%v, %v; a dry run shows the version that was sent (S41)", v, err)
	}
	if s.revision() != was || s.stored("a") != nil {
		t.Error("a dry run stored something (S130)")
	}
	s.made(thing("a"))
	_, err = s.Create(t.Context(), "ns", thing("a"), CreateOptions{DryRun: true})
	told(t, err, `409 AlreadyExists: configmaps "a" already exists`)
}

// A create whose guard looked at another object is tied to that object as it was.
func TestGuardsAreTiedToTheCommit(t *testing.T) {
	var asked int
	var between func()
	guard := func(_ context.Context, view *storage.View, ns, name string) error {
		asked++
		open := view.Get("default/core/configmaps/ns/gate") != nil
		if between != nil {
			f := between
			between = nil
			f()
		}
		if !open {
			return errors.New("closed")
		}
		return nil
	}
	s := newStand(t, namespaced, func(c *Config) { c.Guards = []Guard{guard} })
	_, err := s.Create(t.Context(), "ns", thing("a"), CreateOptions{})
	told(t, err, "raw: closed")

	open := Must(func() Config { c := s.config; c.Guards = nil; return c }())
	asked, between = 0, func() {
		if _, err := open.Create(t.Context(), "ns", thing("gate"), CreateOptions{}); err != nil {
			t.Error(err)
		}
	}
	if _, err = s.Create(t.Context(), "ns", thing("a"), CreateOptions{}); err != nil || asked != 2 {
		t.Errorf("%v after %d questions; a gate that opens meanwhile lets it in", err, asked)
	}
	asked, between = 0, func() { s.gone("gate") }
	_, err = s.Create(t.Context(), "ns", thing("b"), CreateOptions{})
	if told(t, err, "raw: closed"); asked != 2 || s.stored("b") != nil {
		t.Errorf("%d questions; a gate that closes meanwhile keeps it out", asked)
	}
}

func TestNewSaysWhatIsMissing(t *testing.T) {
	s := newStand(t, namespaced)
	for _, c := range []struct {
		name string
		f    func(*Config)
		want string
	}{
		{"kind", func(c *Config) { c.Kind.Kind = "" }, "registry: a store needs a kind and a version"},
		{"resource", func(c *Config) { c.Resource.Resource = "" }, "registry: a store needs the plural name of its resource"},
		{"table", func(c *Config) { c.Table = nil }, "registry: the store of configmaps needs a table and a strategy"},
		{"strategy", func(c *Config) { c.Strategy = nil }, "registry: the store of configmaps needs a table and a strategy"},
		{"codec (S3)", func(c *Config) {
			c.Table = storage.NewTable(storage.Options{Engine: s.engine, Resource: "configmaps", Namespaced: true})
		}, "registry: the table of configmaps needs an engine and a codec"},
		{"engine (S7)", func(c *Config) {
			c.Table = storage.NewTable(storage.Options{Resource: "configmaps", Namespaced: true, Codec: codec{}})
		}, "registry: the table of configmaps needs an engine and a codec"},
		{"scope of the strategy (S6)", func(c *Config) { c.Strategy = Default{} },
			"registry: the table and the strategy of configmaps do not agree on whether objects have namespaces"},
		{"scope of the table (S6)", func(c *Config) {
			c.Table = storage.NewTable(storage.Options{Engine: s.engine, Resource: "configmaps", Codec: codec{}})
		}, "registry: the table and the strategy of configmaps do not agree on whether objects have namespaces"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := s.config
			c.f(&config)
			_, err := New(config)
			told(t, err, "raw: "+c.want)
			defer func() {
				if p := recover(); p == nil || fmt.Sprint(p) != c.want {
					t.Errorf("Must panics with %v", p)
				}
			}()
			Must(config)
		})
	}
}
