package registry

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pawl-dev/pawl/kv"
)

func TestRelation(t *testing.T) {
	for _, c := range []struct {
		name string
		l    lineage
		want relation
	}{
		{"an earlier version of the object", lineage{named: 5, current: 9, created: 3, found: 5}, earlier},
		{"its first version", lineage{named: 3, current: 9, created: 3, found: 3}, earlier},
		{"a revision at which the object was not written", lineage{named: 6, current: 9, created: 3, found: 5}, never},
		{"an earlier version that is no longer kept", lineage{named: 5, current: 9, created: 3}, forgotten},
		{"a version of the object that was there before", lineage{named: 2, current: 9, created: 3, found: 2}, another},
		{"a version from before the object, of which nothing is kept", lineage{named: 2, current: 9, created: 3}, another},
		{"a revision at which the object before it had gone", lineage{named: 2, current: 9, created: 3, found: 1}, another},
		{"a version from before the first object of that name", lineage{named: 2, current: 9, created: 3, first: true}, unborn},
		{"a version that is to come", lineage{named: 10, current: 9, created: 3, found: 9}, ahead},
	} {
		if got := c.l.relation(); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

// A write that names an object by its uid, and finds another one.
func TestAPreconditionOnTheUIDIsExplained(t *testing.T) {
	replaced := func(s *stand) types.UID {
		was := s.made(thing("a")).UID
		s.gone("a")
		s.made(thing("a"))
		s.by("editor", "update", "", set("x", "y"))
		return was
	}
	const byWhom = "the object this write was based on was deleted by the server (2026-03-14T15:09:26Z), and another was created under its name by the server (2026-03-14T15:09:26Z)"
	update := func(s *stand, uid types.UID) error {
		_, err := s.wrote("writer", thing("a"), UpdateOptions{UID: uid})
		return err
	}
	remove := func(s *stand, uid types.UID) error {
		_, err := s.Store.Delete(s.Context(), "ns", "a", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		return err
	}
	for _, c := range []struct {
		name  string
		story func(*stand) types.UID
		write func(*stand, types.UID) error
		told  string
		want  string
	}{
		{"an update of an object that was deleted and created anew", replaced, update, "409 Conflict: Operation cannot be fulfilled on configmaps \"a\": StorageError: invalid object, Code: 4…", byWhom},
		{"a delete of one", replaced, remove, "409 Conflict: Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition (uid-1) does not match the UID in record (uid-2)…", byWhom},
		{"an update of an object of which nothing is kept", func(s *stand) types.UID { replaced(s); return "x" }, update, "409 Conflict: …", objectAnother},
		{"an update of an object that was deleted so long ago that it is not kept", func(s *stand) types.UID {
			uid := replaced(s)
			if err := s.engine.Engine.(kv.Compactor).Compact(s.Context(), s.revision()); err != nil {
				s.Fatal(err)
			}
			return uid
		}, update, "409 Conflict: …", objectAnother},
		{"an update that may create, of an object that is gone", func(s *stand) types.UID { return "x" }, update, "409 Conflict: …", objectGone},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy := namespaced
			policy.CreateOnUpdate = true
			s := newStand(t, policy)
			err := c.write(s, c.story(s))
			told(t, err, c.told)
			if got := explained(t, err); len(got) != 1 || got[0] != ": "+c.want {
				t.Errorf("explained by %v\nwant %s", got, c.want)
			}
		})
	}
}

// Of sensitive objects no value is told, not even as the name of an item. Metadata are not sensitive.
func TestNoItemOfASensitiveObjectIsNamed(t *testing.T) {
	const want = `[.data.plain .immutable .metadata.finalizers[="x.y/b"] .metadata.ownerReferences[uid="uid"]]`
	for _, sensitive := range []bool{false, true} {
		policy := namespaced
		policy.Sensitive = sensitive
		s := newStand(t, policy)
		seen := s.made(thing("a"))
		s.by("editor", "update", "", func(cm *configMap) {
			set("plain", "x")(cm)
			cm.Immutable = new(bool)
			cm.Finalizers = []string{"x.y/b"}
			cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "A", Name: "a", UID: "uid"}}
		})
		_, err := s.wrote("writer", seen, UpdateOptions{})
		var c *ConflictError
		if !errors.As(err, &c) {
			t.Fatal(err)
		}
		x, err := c.Explain(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range x.Fields {
			got = append(got, f.Path)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("sensitive is %v: told %v", sensitive, got)
		}
	}
	listed := fixed{members: map[string]Shape{"keys": fixed{keys: []string{"name"}}, "set": fixed{set: true}}}
	s := newStand(t, Policy{Sensitive: true}, func(c *Config) { c.Shape = func() Shape { return listed } })
	a, b := object(t, `{"keys":[{"name":"SECRET","x":1}],"set":["SECRET"]}`), object(t, `{"keys":[{"name":"SECRET","x":2}],"set":[]}`)
	if got := printed(compare(s.shapeOf(), a, b)); strings.Contains(got, "SECRET") || got != ".keys .set" {
		t.Errorf("told %s", got)
	}
}

