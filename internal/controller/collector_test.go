package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/registry"
)

// collecting runs a test in a world with a collector, and a namespace ns.
func collecting(t *testing.T, test func(w *world)) {
	t.Helper()
	within(t, func(w *world) {
		w.create("", "namespaces", "", named("ns"))
		stop := w.collect()
		defer func() { stop() }()
		w.settle()
		test(w)
	})
}

// collect starts a collector. The function that it returns stops it, and waits until it has.
func (w *world) collect() (stop func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan struct{})
	c := NewCollector(CollectorOptions{Engine: w.engine, Catalogue: w.catalogue, Custom: w.manager})
	go func() {
		defer close(ended)
		if err := c.Run(ctx); err != nil {
			w.Error(err)
		}
	}()
	return func() { cancel(); <-ended }
}

// An item is an object of a test: "configmaps/a" in the namespace ns.
type item string

func (i item) split() (group, plural, name string) {
	plural, name, _ = strings.Cut(string(i), "/")
	if plural == "widgets" {
		group = "test.example"
	}
	return group, plural, name
}

// get returns the metadata of an object, nil if it does not exist.
func (w *world) get(i item) *metav1.ObjectMeta {
	w.Helper()
	group, plural, name := i.split()
	v := w.version(group, plural)
	found, err := v.Store.Get(w.ctx, w.namespaceFor(v.Store), name, "")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		w.Fatal(err)
	}
	md, err := found.Metadata()
	if err != nil {
		w.Fatal(err)
	}
	return &md
}

func (w *world) namespaceFor(s *registry.Store) string {
	if s.Policy().Namespaced {
		return "ns"
	}
	return ""
}

// refTo is a reference to an object that exists. Changes may make it wrong.
func (w *world) refTo(owner item, changes ...func(*metav1.OwnerReference)) metav1.OwnerReference {
	w.Helper()
	group, plural, name := owner.split()
	gvk := w.version(group, plural).Form.GroupVersionKind()
	block := true
	ref := metav1.OwnerReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: name, UID: w.get(owner).UID, BlockOwnerDeletion: &block,
	}
	for _, change := range changes {
		change(&ref)
	}
	return ref
}

func notBlocking(r *metav1.OwnerReference) { r.BlockOwnerDeletion = nil }

// own makes an object with owners and finalizers.
func (w *world) own(i item, finalizers string, owners ...metav1.OwnerReference) {
	w.Helper()
	group, plural, name := i.split()
	md := metav1.ObjectMeta{Name: name, OwnerReferences: owners, Finalizers: strings.Fields(finalizers)}
	data, err := json.Marshal(md)
	if err != nil {
		w.Fatal(err)
	}
	w.create(group, plural, w.namespaceFor(w.version(group, plural).Store), string(data))
}

// drop deletes an object with a policy, unless the collector was quicker.
func (w *world) drop(i item, p metav1.DeletionPropagation) {
	w.Helper()
	group, plural, name := i.split()
	s := w.version(group, plural).Store
	_, err := s.Delete(w.ctx, w.namespaceFor(s), name, &metav1.DeleteOptions{PropagationPolicy: &p})
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
}

// edit changes the metadata of an object.
func (w *world) edit(i item, change func(metav1.Object)) {
	w.Helper()
	group, plural, name := i.split()
	s := w.version(group, plural).Store
	_, err := s.Update(w.ctx, w.namespaceFor(s), name, func(_ context.Context, obj runtime.Object) (runtime.Object, error) {
		acc, err := meta.Accessor(obj)
		if err == nil {
			change(acc)
		}
		return obj, err
	}, registry.UpdateOptions{})
	if err != nil {
		w.Fatal(err)
	}
}

func adopt(refs ...metav1.OwnerReference) func(metav1.Object) {
	return func(o metav1.Object) { o.SetOwnerReferences(refs) }
}

