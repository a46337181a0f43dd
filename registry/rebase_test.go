package registry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

// A notary notes in managedFields who made an object what it is, and which data that changed.
type notary struct{}

func (notary) Update(live, obj runtime.Object, manager string) (runtime.Object, error) {
	is, was := obj.(*configMap), &configMap{}
	if live != nil {
		was = live.(*configMap)
	}
	var changed []string
	for k, v := range is.Data {
		if was.Data[k] != v {
			changed = append(changed, k)
		}
	}
	for k := range was.Data {
		if _, ok := is.Data[k]; !ok {
			changed = append(changed, k)
		}
	}
	slices.Sort(changed)
	is.ManagedFields = slices.Clone(was.ManagedFields)
	if len(changed) > 0 {
		is.ManagedFields = append(is.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, APIVersion: strings.Join(changed, " "), Operation: metav1.ManagedFieldsOperationUpdate,
			FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte("{}")},
		})
	}
	return is, nil
}

func (notary) Apply(runtime.Object, runtime.Object, string, bool) (runtime.Object, error) {
	return nil, errors.New("nobody applies here")
}

func notarized(c *Config) { c.Ownership = notary{} }

// managed lists managedFields as the notary writes them.
func managed(cm *configMap) string {
	var out []string
	for _, e := range cm.ManagedFields {
		out = append(out, e.Manager+": "+e.APIVersion)
	}
	return strings.Join(out, ", ")
}

func as(ctx context.Context, manager string) context.Context {
	return storage.WithAuthor(ctx, kv.Author{User: "user", Manager: manager, Verb: "update"})
}

// wrote has a manager update object a as anybody would.
func (s *stand) wrote(manager string, obj *configMap, o UpdateOptions) (Updated, error) {
	s.Helper()
	return s.Update(as(s.Context(), manager), "ns", "a", Exactly(obj), o)
}

// Two people read an object. One writes, and the other wants their change done all the same.
func TestRebase(t *testing.T) {
	s := newStand(t, namespaced, notarized)
	seen := s.made(thing("a", "one=1", "two=1", "three=1"))
	if _, err := s.wrote("first", with(seen.DeepCopy(), set("one", "2")), UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	onto := s.revision()
	s.said, s.attempts = nil, 0
	did, err := s.wrote("second", with(seen.DeepCopy(), func(cm *configMap) { set("two", "2")(cm); delete(cm.Data, "three") }), UpdateOptions{Rebase: true})
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, did.Version)
	if fmt.Sprint(got.Data) != "map[one:SECRET 2 two:SECRET 2]" || got.Generation != 2 || s.revision() != onto+1 {
		t.Errorf("it became %v of generation %d", got.Data, got.Generation)
	}
	if want := "first: one, second: three two"; managed(got) != want {
		t.Errorf("managedFields say %s, want %s", managed(got), want)
	}
	if want := "begin 1: update, end 1: written a"; s.hooked() != want {
		t.Errorf("the hook was told %s", s.hooked())
	}
	r := did.Rebased
	if r == nil || r.Seen.String() != seen.ResourceVersion || r.Onto != onto || fmt.Sprint(r.Fields, r.Others) != "[.data.three .data.two] [.data.one]" {
		t.Errorf("it says %+v", r)
	}
}

