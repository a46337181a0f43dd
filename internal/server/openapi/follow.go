package openapi

import (
	"context"
	"time"
)

// quiet is how long the catalogue must stay as it is before documents are made of it: definitions come
// in crowds.
const quiet = 200 * time.Millisecond

// Follow makes the documents that somebody has asked for anew whenever the catalogue changes, so that
// the next who asks does not have to wait for them. What nobody asked for is not made. It returns when
// ctx is done. Changed returns a channel that is closed when the catalogue is no longer the one with
// that serial.
func (h *Handler) Follow(ctx context.Context, changed func(serial uint64) <-chan struct{}) {
	made := h.Catalogue().Serial()
	for {
		serial := h.Catalogue().Serial()
		switch {
		case serial == made || !h.asked():
			select {
			case <-changed(serial):
			case <-ctx.Done():
				return
			}
		case stays(ctx, changed(serial)):
			h.set().make()
			made = serial
		case ctx.Err() != nil:
			return
		}
	}
}

// asked says whether anybody has asked for anything yet.
func (h *Handler) asked() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last != nil
}

// stays waits until the catalogue has not changed for a while; it says false if it has, or ctx is done.
func stays(ctx context.Context, changed <-chan struct{}) bool {
	t := time.NewTimer(quiet)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-changed:
	case <-ctx.Done():
	}
	return false
}

// make makes what somebody wanted.
func (s *set) make() {
	for _, g := range s.groups {
		g.page.make()
	}
	s.index.make()
	s.old.make()
}