// left says what is there of some objects, once nothing happens any more: their names, with an
// exclamation mark if they are being deleted, and their owners.
func (w *world) left(items ...item) string {
	w.Helper()
	w.settle()
	var words []string
	for _, i := range items {
		md := w.get(i)
		if md == nil {
			continue
		}
		_, _, word := i.split()
		if md.DeletionTimestamp != nil {
			word += "!"
		}
		for _, r := range md.OwnerReferences {
			word += "<" + r.Name
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func (w *world) expect(want string, items ...item) {
	w.Helper()
	if got := w.left(items...); got != want {
		w.Errorf("left is %q, want %q", got, want)
	}
}

const inBackground, inForeground, orphaned = metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan

const (
	itemA item = "configmaps/a"
	itemB item = "configmaps/b"
	itemC item = "secrets/c"
	itemD item = "configmaps/d"
)

func TestWhatHasNoOwnerAnyMoreGoes(t *testing.T) { // rules H165, B20
	for _, c := range []struct {
		name string
		test func(w *world)
	}{
		{"across kinds, level by level", func(w *world) {
			w.own(itemA, "")
			w.own(itemB, "", w.refTo(itemA))
			w.own(itemC, "", w.refTo(itemB))
			w.own(itemD, "")
			w.expect("a b<a c<b d", itemA, itemB, itemC, itemD)
			w.drop(itemA, inBackground)
			w.expect("d", itemA, itemB, itemC, itemD)
		}},
		{"not while a finalizer holds it, or its owner", func(w *world) {
			w.own(itemA, "x.y/hold")
			w.own(itemB, "x.y/hold", w.refTo(itemA))
			w.own(itemC, "", w.refTo(itemB))
			w.drop(itemA, inBackground)
			w.expect("a! b<a c<b", itemA, itemB, itemC)
			w.free("", "configmaps", "ns", "a")
			w.expect("b!<a c<b", itemA, itemB, itemC)
			w.free("", "configmaps", "ns", "b")
			w.expect("", itemA, itemB, itemC)
		}},
		{"not while another owner is there, but the reference goes", func(w *world) {
			w.own(itemA, "")
			w.own(itemB, "")
			w.own(itemC, "", w.refTo(itemA), w.refTo(itemB))
			w.drop(itemA, inBackground)
			w.expect("b c<b", itemA, itemB, itemC)
			w.drop(itemB, inBackground)
			w.expect("", itemA, itemB, itemC)
		}},
		{"even if something new has the name of its owner", func(w *world) {
			w.own(itemA, "")
			w.own(itemC, "", w.refTo(itemA))
			w.drop(itemA, inBackground)
			w.own(itemA, "")
			w.expect("a", itemA, itemC)
			w.own(itemC, "", w.refTo(itemA))
			w.expect("a c<a", itemA, itemC)
			w.own(itemB, "", w.refTo(itemA, func(r *metav1.OwnerReference) { r.UID = "of-another" }))
			w.expect("a c<a", itemA, itemB, itemC)
		}},
		{"or if its reference names the wrong place", func(w *world) {
			w.own(itemA, "")
			w.own(itemB, "", w.refTo(itemA, func(r *metav1.OwnerReference) { r.Name = "z" }))
			w.expect("a", itemA, itemB)
			w.own(itemB, "", w.refTo(itemA, func(r *metav1.OwnerReference) { r.Kind = "Secret" }))
			w.expect("a", itemA, itemB)
		}},
		{"as soon as it names an owner that is not there", func(w *world) {
			w.own(itemA, "")
			ref := w.refTo(itemA)
			w.drop(itemA, inBackground)
			w.own(itemB, "")
			w.expect("b", itemB)
			w.edit(itemB, adopt(ref))
			w.expect("", itemB)
		}},
		{"not if it named other owners in time", func(w *world) {
			w.own(itemA, "")
			w.own(itemD, "")
			w.own(itemB, "", w.refTo(itemA))
			w.edit(itemB, adopt(w.refTo(itemD)))
			w.drop(itemA, inBackground)
			w.expect("b<d d", itemA, itemB, itemD)
			w.drop(itemD, inBackground)
			w.expect("", itemB, itemD)
		}},
		{"as its own finalizer asks", func(w *world) {
			w.own(itemA, "")
			w.own(itemB, "orphan", w.refTo(itemA))
			w.own(itemC, "", w.refTo(itemB))
			w.drop(itemA, inBackground)
			w.expect("c", itemA, itemB, itemC)
		}},
	} {
		t.Run(c.name, func(t *testing.T) { collecting(t, c.test) })
	}
}

func TestOwnersThatAreNotInANamespace(t *testing.T) {
	collecting(t, func(w *world) {
		const node, other item = "nodes/n", "nodes/m"
		w.own(node, "")
		w.own(itemA, "", w.refTo(node))
		w.own(itemB, "")
		w.own(other, "", w.refTo(itemB)) // what is nowhere cannot name what is somewhere
		w.expect("n a<n b m<b", node, itemA, itemB, other)
		w.drop(node, inBackground)
		w.drop(itemB, inBackground)
		w.expect("m<b", node, itemA, itemB, other)
	})
}

func TestForegroundDeletion(t *testing.T) { // rules H165, S92
	for _, c := range []struct {
		name string
		test func(w *world)
	}{
		{"the owner goes last", func(w *world) {
			w.own(itemA, "")
			w.own(itemB, "", w.refTo(itemA))
			w.own(itemC, "x.y/hold", w.refTo(itemB))
			w.drop(itemA, inForeground)
			w.expect("a! b!<a c!<b", itemA, itemB, itemC)
			w.free("", "secrets", "ns", "c")
			w.expect("", itemA, itemB, itemC)
		}},
		{"an owner without dependents goes at once", func(w *world) {
			w.own(itemA, "")
			w.drop(itemA, inForeground)
			w.expect("", itemA)
		}},
		{"a dependent that does not block is not waited for", func(w *world) {
			w.own(itemA, "")
			w.own(itemB, "x.y/hold", w.refTo(itemA, notBlocking))
			w.drop(itemA, inForeground)
			w.expect("b!<a", itemA, itemB)
		}},
		{"a dependent that blocks no longer is not waited for any more", func(w *world) {
			w.own(itemA, "")
			w.own(itemB, "x.y/hold", w.refTo(itemA))
			w.drop(itemA, inForeground)
			w.expect("a! b!<a", itemA, itemB)
			w.edit(itemB, adopt(w.refTo(itemA, notBlocking)))
			w.expect("b!<a", itemA, itemB)
		}},
		{"a dependent with another owner stays with that", func(w *world) {
			w.own(itemA, "")
			w.own(itemD, "")
			w.own(itemB, "", w.refTo(itemA), w.refTo(itemD))
			w.drop(itemA, inForeground)
			w.expect("b<d d", itemA, itemB, itemD)
		}},
		{"a dependent that comes late goes, too", func(w *world) {
			w.own(itemA, "")
			w.own(itemB, "x.y/hold", w.refTo(itemA))
			w.drop(itemA, inForeground)
			w.settle()
			w.own(itemC, "", w.refTo(itemA))
			w.expect("a! b!<a", itemA, itemB, itemC)
		}},
		{"the sender may change to the background", func(w *world) {
			w.own(itemA, "")
			w.own(itemB, "x.y/hold", w.refTo(itemA))
			w.drop(itemA, inForeground)
			w.expect("a! b!<a", itemA, itemB)
			w.drop(itemA, inBackground)
			w.expect("b!<a", itemA, itemB)
		}},
	} {
		t.Run(c.name, func(t *testing.T) { collecting(t, c.test) })
	}
}

func TestOrphans(t *testing.T) { // rules H165, S91
	for _, c := range []struct {
		name string
		test func(w *world)
	}{
		{"they stay, and their dependents with them", func(w *world) {
			w.own(itemA, "")
			w.own(itemB, "", w.refTo(itemA))
			w.own(itemC, "", w.refTo(itemB))
			w.drop(itemA, orphaned)
			w.expect("b c<b", itemA, itemB, itemC)
		}},
		{"other owners keep them", func(w *world) {
			w.own(itemA, "")
			w.own(itemD, "")
			w.own(itemC, "", w.refTo(itemD), w.refTo(itemA))
			w.drop(itemA, orphaned)
			w.expect("c<d d", itemA, itemC, itemD)
		}},
		{"those that are being deleted let go, too", func(w *world) {
			w.own(itemA, "")
			w.own(itemB, "x.y/hold", w.refTo(itemA))
			w.drop(itemB, inBackground)
			w.drop(itemA, orphaned)
			w.expect("b!", itemA, itemB)
		}},
		{"an owner without any goes at once", func(w *world) {
			w.own(itemA, "")
			w.drop(itemA, orphaned)
			w.expect("", itemA)
		}},
	} {
		t.Run(c.name, func(t *testing.T) { collecting(t, c.test) })
	}
}

func TestCirclesEnd(t *testing.T) {
	circle := func(w *world) {
		w.own(itemA, "")
		w.own(itemB, "", w.refTo(itemA))
		w.own(itemC, "", w.refTo(itemB))
		w.edit(itemA, adopt(w.refTo(itemC)))
		w.expect("a<c b<a c<b", itemA, itemB, itemC)
	}
	for _, c := range []struct {
		name string
		test func(w *world)
	}{
		{"in the background", func(w *world) { circle(w); w.drop(itemA, inBackground) }},
		{"in the foreground", func(w *world) { circle(w); w.drop(itemB, inForeground) }},
		{"in the foreground, two at a time", func(w *world) { circle(w); w.drop(itemB, inForeground); w.drop(itemA, inForeground) }},
		{"in the foreground, all at a time", func(w *world) {
			circle(w)
			for _, i := range []item{itemA, itemB, itemC} {
				w.drop(i, inForeground)
			}
		}},
		{"of one object", func(w *world) {
			w.own(itemA, "")
			w.edit(itemA, adopt(w.refTo(itemA)))
			w.expect("a<a", itemA)
			w.drop(itemA, inForeground)
		}},
		{"of one object that sets itself free", func(w *world) {
			w.own(itemA, "")
			w.edit(itemA, adopt(w.refTo(itemA)))
			w.drop(itemA, orphaned)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			collecting(t, func(w *world) {
				c.test(w)
				w.expect("", itemA, itemB, itemC)
			})
		})
	}
}

func TestOwnersOfKindsThatComeAndGo(t *testing.T) {
	const widget item = "widgets/w"
	collecting(t, func(w *world) {
		w.define("test.example", "widgets", "Widget")
		w.own(widget, "")
		w.own(itemA, "", w.refTo(widget))
		w.own(itemB, "", w.refTo(widget, func(r *metav1.OwnerReference) { r.APIVersion = "test.example/v1" }))
		w.own(itemC, "", w.refTo(widget, func(r *metav1.OwnerReference) { r.APIVersion = "test.example/v9" }))
		w.expect("w a<w b<w c<w", widget, itemA, itemB, itemC)

		w.deleteDefinition("widgets.test.example")
		w.expect("c<w", itemA, itemB, itemC) // v9 never was served: nobody can say

		none := metav1.OwnerReference{APIVersion: "test.example/v1", Kind: "Widget", Name: "w", UID: "x"}
		w.own(itemD, "", none)
		w.expect("c<w d<w", itemC, itemD)
		w.define("test.example", "widgets", "Widget")
		w.expect("c<w", itemC, itemD) // now it can be seen that there is none

		w.own(itemD, "")
		w.own(widget, "", w.refTo(itemD))
		w.drop(itemD, inForeground)
		w.expect("", widget, itemD)
	})
}

func TestTheCollectorGoesOnWhereItWas(t *testing.T) {
	plant := func(w *world) {
		w.own(itemA, "")
		w.own(itemB, "x.y/hold", w.refTo(itemA))
		w.own(itemC, "", w.refTo(itemB))
	}
	for _, c := range []struct {
		name   string
		before func(w *world) // while it runs
		while  func(w *world) // it does not
		want   string
	}{
		{"the owner went while it did not run", func(*world) {}, func(w *world) { w.drop(itemA, inBackground) }, "b!<a c<b"},
		{"the owner was marked while it did not run", func(*world) {}, func(w *world) { w.drop(itemA, inForeground) }, "a! b!<a"},
		{"the owner was marked while it ran, and the last dependent went while it did not", func(w *world) { w.drop(itemA, inForeground) },
			func(w *world) { w.free("", "configmaps", "ns", "b") }, ""},
		{"orphans were made while it did not run", func(*world) {}, func(w *world) { w.drop(itemA, orphaned) }, "b c<b"},
		{"nothing happened", func(*world) {}, func(*world) {}, "a b<a c<b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			within(t, func(w *world) {
				w.create("", "namespaces", "", named("ns"))
				stop := w.collect()
				plant(w)
				c.before(w)
				w.settle()
				stop()
				c.while(w)
				defer w.collect()()
				w.expect(c.want, itemA, itemB, itemC)
			})
		})
	}
}

