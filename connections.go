package pawl

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// lingerTime is how long connections on which nobody waits for an answer are left open when
// a server stops: what has been answered is on its way by then.
const lingerTime = 50 * time.Millisecond

// connections know on which connections somebody waits for an answer.
//
// They are there for the end. http.Server.Shutdown waits for the connections of HTTP/2 and not
// for their requests: a client that keeps one open, as all of them do, holds it up for a second,
// and one that has just dialed for five.
type connections struct {
	mu    sync.Mutex // guards what follows
	busy  map[net.Conn]struct{}
	quiet chan struct{} // closed when busy becomes empty; nil if nobody waits for that
}

// changed is told of every connection what it does now.
func (cs *connections) changed(c net.Conn, to http.ConnState) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if to == http.StateActive {
		if cs.busy == nil {
			cs.busy = map[net.Conn]struct{}{}
		}
		cs.busy[c] = struct{}{}
		return
	}
	delete(cs.busy, c)
	if len(cs.busy) == 0 && cs.quiet != nil {
		close(cs.quiet)
		cs.quiet = nil
	}
}

// whenQuiet returns a channel that is closed once nobody waits for an answer.
func (cs *connections) whenQuiet() <-chan struct{} {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if len(cs.busy) == 0 {
		quiet := make(chan struct{})
		close(quiet)
		return quiet
	}
	if cs.quiet == nil {
		cs.quiet = make(chan struct{})
	}
	return cs.quiet
}

func (cs *connections) isQuiet() bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.busy) == 0
}

// shutdown shuts a server down gracefully: no request is taken any more, and all are answered
// before their connections are closed. The error is that of ctx, if that ends first.
func (cs *connections) shutdown(ctx context.Context, srv *http.Server) error {
	down := make(chan error, 1)
	go func() { down <- srv.Shutdown(ctx) }()
	for {
		select {
		case err := <-down:
			return err
		case <-cs.whenQuiet():
		}
		select {
		case err := <-down:
			return err
		case <-time.After(lingerTime):
		}
		if cs.isQuiet() {
			_ = srv.Close() // the sockets go, whatever it says
			return nil
		}
	}
}
