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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/storage"
)

func at[T any](v T) *T { return &v }

func TestDelete(t *testing.T) {
	finalizers := func(f ...string) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { cm.Finalizers = f }
	}
	policy := func(p metav1.DeletionPropagation) *metav1.DeleteOptions {
		return &metav1.DeleteOptions{PropagationPolicy: &p}
	}
	for _, c := range []struct {
		name  string
		now   func(*corev1.ConfigMap) // what is there, before a minute passes; version "now" of options is its own
		held  bool
		o     *metav1.DeleteOptions
		want  string // "removed", "marked", "as it was", "rewritten", or the answer
		left  []string
		hooks string
	}{
		{"nothing holds it (S100)", nil, false, nil, "removed", nil, "removed a"},
		{"grace is nothing to a resource without it (S85)", nil, false, &metav1.DeleteOptions{GracePeriodSeconds: at(int64(30))}, "removed", nil, "removed a"},
		{"a finalizer holds it (S97)", finalizers("x.y/a"), false, nil, "marked", []string{"x.y/a"}, "written a"},
		{"its strategy holds it", nil, true, nil, "marked", nil, "written a"},
		{"it is being deleted already (S98)", func(cm *corev1.ConfigMap) {
			cm.Finalizers, cm.DeletionTimestamp = []string{"x.y/a"}, at(cm.CreationTimestamp)
		}, false, nil, "as it was", []string{"x.y/a"}, "unchanged"},
		{"it was being deleted, and nothing holds it any more (S87)", func(cm *corev1.ConfigMap) {
			cm.DeletionTimestamp = at(cm.CreationTimestamp)
		}, false, nil, "removed", nil, "removed a"},
		{"background deletion drops the collector's finalizer, and nothing is left (S91, S100)", finalizers("foregroundDeletion"), false, policy("Background"), "removed", nil, "removed a"},
		{"background deletion drops the collector's finalizer, and another is left (S93)", finalizers("orphan", "x.y/a"), false, policy("Background"), "marked", []string{"x.y/a"}, "written a"},
		{"background deletion of what is being deleted drops it too (S93)", func(cm *corev1.ConfigMap) {
			cm.Finalizers, cm.DeletionTimestamp = []string{"orphan", "x.y/a"}, at(cm.CreationTimestamp)
		}, false, policy("Background"), "rewritten", []string{"x.y/a"}, "written a"},
		{"without a policy the collector's finalizer stays (S91)", finalizers("orphan"), false, nil, "marked", []string{"orphan"}, "written a"},
		{"orphanDependents=false is background deletion (S91)", finalizers("orphan"), false, &metav1.DeleteOptions{OrphanDependents: at(false)}, "removed", nil, "removed a"},
		{"foreground deletion leaves work for the collector (S92, S98)", nil, false, policy("Foreground"), "marked", []string{"foregroundDeletion"}, "written a"},
		{"orphaning leaves work for the collector (S91, S98)", finalizers("x.y/a"), false, policy("Orphan"), "marked", []string{"x.y/a", "orphan"}, "written a"},
		{"the old option orphans (S91)", nil, false, &metav1.DeleteOptions{OrphanDependents: at(true)}, "marked", []string{"orphan"}, "written a"},
		{"a finalizer that is there already keeps its place (S93)", finalizers("orphan", "x.y/a"), false, policy("Orphan"), "marked", []string{"orphan", "x.y/a"}, "written a"},
		{"one policy takes the place of another on what is being deleted (S93)", func(cm *corev1.ConfigMap) {
			cm.Finalizers, cm.DeletionTimestamp = []string{"orphan", "x.y/a"}, at(cm.CreationTimestamp)
		}, false, policy("Foreground"), "rewritten", []string{"x.y/a", "foregroundDeletion"}, "written a"},
		{"the same policy once more changes nothing (S98)", func(cm *corev1.ConfigMap) {
			cm.Finalizers, cm.DeletionTimestamp = []string{"foregroundDeletion"}, at(cm.CreationTimestamp)
		}, false, policy("Foreground"), "as it was", []string{"foregroundDeletion"}, "unchanged"},
		{"a policy that nobody knows (S81)", nil, false, policy("Maybe"), `422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Maybe": supported values: "Foreground", "Background", "Orphan", "nil"`, nil, ""},
		{"policy and orphanDependents (S81)", nil, false, &metav1.DeleteOptions{OrphanDependents: at(false), PropagationPolicy: at(metav1.DeletePropagationBackground)},
			`422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Background": orphanDependents and deletionPropagation cannot be both set`, nil, ""},
		{"a dry run of a kind that nobody knows (S81)", nil, false, &metav1.DeleteOptions{DryRun: []string{"Some"}}, `422 Invalid: DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: …`, nil, ""},
		{"another object is meant (S82)", nil, false, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: at(types.UID("x"))}},
			`409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (x) does not match the UID in record (uid-1). The object might have been deleted and then recreated`, nil, ""},
		{"another version is meant (S82)", nil, false, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: at("1")}},
			`409 Conflict: Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (now). The object might have been modified`, nil, ""},
		{"this object and version are meant (S82)", nil, false, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: at(types.UID("uid-1")), ResourceVersion: at("now")}}, "removed", nil, "removed a"},
	} {
		for _, dry := range []bool{false, true} {
			t.Run(c.name+map[bool]string{true: ", dry"}[dry], func(t *testing.T) {
				s := newStand(t, namespaced)
				s.made(thing("a", "is=old"))
				old := s.changed("a", func(cm *corev1.ConfigMap) {
					cm.Generation = 5
					if c.now != nil {
						c.now(cm)
					}
				})
				s.strategy.held = c.held
				s.clock.Advance(time.Minute)
				o := c.o.DeepCopy()
				if dry {
					if o == nil {
						o = &metav1.DeleteOptions{}
					}
					o.DryRun = append(o.DryRun, "All")
				}
				if o != nil && o.Preconditions != nil && o.Preconditions.ResourceVersion != nil && *o.Preconditions.ResourceVersion == "now" {
					o.Preconditions.ResourceVersion = &old.ResourceVersion
				}
				was := s.revision()
				got, err := s.Delete(t.Context(), "ns", "a", o)
				now := s.stored("a")
				if dry && s.revision() != was {
					t.Fatal("a dry run stored something (S133)")
				}
				if want := map[bool]string{false: "begin 1: delete, end 1: " + c.hooks}[c.hooks == ""]; s.hooked() != want {
					t.Errorf("the hook was told %q, want %q", s.hooked(), want)
				}
				if err != nil {
					told(t, err, strings.ReplaceAll(c.want, "(now)", "("+old.ResourceVersion+")"))
					if s.revision() != was {
						t.Error("something was stored")
					}
					return
				}
				shown := read(t, got.Version)
				checkFate(t, c.want, got.Removed, shown, old, s.clock.Now().Truncate(time.Second))
				if c.want != "removed" && !slices.Equal(shown.Finalizers, c.left) {
					t.Errorf("finalizers left are %q, want %q", shown.Finalizers, c.left)
				}
				if dry {
					return
				}
				if (now == nil) != (c.want == "removed") {
					t.Errorf("stored is %v", now)
				}
				if c.want == "removed" && shown.ResourceVersion != s.revision().String() {
					t.Errorf("shown at %s, want the version of the deletion (S104)", shown.ResourceVersion)
				}
				if c.want == "as it was" && s.revision() != was {
					t.Error("something was stored")
				}
			})
		}
	}
}

