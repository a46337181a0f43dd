package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-dev/pawl/internal/auth"
	"github.com/pawl-dev/pawl/registry"
)

var (
	fought  = objectKey{"g", "widgets", "ns", "a"}
	errLost = error(&registry.ConflictError{})
)

// lose refuses a write, because somebody was faster, and returns how long its answer was held back.
func lose(ctx context.Context, w *write) (took time.Duration) {
	began := time.Now()
	w.leave(ctx, errLost)
	w.told()
	return time.Since(began)
}

// paceOf runs a test in a bubble of its own, and sees that nothing is remembered in the end.
func paceOf(t *testing.T, name string, test func(t *testing.T, p *pacer)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var p pacer
			test(t, &p)
			time.Sleep(time.Second) // of the bubble
			synctest.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(p.objects) != 0 {
				t.Errorf("%d objects are remembered when nobody writes them", len(p.objects))
			}
		})
	})
}

func TestWhoLostIsAnsweredInTurn(t *testing.T) {
	paceOf(t, "who is alone is answered at once, however often", func(t *testing.T, p *pacer) {
		for range 5 {
			if took := lose(t.Context(), p.enter(fought)); took != 0 {
				t.Errorf("it took %v", took)
			}
		}
	})
	paceOf(t, "so is who lost for another reason, or wrote", func(t *testing.T, p *pacer) {
		other := p.enter(fought)
		lose(t.Context(), p.enter(fought)) // has its turn now
		for _, err := range []error{nil, errors.New("it is invalid")} {
			w, began := p.enter(fought), time.Now()
			w.leave(t.Context(), err)
			if took := time.Since(began); took != 0 {
				t.Errorf("after %v it took %v", err, took)
			}
		}
		other.leave(t.Context(), nil)
	})
	paceOf(t, "so is who writes another object", func(t *testing.T, p *pacer) {
		other := p.enter(fought)
		lose(t.Context(), p.enter(fought))
		b := fought
		b.name = "b"
		if took := lose(t.Context(), p.enter(b)); took != 0 {
			t.Errorf("it took %v", took)
		}
		other.leave(t.Context(), nil)
	})
	paceOf(t, "the first who loses is answered at once, the others when somebody has written, first come first served", func(t *testing.T, p *pacer) {
		writers := make([]*write, 5)
		for i := range writers {
			writers[i] = p.enter(fought)
		}
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i, w := range writers {
			wg.Go(func() {
				w.leave(t.Context(), errLost)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				w.told()
			})
			synctest.Wait()
		}
		for n := 1; n < len(writers); n++ {
			if mu.Lock(); len(order) != n {
				t.Errorf("%d are answered after %d have written", len(order), n-1)
			}
			mu.Unlock()
			began := time.Now()
			winner := p.enter(fought)
			winner.succeeded()
			winner.leave(t.Context(), nil)
			synctest.Wait()
			if took := time.Since(began); took != 0 {
				t.Errorf("who wrote was held up for %v", took)
			}
		}
		wg.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
			t.Errorf("answered in the order %v", order)
		}
	})
	paceOf(t, "a turn passes to the next when nobody comes", func(t *testing.T, p *pacer) {
		other := p.enter(fought)
		lose(t.Context(), p.enter(fought))
		for range 3 {
			if took := lose(t.Context(), p.enter(fought)); took != turnMax {
				t.Errorf("it took %v, want %v", took, turnMax)
			}
		}
		other.leave(t.Context(), nil)
	})
	paceOf(t, "nobody waits longer than the longest wait", func(t *testing.T, p *pacer) {
		const n = 2 * int(paceMax/turnMax)
		other := p.enter(fought)
		var wg sync.WaitGroup
		for range n {
			w := p.enter(fought)
			wg.Go(func() {
				if took := lose(t.Context(), w); took > paceMax {
					t.Errorf("it took %v", took)
				}
			})
		}
		wg.Wait()
		other.leave(t.Context(), nil)
	})
	paceOf(t, "who goes away gives their place up", func(t *testing.T, p *pacer) {
		other := p.enter(fought)
		lose(t.Context(), p.enter(fought))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if took := lose(ctx, p.enter(fought)); took != 0 {
			t.Errorf("it took %v", took)
		}
		if took := lose(t.Context(), p.enter(fought)); took != turnMax {
			t.Errorf("the next one waited %v, want %v", took, turnMax)
		}
		other.leave(t.Context(), nil)
	})
	paceOf(t, "who wrote waits until the next has been told, and not long", func(t *testing.T, p *pacer) {
		first, second, winner := p.enter(fought), p.enter(fought), p.enter(fought)
		first.leave(t.Context(), errLost)
		go func() {
			second.leave(t.Context(), errLost)
			time.Sleep(time.Hour) // a slow connection
			second.told()
		}()
		synctest.Wait()
		began := time.Now()
		winner.succeeded()
		if took := time.Since(began); took != leadMax {
			t.Errorf("it took %v, want %v", took, leadMax)
		}
		winner.leave(t.Context(), nil)
		time.Sleep(2 * time.Hour)
	})
	paceOf(t, "a write that is not paced may be noted all the same", func(*testing.T, *pacer) {
		var w *write
		w.succeeded()
		w.leave(t.Context(), errLost)
		w.told()
	})
}

// A slowBody is a body that comes once it may, and says when somebody waits for it.
type slowBody struct {
	awaited, may chan struct{}
	io.Reader
}

func (b slowBody) Read(p []byte) (int, error) {
	select {
	case <-b.may:
	default:
		close(b.awaited)
		<-b.may
	}
	return b.Reader.Read(p)
}

func TestWhoHasNotSentTheirWriteIsNoWriter(t *testing.T) {
	for method, media := range map[string]string{http.MethodPut: "application/json", http.MethodPatch: "application/merge-patch+json"} {
		t.Run(method, func(t *testing.T) {
			w := newWorld(t, allowAll{})
			w.must("POST", configMaps, `{"metadata":{"name":"a"}}`)
			body := slowBody{make(chan struct{}), make(chan struct{}), strings.NewReader(`{"metadata":{"name":"a","labels":{"is":"slow"}}}`)}
			r := httptest.NewRequestWithContext(auth.WithUser(t.Context(), author), method, configMaps+"/a", body)
			r.Header.Set("Content-Type", media)
			done := make(chan int, 1)
			go func() {
				rec := httptest.NewRecorder()
				w.server.ServeHTTP(rec, r)
				done <- rec.Code
			}()
			select {
			case <-body.awaited:
			case code := <-done:
				t.Fatalf("it is answered %d before it has come", code)
			}
			w.server.pacer.mu.Lock()
			if n := len(w.server.pacer.objects); n != 0 {
				t.Errorf("%d objects are being written before anybody has sent a write", n)
			}
			w.server.pacer.mu.Unlock()
			close(body.may)
			if code := <-done; code != http.StatusOK {
				t.Errorf("the write is answered %d", code)
			}
		})
	}
}