func TestTheCollectorFallsBehind(t *testing.T) {
	collecting(t, func(w *world) {
		w.stopLoops() // so that it is the only one whose watch forgets
		w.own(itemA, "")
		w.own(itemB, "", w.refTo(itemA))
		w.settle()
		w.engine.behind.Store(true)
		w.drop(itemA, inBackground)
		w.expect("", itemA, itemB)
		w.startLoops()
	})
}

func TestWhatCannotBeCollectedIsTriedAgain(t *testing.T) {
	collecting(t, func(w *world) {
		w.own(itemA, "")
		for i := range 3 * collectedMax {
			w.own(item(fmt.Sprint("configmaps/of-a-", i)), "", w.refTo(itemA))
		}
		w.engine.full.Store(true)
		w.engine.Engine.Commit(w.ctx, kv.Txn{Ops: []kv.Op{kv.Delete("default/core/configmaps/ns/a")}})
		w.settle()
		if left := len(w.keys("/of-a-")); left != 3*collectedMax {
			t.Errorf("%d are left while the disk is full", left)
		}
		w.later(time.Minute)
		if tries := w.engine.refused.Load(); tries < 2*3*collectedMax || tries > 20*3*collectedMax {
			t.Errorf("tried %d times to delete %d objects within a minute", tries, 3*collectedMax)
		}
		w.engine.full.Store(false)
		w.later(pauseMax)
		if left := w.keys("/of-a-"); len(left) > 0 {
			t.Errorf("%q are left, and there is room", left)
		}
	})
}