// checkFate compares what a delete shows with what it says it did.
func checkFate(t *testing.T, want string, removed bool, shown, old *corev1.ConfigMap, now time.Time) {
	t.Helper()
	if removed != (want == "removed") {
		t.Errorf("removed is %v, want it to be %s", removed, want)
	}
	switch want {
	case "marked":
		if shown.DeletionTimestamp == nil || !shown.DeletionTimestamp.Time.Equal(now) || *shown.DeletionGracePeriodSeconds != 0 || shown.Generation != 6 {
			t.Errorf("shown %+v, want it being deleted since now, no grace, and one generation on (S97)", shown.ObjectMeta)
		}
	case "as it was", "rewritten", "removed":
		if !shown.DeletionTimestamp.Equal(old.DeletionTimestamp) || shown.Generation != 5 {
			t.Errorf("shown %+v, want it being deleted since then or not at all, and no generation on (S97, S133)", shown.ObjectMeta)
		}
	default:
		t.Errorf("no error, want %s", want)
	}
}

// The policy of the resource reaches its deletes: what can have no dependents waits for no collector,
// whatever is asked for.
func TestTheKindSaysWhetherDependentsAreWaitedFor(t *testing.T) { // rules S90, S91, B63
	foreground := &metav1.DeleteOptions{PropagationPolicy: at(metav1.DeletePropagationForeground)}
	for _, c := range []struct {
		name string
		kind Dependents
		o    *metav1.DeleteOptions
		want []string // finalizers left; nil if it went
	}{
		{"dependents go afterwards", Collected, nil, nil},
		{"dependents go afterwards, but for who asks that they go first", Collected, foreground, []string{"foregroundDeletion"}},
		{"dependents stay", Orphaned, nil, []string{"orphan"}},
		{"there can be none", Disallowed, nil, nil},
		{"there can be none, and it is asked that they go first", Disallowed, foreground, nil},
		{"there can be none, and it is asked that they stay", Disallowed, &metav1.DeleteOptions{OrphanDependents: at(true)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, Policy{Namespaced: true, Dependents: c.kind})
			s.made(thing("a"))
			did, err := s.Delete(t.Context(), "ns", "a", c.o)
			if err != nil || did.Removed != (c.want == nil) || !slices.Equal(did.Object.GetFinalizers(), c.want) {
				t.Errorf("told %+v, %v; want it left with %q", did, err, c.want)
			}
		})
	}
}

