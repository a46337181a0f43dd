package server

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/registry"
	"github.com/pawl-dev/pawl/storage"
)

// When a watch says how far it is, and when it ends (rules H112, H115).
const (
	bookmarkEvery  = time.Minute
	bookmarkBefore = 2 * time.Second // the end of the watch
	watchLeast     = 30 * time.Minute

	watchMostSeconds = 1 << 32          // the most that a client can ask for: more does not fit a time.Duration
	watchFlush       = 32 << 10         // bytes after which gathered events are sent even if there are more
	watchWriteMax    = 30 * time.Second // a client that takes nothing for so long is let go (rule H120)
)

// watch sends the changes that the query picks, as they happen (section 10 of the rules).
func (c *call) watch() error {
	o, err := c.reading()
	if err != nil {
		return err
	}
	w, err := c.store.Watch(c.r.Context(), registry.WatchOptions{
		Namespace: c.namespace(), From: o.watchFrom, Selector: o.selector(),
	})
	if err != nil {
		return c.watchFailed(err)
	}
	defer w.Stop()
	done, ok := c.s.watching()
	if !ok {
		return shuttingDown()
	}
	defer done()
	state, _ := o.watchFrom.(storage.State)
	s := &stream{c: c, w: w, bookmarks: o.bookmarks, markEnd: state.Mark}
	s.begin()
	s.run(watchTime(o.timeoutSeconds))
	return nil
}

// watchTime is how long a watch lasts (rule H115).
func watchTime(seconds int64) time.Duration {
	if seconds > 0 {
		return time.Duration(min(seconds, watchMostSeconds)) * time.Second
	}
	return watchLeast + rand.N(watchLeast)
}

// watchFailed answers a watch that cannot begin with one event that says why (rules H113,
// H114): never with the bare status.
func (c *call) watchFailed(err error) error {
	s := &stream{c: c}
	s.begin()
	s.failed(err)
	s.flush()
	return nil
}

// A stream is the answer to a watch.
type stream struct {
	c         *call
	w         *storage.Watch
	buf       []byte
	rc        *http.ResponseController
	bookmarks bool
	markEnd   bool // the end of the initial events has to be marked yet
	marked    kv.Revision
	broken    bool // the client takes nothing any more
}

// begin sends the header, before there is any event (rule H105).
func (s *stream) begin() {
	h := s.c.w.Header()
	s.c.warnings.send(h)
	h.Set("Content-Type", s.c.watchMedia())
	s.c.w.WriteHeader(http.StatusOK)
	s.rc = http.NewResponseController(s.c.w)
	s.within(func() error { return s.rc.Flush() })
}

// within runs what sends to the client, which must not take too long over it.
func (s *stream) within(send func() error) {
	_ = s.rc.SetWriteDeadline(time.Now().Add(watchWriteMax))
	s.broken = send() != nil
	// On HTTP/2 a deadline that passes resets the stream, whether or not anything is being
	// written: left in place it would end every watch on which nothing happens for a while.
	_ = s.rc.SetWriteDeadline(time.Time{})
}

// run sends events until the time is up, the client goes, the resource is replaced or the
// server stops. It ends between two events.
func (s *stream) run(last time.Duration) {
	ctx := s.c.r.Context()
	end := time.NewTimer(last)
	defer end.Stop()
	mark := time.NewTimer(min(bookmarkEvery, max(last-bookmarkBefore, 0)))
	defer mark.Stop()
	deadline := time.Now().Add(last)
	for {
		if !s.drain(ctx) {
			return
		}
		select {
		case <-s.w.Wait():
		case <-mark.C:
			s.bookmark()
			if left := time.Until(deadline); left > bookmarkBefore {
				mark.Reset(min(bookmarkEvery, left-bookmarkBefore))
			}
		case <-end.C:
			return
		case <-ctx.Done():
			return
		case <-s.c.s.draining:
			return
		case <-s.c.res.Closed:
			return
		}
	}
}

