package registry

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pawl-dev/pawl/storage"
)

// A patient strategy gives its objects half a minute, but for those in a hurry.
type patient struct {
	*strategy
	asking func() // runs each time it is asked what holds an object
}

func (p *patient) Grace(obj runtime.Object, asked *int64) (int64, bool) {
	if obj.(*corev1.ConfigMap).Data["in"] == "a hurry" {
		return 0, false
	}
	if asked != nil {
		return *asked, true
	}
	return 30, true
}

func (p *patient) Holds(obj runtime.Object) bool {
	if p.asking != nil {
		p.asking()
	}
	return p.strategy.Holds(obj)
}

// dying makes an object one whose deletion was asked for ten seconds before there are so many left.
func dying(grace int64, left int, finalizers ...string) func(*stand, *corev1.ConfigMap) {
	return func(s *stand, cm *corev1.ConfigMap) {
		end := metav1.NewTime(s.clock.Now().Truncate(time.Second).Add(time.Duration(left) * time.Second))
		cm.DeletionTimestamp, cm.DeletionGracePeriodSeconds, cm.Finalizers = &end, &grace, finalizers
	}
}

func TestGracefulDelete(t *testing.T) {
	seconds := func(n int64) *metav1.DeleteOptions { return &metav1.DeleteOptions{GracePeriodSeconds: &n} }
	for _, c := range []struct {
		name   string
		now    func(*stand, *corev1.ConfigMap)
		o      *metav1.DeleteOptions
		want   string // "removed", or the grace and how long from now, the generation, the finalizers
		writes int
		hook   string
	}{
		{"its strategy says how long it has (S86)", nil, &metav1.DeleteOptions{}, "30 s, in 30 s, 6, []", 1, "written a"},
		{"nothing at all is asked (S80)", nil, nil, "30 s, in 30 s, 6, []", 1, "written a"},
		{"the sender says how long it has (S86)", nil, seconds(10), "10 s, in 10 s, 6, []", 1, "written a"},
		{"less than nothing is a second (S84)", nil, seconds(-7), "1 s, in 1 s, 6, []", 1, "written a"},
		{"its strategy gives it none (S86)", func(_ *stand, cm *corev1.ConfigMap) { cm.Data["in"] = "a hurry" }, seconds(10), "removed", 1, "removed a"},
		{"a generation that is not counted stays so (S86)", func(_ *stand, cm *corev1.ConfigMap) { cm.Generation = 0 }, seconds(10), "10 s, in 10 s, 0, []", 1, "written a"},
		{"who is given no time is told so, and goes (S99)", nil, seconds(0), "removed", 2, "removed a"},
		{"who is given no time, and is held, stays (S98)", func(_ *stand, cm *corev1.ConfigMap) { cm.Finalizers = []string{"x.y/a"} }, seconds(0), "0 s, in 0 s, 6, [x.y/a]", 1, "written a"},
		{"time and the collector's finalizer are given together (S93, S96)", nil, &metav1.DeleteOptions{PropagationPolicy: at(metav1.DeletePropagationForeground)}, "30 s, in 30 s, 6, [foregroundDeletion]", 1, "written a"},
		{"who has time left is left alone (S88, S95)", dying(30, 20), &metav1.DeleteOptions{}, "30 s, in 20 s, 5, []", 0, "unchanged"},
		{"more time is not given (S88)", dying(30, 20), seconds(60), "30 s, in 20 s, 5, []", 0, "unchanged"},
		{"the same once more changes nothing (S88)", dying(30, 20), seconds(30), "30 s, in 20 s, 5, []", 0, "unchanged"},
		{"nor can finalizers be changed then (S94)", dying(30, 20, "orphan"), &metav1.DeleteOptions{PropagationPolicy: at(metav1.DeletePropagationBackground)}, "30 s, in 20 s, 5, [orphan]", 0, "unchanged"},
		{"less time is counted from the beginning (S89)", dying(30, 20), seconds(15), "15 s, in 5 s, 5, []", 1, "written a"},
		{"what is over by then is over now (S89)", dying(30, 20), seconds(5), "1 s, in 0 s, 5, []", 1, "written a"},
		{"a negative grace on the object is a second (S84)", dying(-7, 1), seconds(1), "-7 s, in 1 s, 5, []", 0, "unchanged"},
		{"a negative grace on the object is a second, of which none can be left (S84)", dying(-7, 1), seconds(0), "removed", 2, "removed a"},
		{"who is to hurry up at last goes (S99)", dying(30, 20), seconds(0), "removed", 2, "removed a"},
		{"who was told that there is no time left goes (S87)", dying(0, 0), seconds(10), "removed", 1, "removed a"},
		{"who was told so, and is held, stays (S87, S98)", dying(0, 0, "x.y/a"), seconds(10), "0 s, in 0 s, 5, [x.y/a]", 0, "unchanged"},
	} {
		for _, dry := range []bool{false, true} {
			for _, precondition := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, dry %v, at this version alone %v", c.name, dry, precondition), func(t *testing.T) {
					s := newStand(t, namespaced)
					s.Store.strategy = &patient{strategy: s.strategy}
					s.made(thing("a"))
					old := s.changed("a", func(cm *corev1.ConfigMap) {
						cm.Generation = 5
						if c.now != nil {
							c.now(s, cm)
						}
					})
					o := c.o.DeepCopy()
					if o == nil && (dry || precondition) {
						o = &metav1.DeleteOptions{}
					}
					if dry {
						o.DryRun = []string{metav1.DryRunAll}
					}
					if precondition { // the second step has what the first wrote for its version (S101)
						o.Preconditions = &metav1.Preconditions{ResourceVersion: &old.ResourceVersion, UID: &old.UID}
					}
					given, was := o.DeepCopy(), s.revision()
					did, err := s.Delete(t.Context(), "ns", "a", o)
					if err != nil {
						t.Fatal(err)
					}
					if !reflect.DeepEqual(o, given) {
						t.Errorf("the options became %+v (S105)", o)
					}
					if got := fared(s, did); got != c.want {
						t.Errorf("it fares so: %s; want %s", got, c.want)
					}
					writes := c.writes
					if dry {
						writes = 0
					}
					if got := int(s.revision() - was); got != writes {
						t.Errorf("%d writes, want %d", got, writes)
					}
					if gone := s.stored("a") == nil; gone != (c.want == "removed" && !dry) {
						t.Errorf("gone is %v", gone)
					}
					if c.want == "removed" && !dry && did.Version.Revision() != s.revision() {
						t.Errorf("shown at %d, want the version of the deletion (S104)", did.Version.Revision())
					}
					if want := "begin 1: delete, end 1: " + c.hook; s.hooked() != want {
						t.Errorf("the hook was told %s, want %s", s.hooked(), want)
					}
				})
			}
		}
	}
}

