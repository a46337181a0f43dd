package compat

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/pawl-dev/pawl/kv"
)

func TestWhenTheNextBookmarkIsDue(t *testing.T) { // rules K94, K95
	for _, c := range []struct {
		name                         string
		progress, bookmarks, bounded bool
		left, want                   time.Duration
		never                        bool
	}{
		{"who wants none gets none", false, false, false, 0, 0, true},
		{"a watch without an end has one every minute", false, true, false, 0, time.Minute, false},
		{"a long one too", false, true, true, time.Hour, time.Minute, false},
		{"near its end it has the last one just before", false, true, true, 30 * time.Second, 28 * time.Second, false},
		{"then none", false, true, true, 2 * time.Second, 0, true},
		{"progress comes more often", true, false, true, time.Second, 5 * time.Second, false},
	} {
		got, ok := untilBookmark(c.progress, c.bookmarks, c.bounded, c.left)
		if ok == c.never || got != c.want {
			t.Errorf("%s: %v, %t", c.name, got, ok)
		}
	}
}

// told says what a watch tells, and when.
func told(w watch.Interface, start time.Time) []string {
	var all []string
	for e := range w.ResultChan() {
		rev, _ := apistorage.APIObjectVersioner{}.ObjectResourceVersion(e.Object)
		all = append(all, fmt.Sprintf("%s@%d %v", e.Type, rev, time.Since(start)))
	}
	return all
}

func TestBookmarksTellHowFarAWatchIs(t *testing.T) {
	for _, c := range []struct {
		name   string
		opts   apistorage.ListOptions
		during func(s *Store)
		want   string
	}{
		{"for who allows them", apistorage.ListOptions{Predicate: apistorage.SelectionPredicate{AllowWatchBookmarks: true}}, nil,
			"[BOOKMARK@3 1m0s BOOKMARK@3 2m0s BOOKMARK@3 2m18s]"},
		{"for who does not", apistorage.ListOptions{}, nil, "[]"},
		{"for who wants progress and asks", apistorage.ListOptions{ProgressNotify: true}, func(s *Store) {
			for range 3 {
				time.Sleep(time.Second)
				s.RequestWatchProgress(context.Background())
			}
			time.Sleep(4 * time.Second)
		}, "[BOOKMARK@3 1s BOOKMARK@3 2s BOOKMARK@3 3s BOOKMARK@3 5s]"},
		{"not for others who ask", apistorage.ListOptions{}, func(s *Store) {
			s.RequestWatchProgress(context.Background())
			time.Sleep(time.Second)
		}, "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, options(memory(t)))
				here := create(t, s, "one", "red")
				ctx, cancel := context.WithTimeout(t.Context(), 140*time.Second)
				defer cancel()
				c.opts.ResourceVersion = here.ResourceVersion
				w, err := s.Watch(ctx, "/configmaps/elsewhere", apistorage.ListOptions{
					Recursive: true, ResourceVersion: here.ResourceVersion, ProgressNotify: c.opts.ProgressNotify, Predicate: c.opts.Predicate,
				})
				if err != nil {
					t.Fatal(err)
				}
				create(t, s, "two", "red") // what it does not watch moves it on, too
				if c.during != nil {
					start := time.Now()
					go func() {
						c.during(s)
						w.Stop()
					}()
					if got := fmt.Sprint(told(w, start)); got != c.want {
						t.Errorf("got %s, want %s", got, c.want)
					}
					return
				}
				if got := fmt.Sprint(told(w, time.Now())); got != c.want {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
}

func TestHowAWatchEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(t *testing.T, w watch.Interface, cancel func(), engine kv.Engine)
	}{
		{"who stops it hears no more", func(_ *testing.T, w watch.Interface, _ func(), _ kv.Engine) { w.Stop(); w.Stop() }},
		{"its context ends", func(_ *testing.T, _ watch.Interface, cancel func(), _ kv.Engine) { cancel() }},
		{"the engine is closed", func(_ *testing.T, _ watch.Interface, _ func(), engine kv.Engine) { engine.Close() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			engine := memory(t)
			s := newStore(t, options(engine))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w := everything(t, ctx, s, apistorage.ListOptions{Predicate: apistorage.Everything})
			c.end(t, w, cancel, engine)
			if left := drained(t, w); len(left) != 0 { // rule K83
				t.Errorf("it says %v", left)
			}
		})
	}
}

// A watcher that does not read is ended when what it has not read is forgotten, and told so.
func TestAWatcherThatDoesNotReadFallsBehind(t *testing.T) {
	engine := memory(t)
	s := newStore(t, options(engine))
	one := create(t, s, "one", "red")
	w := everything(t, t.Context(), s, apistorage.ListOptions{ResourceVersion: one.ResourceVersion, Predicate: apistorage.Everything})
	for i := range 3 * eventsAhead {
		if err := s.GuaranteedUpdate(t.Context(), "/configmaps/a/one", newConfigMap(), false, nil, paint(fmt.Sprint(i)), nil); err != nil {
			t.Fatal(err)
		}
	}
	_, newest := engine.Revisions()
	if err := engine.Compact(t.Context(), newest); err != nil {
		t.Fatal(err)
	}
	all := drained(t, w)
	last := all[len(all)-1]
	if len(all) > eventsAhead+3 || last.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(last.Object)) {
		t.Errorf("%d events, the last is %s %v", len(all), last.Type, last.Object)
	}
	for i, e := range all[:len(all)-1] {
		if got := e.Object.(*corev1.ConfigMap).Data["is"]; got != fmt.Sprint(i) {
			t.Fatalf("event %d is %s", i, got)
		}
	}
}

