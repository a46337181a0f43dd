package pawl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-dev/pawl"
	"github.com/pawl-dev/pawl/pawltest"
)

const configMaps = "/api/v1/namespaces/default/configmaps"

// onBoth runs a test with a server of its own over HTTP/1.1 and over HTTP/2.
func onBoth(t *testing.T, test func(t *testing.T, srv *pawl.Server, a *api)) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("over HTTP/%d", version), func(t *testing.T) {
			srv := pawltest.Start(t, pawl.Config{})
			test(t, srv, apiOf(t, srv.RESTConfig(), version))
		})
	}
}

// A stream is a watch that is read in the background.
type stream struct {
	started chan struct{} // closed at the first event
	ended   chan struct{} // closed at the end
	events  int
	err     error // nil if it ended after a whole event
}

// watch begins a watch, and returns once the server has answered.
func (a *api) watch(ctx context.Context, path string) *stream {
	a.t.Helper()
	resp, err := a.send(ctx, a.admin, "GET", path, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	s := &stream{started: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		defer resp.Body.Close()
		dec := json.NewDecoder(resp.Body)
		for {
			var e struct{ Type string }
			if err := dec.Decode(&e); err != nil {
				if err != io.EOF {
					s.err = err
				}
				return
			}
			if s.events++; s.events == 1 {
				close(s.started)
			}
		}
	}()
	return s
}

// A slowPut is a PUT whose body does not end yet.
type slowPut struct {
	body *io.PipeWriter
	rest string
	done chan struct{}
	code int
	err  error
}

// put begins a PUT, and returns once the server reads its body.
func (a *api) put(path, body string) *slowPut {
	a.t.Helper()
	r, w := io.Pipe()
	p := &slowPut{body: w, rest: body[len(body)/2:], done: make(chan struct{})}
	reading := make(chan struct{})
	ctx := httptrace.WithClientTrace(a.t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(reading) }})
	go func() {
		defer close(p.done)
		resp, err := a.send(ctx, a.admin, "PUT", path, r, "Expect", "100-continue")
		if p.err = err; err == nil {
			p.code = resp.StatusCode
			resp.Body.Close()
		}
	}()
	<-reading
	if _, err := io.WriteString(w, body[:len(body)/2]); err != nil {
		a.t.Fatal(err)
	}
	return p
}

// finish sends what is left.
func (p *slowPut) finish() error {
	_, err := io.WriteString(p.body, p.rest)
	return errors.Join(err, p.body.Close())
}

func TestStopAnswersWhatIsUnderWay(t *testing.T) { // rule H214
	onBoth(t, func(t *testing.T, srv *pawl.Server, a *api) {
		a.must("POST", configMaps, `{"metadata":{"name":"a"}}`)
		watch := a.watch(t.Context(), configMaps+"?watch=1")
		put := a.put(configMaps+"/a", `{"metadata":{"name":"a"},"data":{"k":"v"}}`)

		stopped := make(chan error)
		go func() { stopped <- srv.Stop(t.Context()) }()
		<-watch.ended // so it has begun
		if watch.err != nil {
			t.Errorf("the watch ended in the middle of an event: %v", watch.err)
		}
		if got, err := a.try(a.admin, "GET", configMaps, nil); err == nil && (got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "") {
			t.Errorf("a new request: %d %s", got.code, got.text)
		}
		select {
		case err := <-stopped:
			t.Fatalf("stopped with a request under way: %v", err)
		default:
		}
		if err := put.finish(); err != nil {
			t.Fatal(err)
		}
		if <-put.done; put.err != nil || put.code != http.StatusOK {
			t.Errorf("the PUT that was under way: %d, %v", put.code, put.err)
		}
		if err := <-stopped; err != nil {
			t.Errorf("stopping: %v", err)
		}
		if err := srv.Stop(t.Context()); err != nil {
			t.Errorf("stopping again: %v", err)
		}
		<-srv.Done()
		if srv.Err() != nil {
			t.Errorf("ended with %v", srv.Err())
		}
	})
}