// fared tells what became of an object.
func fared(s *stand, did Deleted) string {
	if did.Removed {
		return "removed"
	}
	cm := read(s, did.Version)
	now := s.clock.Now().Truncate(time.Second)
	return fmt.Sprintf("%d s, in %d s, %d, %v", *cm.DeletionGracePeriodSeconds, int(cm.DeletionTimestamp.Sub(now).Seconds()), cm.Generation, cm.Finalizers)
}

// Who is told that there is no time left goes in a second step. Something may happen in between.
func TestBetweenTheTwoStepsOfADelete(t *testing.T) { // rules S99, S101, S103
	for _, c := range []struct {
		name    string
		between func(*stand)
		want    string // what is there then
		told    bool   // that it was removed
	}{
		{"nothing happens", func(*stand) {}, "nothing", true},
		{"somebody else removes it", func(s *stand) { s.gone("a") }, "nothing", true},
		{"somebody else removes it, and another comes", func(s *stand) {
			s.gone("a")
			plain := Must(func() Config { c := s.config; c.Strategy, c.Hooks = Default{Policies: namespaced}, nil; return c }())
			if _, err := plain.Create(s.Context(), "ns", thing("a", "is=another"), CreateOptions{}); err != nil {
				s.Fatal(err)
			}
		}, "another", true},
		{"somebody writes it", func(s *stand) { s.changed("a", func(cm *corev1.ConfigMap) { cm.Data["is"] = "last" }) }, "nothing", true},
		{"a finalizer comes to hold it", func(s *stand) {
			s.changed("a", func(cm *corev1.ConfigMap) { cm.Data["is"], cm.Finalizers = "held", []string{"x.y/a"} })
		}, "held", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, namespaced)
			p := &patient{strategy: s.strategy}
			s.Store.strategy = p
			s.made(thing("a", "is=old"))
			asked := 0
			p.asking = func() {
				if asked++; asked == 2 { // the first step asks once, the second for each of its attempts
					c.between(s)
				}
			}
			did, err := s.Delete(t.Context(), "ns", "a", &metav1.DeleteOptions{GracePeriodSeconds: at(int64(0))})
			if err != nil {
				t.Fatal(err)
			}
			got := "nothing"
			if there := s.stored("a"); there != nil {
				got = there.Data["is"]
			}
			if got != c.want || did.Removed != c.told || did.Object == nil || did.Object.GetName() != "a" {
				t.Errorf("there is %s, told %+v", got, did)
			}
			ending := map[bool]string{true: "removed a", false: "written a"}[c.told]
			if want := "begin 1: delete, end 1: " + ending; s.hooked() != want {
				t.Errorf("the hook was told %s, want %s", s.hooked(), want)
			}
		})
	}
}

