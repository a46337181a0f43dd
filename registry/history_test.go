package registry

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

func by(t *testing.T, user, manager, verb string) context.Context {
	return storage.WithAuthor(t.Context(), kv.Author{User: user, Manager: manager, Verb: verb})
}

// past is a history in words: what happened, who did it, and which fields changed.
func past(t *testing.T, s *Store, name string) []string {
	t.Helper()
	var all []string
	var last kv.Revision
	for p, err := range s.History(t.Context(), "ns", name) {
		if err != nil {
			return append(all, answer(err))
		}
		if last != 0 && p.Revision >= last {
			t.Errorf("%d comes after %d", p.Revision, last)
		}
		last = p.Revision
		a := p.Author
		text := strings.TrimSpace(fmt.Sprint(p.Type, " ", a.User, "/", a.Manager, "/", a.Verb, "/", a.Subresource, " ", strings.Join(p.Fields, " "), p.Unknown))
		if p.Version.Exists() {
			text += " = " + read(t, p.Version).Data["is"]
			if got := read(t, p.Version).ResourceVersion; got != p.Revision.String() {
				t.Errorf("version %s of step %d", got, p.Revision)
			}
		}
		all = append(all, text)
	}
	return all
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

func TestTheHistoryOfAnObjectIsWhoChangedWhat(t *testing.T) {
	s := newStand(t, namespaced)
	must(s.Create(by(t, "ann", "kubectl", ""), "ns", thing("one", "is=red", "by=ann"), CreateOptions{}))
	must(s.Create(t.Context(), "ns", thing("two", "is=black"), CreateOptions{}))
	must(s.Update(by(t, "bob", "switch", ""), "ns", "one", setting("is=blue"), UpdateOptions{}))
	must(s.Update(by(t, "bob", "switch", ""), "ns", "one", setting("is=blue"), UpdateOptions{})) // changes nothing
	ctx := storage.WithAuthor(t.Context(), kv.Author{User: "sys", Manager: "loop", Verb: "patch", Subresource: "status"})
	must(s.statusOf.Update(ctx, "ns", "one", func(_ context.Context, o runtime.Object) (runtime.Object, error) {
		o.(*configMap).BinaryData = map[string][]byte{"seen": []byte("x")}
		return o, nil
	}, UpdateOptions{}))
	must(s.Update(by(t, "bob", "", "apply"), "ns", "one", setting("by=bob"), UpdateOptions{}))
	alive := []string{
		"MODIFIED bob//apply/ .data.by = blue",
		"MODIFIED sys/loop/patch/status .binaryData.seen = blue",
		"MODIFIED bob/switch/update/ .data.is = blue",
		"ADDED ann/kubectl/create/ = red",
	}
	expect(t, past(t, s.Store, "one"), alive...)

	must(s.Delete(by(t, "eve", "kubectl", ""), "ns", "one", nil))
	gone := append([]string{"DELETED eve/kubectl/delete/ = blue"}, alive...)
	expect(t, past(t, s.Store, "one"), gone...)

	must(s.Create(by(t, "eve", "kubectl", ""), "ns", thing("one", "is=green"), CreateOptions{}))
	expect(t, past(t, s.Store, "one"), append([]string{"ADDED eve/kubectl/create/ = green"}, gone...)...)
	objects := map[kv.Revision]bool{}
	for p := range s.History(t.Context(), "ns", "one") {
		objects[p.Version.Created()] = true
	}
	if len(objects) != 2 {
		t.Errorf("%d objects had that name, want 2", len(objects))
	}
	expect(t, past(t, s.Store, "none"), `404 NotFound: configmaps "none" not found`)
	expect(t, past(t, s.Store, ""), `400 BadRequest: Name parameter required.`)
}

func TestAHistoryEndsWhereWhatWasBeforeIsForgotten(t *testing.T) {
	s := newStand(t, namespaced)
	s.made(thing("one", "is=red"))
	s.changed("one", func(cm *configMap) { cm.Data["is"] = "blue" })
	middle := s.revision()
	s.changed("one", func(cm *configMap) { cm.Data["is"] = "green" })
	s.made(thing("gone", "is=red"))
	s.gone("gone")
	compact := func(rev kv.Revision) {
		if err := s.engine.Engine.(kv.Compactor).Compact(t.Context(), rev); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, past(t, s.Store, "gone"), "DELETED /// = red", "ADDED //create/ = red")
	compact(middle)
	expect(t, past(t, s.Store, "one"), "MODIFIED /// .data.is = green", "MODIFIED /// what it was before is no longer kept = blue")
	compact(s.revision())
	expect(t, past(t, s.Store, "one"), "MODIFIED /// what it was before is no longer kept = green")
	expect(t, past(t, s.Store, "gone"), `404 NotFound: configmaps "gone" not found`)
}

func TestAHistoryGoesOnPastWhatCannotBeRead(t *testing.T) {
	s := newStand(t, namespaced)
	s.made(thing("one", "is=red"))
	key := s.Table().Key("ns", "one")
	must(s.engine.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put(key, []byte("rotten"))}}))
	must(s.engine.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Delete(key)}}))
	var all []string
	for p, err := range s.History(t.Context(), "ns", "one") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprint(p.Type, " ", p.Unknown))
	}
	expect(t, all, "DELETED ", "MODIFIED storage: corrupt object: ns/one: not an object in an envelope of format 1", "ADDED ")
}

