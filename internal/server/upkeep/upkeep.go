package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// The paths of what is served here.
const (
	BackupPath  = "/pawl/backup"
	CompactPath = "/pawl/compact"
)

// stallMax is how long a client may take for a piece of a backup.
const stallMax = 30 * time.Second

// A Store is what is kept up.
type Store interface {
	// Backup writes a backup to w.
	Backup(ctx context.Context, w io.Writer) error
	// NewestAt returns the revision that was the newest at a time, or the oldest there is.
	NewestAt(time.Time) kv.Revision
	// Shrink forgets what only revisions before rev need, on disk too.
	Shrink(ctx context.Context, rev kv.Revision) error
	Revisions() (oldest, newest kv.Revision)
	// Size returns how many bytes the store takes on disk.
	Size() int64
}

// Backup serves backups of a store.
func Backup(s Store, log *slog.Logger) http.Handler {
	turn := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allow(w, r, http.MethodGet) {
			return
		}
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		default:
			w.Header().Set("Retry-After", "10")
			http.Error(w, "a backup is being taken; wait until it is done", http.StatusTooManyRequests)
			return
		}
		began := time.Now()
		w.Header().Set("Content-Type", "application/octet-stream")
		out := &patient{w: w, rc: http.NewResponseController(w)}
		if err := s.Backup(r.Context(), out); err != nil {
			log.Warn("a backup was broken off", "bytes", out.n, "err", err)
			panic(http.ErrAbortHandler) // part of it is sent: its end must not look like one
		}
		log.Info("a backup was taken", "bytes", out.n, "took", time.Since(began).Round(time.Millisecond))
	})
}

// A patient writer waits for its reader, for a while at a time.
type patient struct {
	w  io.Writer
	rc *http.ResponseController
	n  int64
}

func (p *patient) Write(b []byte) (int, error) {
	if err := p.rc.SetWriteDeadline(time.Now().Add(stallMax)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	n, err := p.w.Write(b)
	p.n += int64(n)
	return n, err
}

// Compacted is what a compaction answers.
type Compacted struct {
	Oldest    kv.Revision `json:"oldest"` // that can be read from now on
	Newest    kv.Revision `json:"newest"`
	BytesWere int64       `json:"bytesWere"` // on disk
	Bytes     int64       `json:"bytes"`
}

// Compact serves compactions of a store.
func Compact(s Store, log *slog.Logger, now func() time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allow(w, r, http.MethodPost) {
			return
		}
		bound, err := ParseBound(r.URL.Query())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		done, err := bound.Apply(r.Context(), s, now())
		switch {
		case errors.Is(err, kv.ErrFuture):
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		case errors.Is(err, kv.ErrReadOnly), errors.Is(err, kv.ErrClosed):
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		log.Info("history was compacted", "oldest", done.Oldest, "newest", done.Newest, "bytesWere", done.BytesWere, "bytes", done.Bytes)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(done) // whoever is gone needs no answer
	})
}

func allow(w http.ResponseWriter, r *http.Request, method string) bool {
	if r.Method == method {
		return true
	}
	w.Header().Set("Allow", method)
	http.Error(w, "use "+method, http.StatusMethodNotAllowed)
	return false
}

// A Bound says how much history to forget: what only revisions before one need, or what is older than some time.
type Bound struct {
	Before    kv.Revision   // 0 if the age counts
	OlderThan time.Duration // 0 means everything
}

// Query returns b as the query of a request.
func (b Bound) Query() url.Values {
	if b.Before != 0 {
		return url.Values{"before": {b.Before.String()}}
	}
	return url.Values{"older-than": {b.OlderThan.String()}}
}

// ParseBound reads what [Bound.Query] writes.
func ParseBound(q url.Values) (Bound, error) {
	switch before, age := q.Get("before"), q.Get("older-than"); {
	case (before == "") == (age == ""):
		return Bound{}, errors.New("say how much is to be forgotten: before=REVISION or older-than=DURATION")
	case before != "":
		rev, err := strconv.ParseUint(before, 10, 64)
		if err != nil || rev == 0 {
			return Bound{}, fmt.Errorf("before=%q is no revision", before)
		}
		return Bound{Before: kv.Revision(rev)}, nil
	default:
		d, err := time.ParseDuration(age)
		if err != nil || d < 0 {
			return Bound{}, fmt.Errorf("older-than=%q is no time span such as 0s, 90s or 1h30m", age)
		}
		return Bound{OlderThan: d}, nil
	}
}

// Apply forgets what b says of s, at the time now.
func (b Bound) Apply(ctx context.Context, s Store, now time.Time) (Compacted, error) {
	rev := b.Before
	if rev == 0 {
		rev = s.NewestAt(now.Add(-b.OlderThan))
	}
	done := Compacted{BytesWere: s.Size()}
	if err := s.Shrink(ctx, rev); err != nil {
		return Compacted{}, err
	}
	done.Oldest, done.Newest = s.Revisions()
	done.Bytes = s.Size()
	return done, nil
}
