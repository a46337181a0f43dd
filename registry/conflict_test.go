package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// by has somebody change object a, a minute after what was done before.
func (s *stand) by(manager, verb, subresource string, f func(*configMap)) {
	s.Helper()
	s.clock.Advance(time.Minute)
	ctx := storage.WithAuthor(s.Context(), kv.Author{User: "SECRET user", Manager: manager, Verb: verb, Subresource: subresource})
	_, err := s.Table().Modify(ctx, "ns", "a", false, func(_ context.Context, v storage.Version, _ *storage.View) (storage.Verdict, error) {
		cm := with(read(s, v), f)
		cm.ResourceVersion = ""
		return storage.Verdict{Action: storage.Put, Object: cm}, nil
	})
	if err != nil {
		s.Fatal(err)
	}
}

func set(key, value string) func(*configMap) {
	return func(cm *configMap) { cm.Data[key] = "SECRET " + value }
}

// errUnfit is what a patch panics with that does not fit the object.
var errUnfit = errors.New("it does not fit")

// Every story begins at 15:09:26 with an object that somebody reads; each deed comes a
// minute later; then the reader writes. All values are called SECRET, and none may be told.
func TestConflictsAreExplained(t *testing.T) {
	const (
		first, second    = "2026-03-14T15:10:26Z", "2026-03-14T15:11:26Z"
		untouched, touch = "; this write does not touch it", "; this write changes it too"
	)
	many := func(n int) func(*configMap) {
		return func(cm *configMap) {
			for i := range n {
				set(fmt.Sprintf("k%02d", i), "new")(cm)
			}
		}
	}
	for _, c := range []struct {
		name   string
		story  func(*stand)
		write  func(*configMap) // what the reader makes of what it read
		patch  bool             // …or of what is there now
		status bool             // at the status subresource
		want   []string
	}{
		{"another field was changed", func(s *stand) { s.by("editor", "update", "", set("theirs", "x")) }, set("mine", "y"), false, false,
			[]string{`.data.theirs: changed by "editor" (Update, ` + first + `)` + untouched}},
		{"the same field was changed", func(s *stand) { s.by("editor", "update", "", set("both", "x")) }, set("both", "y"), false, false,
			[]string{`.data.both: changed by "editor" (Update, ` + first + `)` + touch}},
		{"the same field was given the same value", func(s *stand) { s.by("editor", "update", "", set("both", "x")) }, set("both", "x"), false, false,
			[]string{`.data.both: changed by "editor" (Update, ` + first + `)` + touch}},
		{"fields that overlap come first, then it goes by path", func(s *stand) {
			s.by("one", "update", "", func(cm *configMap) { set("c", "x")(cm); set("a", "x")(cm) })
			s.by("two", "patch", "", func(cm *configMap) { set("d", "x")(cm); set("b", "x")(cm) })
		}, func(cm *configMap) { set("d", "y")(cm); set("c", "y")(cm) }, false, false, []string{
			`.data.c: changed by "one" (Update, ` + first + `)` + touch, `.data.d: changed by "two" (Update, ` + second + `)` + touch,
			`.data.a: changed by "one" (Update, ` + first + `)` + untouched, `.data.b: changed by "two" (Update, ` + second + `)` + untouched,
		}},
		{"a field that two changed is the later one's", func(s *stand) {
			s.by("one", "update", "", set("x", "1"))
			s.by("two", "apply", "", set("x", "2"))
		}, set("mine", "y"), false, false, []string{`.data.x: changed by "two" (Apply, ` + second + `)` + untouched}},
		{"of two fields the earlier writer changed both, and the later one of them", func(s *stand) {
			s.by("one", "update", "", func(cm *configMap) { set("x", "1")(cm); set("y", "1")(cm) })
			s.by("two", "update", "", set("x", "2"))
		}, set("mine", "y"), false, false, []string{
			`.data.x: changed by "two" (Update, ` + second + `)` + untouched, `.data.y: changed by "one" (Update, ` + first + `)` + untouched,
		}},
		{"a later change elsewhere does not make it the later one's", func(s *stand) {
			s.by("one", "apply", "", set("x", "1"))
			s.by("two", "update", "", func(cm *configMap) {
				cm.Generation = 9
				cm.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "two"}}
			})
		}, set("mine", "y"), false, false, []string{`.data.x: changed by "one" (Apply, ` + first + `)` + untouched}},
		{"a field was removed that this write changes", func(s *stand) {
			s.by("editor", "update", "", func(cm *configMap) { set("other", "x")(cm); delete(cm.Data, "kept") })
		}, set("kept", "y"), false, false, []string{`.data.kept: changed by "editor" (Update, ` + first + `)` + touch, `.data.other: changed by "editor" (Update, ` + first + `)` + untouched}},
		{"all that was in a field was removed, and this write changes a part of it", func(s *stand) {
			s.by("editor", "update", "", func(cm *configMap) { delete(cm.Data, "kept") })
		}, set("kept", "y"), false, false, []string{`.data: changed by "editor" (Update, ` + first + `)` + touch}},
		{"a field was changed that this write removes", func(s *stand) { s.by("editor", "update", "", set("kept", "x")) },
			func(cm *configMap) { delete(cm.Data, "kept") }, false, false, []string{`.data.kept: changed by "editor" (Update, ` + first + `)` + touch}},
		{"everything below was removed that this write changes a part of", func(s *stand) {
			s.by("editor", "update", "", func(cm *configMap) { cm.Labels = nil })
		}, func(cm *configMap) { cm.Labels["l"] = "new" }, false, false, []string{`.metadata.labels: changed by "editor" (Update, ` + first + `)` + touch}},
		{"a field was changed and changed back", func(s *stand) {
			s.by("editor", "update", "", set("kept", "x"))
			s.by("editor", "update", "", set("kept", "old"))
		}, set("mine", "y"), false, false, []string{": " + nothingLeft}},
		{"only what no writer owns was changed", func(s *stand) {
			s.by("editor", "update", "", func(cm *configMap) {
				cm.Generation, cm.ManagedFields = 9, []metav1.ManagedFieldsEntry{{Manager: "two"}}
			})
		}, set("mine", "y"), false, false, []string{": " + nothingLeft}},
		{"a manager was given another name in managedFields, and what it had written stays its own", func(s *stand) {
			s.by("kubectl-client-side-apply", "patch", "", set("theirs", "x"))
			s.by("csaupgrade", "update", "", func(cm *configMap) { cm.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}} })
		}, set("mine", "y"), false, false, []string{`.data.theirs: changed by "kubectl-client-side-apply" (Update, ` + first + `)` + untouched}},
		{"one program wrote under two names, which are told apart", func(s *stand) {
			s.by("agent", "update", "", set("one", "x"))
			s.by("agent-v2", "update", "", set("two", "x"))
		}, set("mine", "y"), false, false, []string{
			`.data.one: changed by "agent" (Update, ` + first + `)` + untouched, `.data.two: changed by "agent-v2" (Update, ` + second + `)` + untouched,
		}},
		{"the server itself changed it", func(s *stand) { s.by("", "", "", set("theirs", "x")) }, set("mine", "y"), false, false,
			[]string{`.data.theirs: changed by the server (Update, ` + first + `)` + untouched}},
		{"the status was changed, which a write of the object puts back whatever it sends", func(s *stand) {
			s.by("kubelet", "update", "status", func(cm *configMap) { cm.BinaryData = map[string][]byte{"ready": []byte("SECRET")} })
		}, func(cm *configMap) { set("mine", "y")(cm); cm.BinaryData = map[string][]byte{"ready": []byte("no")} }, false, false,
			[]string{`.binaryData.ready: changed by "kubelet" (Update, subresource "status", ` + first + `)` + untouched}},
		{"the status was changed, by two writers of it", func(s *stand) {
			s.by("kubelet", "patch", "status", func(cm *configMap) { cm.BinaryData = map[string][]byte{"ready": []byte("SECRET")} })
		}, func(cm *configMap) { cm.BinaryData = map[string][]byte{"ready": []byte("no")} }, false, true,
			[]string{`.binaryData.ready: changed by "kubelet" (Update, subresource "status", ` + first + `)` + touch}},
		{"labels and data were changed, which a write of the status puts back", func(s *stand) {
			s.by("editor", "update", "", func(cm *configMap) { cm.Labels["l"] = "new"; set("kept", "x")(cm) })
		}, func(cm *configMap) { cm.Labels["l"] = "mine"; set("kept", "y")(cm) }, false, true, []string{
			`.data.kept: changed by "editor" (Update, ` + first + `)` + untouched, `.metadata.labels.l: changed by "editor" (Update, ` + first + `)` + untouched,
		}},
		{"it was marked as being deleted", func(s *stand) {
			s.by("kubectl", "delete", "", func(cm *configMap) { cm.DeletionTimestamp = &metav1.Time{Time: s.clock.Now()} })
		}, set("mine", "y"), false, false, []string{`.metadata.deletionTimestamp: changed by "kubectl" (Delete, ` + first + `)` + untouched}},
		{"each value of a set is a field of its own", func(s *stand) {
			s.by("editor", "update", "", func(cm *configMap) { cm.Finalizers = append(cm.Finalizers, "x.y/b") })
		}, func(cm *configMap) { cm.Finalizers = append(cm.Finalizers, "x.y/c") }, false, false,
			[]string{`.metadata.finalizers[="x.y/b"]: changed by "editor" (Update, ` + first + `)` + untouched}},
		{"an item of a list with keys is a field of its own", func(s *stand) {
			s.by("editor", "update", "", func(cm *configMap) { cm.OwnerReferences[0].Name = "SECRET" })
		}, func(cm *configMap) { cm.OwnerReferences[1].Name = "mine" }, false, false,
			[]string{`.metadata.ownerReferences[uid="u1"]: changed by "editor" (Update, ` + first + `)` + untouched}},
		{"a list was put in another order, and this write changes an item of it", func(s *stand) {
			s.by("editor", "update", "", func(cm *configMap) { slices.Reverse(cm.OwnerReferences) })
		}, func(cm *configMap) { cm.OwnerReferences[1].Name = "mine" }, false, false,
			[]string{`.metadata.ownerReferences: changed by "editor" (Update, ` + first + `)` + touch}},
		{"a patch that names a version touches what it changes in that one, and in what is there", func(s *stand) {
			s.by("editor", "update", "", func(cm *configMap) {
				set("one", "x")(cm)
				set("two", "x")(cm)
				set("three", "x")(cm)
				set("kept", "x")(cm)
			})
		}, func(cm *configMap) {
			set("two", "x")(cm)
			set("three", "y")(cm)
			set("kept", "old")(cm)
			set("mine", "y")(cm)
		}, true, false, []string{
			`.data.kept: changed by "editor" (Update, ` + first + `)` + touch, `.data.three: changed by "editor" (Update, ` + first + `)` + touch,
			`.data.two: changed by "editor" (Update, ` + first + `)` + touch, `.data.one: changed by "editor" (Update, ` + first + `)` + untouched,
		}},
		{"a patch that cannot be applied to the version that it names touches what it changes in what is there", func(s *stand) {
			s.by("editor", "update", "", func(cm *configMap) { set("one", "x")(cm); set("two", "x")(cm) })
		}, func(cm *configMap) {
			if set("two", "y")(cm); cm.Data["one"] == "" {
				panic(errUnfit)
			}
		}, true, false, []string{
			`.data.two: changed by "editor" (Update, ` + first + `)` + touch, `.data.one: changed by "editor" (Update, ` + first + `)` + untouched,
		}},
		{"exactly twenty fields are told", func(s *stand) { s.by("editor", "update", "", many(20)) }, set("mine", "y"), false, false,
			twenty(`changed by "editor" (Update, ` + first + `)` + untouched)},
		{"more than twenty are counted", func(s *stand) { s.by("editor", "update", "", many(23)) }, set("mine", "y"), false, false,
			append(twenty(`changed by "editor" (Update, `+first+`)`+untouched), ": and 3 more fields")},
		{"the version it was based on is no longer kept", func(s *stand) {
			s.by("editor", "update", "", set("kept", "x"))
			s.by("editor", "update", "", set("kept", "y"))
			if err := s.engine.Engine.(kv.Compactor).Compact(s.Context(), s.revision()); err != nil {
				s.Fatal(err)
			}
		}, set("mine", "y"), false, false, []string{": " + versionForgotten}},
		{"it was deleted, and another was created", func(s *stand) {
			s.gone("a")
			s.made(thing("a", "is=another"))
			s.by("editor", "update", "", set("kept", "x"))
		}, set("mine", "y"), false, false, []string{": the object this write was based on was deleted by the server (2026-03-14T15:09:26Z), and another was created under its name by the server (2026-03-14T15:09:26Z)"}},
		{"it was deleted by one and created anew by another", func(s *stand) {
			s.changed("a", func(cm *configMap) { cm.Finalizers = nil })
			if _, err := s.Store.Delete(as(s.Context(), "collector"), "ns", "a", nil); err != nil {
				s.Fatal(err)
			}
			s.clock.Advance(time.Minute)
			if _, err := s.Create(as(s.Context(), "maker"), "ns", thing("a"), CreateOptions{}); err != nil {
				s.Fatal(err)
			}
		}, set("mine", "y"), false, false, []string{": the object this write was based on was deleted by \"collector\" (2026-03-14T15:09:26Z), and another was created under its name by \"maker\" (2026-03-14T15:10:26Z)"}},
		{"it was deleted and created anew, and what was is no longer kept", func(s *stand) {
			s.gone("a")
			s.made(thing("a", "is=another"))
			if err := s.engine.Engine.(kv.Compactor).Compact(s.Context(), s.revision()); err != nil {
				s.Fatal(err)
			}
		}, set("mine", "y"), false, false, []string{": the object this write was based on was deleted, and another was created under its name by the server (2026-03-14T15:09:26Z)"}},
		{"the version it names is older than the object, and there was none before", func(s *stand) {}, func(cm *configMap) { cm.ResourceVersion = "1" }, false, false,
			[]string{": " + objectYounger}},
		{"the version it names is from the future", func(s *stand) {}, func(cm *configMap) { cm.ResourceVersion = "99" }, false, false, []string{": " + versionAhead}},
		{"the version it names never was one of this object", func(s *stand) {
			s.made(thing("b"))
			s.by("editor", "update", "", set("kept", "x"))
		}, func(cm *configMap) { cm.ResourceVersion = "3" }, false, false, []string{": " + versionNever}},
		{"it was changed so much since that only the last changes are looked at", func(s *stand) {
			large := strings.Repeat("x", 1<<20)
			s.by("early", "update", "", set("early", "x"))
			for i := range walkBytesMax>>20 + 1 {
				s.changed("a", set("large", fmt.Sprint(i, large)))
			}
		}, set("early", "y"), false, false, []string{
			`.data.early: changed so many versions ago that it is not known by whom` + touch, `.data.large: changed by the server (Update, ` + first + `)` + untouched,
		}},
		{"it was changed so many times since that only the last changes are looked at", func(s *stand) {
			s.by("early", "update", "", set("early", "x"))
			for i := range walkMax {
				s.changed("a", set("busy", fmt.Sprint(i)))
			}
		}, set("early", "y"), false, false, []string{
			`.data.early: changed so many versions ago that it is not known by whom` + touch, `.data.busy: changed by the server (Update, ` + first + `)` + untouched,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, namespaced)
			read := s.made(with(thing("a", "kept=SECRET old"), func(cm *configMap) {
				cm.Labels, cm.Finalizers = map[string]string{"l": "old"}, []string{"x.y/a"}
				cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "A", Name: "one", UID: "u1"}, {APIVersion: "v1", Kind: "A", Name: "two", UID: "u2"}}
			}))
			c.story(s)
			store, o := s.Store, UpdateOptions{Patch: c.patch}
			if c.status {
				store = s.statusOf
			}
			desire := func(context.Context, runtime.Object) (runtime.Object, error) {
				return with(read.DeepCopy(), c.write), nil
			}
			if c.patch {
				desire = func(_ context.Context, current runtime.Object) (_ runtime.Object, err error) {
					defer func() {
						if recover() == errUnfit {
							err = errUnfit
						}
					}()
					return with(current.(*configMap), func(cm *configMap) { cm.ResourceVersion = read.ResourceVersion; c.write(cm) }), nil
				}
			}
			_, err := store.Update(t.Context(), "ns", "a", desire, o)
			told(t, err, conflictAnswer)
			var conflict *ConflictError
			if !errors.As(err, &conflict) || !apierrors.IsConflict(err) {
				t.Fatalf("%T is no conflict", err)
			}
			x, err := conflict.Explain(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, cause := range x.Causes() {
				if cause.Type != CauseFieldChanged {
					t.Errorf("reason %s", cause.Type)
				}
				got = append(got, cause.Field+": "+cause.Message)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("told\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
			}
			if strings.Contains(fmt.Sprint(x.Causes(), x.Summary(), conflict.Error()), "SECRET") {
				t.Errorf("values are told: %v", x.Causes())
			}
			if conflict.Current().Revision() != s.revision() && c.name != "the version it names never was one of this object" {
				t.Errorf("judged on %d, the newest is %d", conflict.Current().Revision(), s.revision())
			}
		})
	}
}

