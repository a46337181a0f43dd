package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const configMaps = "/api/v1/namespaces/default/configmaps"

// An event is one line of a watch.
type event struct {
	Type   string
	Object struct {
		Kind     string
		Code     int
		Metadata struct {
			Name, ResourceVersion string
			Annotations           map[string]string
		}
	}
	at time.Duration // since the watch began
}

// events decodes a watch to its end, each event with the time at which it came.
func events(t testing.TB, body io.ReadCloser, each func(event)) {
	t.Helper()
	defer body.Close()
	began, dec := time.Now(), json.NewDecoder(body)
	for {
		e := event{}
		switch err := dec.Decode(&e); err {
		case nil:
			e.at = time.Since(began)
			each(e)
		case io.EOF:
			return
		default:
			t.Errorf("a watch ended in the middle of an event: %v", err)
			return
		}
	}
}

// open begins a watch.
func open(t testing.TB, c *http.Client, query string) io.ReadCloser {
	t.Helper()
	resp, err := c.Get("http://memory" + configMaps + "?watch=1&" + query)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", resp.StatusCode, readAll(t, resp))
	}
	return resp.Body
}

// onBoth runs a test over HTTP/1.1 and over HTTP/2, in a bubble in which time passes as soon
// as nothing else happens.
func onBoth(t *testing.T, test func(t *testing.T, w *world, c *http.Client)) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("over HTTP/%d", version), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, allowAll{})
				network, stop := w.serve()
				c := network.client(version)
				test(t, w, c)
				c.CloseIdleConnections()
				stop()
			})
		})
	}
}

func TestAWatchOutlivesQuietTimesAndEndsOnTime(t *testing.T) { // rule H115
	onBoth(t, func(t *testing.T, w *world, c *http.Client) {
		body := open(t, c, "timeoutSeconds=600")
		w.must("POST", configMaps, `{"metadata":{"name":"a"}}`)
		time.AfterFunc(9*time.Minute, func() { w.must("POST", configMaps, `{"metadata":{"name":"b"}}`) })
		var got []string
		events(t, body, func(e event) { got = append(got, e.Object.Metadata.Name+" "+e.at.String()) })
		if want := "[a 0s b 9m0s]"; fmt.Sprint(got) != want {
			t.Errorf("saw %v, want %s", got, want)
		}
	})
}

func TestBookmarksComeEachMinuteAndJustBeforeTheEnd(t *testing.T) { // rule H112
	for _, c := range []struct{ name, query, want string }{
		{"who asks for bookmarks gets them", "timeoutSeconds=200&allowWatchBookmarks=true", "[1m0s 2m0s 3m0s 3m18s]"},
		{"who does not gets none", "timeoutSeconds=200", "[]"},
		{"a watch of a second has one at once", "timeoutSeconds=1&allowWatchBookmarks=true", "[0s]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, w *world, client *http.Client) {
				w.must("POST", configMaps, `{"metadata":{"name":"a"}}`)
				var at []time.Duration
				var last string
				events(t, open(t, client, c.query+"&resourceVersion="+fmt.Sprint(w.revision())), func(e event) {
					if e.Type == "BOOKMARK" {
						at, last = append(at, e.at), e.Object.Metadata.ResourceVersion
					}
				})
				if fmt.Sprint(at) != c.want {
					t.Errorf("bookmarks at %v, want %s", at, c.want)
				}
				if newest := fmt.Sprint(w.revision()); len(at) > 0 && last != newest {
					t.Errorf("the last bookmark is at %s, the store at %s", last, newest)
				}
			})
		})
	}
}

func TestTheEndOfTheStateIsMarkedOnce(t *testing.T) { // rule H110
	onBoth(t, func(t *testing.T, w *world, c *http.Client) {
		w.must("POST", configMaps, `{"metadata":{"name":"a"}}`)
		var got []string
		events(t, open(t, c, "timeoutSeconds=10&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"), func(e event) {
			got = append(got, e.Type+e.Object.Metadata.Annotations["k8s.io/initial-events-end"])
		})
		if want := "[ADDED BOOKMARKtrue BOOKMARK]"; fmt.Sprint(got) != want {
			t.Errorf("saw %v, want %s", got, want)
		}
	})
}

// That the store is closed beneath a watch is nothing that its client could do anything about but to
// come back, and so it is no ERROR.
func TestAWatchWhoseStoreIsClosedEndsWithoutAWord(t *testing.T) { // rule K83
	onBoth(t, func(t *testing.T, w *world, c *http.Client) {
		w.must("POST", configMaps, `{"metadata":{"name":"a"}}`)
		body := open(t, c, "")
		time.AfterFunc(time.Minute, func() { _ = w.engine.Close() })
		var got []string
		events(t, body, func(e event) { got = append(got, e.Type+" "+e.at.String()) })
		if want := "[ADDED 0s]"; fmt.Sprint(got) != want {
			t.Errorf("saw %v, want %s", got, want)
		}
	})
}

