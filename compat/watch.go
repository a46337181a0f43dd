package compat

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/storage"
)

const (
	bookmarkEvery  = time.Minute
	bookmarkBefore = 2 * time.Second // the end of the context
	progressEvery  = 5 * time.Second
	eventsAhead    = 100 // how many events wait in the channel for whoever reads it
)

// Watch implements storage.Interface (rules K75 to K95). What goes wrong after the key and the
// version were understood is told as an event (rule K81). A watcher that does not read keeps a
// place in the engine's history and at most a hundred events, and holds nobody up.
func (s *Store) Watch(ctx context.Context, key string, opts apistorage.ListOptions) (watch.Interface, error) {
	where, err := s.scopeOf(key, opts.Recursive)
	if err != nil {
		return nil, err
	}
	if _, err := s.versioner.ParseResourceVersion(opts.ResourceVersion); err != nil {
		return nil, err
	}
	from, err := watchFrom(opts)
	if err != nil {
		return nil, s.fault("watch", key, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &channel{
		s: s, ctx: ctx, cancel: cancel, pred: opts.Predicate, out: make(chan watch.Event, eventsAhead),
		progress: opts.ProgressNotify, stamped: opts.RecordTimestamps,
	}
	o := storage.WatchOptions{Namespace: where.namespace, Name: where.name, From: from}
	switch {
	case where.nothing:
		o.Selector.Func = func(storage.Version) (bool, error) { return false, nil }
	case !c.pred.Empty():
		o.Selector.Func = c.picks
	}
	if state, ok := from.(storage.State); ok {
		c.markEnd = state.Mark
	}
	if c.w, err = s.table.Watch(ctx, o); err != nil {
		c.fail(false, err)
		c.close()
		return c, nil
	}
	go c.run()
	if s.watchStarted != nil {
		s.watchStarted(ctx)
	}
	return c, nil
}

// watchFrom says what the options of a watch mean together (rule K88).
func watchFrom(opts apistorage.ListOptions) (storage.WatchFrom, error) {
	q := storage.WatchQuery{
		ResourceVersion: opts.ResourceVersion, SendInitialEvents: opts.SendInitialEvents, AllowBookmarks: opts.Predicate.AllowWatchBookmarks,
	}
	if q.SendInitialEvents != nil {
		q.ResourceVersionMatch = string(metav1.ResourceVersionMatchNotOlderThan)
	}
	return q.Parse()
}

// A bell wakes everybody who listens when it is rung.
type bell struct {
	mu sync.Mutex
	ch chan struct{} // closed by the next ring; nil if nobody listens
}

func (b *bell) listen() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// RequestWatchProgress implements storage.Interface: every watch of the store that wants progress
// tells how far it is, as soon as it has told all there is.
func (s *Store) RequestWatchProgress(context.Context) error {
	s.progress.ring()
	return nil
}

// A channel is a watch as the reference knows it. It has one goroutine, which ends when the
// context does.
type channel struct {
	s      *Store
	ctx    context.Context
	cancel context.CancelFunc
	w      *storage.Watch
	pred   apistorage.SelectionPredicate
	out    chan watch.Event

	progress bool // wants to know how far it is
	stamped  bool // wants to know when changes were seen
	markEnd  bool // the end of the state has to be marked yet

	picked map[storage.Version]runtime.Object // what the predicate picked, of the event under way
}

// Stop implements watch.Interface.
func (c *channel) Stop() { c.cancel() }

// ResultChan implements watch.Interface.
func (c *channel) ResultChan() <-chan watch.Event { return c.out }

func (c *channel) close() {
	c.cancel()
	close(c.out)
}

// run tells all there is, then waits for more, until the context ends or something fails.
func (c *channel) run() {
	defer c.close()
	defer c.w.Stop()
	var asked <-chan struct{}
	if c.progress {
		asked = c.s.progress.listen()
	}
	next := time.NewTimer(0)
	defer next.Stop()
	c.rest(next)
	due := false // a bookmark
	for c.tell() {
		if rev, ok := c.w.Progress(); ok && due {
			due = false
			c.bookmark(rev, false)
		}
		select {
		case <-c.w.Wait():
		case <-asked:
			due, asked = true, c.s.progress.listen()
		case <-next.C:
			due = true
			c.rest(next)
		case <-c.ctx.Done():
			return
		}
	}
}

// rest sets the timer of the next bookmark.
func (c *channel) rest(t *time.Timer) {
	end, bounded := c.ctx.Deadline()
	pause, ok := untilBookmark(c.progress, c.pred.AllowWatchBookmarks, bounded, time.Until(end))
	if !ok {
		t.Stop()
		return
	}
	t.Reset(pause)
}

// untilBookmark says when a watch sends its next bookmark, if it sends one at all (rules K94, K95):
// left is how long it lives, if that is bounded.
func untilBookmark(progress, bookmarks, bounded bool, left time.Duration) (time.Duration, bool) {
	switch {
	case progress:
		return progressEvery, true
	case !bookmarks || bounded && left <= bookmarkBefore:
		return 0, false
	case bounded:
		return min(bookmarkEvery, left-bookmarkBefore), true
	}
	return bookmarkEvery, true
}

// tell sends what there is, and says whether the watch goes on.
func (c *channel) tell() bool {
	for c.ctx.Err() == nil {
		e, ok, err := c.w.Next()
		if err != nil {
			c.fail(e.Type == storage.Deleted, err)
			return false
		}
		rev, told := c.w.StateRevision()
		switch {
		case ok:
			c.change(e, !told)
		case c.markEnd && told:
			c.markEnd = false
			c.bookmark(rev, true)
		default:
			return true
		}
	}
	return false
}

// change sends an event; initial means that it is part of the state. Objects are sent once: who gets one
// may change it.
func (c *channel) change(e storage.Event, initial bool) {
	defer clear(c.picked)
	obj, err := c.object(e.Version)
	if err != nil {
		c.fail(e.Type == storage.Deleted, err)
		return
	}
	if c.stamped && !initial {
		obj = &stamped{obj, time.Now()}
	}
	c.send(watch.Event{Type: watch.EventType(e.Type), Object: obj})
}

// object returns the object of an event, with its resourceVersion.
func (c *channel) object(v storage.Version) (runtime.Object, error) {
	if obj := c.picked[v.As(kv.Absent)]; obj != nil {
		return obj, c.s.versioner.UpdateObject(obj, uint64(v.Revision()))
	}
	return c.s.decode(c.ctx, v, c.s.newFunc())
}

// picks asks the predicate (rule K79), and keeps the object for the event that may come of it.
func (c *channel) picks(v storage.Version) (bool, error) {
	obj, err := c.s.decode(c.ctx, v, c.s.newFunc())
	if err != nil {
		return false, &storage.Error{Kind: storage.Corrupt, Err: err}
	}
	ok, err := c.pred.Matches(obj)
	if ok && err == nil {
		if c.picked == nil {
			c.picked = map[storage.Version]runtime.Object{}
		}
		c.picked[v.As(kv.Absent)] = obj
	}
	return ok, err
}

// bookmark tells how far the watch is.
func (c *channel) bookmark(rev kv.Revision, end bool) {
	obj := c.s.newFunc()
	err := c.s.versioner.UpdateObject(obj, uint64(rev))
	if err == nil && end {
		err = apistorage.AnnotateInitialEventsEndBookmark(obj)
	}
	if err != nil {
		c.fail(false, err)
		return
	}
	c.send(watch.Event{Type: watch.Bookmark, Object: obj})
}

// send puts an event into the channel, unless nobody wants it any more.
func (c *channel) send(e watch.Event) {
	select {
	case c.out <- e:
	case <-c.ctx.Done():
	}
}

// fail ends the watch with an error, in silence if its context has ended (rule K83).
func (c *channel) fail(deleted bool, err error) {
	defer c.cancel()
	if c.ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return
	}
	if status, ok := c.s.watchFault(deleted, err); ok {
		c.send(watch.Event{Type: watch.Error, Object: &status})
	}
}

// A stamped object knows when it was seen.
type stamped struct {
	runtime.Object
	at time.Time
}

var _ apistorage.WatchEventWithRecordTime = (*stamped)(nil)

// RecordTime implements storage.WatchEventWithRecordTime.
func (o *stamped) RecordTime() time.Time { return o.at }

// Unwrap implements storage.WatchEventWithRecordTime.
func (o *stamped) Unwrap() runtime.Object { return o.Object }

// DeepCopyObject implements runtime.Object.
func (o *stamped) DeepCopyObject() runtime.Object {
	return &stamped{o.Object.DeepCopyObject(), o.at}
}

// GetObjectMeta makes the metadata of the object that is wrapped be found.
func (o *stamped) GetObjectMeta() metav1.Object {
	m, err := meta.Accessor(o.Object)
	if err != nil {
		return nil
	}
	return m
}