// A delete of one version alone, that drops the collector's finalizer and so holds nothing back, is
// done; the reference refuses it always (rule S101).
func TestDeleteAtAVersionDropsAFinalizer(t *testing.T) {
	for _, dry := range []bool{true, false} {
		s := newStand(t, namespaced)
		there := s.made(with(thing("a"), func(cm *corev1.ConfigMap) { cm.Finalizers = []string{metav1.FinalizerOrphanDependents} }))
		o := &metav1.DeleteOptions{PropagationPolicy: at(metav1.DeletePropagationBackground), Preconditions: &metav1.Preconditions{ResourceVersion: &there.ResourceVersion}}
		if dry {
			o.DryRun = []string{metav1.DryRunAll}
		}
		did, err := s.Delete(t.Context(), "ns", "a", o)
		if err != nil || !did.Removed || did.Object.GetName() != "a" || (s.stored("a") != nil) != dry {
			t.Errorf("dry %v: %+v, %v, stored %v", dry, did, err, s.stored("a"))
		}
	}
}

func TestMarkDeleting(t *testing.T) { // rule S97
	for _, c := range []struct {
		name       string
		now        func(*stand, *corev1.ConfigMap)
		noGrace    bool
		generation int64
		want       string // how many seconds ago, and the generation
	}{
		{"it was not being deleted", nil, false, 5, "0 s ago, 6"},
		{"it was not being deleted, and has no generation", nil, false, 0, "0 s ago, 0"},
		{"it was being deleted", dying(0, -9), false, 5, "9 s ago, 5"},
		{"it would have been deleted later", dying(0, 9), false, 5, "0 s ago, 5"},
		{"it has no grace to be noted", nil, true, 5, "0 s ago, 6"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, Policy{Namespaced: true, NoGrace: c.noGrace})
			cm := thing("a")
			if cm.Generation = c.generation; c.now != nil {
				c.now(s, cm)
			}
			cm.DeletionGracePeriodSeconds = nil
			s.markDeleting(cm)
			if got := fmt.Sprintf("%d s ago, %d", int(s.clock.Now().Truncate(time.Second).Sub(cm.DeletionTimestamp.Time).Seconds()), cm.Generation); got != c.want {
				t.Errorf("it is being deleted since %s, want %s", got, c.want)
			}
			if noted := cm.DeletionGracePeriodSeconds != nil; noted == c.noGrace || noted && *cm.DeletionGracePeriodSeconds != 0 {
				t.Errorf("grace %v", cm.DeletionGracePeriodSeconds)
			}
		})
	}
}

// A watcher sees both steps of a delete that takes two, and one event of every other (rules S99,
// S119).
func TestWhatAWatcherSeesOfADelete(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*stand) error
		want []string
	}{
		{"one without grace", func(s *stand) error { _, err := s.Delete(s.Context(), "ns", "a", nil); return err }, []string{"DELETED a"}},
		{"one that is told that there is no time left", func(s *stand) error {
			s.Store.strategy = &patient{strategy: s.strategy}
			_, err := s.Delete(s.Context(), "ns", "a", &metav1.DeleteOptions{GracePeriodSeconds: at(int64(0))})
			return err
		}, []string{"MODIFIED a", "DELETED a"}},
		{"one of a collection (S119)", func(s *stand) error {
			_, err := s.DeleteCollection(s.Context(), ListOptions{Namespace: "ns"}, nil)
			return err
		}, []string{"DELETED a", "DELETED b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStand(t, namespaced)
			s.made(thing("a"))
			s.made(thing("b"))
			w, err := s.Watch(t.Context(), WatchOptions{Namespace: "ns", From: storage.After{Revision: s.revision()}})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			if err := c.do(s); err != nil {
				t.Fatal(err)
			}
			var got []string
			for e, ok, err := w.Next(); ok; e, ok, err = w.Next() {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprint(e.Type, " ", e.Version.Name()))
			}
			slices.Sort(got[max(0, len(got)-len(c.want)):]) // a collection has no order
			want := slices.Clone(c.want)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("saw %q, want %q", got, want)
			}
		})
	}
}
