package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// A rest is what one resource still has in a namespace, or anywhere, at one revision.
type rest struct {
	store     *registry.Store
	namespace string // "" for anywhere
	revision  kv.Revision
	items     []storage.Version
}

// restAt reads what is left at a revision.
func restAt(ctx context.Context, store *registry.Store, namespace string, at kv.Revision) (*rest, error) {
	r := &rest{store: store, namespace: namespace, revision: at}
	page, err := store.List(ctx, r.asListed())
	if err != nil {
		return nil, err
	}
	r.items = page.Items
	return r, nil
}

// asListed asks for exactly the objects of the rest.
func (r *rest) asListed() registry.ListOptions {
	return registry.ListOptions{Namespace: r.namespace, From: storage.Exactly{Revision: r.revision}}
}

// held reports whether all objects are being deleted already, so that nothing but their
// finalizers keeps them. One that cannot be read is not known to be held.
func (r *rest) held() bool {
	return !slices.ContainsFunc(r.items, func(v storage.Version) bool {
		deleting, err := v.Deleting()
		return err != nil || !deleting
	})
}

// delete deletes the objects of the rest and no others: not even those that have taken their
// names since.
func (r *rest) delete(ctx context.Context) error {
	background := metav1.DeletePropagationBackground
	_, err := r.store.DeleteCollection(ctx, r.asListed(), &metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil {
		return fmt.Errorf("%s: %w", r.store.Resource(), err)
	}
	return nil
}

// finalizers counts the objects that each finalizer holds.
func (r *rest) finalizers(counts map[string]int) {
	for _, v := range r.items {
		md, err := v.Metadata()
		if err != nil {
			continue // what cannot be read cannot be deleted either, and that is told
		}
		for _, f := range md.Finalizers {
			counts[f]++
		}
	}
}

// patience says how long a wait may last although something is left.
type patience struct {
	afterChange time.Duration // since the first change; 0: until nothing is left
	atMost      time.Duration // 0: forever
}

// wait returns when nothing of what is left can be left any more, or when patience is over. It
// sees every change since the revisions of the rests.
func wait(ctx context.Context, c clock.Clock, left []*rest, p patience) error {
	w := waiting{deadlines: make([]clock.Timer, 0, 2)}
	defer w.stop()
	for _, r := range left {
		watch, err := r.store.Table().Watch(ctx, storage.WatchOptions{Namespace: r.namespace, From: storage.After{Revision: r.revision}})
		if err != nil {
			return overtaken(err)
		}
		w.watches = append(w.watches, watch)
		w.left += len(r.items)
	}
	if p.atMost > 0 {
		w.deadlines = append(w.deadlines, c.NewTimer(p.atMost))
	}
	for soon := p.afterChange == 0; ; {
		changed, err := w.drain()
		if err != nil {
			return overtaken(err)
		}
		if w.left <= 0 {
			return nil
		}
		if changed && !soon {
			w.deadlines = append(w.deadlines, c.NewTimer(p.afterChange))
			soon = true
		}
		if over := w.any(ctx); over {
			return context.Cause(ctx)
		}
	}
}

// overtaken makes nothing of the error of a watch that fell behind: whoever waits looks again.
func overtaken(err error) error {
	if storage.IsKind(err, storage.Expired) {
		return nil
	}
	return err
}

// A waiting is a wait under way.
type waiting struct {
	watches   []*storage.Watch
	deadlines []clock.Timer
	left      int // objects
}

func (w *waiting) stop() {
	for _, watch := range w.watches {
		watch.Stop()
	}
	for _, timer := range w.deadlines {
		timer.Stop()
	}
}

// drain takes in all that the watches have to tell, and reports whether that was anything.
func (w *waiting) drain() (changed bool, err error) {
	for _, watch := range w.watches {
		for {
			event, ok, err := watch.Next()
			if err != nil {
				return changed, err
			}
			if !ok {
				break
			}
			changed = true
			switch event.Type {
			case storage.Added:
				w.left++
			case storage.Deleted:
				w.left--
			}
		}
	}
	return changed, nil
}

// any waits until a watch has something to tell. It reports true if the wait is over before: a
// deadline has come, or ctx has ended.
func (w *waiting) any(ctx context.Context) (over bool) {
	var cases []reflect.SelectCase
	add := func(c any) {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)})
	}
	add(ctx.Done())
	for _, timer := range w.deadlines {
		add(timer.C())
	}
	for _, watch := range w.watches {
		add(watch.Wait())
	}
	chosen, _, _ := reflect.Select(cases)
	return chosen <= len(w.deadlines)
}

// gone reports whether an update failed because the object is no longer there: it went, or
// another has its name.
func gone(err error) bool {
	var conflict *registry.ConflictError
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) && !errors.As(err, &conflict)
}