// The user who made each change is in the error, for those who may know.
func TestTheErrorKnowsTheUser(t *testing.T) {
	s := newStand(t, namespaced)
	seen := s.made(thing("a"))
	s.by("editor", "apply", "status", set("x", "y"))
	_, err := s.wrote("writer", seen, UpdateOptions{})
	var c *ConflictError
	if !errors.As(err, &c) {
		t.Fatal(err)
	}
	x, err := c.Explain(t.Context())
	if err != nil || len(x.Fields) != 1 {
		t.Fatal(x, err)
	}
	if d := x.Fields[0].Deed; d.User != "SECRET user" || d.Manager != "editor" || d.Operation != "Apply" || d.Subresource != "status" || !d.Time.Equal(s.clock.Now()) {
		t.Errorf("it was %+v", d)
	}
	x.Fields[0].Path = "spoiled"
	if again, err := c.Explain(t.Context()); err != nil || again.Fields[0].Path == "spoiled" {
		t.Errorf("asked again it says %+v, %v", again, err)
	}
}

// Whoever loses to the same version as somebody else is told what was found out for them.
func TestExplanationsAreRemembered(t *testing.T) {
	prepared := 0
	s := newStand(t, namespaced)
	seen := s.made(thing("a", "mine=1"))
	s.by("one", "update", "", set("x", "1"))
	s.by("two", "update", "", set("y", "1"))
	s.strategy.during = func(step string) {
		if step == "prepare" {
			prepared++
		}
	}
	for i := range 5 {
		mine := with(seen.DeepCopy(), set("mine", fmt.Sprint(i)))
		if i == 3 {
			mine = with(seen.DeepCopy(), set("x", "2"))
		}
		_, err := s.wrote("writer", mine, UpdateOptions{})
		got := strings.Join(explained(t, err), " ")
		if strings.Contains(got, ".data.x: changed by \"one\" (Update, 2026-03-14T15:10:26Z); this write changes it too") != (i == 3) {
			t.Errorf("write %d is told %s", i, got)
		}
	}
	if want := 3 + 5; prepared != want { // three versions, once, and each write
		t.Errorf("%d objects were prepared, want %d", prepared, want)
	}
}

// …but only of the same two versions.
func TestExplanationsAreOfTwoVersions(t *testing.T) {
	s := newStand(t, namespaced)
	first := s.made(thing("a"))
	s.by("one", "update", "", set("x", "1"))
	second := s.stored("a")
	s.by("two", "update", "", set("y", "1"))
	const x, y = `.data.x: changed by "one" (Update, 2026-03-14T15:10:26Z); this write does not touch it`, `.data.y: changed by "two" (Update, 2026-03-14T15:11:26Z); this write does not touch it`
	for _, c := range []struct {
		seen *configMap
		want string
	}{{first, x + y}, {second, y}, {first, x + y}} {
		_, err := s.wrote("writer", c.seen, UpdateOptions{})
		if got := strings.Join(explained(t, err), ""); got != c.want {
			t.Errorf("who read %s is told %s", c.seen.ResourceVersion, got)
		}
	}
	s.by("three", "update", "", set("z", "1"))
	_, err := s.wrote("writer", second, UpdateOptions{})
	if got := explained(t, err); len(got) != 2 {
		t.Errorf("after another change who read %s is told %s", second.ResourceVersion, got)
	}
}