func TestDeleteOfWhatIsNotThere(t *testing.T) {
	s := newStand(t, namespaced)
	for _, c := range []struct{ name, object, want string }{
		{"an object that does not exist, and options that make no sense (S80)", "a", `404 NotFound: configmaps "a" not found`},
		{"no name (S17)", "", "400 BadRequest: Name parameter required."},
		{"a name that leads elsewhere (S18)", "a%b", `400 BadRequest: Name parameter invalid: "a%b": may not contain '%'`},
	} {
		_, err := s.Delete(t.Context(), "ns", c.object, &metav1.DeleteOptions{DryRun: []string{"Some"}})
		told(t, err, c.want)
	}
	_, err := s.Delete(t.Context(), "", "a", nil)
	told(t, err, "400 BadRequest: Namespace parameter required.")
	if s.hooked() != "" {
		t.Errorf("the hook was told %s", s.hooked())
	}
}

func TestDeleteOfWhatCannotBeRead(t *testing.T) {
	s := newStand(t, namespaced)
	key := s.Table().Key("ns", "a")
	if _, err := s.engine.Commit(t.Context(), rotten(key)); err != nil {
		t.Fatal(err)
	}
	was := s.revision()
	_, err := s.Delete(t.Context(), "ns", "a", nil)
	if told(t, err, "500 InternalError: Internal error occurred: storage: corrupt object: ns/a: …"); s.revision() != was {
		t.Error("it was told that this failed, and something was stored")
	}
}