func TestWhatIsWrongFromTheBeginning(t *testing.T) { // rule K81
	engine := memory(t)
	s := newStore(t, options(engine))
	create(t, s, "one", "red")
	if _, err := s.Watch(t.Context(), "/configmaps", apistorage.ListOptions{Recursive: true, ResourceVersion: "soon"}); err == nil {
		t.Error("a version that is none will do")
	}
	if err := engine.Compact(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	w := everything(t, t.Context(), s, apistorage.ListOptions{ResourceVersion: "1", Predicate: apistorage.Everything})
	if all := drained(t, w); len(all) != 1 || !apierrors.IsResourceExpired(apierrors.FromObject(all[0].Object)) {
		t.Errorf("from what is forgotten comes %v", all)
	}
}

// byColor picks config maps of one color, and fails for those that have none.
func byColor(color string) apistorage.SelectionPredicate {
	return apistorage.SelectionPredicate{
		Label: labels.Everything(), Field: fields.OneTermEqualSelector("is", color),
		GetAttrs: func(obj runtime.Object) (labels.Set, fields.Set, error) {
			is := obj.(*corev1.ConfigMap).Data["is"]
			if is == "" {
				return nil, nil, errors.New("it has no color")
			}
			return nil, fields.Set{"is": is}, nil
		},
	}
}

// A predicate that fails picks nothing, neither from a list nor from a watch (rules K58, K79).
func TestAPredicateThatFailsPicksNothing(t *testing.T) {
	s := newStore(t, options(memory(t)))
	create(t, s, "none", "")
	create(t, s, "one", "red")
	list := &corev1.ConfigMapList{}
	if err := s.GetList(t.Context(), "/configmaps", apistorage.ListOptions{Recursive: true, Predicate: byColor("red")}, list); err != nil || len(list.Items) != 1 {
		t.Errorf("listed %d, %v", len(list.Items), err)
	}
	w := everything(t, t.Context(), s, apistorage.ListOptions{ResourceVersion: list.ResourceVersion, Predicate: byColor("red")})
	for _, color := range []string{"", "red"} {
		if err := s.GuaranteedUpdate(t.Context(), "/configmaps/a/one", newConfigMap(), false, nil, paint(color), nil); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for range 2 {
		e := next(t, w)
		got = append(got, fmt.Sprintf("%s %s@%s", e.Type, e.Object.(*corev1.ConfigMap).Data["is"], e.Object.(*corev1.ConfigMap).ResourceVersion))
	}
	if want := "[DELETED red@4 ADDED red@5]"; fmt.Sprint(got) != want { // rules K76, K77
		t.Errorf("watched %v, want %s", got, want)
	}
	w.Stop()
	drained(t, w)
	if kept := w.(*channel).picked; len(kept) != 0 {
		t.Errorf("%d objects are kept after their events", len(kept))
	}
}

// Whoever asks is told when changes were seen, and of the state nothing.
func TestChangesAreStamped(t *testing.T) {
	s := newStore(t, options(memory(t)))
	create(t, s, "one", "red")
	w := everything(t, t.Context(), s, apistorage.ListOptions{RecordTimestamps: true, Predicate: apistorage.Everything})
	if e := next(t, w); e.Object.(*corev1.ConfigMap).Name != "one" {
		t.Errorf("the state is %v", e.Object)
	}
	before := time.Now()
	create(t, s, "two", "red")
	stamped, ok := next(t, w).Object.DeepCopyObject().(apistorage.WatchEventWithRecordTime)
	if !ok || stamped.RecordTime().Before(before) || stamped.Unwrap().(*corev1.ConfigMap).Name != "two" {
		t.Fatalf("the change is %+v", stamped)
	}
	if m, err := meta.Accessor(stamped); err != nil || m.GetName() != "two" {
		t.Errorf("its metadata is %v, %v", m, err)
	}
}

func TestWhoeverCountsWatchesIsToldThatOneHasBegun(t *testing.T) {
	var begun []context.Context
	o := options(memory(t))
	o.WatchStarted = func(ctx context.Context) { begun = append(begun, ctx) }
	s := newStore(t, o)
	type mine struct{}
	everything(t, context.WithValue(t.Context(), mine{}, true), s, apistorage.ListOptions{Predicate: apistorage.Everything})
	if len(begun) != 1 || begun[0].Value(mine{}) != true {
		t.Errorf("told %d times", len(begun))
	}
}