func TestWhatRebasingComesTo(t *testing.T) {
	unread := UpdateOptions{Rebase: true}
	for _, c := range []struct {
		name  string
		story func(*stand)
		write func(*configMap)
		o     UpdateOptions
		want  string   // the answer, or what is stored then
		told  []string // the fields that an explanation names
	}{
		{"nobody wrote in between: it is an ordinary update", func(*stand) {}, set("two", "2"), unread, "one=1 two=SECRET 2", nil},
		{"it changes nothing: nothing is written", func(s *stand) { s.by("other", "update", "", set("one", "2")) }, func(*configMap) {}, unread, "one=SECRET 2 two=1", nil},
		{"a field was changed on both sides", func(s *stand) {
			s.by("other", "update", "", func(cm *configMap) { set("one", "2")(cm); set("two", "2")(cm) })
		}, set("two", "3"), unread, conflictAnswer, []string{`.data.two: changed by "other" (Update, 2026-03-14T15:10:26Z); this write changes it too`}},
		{"a field was changed on both sides to the same value: each may have counted itself", func(s *stand) { s.by("other", "update", "", set("two", "2")) },
			set("two", "2"), unread, conflictAnswer, []string{`.data.two: changed by "other" (Update, 2026-03-14T15:10:26Z); this write changes it too`}},
		{"without the option it is refused", func(s *stand) { s.by("other", "update", "", set("one", "2")) }, set("two", "2"), UpdateOptions{}, conflictAnswer,
			[]string{`.data.one: changed by "other" (Update, 2026-03-14T15:10:26Z); this write does not touch it`}},
		{"it names no version", func(*stand) {}, func(cm *configMap) { cm.ResourceVersion = "" }, unread,
			"422 Invalid: configmaps \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update", nil},
		{"the version is no longer kept", func(s *stand) {
			s.by("other", "update", "", set("one", "2"))
			s.by("other", "update", "", set("one", "3"))
			if err := s.engine.Engine.(kv.Compactor).Compact(s.Context(), s.revision()); err != nil {
				s.Fatal(err)
			}
		}, set("two", "2"), unread, conflictAnswer, []string{": " + versionForgotten}},
		{"the object was deleted, and another was created", func(s *stand) { s.gone("a"); s.made(thing("a", "one=1", "two=1")) }, set("two", "2"), unread, conflictAnswer,
			[]string{`: the object this write was based on was deleted by the server (2026-03-14T15:09:26Z), and another was created under its name by the server (2026-03-14T15:09:26Z)`}},
		{"the object is gone", func(s *stand) { s.gone("a") }, set("two", "2"), unread, `404 NotFound: configmaps "a" not found`, nil},
		{"the version is from the future", func(*stand) {}, func(cm *configMap) { cm.ResourceVersion = "99" }, unread, conflictAnswer, []string{": " + versionAhead}},
		{"the version is no number", func(*stand) {}, func(cm *configMap) { cm.ResourceVersion = "x" }, unread, `raw: strconv.ParseUint: parsing "x": invalid syntax`, nil},
		{"the change and the object it comes to are not valid together", func(s *stand) {
			s.by("other", "update", "", set("one", "2"))
			s.strategy.findings = field.ErrorList{field.Forbidden(field.NewPath("data"), "not both")}
		}, set("two", "2"), unread, `422 Invalid: ConfigMap "a" is invalid: data: Forbidden: not both`, nil},
		{"a hook says no", func(s *stand) {
			s.by("other", "update", "", set("one", "2"))
			s.hookErr = errors.New("hook says no")
		}, set("two", "2"), unread, `raw: hook says no`, nil},
		{"it sends a name that is another", func(s *stand) { s.by("other", "update", "", set("one", "2")) }, func(cm *configMap) { cm.Name = "b" }, unread,
			`422 Invalid: ConfigMap "b" is invalid: metadata.name: Invalid value: "b": field is immutable`, nil},
		{"it sends a uid that is another", func(s *stand) { s.by("other", "update", "", set("one", "2")) }, func(cm *configMap) { cm.UID = "x" }, unread,
			`422 Invalid: ConfigMap "a" is invalid: metadata.uid: Invalid value: "x": field is immutable`, nil},
		{"it leaves out the namespace, and what only the server sets", func(s *stand) { s.by("other", "update", "", set("one", "2")) },
			func(cm *configMap) {
				cm.Namespace, cm.UID, cm.Generation, cm.CreationTimestamp = "", "", 77, metav1.Time{}
				set("two", "2")(cm)
			}, unread, "one=SECRET 2 two=SECRET 2", nil},
		{"it sends managedFields", func(s *stand) { s.by("other", "update", "", set("one", "2")) },
			func(cm *configMap) {
				cm.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "nobody"}}
				set("two", "2")(cm)
			}, unread, "one=SECRET 2 two=SECRET 2", nil},
		{"it sends a status, which this endpoint puts back", func(s *stand) {
			s.by("kubelet", "update", "status", func(cm *configMap) { cm.BinaryData = map[string][]byte{"ready": []byte("yes")} })
		}, func(cm *configMap) { cm.BinaryData = map[string][]byte{"ready": []byte("no")}; set("two", "2")(cm) }, unread, "one=1 two=SECRET 2 ready=yes", nil},
		{"both added a finalizer", func(s *stand) {
			s.by("other", "update", "", func(cm *configMap) { cm.Finalizers = append(cm.Finalizers, "x.y/theirs") })
		}, func(cm *configMap) { cm.Finalizers = append(cm.Finalizers, "x.y/mine") }, unread, "one=1 two=1 [x.y/mine x.y/theirs]", nil},
		{"it is a dry run: nothing is written", func(s *stand) { s.by("other", "update", "", set("one", "2")) }, set("two", "2"), UpdateOptions{Rebase: true, DryRun: true}, "one=SECRET 2 two=1", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, namespaced, notarized)
			seen := s.made(thing("a", "one=1", "two=1"))
			c.story(s)
			did, err := s.wrote("writer", with(seen.DeepCopy(), c.write), c.o)
			if err != nil {
				told(t, err, c.want)
				if got := explained(t, err); !slices.Equal(got, c.told) {
					t.Errorf("explained by\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.told, "\n  "))
				}
				return
			}
			if got := shown(s.stored("a")); got != c.want {
				t.Errorf("stored is %s, want %s", got, c.want)
			}
			if written := read(t, did.Version); c.o.DryRun && shown(written) != "one=SECRET 2 two=SECRET 2" {
				t.Errorf("it would have become %s", shown(written))
			}
			if r := did.Rebased; r != nil && strings.Contains(r.String(), ".metadata.n") {
				t.Errorf("it says %s: neither the name nor the namespace was changed", r)
			}
			if strings.Contains(managed(s.stored("a")), "nobody") {
				t.Errorf("managedFields say %s", managed(s.stored("a")))
			}
		})
	}
}

