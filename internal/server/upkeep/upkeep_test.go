package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/kv"
)

// A fake store has one commit each minute.
type fake struct {
	oldest, newest kv.Revision
	size           int64
	err            error
	backup         func(ctx context.Context, w io.Writer) error
}

func (f *fake) Revisions() (oldest, newest kv.Revision) { return f.oldest, f.newest }
func (f *fake) Size() int64                             { return f.size }
func (f *fake) Backup(ctx context.Context, w io.Writer) error {
	return f.backup(ctx, w)
}

func (f *fake) NewestAt(t time.Time) kv.Revision {
	return max(f.oldest, kv.Revision(max(t.Sub(began), 0)/time.Minute))
}

func (f *fake) Shrink(_ context.Context, rev kv.Revision) error {
	if f.err != nil {
		return f.err
	}
	f.oldest = max(f.oldest, rev)
	f.size = int64(f.newest - f.oldest)
	return nil
}

var began = time.Date(2026, time.March, 14, 0, 0, 0, 0, time.UTC)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestCompact(t *testing.T) {
	for _, c := range []struct {
		name, method, query string
		err                 error
		code                int
		oldest              kv.Revision
	}{
		{"before a revision", "POST", "before=70", nil, 200, 70},
		{"what is older than a while", "POST", "older-than=10m", nil, 200, 90},
		{"everything", "POST", "older-than=0s", nil, 200, 100},
		{"what is forgotten already", "POST", "before=7", nil, 200, 40},
		{"what is older than what is there", "POST", "older-than=5h", nil, 200, 40},
		{"nothing said", "POST", "", nil, 400, 0},
		{"both said", "POST", "before=70&older-than=1h", nil, 400, 0},
		{"no revision", "POST", "before=-1", nil, 400, 0},
		{"no revision that there is", "POST", "before=0", nil, 400, 0},
		{"no time span", "POST", "older-than=1", nil, 400, 0},
		{"the future by age", "POST", "older-than=-1h", nil, 400, 0},
		{"looking does not forget", "GET", "before=70", nil, 405, 0},
		{"the future", "POST", "before=101", &kv.Error{Kind: kv.ErrFuture}, 400, 0},
		{"a store that takes no writes", "POST", "before=70", &kv.Error{Kind: kv.ErrReadOnly}, 503, 0},
		{"a store that is closed", "POST", "before=70", &kv.Error{Kind: kv.ErrClosed}, 503, 0},
		{"a disk that fails", "POST", "before=70", errors.New("the disk failed"), 500, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &fake{oldest: 40, newest: 100, size: 60, err: c.err}
			h := Compact(s, quiet(), func() time.Time { return began.Add(100 * time.Minute) })
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(c.method, CompactPath+"?"+c.query, nil))
			if w.Code != c.code {
				t.Fatalf("it answers %d %s, want %d", w.Code, w.Body, c.code)
			}
			if c.code != 200 {
				return
			}
			var done Compacted
			if err := json.Unmarshal(w.Body.Bytes(), &done); err != nil {
				t.Fatal(err)
			}
			if want := (Compacted{c.oldest, 100, 60, int64(100 - c.oldest)}); done != want {
				t.Errorf("it answers %+v, want %+v", done, want)
			}
		})
	}
}

func TestABoundIsReadAsItWasWritten(t *testing.T) {
	for _, b := range []Bound{{Before: 7}, {OlderThan: 90 * time.Second}, {}} {
		q, err := url.ParseQuery(b.Query().Encode())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseBound(q); err != nil || got != b {
			t.Errorf("%+v became %+v, %v", b, got, err)
		}
	}
}

func TestABackupIsSentAsItIsMade(t *testing.T) {
	begun, written := make(chan struct{}), make(chan struct{})
	s := &fake{backup: func(_ context.Context, w io.Writer) error {
		close(begun)
		if _, err := io.WriteString(w, "first"); err != nil {
			return err
		}
		<-written
		_, err := io.WriteString(w, " and second")
		return err
	}}
	srv := httptest.NewServer(Backup(s, quiet()))
	defer srv.Close()
	got := make(chan string)
	go func() {
		resp, err := http.Get(srv.URL)
		if err != nil {
			got <- err.Error()
			return
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			got <- err.Error()
			return
		}
		got <- string(text)
	}()
	<-begun
	resp, err := http.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("another client gets %s meanwhile", resp.Status)
	}
	close(written)
	if text := <-got; text != "first and second" {
		t.Errorf("the client got %q", text)
	}
}

func TestABackupThatFailsDoesNotEndAsOneThatIsWhole(t *testing.T) {
	s := &fake{backup: func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, "first")
		return errors.Join(err, errors.New("the rest cannot be read"))
	}}
	srv := httptest.NewUnstartedServer(Backup(s, quiet()))
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	if err == nil {
		defer resp.Body.Close()
		var text []byte
		text, err = io.ReadAll(resp.Body)
		t.Logf("the client got %q", text)
	}
	if err == nil {
		t.Error("the client takes it for whole")
	}
}

func TestABackupIsReadOnly(t *testing.T) {
	for _, method := range []string{"HEAD", "POST", "PUT", "DELETE"} {
		w := httptest.NewRecorder()
		Backup(&fake{}, quiet()).ServeHTTP(w, httptest.NewRequest(method, BackupPath, nil))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET" {
			t.Errorf("%s gets %d", method, w.Code)
		}
	}
}