// A delete that loses a race is judged again, preconditions included.
func TestDeleteThatLosesARace(t *testing.T) {
	s := newStand(t, namespaced)
	s.made(thing("a"))
	prepares := &preparing{strategy: s.strategy, do: func() {
		s.changed("a", func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"x.y/a"} })
	}}
	s.Store.strategy = prepares
	got, err := s.Delete(t.Context(), "ns", "a", nil)
	if err != nil || got.Removed || s.stored("a").DeletionTimestamp == nil {
		t.Errorf("%+v, %v, stored %v; want it held by the finalizer that came meanwhile", got, err, s.stored("a"))
	}
	if want := "begin 1: delete, end 1: refused, begin 2: delete, end 2: written a"; s.hooked() != want {
		t.Errorf("the hook was told %s, want %s", s.hooked(), want)
	}
	if prepares.times != 2 {
		t.Errorf("prepared %d times", prepares.times)
	}
	if _, err = s.Delete(t.Context(), "ns", "a", nil); err != nil || prepares.times != 2 {
		t.Errorf("%v, prepared %d times; what is being deleted already is not prepared again", err, prepares.times)
	}
}

// A preparing strategy changes what is to be deleted, and does something else once.
type preparing struct {
	*strategy
	times int
	do    func()
}

func (p *preparing) PrepareForDelete(_ context.Context, obj runtime.Object) {
	p.times++
	obj.(*corev1.ConfigMap).Annotations = map[string]string{"phase": "terminating"}
	if p.times == 1 {
		p.do()
	}
}

