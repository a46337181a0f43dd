package broken

import (
	"errors"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/kv"
)

// watch is a watch of which some methods have been replaced.
type watch struct {
	kv.Watch
	next     func() (kv.Event, bool, error)
	wait     func() <-chan struct{}
	progress func() (kv.Revision, bool)
	stop     func()
}

func (w *watch) Next() (kv.Event, bool, error) {
	if w.next != nil {
		return w.next()
	}
	return w.Watch.Next()
}

func (w *watch) Wait() <-chan struct{} {
	if w.wait != nil {
		return w.wait()
	}
	return w.Watch.Wait()
}

func (w *watch) Progress() (kv.Revision, bool) {
	if w.progress != nil {
		return w.progress()
	}
	return w.Watch.Progress()
}

func (w *watch) Stop() {
	if w.stop != nil {
		w.stop()
		return
	}
	w.Watch.Stop()
}

// watches makes a fault of what replaces methods of every watch.
func watches(name string, replace func(good kv.Engine, w kv.Watch, bad *watch)) Fault {
	return fault(name, func(good kv.Engine, bad *engine) {
		bad.watch = func(prefix string, after kv.Revision) (kv.Watch, error) {
			w, err := good.Watch(prefix, after)
			if err != nil {
				return nil, err
			}
			b := &watch{Watch: w}
			replace(good, w, b)
			return b, nil
		}
	})
}

// joins makes a fault of another way to begin a watch.
func joins(name string, join func(good kv.Engine, prefix string, after kv.Revision) (kv.Watch, error)) Fault {
	return fault(name, func(good kv.Engine, bad *engine) {
		bad.watch = func(prefix string, after kv.Revision) (kv.Watch, error) { return join(good, prefix, after) }
	})
}

// tells makes a fault of what becomes of each event that a watch tells.
func tells(name string, tell func(kv.Event) kv.Event) Fault {
	return watches(name, func(_ kv.Engine, w kv.Watch, bad *watch) {
		bad.next = func() (kv.Event, bool, error) {
			e, ok, err := w.Next()
			if ok {
				e = tell(e)
			}
			return e, ok, err
		}
	})
}