func TestDrainEndsWatchesBetweenTwoEvents(t *testing.T) { // rule H214
	onBoth(t, func(t *testing.T, w *world, c *http.Client) {
		body := open(t, c, "")
		for i := range 100 {
			w.must("POST", configMaps, fmt.Sprintf(`{"metadata":{"name":"a%d"},"data":{"k":"%s"}}`, i, strings.Repeat("x", 5000)))
		}
		drained := make(chan struct{})
		go func() { w.server.Drain(t.Context()); close(drained) }()
		seen := 0
		events(t, body, func(event) { seen++ })
		<-drained
		if seen > 100 {
			t.Errorf("saw %d events of 100", seen)
		}
		if rec := w.do("GET", configMaps, ""); rec.Code != http.StatusServiceUnavailable || rec.Header().Get("Retry-After") == "" || !strings.Contains(rec.Body.String(), "apiserver is shutting down") {
			t.Errorf("a request after that: %d %s", rec.Code, rec.Body)
		}
	})
}

func TestAClientThatTakesNothingIsLetGoAndNobodyNotices(t *testing.T) { // rule H120
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, allowAll{})
		network, stop := w.serve()
		defer stop()
		slow, err := network.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer slow.Close()
		askAndReadHeader(t, slow, configMaps+"?watch=1")

		c := network.client(1)
		defer c.CloseIdleConnections()
		body := open(t, c, "timeoutSeconds=120")
		const writes = 50
		for i := range writes {
			w.must("POST", configMaps, fmt.Sprintf(`{"metadata":{"name":"a%d"}}`, i))
		}
		seen, latest := 0, time.Duration(0)
		time.AfterFunc(watchWriteMax+time.Second, func() {
			if n := w.watches(); n != 1 {
				t.Errorf("%d watches a second after the slow one should be gone, want 1", n)
			}
		})
		events(t, body, func(e event) { seen, latest = seen+1, e.at })
		if seen != writes || latest != 0 {
			t.Errorf("the other client saw %d of %d events, the last after %v", seen, writes, latest)
		}
	})
}

// askAndReadHeader begins a request and reads nothing but the header of its answer.
func askAndReadHeader(t testing.TB, conn net.Conn, path string) {
	t.Helper()
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: memory\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReaderSize(conn, 16)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == "\r\n" {
			return
		}
	}
}

func TestABodyThatDoesNotComeIsNotWaitedForForever(t *testing.T) { // rule H213
	onBoth(t, func(t *testing.T, w *world, c *http.Client) {
		began := time.Now()
		body, feed := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://memory"+configMaps, body)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = feed.Write([]byte(`{"metadata":`)) }()
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text := readAll(t, resp)
		feed.Close()
		if took := time.Since(began); resp.StatusCode != http.StatusGatewayTimeout || took != writeTimeout ||
			!strings.Contains(text, "Timeout: request did not complete within the allotted timeout") {
			t.Errorf("after %v: %d %s", took, resp.StatusCode, text)
		}
	})
}

func TestAClientThatDoesNotReadItsListIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, allowAll{})
		network, stop := w.serve()
		w.must("POST", configMaps, fmt.Sprintf(`{"metadata":{"name":"a"},"data":{"k":"%s"}}`, strings.Repeat("x", 1<<19)))
		conn, err := network.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		askAndReadHeader(t, conn, configMaps)
		time.Sleep(readTimeout + answerMax + time.Second) // in the bubble
		n, err := io.Copy(io.Discard, conn)
		if n >= 1<<19 {
			t.Errorf("%d bytes were kept for a client that went away, %v", n, err)
		}
		stop()
	})
}

func TestAWatchEndsWhenItsResourceIsReplaced(t *testing.T) { // rule C28
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, allowAll{})
		old := w.catalogue.Catalogue().Lookup("test.example", "widgets")
		replaced, next := make(chan struct{}), *old
		next.Closed = replaced
		w.catalogue.Change(nil, &next)
		network, stop := w.serve()
		defer stop()
		for _, version := range []int{1, 2} {
			c := network.client(version)
			defer c.CloseIdleConnections()
			resp, err := c.Get("http://memory/apis/test.example/v1/widgets?watch=1")
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				began := time.Now()
				events(t, resp.Body, func(e event) { t.Errorf("unexpected: %+v", e) })
				if took := time.Since(began); took != 0 {
					t.Errorf("the watch ended %v after its resource", took)
				}
			}()
		}
		close(replaced)
	})
}

func (w *world) revision() uint64 {
	_, newest := w.engine.Revisions()
	return uint64(newest)
}

func (w *world) watches() int {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return w.server.watches
}

func TestHowLongAWatchLasts(t *testing.T) { // rule H115
	for _, c := range []struct {
		name        string
		seconds     int64
		least, most time.Duration
	}{
		{"as asked", 5, 5 * time.Second, 5 * time.Second},
		{"half an hour to an hour if nothing is asked", 0, watchLeast, 2 * watchLeast},
		{"the same if what is asked means nothing", -1, watchLeast, 2 * watchLeast},
		{"very long, and not no time at all", 1<<63 - 1, 24 * time.Hour, 1<<63 - 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := watchTime(c.seconds); got < c.least || got > c.most {
				t.Errorf("%v, want %v to %v", got, c.least, c.most)
			}
		})
	}
}