func TestDeleteCollection(t *testing.T) {
	setUp := func(t *testing.T) *stand {
		s := newStand(t, namespaced)
		for i := range 5 {
			s.made(with(thing(fmt.Sprint("n", i)), func(cm *corev1.ConfigMap) {
				cm.Labels = map[string]string{"even": fmt.Sprint(i%2 == 0)}
			}))
		}
		return s
	}
	left := func(s *stand) string {
		page, err := s.List(s.Context(), ListOptions{Namespace: "ns"})
		if err != nil {
			s.Fatal(err)
		}
		return namesOf(page)
	}
	for _, c := range []struct {
		name       string
		before     func(*stand)
		list       ListOptions
		o          *metav1.DeleteOptions
		told, left string
		err        string
	}{
		{"everything in the namespace (S112)", nil, ListOptions{Namespace: "ns"}, nil, "n0 n1 n2 n3 n4", "", ""},
		{"what a selector picks (S112)", nil, ListOptions{Namespace: "ns", Selector: storage.Selector{Labels: labels.SelectorFromSet(labels.Set{"even": "true"})}}, nil, "n0 n2 n4", "n1 n3", ""},
		{"one page, if a limit asks for one (S116)", nil, ListOptions{Namespace: "ns", Limit: 2}, nil, "n0 n1", "n2 n3 n4", ""},
		{"nothing there", nil, ListOptions{Namespace: "other"}, nil, "", "n0 n1 n2 n3 n4", ""},
		{"what a finalizer holds is marked", func(s *stand) {
			s.changed("n1", func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"x.y/a"} })
		}, ListOptions{Namespace: "ns"}, nil, "n0 n1 n2 n3 n4", "n1", ""},
		{"a dry run", nil, ListOptions{Namespace: "ns"}, &metav1.DeleteOptions{DryRun: []string{"All"}}, "n0 n1 n2 n3 n4", "n0 n1 n2 n3 n4", ""},
		{"options that make no sense", nil, ListOptions{Namespace: "ns"}, &metav1.DeleteOptions{PropagationPolicy: at(metav1.DeletionPropagation("Sideways"))}, "", "n0 n1 n2 n3 n4", `422 Invalid: …`},
		{"a precondition that no object meets", nil, ListOptions{Namespace: "ns"}, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: at("1")}}, "", "n0 n1 n2 n3 n4", `409 Conflict: …`},
		{"a list that cannot be", nil, ListOptions{Namespace: "ns", From: storage.Exactly{}}, nil, "", "n0 n1 n2 n3 n4", `410 Expired: The resourceVersion for the provided list is too old.`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := setUp(t)
			s.Store.hooks = nil
			if c.before != nil {
				c.before(s)
			}
			was := s.revision()
			page, err := s.DeleteCollection(t.Context(), c.list, c.o)
			told(t, err, c.err)
			if (err == nil) != (page != nil) || err == nil && namesOf(page) != c.told {
				t.Errorf("told %v", page)
			}
			if got := left(s); got != c.left {
				t.Errorf("left are %q, want %q", got, c.left)
			}
			if c.o != nil && s.revision() != was {
				t.Error("something was stored")
			}
		})
	}
	t.Run("a page says where the next begins, and all of them that nothing is left (S117)", func(t *testing.T) {
		s := setUp(t)
		s.Store.hooks = nil
		page, err := s.DeleteCollection(t.Context(), ListOptions{Namespace: "ns", Limit: 2}, nil)
		if err != nil || page.Continue == "" || page.Remaining == nil || *page.Remaining != 3 {
			t.Errorf("%+v, %v", page, err)
		}
		if page, err = s.DeleteCollection(t.Context(), ListOptions{Namespace: "ns"}, nil); err != nil || page.Continue != "" || page.Remaining != nil || len(page.Items) != 3 {
			t.Errorf("%+v, %v", page, err)
		}
	})
	t.Run("options stay as they were given (S112)", func(t *testing.T) {
		s := setUp(t)
		s.Store.hooks = nil
		list, o := ListOptions{Namespace: "ns"}, &metav1.DeleteOptions{GracePeriodSeconds: at(int64(-1)), Preconditions: &metav1.Preconditions{}}
		given := o.DeepCopy()
		if _, err := s.DeleteCollection(t.Context(), list, o); err != nil || !reflect.DeepEqual(o, given) || left(s) != "" {
			t.Errorf("%v, the options became %+v, left %s", err, o, left(s))
		}
	})
	t.Run("without a namespace it is of all (S120)", func(t *testing.T) {
		s := setUp(t)
		s.Store.hooks = nil
		if _, err := s.Create(t.Context(), "other", thing("n0"), CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		page, err := s.DeleteCollection(t.Context(), ListOptions{}, nil)
		if err != nil || namesOf(page) != "n0 n1 n2 n3 n4 n0" || left(s) != "" {
			t.Errorf("told %v, %v", page, err)
		}
	})
	t.Run("a context that has ended (S118)", func(t *testing.T) {
		s := setUp(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.DeleteCollection(ctx, ListOptions{Namespace: "ns"}, nil); !errors.Is(err, context.Canceled) || left(s) != "n0 n1 n2 n3 n4" {
			t.Errorf("%v, left %s", err, left(s))
		}
	})
	t.Run("a panic is an error of the request (S115)", func(t *testing.T) {
		s := setUp(t)
		s.Store.hooks, s.Store.strategy = nil, &preparing{strategy: s.strategy, do: func() { panic("oops") }}
		_, err := s.DeleteCollection(t.Context(), ListOptions{Namespace: "ns", Limit: 1}, nil)
		told(t, err, "raw: DeleteCollection goroutine panicked: oops")
	})
	t.Run("an object that is replaced meanwhile is left alone, one that is gone is passed over (S113)", func(t *testing.T) {
		s := setUp(t)
		s.Store.hooks = nil
		page, err := s.List(t.Context(), ListOptions{Namespace: "ns"})
		if err != nil {
			t.Fatal(err)
		}
		s.gone("n0")
		s.gone("n1")
		s.made(thing("n1", "is=another"))
		if err := s.deleteAll(t.Context(), page.Items, &metav1.DeleteOptions{}); err != nil || left(s) != "n1" {
			t.Errorf("%v, left %s", err, left(s))
		}
	})
}

func namesOf(p *storage.Page) string {
	var out []string
	for _, v := range p.Items {
		out = append(out, v.Name())
	}
	return strings.Join(out, " ")
}