var watchFaults = []Fault{
	watches("sometimes loses an event", func(_ kv.Engine, w kv.Watch, bad *watch) {
		var t turn
		bad.next = func() (kv.Event, bool, error) {
			e, ok, err := w.Next()
			if ok && t.now(7) {
				return w.Next()
			}
			return e, ok, err
		}
	}),
	watches("sometimes repeats an event", func(_ kv.Engine, w kv.Watch, bad *watch) {
		var t turn
		var last kv.Event
		bad.next = func() (kv.Event, bool, error) {
			if last.Version != nil && t.now(7) {
				return last, true, nil
			}
			e, ok, err := w.Next()
			if ok {
				last = e
			}
			return e, ok, err
		}
	}),
	watches("sometimes tells of two events in the wrong order", func(_ kv.Engine, w kv.Watch, bad *watch) {
		var t turn
		var held []kv.Event
		bad.next = func() (kv.Event, bool, error) {
			if len(held) > 0 {
				e := held[0]
				held = held[1:]
				return e, true, nil
			}
			e, ok, err := w.Next()
			if !ok || !t.now(5) {
				return e, ok, err
			}
			second, ok, _ := w.Next()
			if !ok {
				return e, true, nil
			}
			held = append(held, e)
			return second, true, nil
		}
	}),
	tells("does not tell what was before", func(e kv.Event) kv.Event { return kv.Event{Version: e.Version} }),
	tells("tells of a deletion as if something were left", func(e kv.Event) kv.Event {
		if e.Version.Deleted && e.Prev != nil {
			e.Version = changed(e.Prev, func(v *kv.Version) { v.Revision = e.Version.Revision })
		}
		return e
	}),
	tells("tells of versions that are not those that are read", func(e kv.Event) kv.Event {
		e.Version = changed(e.Version, func(v *kv.Version) { v.Value = append(slices.Clone(v.Value), '!') })
		return e
	}),
	joins("joins a watch where history ends", func(good kv.Engine, prefix string, after kv.Revision) (kv.Watch, error) {
		return good.Watch(prefix, max(after, newest(good)))
	}),
	joins("joins a watch one revision late", func(good kv.Engine, prefix string, after kv.Revision) (kv.Watch, error) {
		return good.Watch(prefix, after+1)
	}),
	joins("joins a watch one revision early", func(good kv.Engine, prefix string, after kv.Revision) (kv.Watch, error) {
		if oldest, _ := good.Revisions(); after > oldest {
			after--
		}
		return good.Watch(prefix, after)
	}),
	joins("tells a watch of the neighbours too", func(good kv.Engine, prefix string, after kv.Revision) (kv.Watch, error) {
		if table := kv.TableOf(prefix); table != "" {
			prefix = table
		}
		return good.Watch(prefix, after)
	}),
	joins("watches what cannot be named", func(good kv.Engine, prefix string, after kv.Revision) (kv.Watch, error) {
		w, err := good.Watch(prefix, after)
		if errors.Is(err, kv.ErrInvalid) {
			return good.Watch(kv.DefaultSpace+"/", after)
		}
		return w, err
	}),
	joins("does not watch from the future on", func(good kv.Engine, prefix string, after kv.Revision) (kv.Watch, error) {
		return good.Watch(prefix, min(after, newest(good)))
	}),
	watches("claims progress that it has not made", func(good kv.Engine, _ kv.Watch, bad *watch) {
		bad.progress = func() (kv.Revision, bool) { return newest(good), true }
	}),
	watches("claims progress before it has been told of everything", overtakes),
	watches("makes no progress without events", func(_ kv.Engine, w kv.Watch, bad *watch) {
		told := kv.Revision(0)
		bad.next = func() (kv.Event, bool, error) {
			e, ok, err := w.Next()
			if ok {
				told = e.Version.Revision
			}
			return e, ok, err
		}
		bad.progress = func() (kv.Revision, bool) {
			_, ok := w.Progress()
			return told, ok
		}
	}),
	watches("wakes nobody", func(_ kv.Engine, _ kv.Watch, bad *watch) {
		bad.wait = func() <-chan struct{} { return make(chan struct{}) }
	}),
	watches("wakes everybody all the time", func(_ kv.Engine, _ kv.Watch, bad *watch) {
		awake := make(chan struct{})
		close(awake)
		bad.wait = func() <-chan struct{} { return awake }
	}),
	watches("goes on after it was stopped", func(_ kv.Engine, w kv.Watch, bad *watch) { bad.stop = func() {} }),
	watches("is stopped as if it had been compacted", func(_ kv.Engine, w kv.Watch, bad *watch) {
		bad.next = func() (kv.Event, bool, error) {
			e, ok, err := w.Next()
			if errors.Is(err, kv.ErrClosed) {
				err = &kv.Error{Op: "watch", Kind: kv.ErrCompacted}
			}
			return e, ok, err
		}
	}),
	fault("tells watches of some tables nothing", func(good kv.Engine, bad *engine) {
		bad.watch = func(prefix string, after kv.Revision) (kv.Watch, error) {
			w, err := good.Watch(prefix, after)
			if err == nil && strings.HasPrefix(prefix, "other/") {
				w = &watch{Watch: w, next: func() (kv.Event, bool, error) { return kv.Event{}, false, nil }}
			}
			return w, err
		}
	}),
}

// overtakes claims progress up to an event that it is about to tell, now and then.
func overtakes(_ kv.Engine, w kv.Watch, bad *watch) {
	var held *kv.Event
	bad.next = func() (kv.Event, bool, error) {
		if held != nil {
			e := *held
			held = nil
			return e, true, nil
		}
		return w.Next()
	}
	bad.progress = func() (kv.Revision, bool) {
		if held == nil {
			if e, ok, _ := w.Next(); ok {
				held = &e
			}
		}
		if held != nil {
			return held.Version.Revision, true
		}
		return w.Progress()
	}
}