// drain sends what there is, and says whether the stream goes on.
func (s *stream) drain(ctx context.Context) bool {
	for {
		e, ok, err := s.w.Next()
		switch {
		case err != nil:
			if !storage.IsClosed(err) {
				s.failed(s.why(e.Type, err))
			}
			s.flush()
			return false
		case !ok:
			s.endOfState()
			s.flush()
			return !s.broken
		}
		if err := s.event(string(e.Type), e.Version); err != nil {
			s.failed(s.why(e.Type, err))
			s.flush()
			return false
		}
		if len(s.buf) >= watchFlush {
			s.flush()
		}
		if s.broken || ctx.Err() != nil {
			return false
		}
	}
}

// why is what the client is told of an error over an event of a type.
func (s *stream) why(t storage.EventType, err error) error {
	if t == storage.Deleted {
		return s.c.store.DeletionUnreadable(err)
	}
	return s.c.store.WatchError(err)
}

func (s *stream) flush() {
	if len(s.buf) == 0 || s.broken {
		return
	}
	s.within(func() error {
		if _, err := s.c.w.Write(s.buf); err != nil {
			return err
		}
		return s.rc.Flush()
	})
	s.buf = s.buf[:0]
}

// event appends one event with an object.
func (s *stream) event(kind string, v storage.Version) error {
	if s.c.look.media == mediaProtobuf {
		obj, err := s.c.shown(v)
		if err != nil {
			return err
		}
		s.buf, err = s.c.appendProtobufEvent(s.buf, kind, obj)
		return err
	}
	start := len(s.buf)
	s.buf = append(s.buf, `{"type":"`...)
	s.buf = append(s.buf, kind...)
	s.buf = append(s.buf, `","object":`...)
	var err error
	if s.buf, err = s.c.appendVersion(s.buf, v); err != nil {
		s.buf = s.buf[:start]
		return err
	}
	s.buf = append(s.buf, "}\n"...)
	return nil
}

// failed appends the event that ends a stream (rules K81 to K83).
func (s *stream) failed(err error) {
	st := statusOf(err)
	st.Kind, st.APIVersion = "Status", "v1"
	if s.c.look.media == mediaProtobuf {
		if buf, err := s.c.appendProtobufEvent(s.buf, "ERROR", &st); err == nil {
			s.buf = buf
		}
		return
	}
	data, merr := json.Marshal(&st)
	if merr != nil {
		return
	}
	s.buf = append(s.buf, `{"type":"ERROR","object":`...)
	s.buf = append(s.buf, data...)
	s.buf = append(s.buf, "}\n"...)
}

// endOfState marks the end of the initial events, once all have been sent (rules H110, K90).
func (s *stream) endOfState() {
	if !s.markEnd {
		return
	}
	if rev, done := s.w.StateRevision(); done {
		s.markEnd = false
		s.mark(rev, map[string]string{"k8s.io/initial-events-end": "true"})
	}
}

// bookmark tells the client how far the stream is, if it wants to know (rules H112, K95).
func (s *stream) bookmark() {
	if !s.bookmarks || s.markEnd {
		return
	}
	if rev, ok := s.w.Progress(); ok && rev >= s.marked {
		s.mark(rev, nil)
		s.flush()
	}
}

func (s *stream) mark(rev kv.Revision, annotations map[string]string) {
	s.marked = rev
	obj := s.c.form.New()
	if err := setBookmark(obj, rev, annotations, s.c.form.GroupVersionKind()); err != nil {
		return
	}
	if s.c.look.media == mediaProtobuf {
		obj, err := s.c.shownOf(obj)
		if err != nil {
			return
		}
		if buf, err := s.c.appendProtobufEvent(s.buf, "BOOKMARK", obj); err == nil {
			s.buf = buf
		}
		return
	}
	data, err := s.c.appendObject(nil, obj)
	if err != nil {
		return
	}
	s.buf = append(s.buf, `{"type":"BOOKMARK","object":`...)
	s.buf = append(s.buf, data...)
	s.buf = append(s.buf, "}\n"...)
}