func TestWhoCollects(t *testing.T) {
	collecting(t, func(w *world) {
		w.own(itemA, "")
		w.own(itemB, "x.y/hold", w.refTo(itemA))
		w.drop(itemA, inBackground)
		w.settle()
		v, err := w.version("", "configmaps").Store.Get(w.ctx, "ns", "b", "")
		if err != nil {
			t.Fatal(err)
		}
		want := kv.Author{User: "system:serviceaccount:kube-system:generic-garbage-collector", Verb: "delete"}
		if got := v.Author(); got != want {
			t.Errorf("the author is %+v, want %+v", got, want)
		}
	})
}

// An owner is marked, and the collector has not come to that yet when it looks for the owner of a
// dependent that is older: it must not see the mark before the dependents in between.
func TestNothingIsSeenAheadOfItsTime(t *testing.T) {
	within(t, func(w *world) {
		w.create("", "namespaces", "", named("ns"))
		w.own(itemA, "x.y/hold")
		w.own(itemB, "", w.refTo(itemA))
		_, then := w.engine.Revisions()
		w.own(itemC, "", w.refTo(itemB))
		w.drop(itemA, inForeground)

		r := NewCollector(CollectorOptions{Engine: w.engine, Catalogue: w.catalogue, Custom: w.manager}).collection()
		snap, err := w.engine.Read(w.ctx, kv.Exactly(then))
		if err != nil {
			t.Fatal(err)
		}
		b := snap.Get("default/core/configmaps/ns/b")
		r.take(b)
		n := r.graph.byKey[b.Key]
		if err := r.seek(w.ctx, n); err != nil {
			t.Fatal(err)
		}
		if a := n.owners[0].owner; a.stage != alive || a.revision > then {
			t.Errorf("at %d the owner is at stage %d, as of %d", then, a.stage, a.revision)
		}
		if v := n.verdict(); v.what != rests {
			t.Errorf("the verdict is %+v", v)
		}
		for event := range w.changesAfter(then) {
			r.take(event.Version)
		}
		if v := n.verdict(); v.what != deletes || v.policy != inForeground {
			t.Errorf("once everything is known the verdict is %+v", v)
		}
	})
}

// changesAfter yields what happened after a revision.
func (w *world) changesAfter(after kv.Revision) func(func(kv.Event) bool) {
	return func(yield func(kv.Event) bool) {
		changes, err := w.engine.Watch("default/", after)
		if err != nil {
			w.Fatal(err)
		}
		defer changes.Stop()
		for {
			event, ok, err := changes.Next()
			if err != nil {
				w.Fatal(err)
			}
			if !ok || !yield(event) {
				return
			}
		}
	}
}