func TestAHistoryIsLeftWhenItsReaderIs(t *testing.T) {
	s := newStand(t, namespaced)
	s.made(thing("one", "is=red"))
	s.changed("one", func(cm *configMap) { cm.Data["is"] = "blue" })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errs []error
	for _, err := range s.History(ctx, "ns", "one") {
		errs = append(errs, err)
		cancel()
	}
	if len(errs) != 2 || errs[0] != nil || !apierrors.IsTimeout(errs[1]) {
		t.Errorf("%v", errs)
	}
	for range s.History(t.Context(), "ns", "one") {
		break
	}
}

func TestAnObjectIsReadAsItWas(t *testing.T) {
	s := newStand(t, namespaced)
	first := s.made(thing("one", "is=red"))
	s.made(thing("other"))
	between := s.revision()
	s.changed("one", func(cm *configMap) { cm.Data["is"] = "blue" })
	s.gone("one")
	gone := s.revision()
	s.made(thing("one", "is=green"))
	for _, c := range []struct {
		name, at, want string
	}{
		{"its first version", first.ResourceVersion, "red at " + first.ResourceVersion},
		{"a version of another object", between.String(), "red at " + first.ResourceVersion},
		{"its second", (between + 1).String(), "blue at " + (between + 1).String()},
		{"when it was gone", gone.String(), `404 NotFound: configmaps "one" not found`},
		{"the object after it", (gone + 1).String(), "green at " + (gone + 1).String()},
		{"before anything", "1", `404 NotFound: configmaps "one" not found`},
		{"no version", "", `400 BadRequest: a resourceVersion is needed to say when, and "" is none`},
		{"what is no version", "x", `400 BadRequest: a resourceVersion is needed to say when, and "x" is none`},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := s.At(t.Context(), "ns", "one", c.at)
			got := answer(err)
			if err == nil {
				cm := read(t, v)
				got = cm.Data["is"] + " at " + cm.ResourceVersion
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if err := s.engine.Engine.(kv.Compactor).Compact(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	_, err := s.At(t.Context(), "ns", "one", first.ResourceVersion)
	told(t, err, fmt.Sprintf("410 Expired: what was there at resourceVersion %s is no longer kept: the oldest that is known is %d", first.ResourceVersion, gone))
	if !apierrors.IsResourceExpired(err) {
		t.Error(err)
	}
	_, err = s.At(t.Context(), "", "one", "1")
	told(t, err, "400 BadRequest: Namespace parameter required.")
}

func TestAHistoryOfGoObjects(t *testing.T) {
	c := Of[lamp](memory(t), nil)
	made := must(c.Create(by(t, "ann", "", ""), newLamp("desk", "red")))
	must(c.Update(by(t, "bob", "switch", ""), "desk", func(l *lamp) error { l.Color, l.Uses = "blue", 7; return nil }))
	must(c.Delete(by(t, "eve", "", ""), "desk"))
	var all []string
	for p, err := range c.History(t.Context(), "desk") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.ReplaceAll(p.String(), p.Time.UTC().Format(time.RFC3339), "now")+" = "+must(p.Object()).Color)
	}
	expect(t, all, `4: DELETED by "eve" (delete, now) = blue`, `3: MODIFIED by "switch" (update, now): .color .uses = blue`, `2: ADDED by "ann" (create, now) = red`)
	if got := must(c.At(t.Context(), "desk", made.ResourceVersion)); got.Color != "red" || got.UID != made.UID {
		t.Errorf("%v", got)
	}
	if got, err := (PastOf[lamp]{collection: c}).Object(); got != nil || err != nil {
		t.Error(got, err)
	}
}