func twenty(message string) []string {
	var out []string
	for i := range 20 {
		out = append(out, fmt.Sprintf(".data.k%02d: %s", i, message))
	}
	return out
}

func TestSummaries(t *testing.T) {
	at := time.Date(2026, 3, 14, 15, 0, 0, 0, time.UTC)
	field := func(path string) FieldChange {
		return FieldChange{Path: path, Deed: Deed{Manager: "m", Operation: "Update", Time: at}}
	}
	const m = ` changed by "m" (Update, 2026-03-14T15:00:00Z); this write does not touch it`
	for _, c := range []struct {
		x    Explanation
		want string
	}{
		{Explanation{}, ""},
		{Explanation{Unknown: "why"}, "why"},
		{Explanation{Fields: []FieldChange{field(".a")}}, "since you read it: .a" + m},
		{Explanation{Fields: []FieldChange{field(".a"), field(".b"), field(".c"), field(".d"), field(".e")}},
			"since you read it: .a" + m + ". .b" + m + ". .c" + m + ". And 2 more fields"},
	} {
		if got := c.x.Summary(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// Nobody who does not ask pays for an explanation: a refusal reads no history, and asks for no shape.
func TestAConflictThatNobodyAsksAboutIsNotExplained(t *testing.T) {
	asked := 0
	s := newStand(t, namespaced, func(c *Config) { c.Shape = func() Shape { asked++; return nil } })
	old := s.made(thing("a"))
	s.by("editor", "update", "", set("x", "1"))
	_, err := s.Update(t.Context(), "ns", "a", Exactly(old), UpdateOptions{})
	if told(t, err, conflictAnswer); asked != 0 {
		t.Errorf("compared %d times", asked)
	}
	var conflict *ConflictError
	if !errors.As(err, &conflict) {
		t.Fatal(err)
	}
	if _, err := conflict.Explain(t.Context()); err != nil || asked == 0 {
		t.Errorf("compared %d times, %v", asked, err)
	}
}