// shown is what an object holds, in one line.
func shown(cm *configMap) string {
	var out []string
	for k, v := range cm.Data {
		out = append(out, k+"="+v)
	}
	slices.Sort(out)
	for k, v := range cm.BinaryData {
		out = append(out, k+"="+string(v))
	}
	if len(cm.Finalizers) > 0 {
		out = append(out, fmt.Sprint(cm.Finalizers))
	}
	return strings.Join(out, " ")
}

// explained are the causes of a conflict; none of any other error.
func explained(t *testing.T, err error) (causes []string) {
	t.Helper()
	var conflict *ConflictError
	if !errors.As(err, &conflict) {
		return nil
	}
	x, err := conflict.Explain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range x.Causes() {
		causes = append(causes, c.Field+": "+c.Message)
	}
	return causes
}

// Somebody writes again while a write is being rebased: it is rebased onto what that made, and only the last attempt counts.
func TestARebaseThatLosesIsRebasedAgain(t *testing.T) {
	s := newStand(t, namespaced, notarized)
	seen := s.made(thing("a", "one=1", "two=1", "three=1"))
	s.by("first", "update", "", set("one", "2"))
	once := true
	s.strategy.during = func(step string) {
		if step == "validate" && once {
			once = false
			s.changed("a", set("three", "2"))
		}
	}
	did, err := s.wrote("writer", with(seen.DeepCopy(), set("two", "2")), UpdateOptions{Rebase: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := shown(read(t, did.Version)); got != "one=SECRET 2 three=SECRET 2 two=SECRET 2" || once {
		t.Errorf("it became %s", got)
	}
	if r := did.Rebased; r == nil || r.Onto != s.revision()-1 || fmt.Sprint(r.Fields, r.Others) != "[.data.two] [.data.one .data.three]" {
		t.Errorf("it says %+v", r)
	}
	if want := "begin 1: update, end 1: refused, begin 2: update, end 2: written a"; s.hooked() != want {
		t.Errorf("the hook was told %s", s.hooked())
	}
}

// …and if what that made overlaps, it is refused after all.
func TestARebaseThatLosesToAnOverlapIsRefused(t *testing.T) {
	s := newStand(t, namespaced, notarized)
	seen := s.made(thing("a", "one=1", "two=1"))
	s.by("first", "update", "", set("one", "2"))
	s.strategy.during = func(step string) {
		if step == "validate" {
			s.strategy.during = nil
			s.changed("a", set("two", "3"))
		}
	}
	_, err := s.wrote("writer", with(seen.DeepCopy(), set("two", "2")), UpdateOptions{Rebase: true})
	told(t, err, conflictAnswer)
	if got := explained(t, err); len(got) != 1 || !strings.HasPrefix(got[0], ".data.two: changed by the server") {
		t.Errorf("explained by %v", got)
	}
	if got := shown(s.stored("a")); got != "one=SECRET 2 two=SECRET 3" {
		t.Errorf("stored is %s", got)
	}
}

// …and if it is gone by then, and the update may create, nothing was rebased.
func TestARebaseThatFindsNothingCreates(t *testing.T) {
	policy := namespaced
	policy.CreateOnUpdate = true
	s := newStand(t, policy)
	seen := s.made(thing("a", "one=1"))
	s.by("first", "update", "", set("two", "2"))
	s.strategy.during = func(step string) {
		if step == "validate" {
			s.strategy.during = nil
			s.gone("a")
		}
	}
	did, err := s.wrote("writer", with(seen.DeepCopy(), set("one", "2")), UpdateOptions{Rebase: true})
	if err != nil || !did.Created || did.Rebased != nil || shown(read(t, did.Version)) != "one=SECRET 2" {
		t.Errorf("%+v, %v", did, err)
	}
}

// A finalizer is taken off an object whose deletion was asked for meanwhile: then it goes.
func TestARebaseMayEndADeletion(t *testing.T) {
	s := newStand(t, namespaced)
	seen := s.made(with(thing("a"), func(cm *configMap) { cm.Finalizers = []string{"x.y/mine"} }))
	if _, err := s.Store.Delete(t.Context(), "ns", "a", nil); err != nil {
		t.Fatal(err)
	}
	did, err := s.wrote("writer", with(seen.DeepCopy(), func(cm *configMap) { cm.Finalizers = nil }), UpdateOptions{Rebase: true})
	if err != nil || did.Removed == nil || did.Rebased == nil {
		t.Fatalf("%+v, %v", did, err)
	}
	if s.stored("a") != nil {
		t.Error("it is still there")
	}
}

// A patch is made of the version that it names, and what that changes is done to the one that exists.
func TestAPatchIsRebased(t *testing.T) {
	s := newStand(t, namespaced, notarized)
	seen := s.made(thing("a", "one=1", "two=1"))
	s.by("other", "update", "", set("one", "2"))
	swap := func(_ context.Context, current runtime.Object) (runtime.Object, error) {
		return with(current.(*configMap), func(cm *configMap) {
			cm.ResourceVersion = seen.ResourceVersion
			cm.Data["two"] = cm.Data["one"]
		}), nil
	}
	did, err := s.Update(as(t.Context(), "patcher"), "ns", "a", swap, UpdateOptions{Patch: true, Rebase: true})
	if err != nil || shown(read(t, did.Version)) != "one=SECRET 2 two=1" || did.Rebased == nil || len(did.Rebased.Fields) != 0 {
		t.Errorf("%+v, %v: the patch was made of a version in which it changes nothing", did, err)
	}
}

// A rebased write does what the same write does that was made of the newest version: in every step,
// and to the last byte.
func TestARebasedWritePassesEverythingThatAWritePasses(t *testing.T) {
	rounds := 150
	if os.Getenv("PAWL_HEAVY") == "1" {
		rounds = 20_000
	}
	seed, rebased := rand.Uint64(), 0
	for i := range rounds {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		change := func(cm *configMap) *configMap {
			for range 1 + r.IntN(2) {
				k := fmt.Sprint(r.IntN(6))
				switch r.IntN(4) {
				case 0:
					delete(cm.Data, k)
				case 1:
					cm.Labels[k] = fmt.Sprint(r.IntN(3))
				case 2:
					if f := "x.y/" + k; !slices.Contains(cm.Finalizers, f) {
						cm.Finalizers = append(cm.Finalizers, f)
					}
				default:
					cm.Data[k] = fmt.Sprint(r.IntN(3))
				}
			}
			return cm
		}
		base := change(change(with(thing("a", "0=0", "1=1"), func(cm *configMap) { cm.Labels, cm.Finalizers = map[string]string{"l": "l"}, []string{"x.y/f"} })))
		stands := [2]*stand{newStand(t, namespaced, notarized), newStand(t, namespaced, notarized)}
		var seen, theirs *configMap
		for _, s := range stands {
			seen = s.made(base.DeepCopy())
			if theirs == nil {
				theirs = change(seen.DeepCopy())
			}
			if _, err := s.wrote("first", theirs, UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			s.clock.Advance(1)
			s.said, s.attempts = nil, 0
		}
		mine := change(seen.DeepCopy())
		did, err := stands[0].wrote("second", mine, UpdateOptions{Rebase: true})
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			t.Fatalf("seed %d, round %d: %v", seed, i, err)
		}
		if did.Rebased != nil {
			rebased++
		}
		again := read(t, did.Version).DeepCopy() // what the writer would have sent, who had read the newest
		newest := stands[1].stored("a")
		again.ResourceVersion, again.ManagedFields, again.Generation = newest.ResourceVersion, newest.ManagedFields, newest.Generation
		if _, err := stands[1].wrote("second", again, UpdateOptions{}); err != nil {
			t.Fatalf("seed %d, round %d: %v", seed, i, err)
		}
		one, other := stands[0].stored("a"), stands[1].stored("a")
		if one.String() != other.String() {
			t.Fatalf("seed %d, round %d: rebased it is\n%s\nwritten anew it is\n%s", seed, i, one, other)
		}
		if did.Rebased == nil {
			continue
		}
		begun := func(s *stand) string { return strings.Join(s.said[slices.Index(s.said, "begin 1: update"):], ", ") }
		if a, b := begun(stands[0]), begun(stands[1]); a != b {
			t.Fatalf("seed %d, round %d: rebased it goes through %s, written anew through %s", seed, i, a, b)
		}
	}
	if t.Logf("%d of %d were rebased", rebased, rounds); rebased < rounds/3 {
		t.Error("too few to say anything")
	}
}

// Objects of any Go type can be rebased, alone and in a transaction.
func TestObjectsOfAGoTypeAreRebased(t *testing.T) {
	ctx := t.Context()
	lamps, wholes := Of[lamp](memory(t), DefaultFor[lamp]{}), Of[whole](memory(t), DefaultFor[whole]{})
	seen := must(lamps.Create(ctx, newLamp("desk", "red")))
	if _, err := lamps.Update(ctx, "desk", func(l *lamp) error { l.Uses++; return nil }); err != nil {
		t.Fatal(err)
	}
	seen.Color = "blue"
	got, err := lamps.Replace(ctx, seen, UpdateOptions{Rebase: true})
	if err != nil || got.Color != "blue" || got.Uses != 1 || got.UID != seen.UID {
		t.Errorf("it became %+v, %v", got, err)
	}
	seen.Color, seen.Tags = "red", []string{"x"} // of which the color is as it was read
	done, err := Transact(ctx, lamps.Creates(newLamp("wall", "white")), lamps.Replaces(seen, UpdateOptions{Rebase: true}))
	if err != nil {
		t.Fatal(err)
	}
	if r := done.Members[1].Rebased; r == nil || fmt.Sprint(r.Fields, r.Others) != "[.tags] [.color .uses]" {
		t.Errorf("the transaction says %+v", r)
	}
	if got := must(lamps.Get(ctx, "desk")); got.Color != "blue" || len(got.Tags) != 1 {
		t.Errorf("it became %+v", got)
	}
	one := must(wholes.Create(ctx, &whole{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Is: "1"}))
	if _, err := wholes.Update(ctx, "a", func(w *whole) error { w.Labels = map[string]string{"l": "x"}; return nil }); err != nil {
		t.Fatal(err)
	}
	one.Is = "2"
	if two, err := wholes.Replace(ctx, one, UpdateOptions{Rebase: true}); err != nil || two.Is != "2" || two.Labels["l"] != "x" {
		t.Errorf("it became %+v, %v", two, err)
	}
}

func TestARebaseReadsWell(t *testing.T) {
	for _, c := range []struct {
		r    Rebased
		want string
	}{
		{Rebased{41, 43, []string{".spec.replicas"}, []string{".metadata.labels.tier"}},
			"rebased from resourceVersion 41 to 43: this write changes .spec.replicas; others had changed .metadata.labels.tier"},
		{Rebased{1, 2, nil, []string{".a", ".b", ".c", ".d", ".e", ".f", ".g"}},
			"rebased from resourceVersion 1 to 2: this write changes no field; others had changed .a, .b, .c, .d, .e and 2 more"},
	} {
		if got := c.r.String(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
