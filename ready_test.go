package pawl

import (
	"errors"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/internal/resource"
	"github.com/pawl-dev/pawl/kv"
	"github.com/pawl-dev/pawl/kv/kvtest"
	"github.com/pawl-dev/pawl/kv/local"
)

// A shelf is a file system whose files can be full, or fail to sync.
type shelf struct {
	local.FS
	full, broken atomic.Bool
}

type shelved struct {
	local.File
	s *shelf
}

func (s *shelf) Create(name string) (local.File, error) {
	f, err := s.FS.Create(name)
	return shelved{f, s}, err
}

func (s *shelf) Append(name string) (local.File, error) {
	f, err := s.FS.Append(name)
	return shelved{f, s}, err
}

func (f shelved) Reserve(int64) error { return errors.ErrUnsupported }

func (f shelved) Write(b []byte) (int, error) {
	if f.s.full.Load() {
		return 0, local.ErrFull
	}
	return f.File.Write(b)
}

func (f shelved) Sync() error {
	if f.s.broken.Load() {
		return errors.New("input/output error")
	}
	return f.File.Sync()
}

// A store that takes no writes makes the server unready, which anyone can see, and says why to
// who may know. A disk that is full does so until there is room, one that failed for good. In both
// cases the process is live: to start it again is for a person to decide.
func TestReadinessFollowsTheStore(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		disk := &shelf{FS: local.OS}
		clock := kvtest.NewClock()
		e, err := local.Open(t.Context(), local.Options{Dir: dir, FS: disk, Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		h := (&parts{engine: e, catalogue: &resource.Registry{}, stopping: make(chan struct{})}).other()
		ask := func(path string) (int, string) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			return w.Code, w.Body.String()
		}
		put := func() error {
			_, err := e.Commit(t.Context(), kv.Txn{Ops: []kv.Op{kv.Put("default/core/configmaps/ns/a", []byte("x"))}})
			return err
		}
		step := func(name string, want int, why string) {
			t.Helper()
			for _, path := range []string{"/readyz", "/healthz"} {
				if code, body := ask(path); code != want || want != 200 && !strings.Contains(body, "[-]store failed: reason withheld") {
					t.Errorf("%s: %s answers %d %s, want %d", name, path, code, body, want)
				}
			}
			if code, body := ask("/readyz/store"); code != want || !strings.Contains(body, why) {
				t.Errorf("%s: /readyz/store answers %d %s, want %d %s", name, code, body, want, why)
			}
			if code, body := ask("/livez"); code != 200 {
				t.Errorf("%s: /livez answers %d %s", name, code, body)
			}
			clock.Advance(2 * time.Second)
			synctest.Wait()
		}
		if err := put(); err != nil {
			t.Fatal(err)
		}
		step("all is well", 200, "ok")
		disk.full.Store(true)
		if err := put(); !errors.Is(err, kv.ErrReadOnly) {
			t.Errorf("a write to a full disk: %v", err)
		}
		step("the disk is full", 500, "there is no room")
		step("it is full for a while", 500, "there is no room")
		disk.full.Store(false)
		clock.Advance(2 * time.Second)
		synctest.Wait()
		step("there is room", 200, "ok")
		if err := put(); err != nil {
			t.Errorf("a write when there is room: %v", err)
		}
		disk.broken.Store(true)
		if err := put(); !errors.Is(err, kv.ErrUnknown) {
			t.Errorf("a write whose fsync fails: %v", err)
		}
		disk.broken.Store(false)
		step("an fsync failed", 500, "input/output error")
		step("and that is for good", 500, "input/output error")
	})
}
