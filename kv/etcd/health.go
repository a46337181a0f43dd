package etcd

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/pawl-dev/pawl/kv"
)

var errNoSpace = rpctypes.ErrNoSpace

// errFull is why nothing is written while etcd has no room.
var errFull = errors.New("etcd has no room: its quota is used up; compact and defragment it, and disarm its alarm")

// health is what is known of etcd by its answers.
type health struct {
	log *slog.Logger

	mu      sync.Mutex // guards what follows
	last    time.Time  // of the last answer
	failure error      // since then; nil if none
	gone    bool       // it was said that etcd is away
	barred  error      // why nothing can be written though etcd answers; nil if it can, as far as is known
}

// answered notes that etcd has answered something that needs a majority of its members.
func (h *health) answered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone {
		h.log.Info("kv/etcd: etcd answers again", "away", time.Since(h.last).Round(time.Second))
	}
	h.last, h.failure, h.gone = time.Now(), nil, false
}

// wrote notes that a transaction was judged, and if it was one that writes, that there is room.
func (h *health) wrote(something bool) {
	h.answered()
	if !something {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.barred != nil {
		h.log.Info("kv/etcd: etcd takes writes again")
	}
	h.barred = nil
}

// failed notes that etcd did not answer, or denied an answer.
func (h *health) failed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failure = err
	if !h.gone && h.isAway() {
		h.gone = true
		h.log.Warn("kv/etcd: etcd does not answer: nobody reads what is newest, and writes are refused", "error", err)
	}
}

// isFull notes that there is no room.
func (h *health) isFull() { h.bar(errFull) }

// bar notes why nothing can be written.
func (h *health) bar(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.barred == nil || h.barred.Error() != why.Error() {
		h.log.Error("kv/etcd: nothing can be written", "error", why)
	}
	h.barred = why
}

func (h *health) barredNow() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.barred != nil
}

// isAway says whether etcd has been silent for so long that it is not asked to write, or will not answer. The caller holds h.mu.
func (h *health) isAway() bool {
	return h.failure != nil && (isDenied(h.failure) || time.Since(h.last) > awayAfter)
}

// idle says for how long etcd was not heard of.
func (h *health) idle() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.last)
}

// err returns why nothing is written now, nil if that is not known.
func (h *health) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.isAway():
		return &kv.Error{Op: "commit", Kind: kv.ErrAway, Err: h.silence()}
	case h.barred != nil:
		return readOnly(h.barred)
	}
	return nil
}

func readOnly(why error) error { return &kv.Error{Op: "commit", Kind: kv.ErrReadOnly, Err: why} }

func noRoom() error { return readOnly(errFull) }

// silence says for how long etcd has not answered, and what came instead. The caller holds h.mu.
func (h *health) silence() error {
	if isDenied(h.failure) {
		return h.failure
	}
	return fmt.Errorf("etcd has not answered for %v: %w", time.Since(h.last).Round(time.Second), rpctypes.Error(h.failure))
}

// explain adds to an error that the time was over what is known of etcd meanwhile.
func (h *health) explain(err error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failure == nil || errors.Is(err, h.failure) {
		return err
	}
	return fmt.Errorf("%w; %w", err, h.silence())
}