func TestStopBreaksOffWhatDoesNotEnd(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("over HTTP/%d", version), func(t *testing.T) {
			srv, err := pawl.Start(t.Context(), pawl.Config{Engine: pawl.EngineMemory, Listen: "127.0.0.1:0"})
			if err != nil {
				t.Fatal(err)
			}
			a := apiOf(t, srv.RESTConfig(), version)
			a.must("POST", configMaps, `{"metadata":{"name":"a"}}`)
			watch := a.watch(t.Context(), configMaps+"?watch=1")
			put := a.put(configMaps+"/a", `{"metadata":{"name":"a"},"data":{"k":"v"}}`)
			ctx, cancel := context.WithCancel(t.Context())
			stopped := make(chan error)
			go func() { stopped <- srv.Stop(ctx) }()
			<-watch.ended
			cancel()
			if err := <-stopped; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "requests were still under way and have been broken off") {
				t.Errorf("stopped with %v", err)
			}
			_ = put.finish() // nobody reads it
			if <-put.done; put.err == nil && put.code < 300 {
				t.Errorf("the PUT was answered with %d", put.code)
			}
			if err := srv.Stop(t.Context()); !errors.Is(err, context.Canceled) {
				t.Errorf("stopping again says how it ended, not %v", err)
			}
		})
	}
}

func TestWatchesUnderLoadEndAtAWholeEvent(t *testing.T) { // rule H214
	onBoth(t, func(t *testing.T, srv *pawl.Server, a *api) {
		const readers, writers = 20, 4
		var watches []*stream
		for range readers {
			watches = append(watches, a.watch(t.Context(), configMaps+"?watch=1"))
		}
		var writing sync.WaitGroup
		for w := range writers {
			writing.Go(func() {
				for i := 0; ; i++ {
					body := fmt.Sprintf(`{"metadata":{"name":"a%d-%d"},"data":{"k":"%s"}}`, w, i, strings.Repeat("x", 4000))
					if got, err := a.try(a.admin, "POST", configMaps, []byte(body)); err != nil || got.code != http.StatusCreated {
						return // the server stops
					}
				}
			})
		}
		for _, s := range watches {
			<-s.started
		}
		if err := srv.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		writing.Wait()
		for _, s := range watches {
			if <-s.ended; s.err != nil {
				t.Errorf("after %d events: %v", s.events, s.err)
			}
		}
	})
}

func TestAWatchEndsWhenItsDefinitionIsReplaced(t *testing.T) { // rule C28
	onBoth(t, func(t *testing.T, _ *pawl.Server, a *api) {
		a.must("POST", definitions, crd("widgets", "Widget", "Namespaced"))
		a.must("POST", "/apis/pawl.test/v1/namespaces/default/widgets", `{"kind":"Widget","apiVersion":"pawl.test/v1","metadata":{"name":"a"}}`)
		watch, other := a.watch(t.Context(), "/apis/pawl.test/v1/widgets?watch=1"), a.watch(t.Context(), configMaps+"?watch=1")
		<-watch.started
		a.must("PATCH", definitions+"/widgets.pawl.test", `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size","value":{"type":"integer"}}]`,
			"Content-Type", "application/json-patch+json")
		if <-watch.ended; watch.err != nil || watch.events != 1 {
			t.Errorf("ended after %d events with %v", watch.events, watch.err)
		}
		a.must("POST", configMaps, `{"metadata":{"name":"a"}}`)
		<-other.started // the watches of other resources go on
	})
}

// TestThousandsOfWatches opens many watches, writes once, and sees the write at each.
func TestThousandsOfWatches(t *testing.T) {
	const watches = 2000
	srv := pawltest.Start(t, pawl.Config{})
	for _, version := range []int{1, 2} {
		n := watches
		if version == 1 {
			n = 200 // each needs a connection
		}
		t.Run(fmt.Sprintf("%d over HTTP/%d", n, version), func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			a := apiOf(t, srv.RESTConfig(), version)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var open []*stream
			for range n {
				open = append(open, a.watch(ctx, configMaps+"?watch=1&resourceVersion="+a.newest()))
			}
			began := time.Now()
			a.must("POST", configMaps, fmt.Sprintf(`{"metadata":{"name":"a%d"}}`, version))
			for _, s := range open {
				<-s.started
			}
			t.Logf("a write reached %d watches in %v", n, time.Since(began))
			cancel()
			for _, s := range open {
				<-s.ended
			}
			a.http.CloseIdleConnections()
			if err := goleak.Find(before); err != nil {
				t.Errorf("the watches are gone, and something is left: %.3000v", err)
			}
		})
	}
}

// newest is the revision of the store.
func (a *api) newest() string {
	a.t.Helper()
	return a.must("GET", "/api/v1/namespaces?limit=1&labelSelector=none", "").resourceVersion()
}
