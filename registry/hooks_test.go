package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/warning"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// A hookFunc is a hook that is one function.
type hookFunc func(verb Verb, obj, old runtime.Object, dryRun bool) (func(Ending), error)

func (f hookFunc) Begin(_ context.Context, verb Verb, obj, old runtime.Object, dryRun bool) (func(context.Context, Ending), error) {
	tell, err := f(verb, obj, old, dryRun)
	if tell == nil {
		return nil, err
	}
	return func(_ context.Context, how Ending) { tell(how) }, err
}

// What a hook does to an object before the strategy sees it is stored; what it does to the one that it
// is shown in the end is not, and nobody is shown it.
func TestAHookMayChangeWhatIsAboutToBeStored(t *testing.T) { // rules S26, S32
	const before, after = "before", "after"
	var shown []string
	hook := hookFunc(func(_ Verb, obj, _ runtime.Object, _ bool) (func(Ending), error) {
		obj.(*corev1.ConfigMap).Data[before] = "x"
		return func(how Ending) {
			how.Object.SetLabels(map[string]string{after: "x"})
			shown = append(shown, how.Object.GetName()+" "+how.Object.GetResourceVersion())
		}, nil
	})
	s := newStand(t, Policy{Namespaced: true, CreateOnUpdate: true}, func(c *Config) { c.Hooks = []Hook{hook} })
	check := func(what, name string, got *corev1.ConfigMap, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for _, cm := range []*corev1.ConfigMap{got, s.stored(name)} {
			if cm.Data[before] != "x" || cm.Labels[after] != "" {
				t.Errorf("a %s comes to %v", what, cm)
			}
		}
		if last := shown[len(shown)-1]; last != name+" "+s.stored(name).ResourceVersion {
			t.Errorf("in the end a hook of a %s is shown %s, want what is stored", what, last)
		}
	}
	v, err := s.Create(t.Context(), "ns", thing("a", "is=old"), CreateOptions{})
	check("create", "a", read(t, v), err)

	next := s.stored("a")
	next.Data = map[string]string{"is": "new"}
	did, err := s.Update(t.Context(), "ns", "a", Exactly(next), UpdateOptions{})
	check("update", "a", read(t, did.Version), err)

	did, err = s.Update(t.Context(), "ns", "b", Exactly(thing("b")), UpdateOptions{})
	check("create by an update", "b", read(t, did.Version), err)
}

// A hook is told what is being done, and whether it is being done at all.
func TestHooksKnowADryRun(t *testing.T) { // rules S33, S46c, S75
	for _, c := range []struct {
		name string
		do   func(s *stand, dry bool) error
		want string // with DRY for whether it is one
	}{
		{"a create", func(s *stand, dry bool) error {
			_, err := s.Create(s.Context(), "ns", thing("b"), CreateOptions{DryRun: dry})
			return err
		}, "create DRY of b: written"},
		{"an update", func(s *stand, dry bool) error {
			_, err := s.Update(s.Context(), "ns", "a", Exactly(thing("a", "is=new")), UpdateOptions{DryRun: dry})
			return err
		}, "update DRY of a after a: written"},
		{"an update that changes nothing", func(s *stand, dry bool) error {
			_, err := s.Update(s.Context(), "ns", "a", Exactly(s.stored("a")), UpdateOptions{DryRun: dry})
			return err
		}, "update DRY of a after a: unchanged"},
		{"an update that creates", func(s *stand, dry bool) error {
			_, err := s.Update(s.Context(), "ns", "b", Exactly(thing("b")), UpdateOptions{DryRun: dry})
			return err
		}, "create DRY of b: written"},
		{"an update that takes the last finalizer", func(s *stand, dry bool) error {
			last := s.changed("a", func(cm *corev1.ConfigMap) {
				cm.DeletionTimestamp, cm.Finalizers = at(cm.CreationTimestamp), []string{"x.y/a"}
			})
			last.Finalizers = nil
			_, err := s.Update(s.Context(), "ns", "a", Exactly(last), UpdateOptions{DryRun: dry})
			return err
		}, "update DRY of a after a: removed"},
		{"a delete", func(s *stand, dry bool) error {
			o := &metav1.DeleteOptions{}
			if dry {
				o.DryRun = []string{metav1.DryRunAll}
			}
			_, err := s.Delete(s.Context(), "ns", "a", o)
			return err
		}, "delete DRY after a: removed"},
	} {
		for _, dry := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, " ", dry), func(t *testing.T) {
				var told []string
				hook := hookFunc(func(verb Verb, obj, old runtime.Object, dryRun bool) (func(Ending), error) {
					text := fmt.Sprint(verb, " ", dryRun)
					for i, o := range []runtime.Object{obj, old} {
						if o != nil {
							acc, err := meta.Accessor(o)
							if err != nil {
								return nil, err
							}
							text += [...]string{" of ", " after "}[i] + acc.GetName()
						}
					}
					return func(how Ending) {
						told = append(told, text+": "+[...]string{"refused", "written", "unchanged", "removed", "uncertain"}[how.Outcome])
					}, nil
				})
				s := newStand(t, Policy{Namespaced: true, CreateOnUpdate: true, UnconditionalUpdate: true})
				s.made(thing("a", "is=old"))
				s.Store.hooks = []Hook{hook}
				if err := c.do(s, dry); err != nil {
					t.Fatal(err)
				}
				if got, want := strings.Join(told, ", "), strings.Replace(c.want, "DRY", fmt.Sprint(dry), 1); got != want {
					t.Errorf("told %q, want %q", got, want)
				}
			})
		}
	}
}

// An authorHook notes who writes.
type authorHook struct{ saw []string }

func (h *authorHook) Begin(ctx context.Context, verb Verb, _, _ runtime.Object, _ bool) (func(context.Context, Ending), error) {
	note := func(ctx context.Context, when string) {
		by := storage.AuthorFrom(ctx)
		h.saw = append(h.saw, fmt.Sprint(when, " ", verb, " by ", by.User, " with ", by.Manager))
	}
	note(ctx, "begin")
	return func(ctx context.Context, _ Ending) { note(ctx, "end") }, nil
}

// A hook finds in the context who writes, and with what, whatever is being done.
func TestHooksKnowWhoWrites(t *testing.T) { // rule S46c
	for _, c := range []struct {
		name string
		verb Verb
		do   func(ctx context.Context, s *stand) error
	}{
		{"a create", Create, func(ctx context.Context, s *stand) error {
			_, err := s.Create(ctx, "ns", thing("b"), CreateOptions{})
			return err
		}},
		{"an update", Update, func(ctx context.Context, s *stand) error {
			_, err := s.Update(ctx, "ns", "a", Exactly(thing("a", "is=new")), UpdateOptions{})
			return err
		}},
		{"an update that creates", Create, func(ctx context.Context, s *stand) error {
			_, err := s.Update(ctx, "ns", "b", Exactly(thing("b")), UpdateOptions{})
			return err
		}},
		{"a delete", Delete, func(ctx context.Context, s *stand) error {
			_, err := s.Delete(ctx, "ns", "a", nil)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, Policy{Namespaced: true, CreateOnUpdate: true, UnconditionalUpdate: true})
			s.made(thing("a", "is=old"))
			hook := &authorHook{}
			s.Store.hooks = []Hook{hook}
			if err := c.do(storage.WithAuthor(t.Context(), kv.Author{User: "anna", Manager: "editor"}), s); err != nil {
				t.Fatal(err)
			}
			by := fmt.Sprint(c.verb, " by anna with editor")
			if want := []string{"begin " + by, "end " + by}; !slices.Equal(hook.saw, want) {
				t.Errorf("it saw %q, want %q", hook.saw, want)
			}
		})
	}
}

// A hook that refuses a delete sees the object that is there, and nothing else happens to it.
func TestAHookMayRefuseADelete(t *testing.T) { // rule S35
	s := newStand(t, namespaced)
	there := s.made(thing("a", "is=old"))
	prepares := &preparing{strategy: s.strategy, do: func() {}}
	s.Store.strategy = prepares
	s.Store.hooks = []Hook{hookFunc(func(_ Verb, obj, old runtime.Object, _ bool) (func(Ending), error) {
		if cm := old.(*corev1.ConfigMap); obj != nil || cm.ResourceVersion != there.ResourceVersion || cm.Data["is"] != "old" {
			t.Errorf("the hook is shown %v and %v", obj, old)
		}
		return nil, errors.New("it is needed")
	})}
	was := s.revision()
	_, err := s.Delete(t.Context(), "ns", "a", nil)
	if told(t, err, "raw: it is needed"); s.revision() != was || prepares.times != 0 {
		t.Errorf("something was stored, or prepared %d times", prepares.times)
	}
}

// A warner warns of everything, and leaves a mark on what it brings into its stored form.
type warner struct{ *strategy }

func (w warner) Canonicalize(obj runtime.Object) {
	w.strategy.Canonicalize(obj)
	cm := obj.(*corev1.ConfigMap)
	cm.Annotations = map[string]string{"form": cm.Data["is"]}
}

func (w warner) Warnings(_ context.Context, obj, old runtime.Object) []string {
	w.step("warn")
	return []string{fmt.Sprintf("%s: old is there: %v", obj.(*corev1.ConfigMap).Name, old != nil)}
}

type recorder []string

func (r *recorder) AddWarning(_, text string) { *r = append(*r, text) }

// A client is warned of what passed validation, before it is brought into its stored form, and of
// nothing else.
func TestWarningsAreOfWhatIsValid(t *testing.T) { // rules S43c, S65
	var got recorder
	s := newStand(t, namespaced)
	s.Store.strategy = warner{s.strategy}
	ctx := warning.WithWarningRecorder(t.Context(), &got)
	wrong := field.ErrorList{field.Required(field.NewPath("data"), "say something")}
	for _, c := range []struct {
		name     string
		findings field.ErrorList
		do       func() error
		want     string
		steps    string
	}{
		{"an invalid create", wrong, func() error {
			_, err := s.Create(ctx, "ns", thing("a", "is=old"), CreateOptions{})
			return err
		}, "", "prepare, validate"},
		{"a create", nil, func() error {
			_, err := s.Create(ctx, "ns", thing("a", "is=old"), CreateOptions{})
			return err
		}, "a: old is there: false", "prepare, validate, warn, canonicalize"},
		{"an invalid update", wrong, func() error {
			_, err := s.Update(ctx, "ns", "a", Exactly(with(s.stored("a"), func(cm *corev1.ConfigMap) { cm.Data["is"] = "new" })), UpdateOptions{})
			return err
		}, "", "prepare, validate"},
		{"an update", nil, func() error {
			_, err := s.Update(ctx, "ns", "a", Exactly(with(s.stored("a"), func(cm *corev1.ConfigMap) { cm.Data["is"] = "new" })), UpdateOptions{})
			return err
		}, "a: old is there: true", "prepare, validate, warn, canonicalize"},
	} {
		got, s.said, s.strategy.findings = nil, nil, c.findings
		if err := c.do(); (err == nil) != (c.findings == nil) {
			t.Errorf("%s: %v", c.name, err)
		}
		if now := s.stored("a"); c.findings == nil && now.Annotations["form"] != now.Data["is"] {
			t.Errorf("%s stores %v, want it in its stored form", c.name, now)
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s warns %q, want %q", c.name, text, c.want)
		}
		steps := []string{}
		for _, step := range s.said {
			if !strings.Contains(step, ": ") {
				steps = append(steps, step)
			}
		}
		if text := strings.Join(steps, ", "); text != c.steps {
			t.Errorf("%s goes %s, want %s", c.name, text, c.steps)
		}
	}
}
